//! Which calls are let in: limits on arriving calls, on requests in flight and on the memory that each client's calls hold.
//!
//! A call has a [`Place`] from its headers to the last byte of its answer: there it holds its memory, in the account of its client.
//! Until its first message has arrived it is an [`Arrival`], and may have to make room for another; then it counts as in flight,
//! or is rejected. Nothing waits here: work that is let in waits in the queues of the engine.

mod arrivals;
mod error;
mod gate;

pub(crate) use arrivals::Arrival;
pub use error::{AdmissionError, AdmissionLimit};
pub(crate) use gate::{Admission, LimitedCalls, Place};
