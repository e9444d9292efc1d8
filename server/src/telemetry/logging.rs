//! Structured logs on standard error, written by a thread of their own.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    io::{self, Write, stderr},
    panic::{PanicHookInfo, set_hook},
    str::FromStr,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    thread::sleep,
    time::Duration,
};

use clap::ValueEnum;
use hlorank_graph::{escaped, without_error_numbers};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt as _,
    util::{SubscriberInitExt as _, TryInitError},
};

/// The format of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Which log lines are printed: levels, and modules with their levels such as `h2=debug`, separated by commas.
#[derive(Clone, Debug, PartialEq)]
pub struct LogFilter(Targets);

/// Keeps the log writer running. Dropping it waits at most one second for lines that are not written yet.
pub struct LogGuard {
    lost: Arc<LostLines>,
    _writer: WorkerGuard,
}

/// Counts the lines that were dropped from the full queue or could not be written.
struct LostLines {
    dropped: ErrorCounter,
    unwritten: Arc<AtomicUsize>,
    /// The count that was logged last.
    reported: AtomicUsize,
}

/// Standard error, which counts the lines that cannot be written, as on a full disk. Every line passes here, so this is where text from
/// outside, such as a name or the error of a library, loses the letters that would begin another line or control a terminal.
struct StandardError {
    unwritten: Arc<AtomicUsize>,
}

/// Target of the spans that add the ids of a call to its log lines. They are enabled whatever the filter selects.
pub(super) const CALL_TARGET: &str = "call";

/// Maximum number of queued lines, of some hundred bytes each; further lines are dropped.
const MAX_QUEUED_LINES: usize = 1 << 14;

/// Minimum interval between batches of lines.
const LINES_INTERVAL: Duration = Duration::from_millis(5);

/// Interval between log lines about lost lines.
const LOST_LINES_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum length of a panic message in the log, in bytes.
const MAX_PANIC_MESSAGE: usize = 256;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Prints the log lines that `filter` selects to standard error. Calls do not wait for the
/// writer.
pub fn init(filter: &LogFilter, format: LogFormat) -> Result<LogGuard, TryInitError> {
    let filter = filter
        .0
        .clone()
        .with_target(CALL_TARGET, LevelFilter::ERROR);
    let (lines, logging) = start_writer();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(lines)
        // Colours would be escaped like those of names.
        .with_ansi(false)
        // It would report a failed write to the stream that failed, and panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => subscriber
            .with_target(false)
            .finish()
            .with(filter)
            .try_init()?,
        // A call has one span, and the list of spans would repeat it.
        LogFormat::Json => {
            let subscriber = subscriber.json().with_span_list(false);
            subscriber.finish().with(filter).try_init()?;
        }
    }
    set_hook(Box::new(log_panic));
    tokio::spawn(report_lost_lines(Arc::downgrade(&logging.lost)));
    Ok(logging)
}

/// Starts the thread that writes the lines, which takes them from a bounded queue.
fn start_writer() -> (NonBlocking, LogGuard) {
    let unwritten = Arc::new(AtomicUsize::new(0));
    let (lines, writer) = NonBlockingBuilder::default()
        .buffered_lines_limit(MAX_QUEUED_LINES)
        .thread_name("log")
        .finish(StandardError {
            unwritten: Arc::clone(&unwritten),
        });
    let lost = LostLines {
        dropped: lines.error_counter(),
        unwritten,
        reported: AtomicUsize::new(0),
    };
    let logging = LogGuard {
        lost: Arc::new(lost),
        _writer: writer,
    };
    (lines, logging)
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.lost.report();
    }
}

impl LostLines {
    fn report(&self) {
        let lines = self.count();
        // If this line is lost as well, the next report counts it.
        if self.reported.swap(lines, Ordering::Relaxed) != lines {
            tracing::warn!(
                lines,
                "log lines were lost since the start: standard error cannot be written, or not fast enough"
            );
        }
    }

    fn count(&self) -> usize {
        self.dropped.dropped_lines() + self.unwritten.load(Ordering::Relaxed)
    }
}

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        stderr().write(bytes)
    }

    /// Writes one line.
    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        let line = String::from_utf8_lossy(line);
        let line = without_error_numbers(line.trim_end_matches('\n'));
        let line = escaped(&line);
        stderr()
            .write_all(format!("{line}\n").as_bytes())
            .inspect_err(|_| {
                self.unwritten.fetch_add(1, Ordering::Relaxed);
            })
    }

    /// Is called when no line is left. The thread then waits for more lines, so that calls that end meanwhile need not wake it.
    fn flush(&mut self) -> io::Result<()> {
        stderr().flush()?;
        sleep(LINES_INTERVAL);
        Ok(())
    }
}

async fn report_lost_lines(lost: Weak<LostLines>) {
    loop {
        tokio::time::sleep(LOST_LINES_INTERVAL).await;
        let Some(lost) = lost.upgrade() else { return };
        lost.report();
    }
}

/// Logs a panic as one line, with the ids of its call.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or_default();
    let message = &message[..message.floor_char_boundary(MAX_PANIC_MESSAGE)];
    let place = panic.location().map(tracing::field::display);
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured)
        .then(|| tracing::field::display(&backtrace));
    tracing::error!(place, backtrace, "panic: {message}");
}

impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(str::trim).try_for_each(check)?;
        text.parse().map(Self).map_err(|error| {
            format!("expected levels and modules, such as `info,h2=debug`: {error}")
        })
    }
}

/// Checks a directive for what tracing accepts, though no line can match it: a word that is no level is to tracing a module
/// of which every line is printed, so that `warning` would hide all lines of the server.
fn check(directive: &str) -> Result<(), String> {
    let is_level = |level: &&str| directive.eq_ignore_ascii_case(level);
    let (module, has_level) = match directive.split_once('=') {
        Some((module, _)) => (module, true),
        None => (directive, LEVELS.iter().any(is_level)),
    };
    if !has_level {
        return Err(format!(
            "`{directive}` is no level; expected off, error, warn, info, debug or trace, or MODULE=LEVEL, such as `info,h2=debug`"
        ));
    }
    if module.contains('-') {
        return Err(format!(
            "`{module}` is no module, whose names have `_` in place of `-`, such as `hlorank_server`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_with_a_level_are_filters() {
        for text in [
            "info",
            "WARN",
            "info,notify=warn",
            "off,hlorank_server=debug",
            "access=off",
            "hlorank_server::registry=trace",
        ] {
            assert!(text.parse::<LogFilter>().is_ok(), "{text}");
        }
    }

    #[test]
    fn words_that_would_hide_every_line_are_refused() {
        for text in [
            "",
            "warning",
            "verbose",
            "info,",
            "infos",
            "3x",
            "info,h2",
            "hlorank_server",
        ] {
            let error = text.parse::<LogFilter>().unwrap_err();
            assert!(
                error.contains("is no level; expected off, error, warn"),
                "{text}: {error}"
            );
        }
        for text in [
            "hlorank-server=debug",
            "hlorank_server=verbose",
            "info,[call{request_id=a}]=debug",
        ] {
            assert!(text.parse::<LogFilter>().is_err(), "{text}");
        }
    }
}
