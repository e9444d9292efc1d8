//! Which calls are let in: limits on arriving calls, on requests in flight and on the memory that each client's calls hold.

mod accounts;
mod arrivals;
mod caller;
mod error;
mod gate;
mod in_flight;
mod place;

pub(crate) use arrivals::Arrival;
pub(crate) use caller::{AdminScope, Caller, TokenName};
pub use error::{AdmissionError, AdmissionLimit};
pub(crate) use gate::{Admission, Calls};
pub(crate) use place::Place;
