//! Logs and metrics: how they are set up, once, at the start. Ids are logged; arguments, results, transcripts and
//! credentials never are.

use std::io::IsTerminal as _;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSettings};

/// The log could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("`log.level` = `{level}` cannot be read: {reason}; write `info`, or `countersign=debug,lapin=warn`")]
pub struct InvalidLevel {
    level: String,
    reason: String,
}

/// Writes the log to standard error from now on.
///
/// # Errors
/// The level cannot be read.
pub fn log(settings: &LogSettings) -> Result<(), InvalidLevel> {
    let filter = EnvFilter::try_new(&settings.level).map_err(|error| InvalidLevel {
        level: settings.level.clone(),
        reason: error.to_string(),
    })?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    // A second set-up in one process (a test) keeps the first.
    let _ = match settings.format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => log.json().try_init(),
    };
    Ok(())
}

/// Collects metrics from now on; the handle renders them.
#[must_use]
pub fn metrics() -> PrometheusHandle {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    // A second set-up in one process (a test) keeps the first.
    let _ = ::metrics::set_global_recorder(recorder);
    handle
}
