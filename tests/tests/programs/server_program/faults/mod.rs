//! Faults of the process: signals, resource limits, files and clocks.

mod calls;
mod clock_jump;
mod descriptors;
mod drain;
mod frozen;
mod full_disk;
mod half_quota;
mod lost_log;
mod measurements;
mod models_vanish;
mod second_signal;
