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

/// The signal that was received.
pub(crate) struct StopSignal(SignalKind);

impl StopSignals {
    /// Starts to listen. The signals no longer end the program by themselves.
    pub(crate) fn new() -> io::Result<Self> {
        let (terminate, interrupt) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        );
        Ok(Self {
            terminate,
            interrupt,
            first: None,
        })
    }

    /// Waits for the next request to stop. Ignores signals within half a second of the first.
    pub(crate) async fn next(&mut self) -> StopSignal {
        loop {
            let signal = self.receive().await;
            match self.first {
                None => self.first = Some(Instant::now()),
                Some(first) if first.elapsed() < SAME_REQUEST => continue,
                Some(_) => {}
            }
            return signal;
        }
    }

    async fn receive(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.terminate.recv() => StopSignal(SignalKind::terminate()),
            _ = self.interrupt.recv() => StopSignal(SignalKind::interrupt()),
        }
    }
}

impl StopSignal {
    /// Returns the exit code that shells report for a program that the signal ended.
    pub(crate) fn exit_code(&self) -> i32 {
        128 + self.0.as_raw_value()
    }
}
