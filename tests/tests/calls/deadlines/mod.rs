//! A call ends at its deadline with the reason, and its work stops.

mod expired;
mod long_runs;
mod partial;
mod request;
mod too_short;
