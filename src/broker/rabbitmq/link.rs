//! One connection with one channel, its topology declared: opened once, used until it breaks, never repaired. lapin's
//! own recovery stays off: it hides a cut, and does not cover a channel that the broker closed.

use std::net::{Shutdown, TcpStream as StdTcpStream};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapin::tcp::OwnedTLSConfig;
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{AsyncTcpStream, Channel, Connection, ConnectionProperties};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::board::Part;
use super::declare::declare;
use super::failure::Failure;
use super::shared::Shared;

/// How long the handshake, and then the declarations, may take. A peer that accepts and says nothing is no broker.
const OPENING: Duration = Duration::from_secs(9);
/// How long a close in good order may take, before the socket is simply shut.
const CLOSING: Duration = Duration::from_secs(3);

/// A connection and its channel.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) connection: Connection,
    pub(super) channel: Channel,
    socket: Socket,
}

impl Link {
    /// Connects, opens a channel and declares the topology.
    pub(super) async fn open(shared: &Shared, part: Part) -> Result<Arc<Self>, Failure> {
        let socket = Socket::default();
        let opened = timeout(OPENING, Self::connect(shared, part, socket.clone())).await;
        let link = match opened {
            Ok(link) => Arc::new(link?),
            Err(_) => {
                // lapin has no time-out for its handshake: without this its thread would wait for ever.
                socket.shut();
                return Err(Failure::passing(
                    "handshake",
                    "the handshake was not answered in time",
                ));
            }
        };
        shared.register(&link);
        let declared = timeout(OPENING, declare(&link.channel, shared)).await;
        match declared.unwrap_or_else(|_| {
            Err(Failure::passing(
                "declare",
                "the declarations were not answered in time",
            ))
        }) {
            Ok(()) => Ok(link),
            Err(failure) => {
                link.close().await;
                Err(failure)
            }
        }
    }

    async fn connect(shared: &Shared, part: Part, socket: Socket) -> Result<Self, Failure> {
        let settings = &shared.settings;
        let failed = |error: lapin::Error| Failure::opening(&error, &shared.address);
        let name = format!("{} {part}", settings.connection_name);
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let runtime = lapin::runtime::default_runtime().map_err(failed)?;
        let (reactor, dialling) = (runtime.clone(), socket.clone());
        let dial = async move |uri: AMQPUri, _| {
            let authority = &uri.authority;
            let endpoints: Vec<_> = lookup_host((authority.host.as_str(), authority.port))
                .await?
                .collect();
            let stream = AsyncTcpStream::connect(&reactor, endpoints.as_slice()).await?;
            if let AsyncTcpStream::Plain(stream) = &stream {
                dialling.hold(stream.get_ref())?;
            }
            match uri.scheme {
                AMQPScheme::AMQP => Ok(stream),
                AMQPScheme::AMQPS => Ok(stream
                    .into_tls(&authority.host, OwnedTLSConfig::default().as_ref())
                    .await?),
            }
        };
        let uri = shared.address.uri(settings.heartbeat);
        let connection = Connection::connector(uri, runtime, dial, properties)
            .await
            .map_err(failed)?;
        let channel = connection.create_channel().await.map_err(failed)?;
        Ok(Self {
            connection,
            channel,
            socket,
        })
    }

    /// Closes in good order, or else shuts the socket. Deliveries that came over it go back to their queue.
    pub(super) async fn close(&self) {
        let _ = timeout(CLOSING, self.connection.close(200, "closed".into())).await;
        self.socket.shut();
    }
}

/// A second handle on the socket below lapin's connection, so that a connection which is stuck can be ended.
#[derive(Clone, Debug, Default)]
struct Socket(Arc<Mutex<Option<StdTcpStream>>>);

impl Socket {
    fn hold(&self, stream: &TcpStream) -> std::io::Result<()> {
        let handle = stream.as_fd().try_clone_to_owned()?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(StdTcpStream::from(handle));
        Ok(())
    }

    fn shut(&self) {
        if let Some(stream) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // An error says that it is closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
