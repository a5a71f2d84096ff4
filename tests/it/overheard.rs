//! What was said while a test ran: its log lines, and its metrics. Lines are those of the test's own thread, so the
//! test must run on a current-thread runtime, which is what `#[tokio::test]` makes.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// Keeps the log lines from its creation on.
pub struct Overheard {
    lines: Lines,
    _listening: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Overheard {
    /// Listens at the level `info`, to what this project says.
    pub fn listen() -> Self {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter("countersign=info")
            .with_ansi(false)
            .with_writer(lines.clone())
            .finish();
        Self {
            lines,
            _listening: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The lines that contain this text.
    pub fn lines(&self, text: &str) -> Vec<String> {
        let said = self.lines.0.lock().unwrap();
        let said = String::from_utf8_lossy(&said);
        said.lines()
            .filter(|line| line.contains(text))
            .map(str::to_owned)
            .collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The metrics of this process, from the first call on.
pub fn metrics() -> &'static PrometheusHandle {
    static METRICS: OnceLock<PrometheusHandle> = OnceLock::new();
    METRICS.get_or_init(|| PrometheusBuilder::new().install_recorder().unwrap())
}
