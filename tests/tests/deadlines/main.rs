//! A call ends at its deadline, says so, and nothing goes on for it.

mod expired;
mod long_runs;
mod partial;
mod request;
mod too_short;
