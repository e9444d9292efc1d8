//! The program `hlorank-server`: how it starts, what it logs and traces, and how it survives faults of its process. Each
//! test has a server of its own.

mod faults;
mod log_file;
mod reads;
mod settings;
mod starting;
mod telemetry;
