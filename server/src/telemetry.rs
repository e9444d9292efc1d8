//! Structured logs on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, filter::ParseError};

use crate::settings::LogFormat;

/// Prints the log lines that `filter` selects (tracing's directives) to standard error.
pub fn init(filter: &str, format: LogFormat) -> Result<(), ParseError> {
    let filter = EnvFilter::try_new(filter)?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // It would report a failed write on the very stream that failed, and panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => subscriber.with_target(false).init(),
        LogFormat::Json => subscriber.json().init(),
    }
    Ok(())
}
