//! What happens to the process: signals, limits, files and clocks that fail it. Each test has a server of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "how a test fails, and figures"
)]

mod asking;
mod clock_jump;
mod descriptors;
mod drain;
mod frozen;
mod full_disk;
mod half_quota;
mod lost_log;
mod models_vanish;
mod port_in_use;
mod second_signal;
