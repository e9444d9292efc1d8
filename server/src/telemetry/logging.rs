//! Structured logs on standard error, written by a thread of their own.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    io::{self, IsTerminal as _, Write, stderr},
    panic::{PanicHookInfo, set_hook},
    sync::atomic::{AtomicUsize, Ordering},
    sync::{Arc, Weak},
    time::Duration,
};

use clap::ValueEnum;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::ParseError;

use super::LogFilter;

/// The format of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Keeps the log writer running. Dropping it waits at most one second for lines that are not written yet.
pub struct Logging {
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

/// Standard error, which counts the lines that cannot be written, as on a full disk.
struct StandardError {
    unwritten: Arc<AtomicUsize>,
}

/// Target of the spans that add the ids of a call to its log lines. They are enabled whatever the filter selects.
pub(super) const CALL_TARGET: &str = "call";

/// Maximum number of queued lines, of some hundred bytes each; further lines are dropped.
const MAX_QUEUED_LINES: usize = 1 << 14;

/// Interval between log lines about lost lines.
const LOST_LINES_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum length of a panic message in the log, in bytes.
const MAX_PANIC_MESSAGE: usize = 256;

/// Prints the log lines that `filter` selects to standard error. Calls do not wait for the
/// writer.
pub fn init(filter: &LogFilter, format: LogFormat) -> Result<Logging, ParseError> {
    let spans = format!("{CALL_TARGET}=error").parse()?;
    let filter = filter.to_env_filter()?.add_directive(spans);
    let (lines, logging) = start_writer();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(lines)
        .with_ansi(stderr().is_terminal())
        // It would report a failed write to the stream that failed, and panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => subscriber.with_target(false).init(),
        // A call has one span, and the list of spans would repeat it.
        LogFormat::Json => subscriber.json().with_span_list(false).init(),
    }
    set_hook(Box::new(log_panic));
    tokio::spawn(report_lost_lines(Arc::downgrade(&logging.lost)));
    Ok(logging)
}

/// Starts the thread that writes the lines, which takes them from a bounded queue.
fn start_writer() -> (NonBlocking, Logging) {
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
    let logging = Logging {
        lost: Arc::new(lost),
        _writer: writer,
    };
    (lines, logging)
}

impl Drop for Logging {
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
        stderr().write_all(line).inspect_err(|_| {
            self.unwritten.fetch_add(1, Ordering::Relaxed);
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        stderr().flush()
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
