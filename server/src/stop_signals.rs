//! SIGTERM and SIGINT.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for the signals that stop the server.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

/// The signal that was received.
pub(crate) struct StopSignal(SignalKind);

impl StopSignals {
    /// Starts to listen. The signals no longer end the program by themselves.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> StopSignal {
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
