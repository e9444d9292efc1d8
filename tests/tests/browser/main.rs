//! Pages in a real browser: the status page of the server, and the page of a ranking.
#![allow(clippy::unwrap_used, clippy::panic, reason = "how a test fails")]

mod browser;
mod looks;
mod report;
mod status_page;
