//! SIGTERM and SIGINT.

use std::{
    io,
    time::{Duration, Instant},
};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Time after the first signal in which further signals belong to it. `timeout`, and a shell after Ctrl-C, signal both
/// the program and its process group, so that one request to stop arrives as two signals within a millisecond.
const SAME_REQUEST: Duration = Duration::from_millis(500);

/// Listens for the signals that stop the server.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    first: Option<Instant>,
}

impl StopSignals {
    /// Starts to listen. The signals no longer end the program by themselves.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            first: None,
        })
    }

    /// Waits for the next request to stop. Ignores signals within half a second of the first. Returns the exit code that
    /// shells report for a program that the signal ended.
    pub(crate) async fn next(&mut self) -> i32 {
        loop {
            let signal = tokio::select! {
                _ = self.terminate.recv() => SignalKind::terminate(),
                _ = self.interrupt.recv() => SignalKind::interrupt(),
            };
            match self.first {
                None => self.first = Some(Instant::now()),
                Some(first) if first.elapsed() < SAME_REQUEST => continue,
                Some(_) => {}
            }
            return 128 + signal.as_raw_value();
        }
    }
}
