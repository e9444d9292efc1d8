//! SIGTERM and SIGINT.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What tells the server to stop.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

/// The signal that came.
pub(crate) struct StopSignal(SignalKind);

impl StopSignals {
    /// From now on they no longer end the program by themselves.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.terminate.recv() => StopSignal(SignalKind::terminate()),
            _ = self.interrupt.recv() => StopSignal(SignalKind::interrupt()),
        }
    }
}

impl StopSignal {
    /// What shells say of a program that the signal ended.
    pub(crate) fn exit_code(&self) -> i32 {
        128 + self.0.as_raw_value()
    }
}
