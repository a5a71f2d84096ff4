//! A TCP proxy that misbehaves on demand, between us and a service: it refuses, cuts, or swallows one direction.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What the proxy does with connections, those it has and those that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Passes everything on.
    Pass,
    /// Takes what the client sends, and loses it.
    SwallowToService,
    /// Takes what the service sends, and loses it.
    SwallowFromService,
    /// Takes no connection.
    Refuse,
}

/// The proxy; gone when it is dropped.
pub struct ChaosProxy {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<State>,
    mode: watch::Sender<Mode>,
    _end: DropGuard,
}

struct State {
    service: SocketAddr,
    /// Cancelled and replaced at each cut.
    line: watch::Sender<CancellationToken>,
    /// How many more bytes the client may send before the line is cut.
    allowance: AtomicU64,
}

impl ChaosProxy {
    /// A proxy in front of a service. Begun with [`Mode::Refuse`] its port is taken, but nobody listens on it.
    pub fn start(service: SocketAddr, mode: Mode) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let end = CancellationToken::new();
        let state = Arc::new(State {
            service,
            line: watch::Sender::new(CancellationToken::new()),
            allowance: AtomicU64::new(u64::MAX),
        });
        let (mode, modes) = watch::channel(mode);
        let serving = serve(socket, Arc::clone(&state), modes);
        tokio::spawn(end.clone().run_until_cancelled_owned(serving));
        Self {
            address,
            state,
            mode,
            _end: end.drop_guard(),
        }
    }

    /// From now on.
    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Cuts all connections; new ones are possible.
    pub fn cut(&self) {
        self.state.cut();
    }

    /// Cuts all connections once clients have sent this many bytes more.
    pub fn cut_after(&self, bytes: u64) {
        self.state.allowance.store(bytes, Ordering::SeqCst);
    }
}

impl State {
    fn cut(&self) {
        self.allowance.store(u64::MAX, Ordering::SeqCst);
        self.line.send_replace(CancellationToken::new()).cancel();
    }

    /// Whether the client may send this much.
    fn allow(&self, bytes: u64) -> bool {
        let spend = |left: u64| match left {
            u64::MAX => Some(left),
            left => left.checked_sub(bytes),
        };
        let spent = self.allowance.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend);
        spent.is_ok()
    }
}

async fn serve(socket: TcpSocket, state: Arc<State>, mut mode: watch::Receiver<Mode>) {
    if mode.wait_for(|mode| *mode != Mode::Refuse).await.is_err() {
        return;
    }
    let listener: TcpListener = socket.listen(64).unwrap();
    while let Ok((client, _)) = listener.accept().await {
        if *mode.borrow() == Mode::Refuse {
            continue;
        }
        let Ok(service) = TcpStream::connect(state.service).await else {
            continue;
        };
        let line = state.line.borrow().clone();
        let (from_client, to_client) = client.into_split();
        let (from_service, to_service) = service.into_split();
        let (up, down) = (mode.clone(), mode.clone());
        let state = Arc::clone(&state);
        tokio::spawn(line.run_until_cancelled_owned(async move {
            tokio::join!(
                pump(from_client, to_service, up, Mode::SwallowToService, Some(&*state)),
                pump(from_service, to_client, down, Mode::SwallowFromService, None),
            )
        }));
    }
}

/// Passes bytes one way until that side ends, and passes the end on, too.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mode: watch::Receiver<Mode>,
    swallowing: Mode,
    counted: Option<&State>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if *mode.borrow() == swallowing {
            continue;
        }
        if counted.is_some_and(|state| !state.allow(read as u64)) {
            return counted.into_iter().for_each(State::cut);
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
