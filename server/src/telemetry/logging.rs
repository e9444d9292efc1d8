//! Structured logs on standard error, written by a thread of their own.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    io::{self, IsTerminal as _, Write, stderr},
    panic::{PanicHookInfo, set_hook},
    sync::atomic::{AtomicUsize, Ordering},
    sync::{Arc, Weak},
    time::Duration,
};

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, filter::ParseError};

use crate::settings::LogFormat;

/// Log lines are written until this is dropped, which waits a second at most for those that were not.
pub struct Logging {
    lost: Arc<LostLines>,
    _writer: WorkerGuard,
}

/// Lines that found no room, or that could not be written.
struct LostLines {
    counted: ErrorCounter,
    unwritten: Arc<AtomicUsize>,
    told: AtomicUsize,
}

/// Counts the lines that it does not take, as on a full disk.
struct StandardError {
    unwritten: Arc<AtomicUsize>,
}

/// The target of the spans that give lines the ids of their call. They are there whatever the filter selects.
pub(super) const CALL: &str = "call";

/// Lines that may wait to be written, some hundred bytes each; one more is lost.
const WAITING_LINES: usize = 1 << 14;

/// How often lines that were lost are told.
const LOST_LINES_EVERY: Duration = Duration::from_secs(10);

/// Of the message of a panic, in bytes.
const PANIC_MESSAGE: usize = 256;

/// Prints the log lines that `filter` selects (tracing's directives) to standard error. No call waits until they are
/// written.
pub fn init(filter: &str, format: LogFormat) -> Result<Logging, ParseError> {
    let spans = format!("{CALL}=error").parse()?;
    let filter = EnvFilter::try_new(filter)?.add_directive(spans);
    let lines = NonBlockingBuilder::default().buffered_lines_limit(WAITING_LINES).thread_name("log");
    let unwritten = Arc::new(AtomicUsize::new(0));
    let (lines, writer) = lines.finish(StandardError { unwritten: Arc::clone(&unwritten) });
    let lost = Arc::new(LostLines { counted: lines.error_counter(), unwritten, told: AtomicUsize::new(0) });
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(lines)
        .with_ansi(stderr().is_terminal())
        // It would report a failed write on the very stream that failed, and panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => subscriber.with_target(false).init(),
        LogFormat::Json => subscriber.json().with_span_list(false).init(),
    }
    set_hook(Box::new(log_panic));
    tokio::spawn(tell_lost_lines(Arc::downgrade(&lost)));
    Ok(Logging { lost, _writer: writer })
}

impl Drop for Logging {
    fn drop(&mut self) {
        self.lost.tell();
    }
}

impl LostLines {
    fn tell(&self) {
        let lines = self.count();
        // If this line is lost as well, there is more to tell the next time.
        if self.told.swap(lines, Ordering::Relaxed) != lines {
            tracing::warn!(
                lines,
                "log lines were lost since the start: they cannot be written, or not as fast as they come"
            );
        }
    }

    fn count(&self) -> usize {
        self.counted.dropped_lines() + self.unwritten.load(Ordering::Relaxed)
    }
}

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        stderr().write(bytes)
    }

    /// Writes a line.
    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        stderr().write_all(line).inspect_err(|_| {
            self.unwritten.fetch_add(1, Ordering::Relaxed);
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        stderr().flush()
    }
}

async fn tell_lost_lines(lost: Weak<LostLines>) {
    loop {
        tokio::time::sleep(LOST_LINES_EVERY).await;
        let Some(lost) = lost.upgrade() else { return };
        lost.tell();
    }
}

/// A panic is a line like others, with the ids of its call.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or_default();
    let message = &message[..message.floor_char_boundary(PANIC_MESSAGE)];
    let place = panic.location().map(tracing::field::display);
    let backtrace = Backtrace::capture();
    let backtrace =
        (backtrace.status() == BacktraceStatus::Captured).then(|| tracing::field::display(&backtrace));
    tracing::error!(place, backtrace, "panic: {message}");
}
