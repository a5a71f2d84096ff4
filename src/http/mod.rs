//! What a process answers over HTTP: whether it lives, whether it is ready, and its metrics. The API and the pages
//! belong here, too.
//!
//! The room reads; it never calls the path, the broker's queues or the engine. axum is used nowhere else.

mod health;

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use health::Health;

/// The address could not be listened on.
#[derive(Debug, thiserror::Error)]
#[error("`http.listen` = {address} cannot be used")]
pub struct ListenError {
    address: SocketAddr,
    source: std::io::Error,
}

/// A bound address, before anything is answered.
pub struct Bound(TcpListener);

/// Takes the address.
///
/// # Errors
/// It is taken, or not this machine's.
pub async fn bind(address: SocketAddr) -> Result<Bound, ListenError> {
    TcpListener::bind(address)
        .await
        .map(Bound)
        .map_err(|source| ListenError { address, source })
}

impl Bound {
    /// Answers until it is stopped.
    pub async fn serve(self, health: Health, stop: CancellationToken) {
        let served = axum::serve(self.0, health::routes(health))
            .with_graceful_shutdown(async move { stop.cancelled().await })
            .await;
        if let Err(error) = served {
            tracing::error!(%error, "requests are not answered any more");
        }
    }
}
