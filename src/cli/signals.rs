//! Ctrl-C and SIGTERM: the first asks the process to stop in good order, the second ends it at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What the signals have asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Take nothing new, and end what runs.
    pub(super) stop: CancellationToken,
    /// End now.
    pub(super) now: CancellationToken,
}

impl Signals {
    /// Listens from now on.
    pub(super) fn listen() -> std::io::Result<Self> {
        let signals = Self::default();
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let told = signals.clone();
        tokio::spawn(async move {
            for token in [&told.stop, &told.now] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                token.cancel();
            }
        });
        Ok(signals)
    }
}
