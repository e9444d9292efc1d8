//! What a server tells of its calls: ids, log lines, spans; and what it keeps to itself.
#![allow(clippy::unwrap_used, clippy::panic, reason = "how a test fails")]

mod access_log;
mod asking;
mod collector;
mod payloads;
mod request_ids;
mod spans;
