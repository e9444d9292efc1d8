//! The layers that every call passes before its handler, as functions. From the outside to the inside:
//!
//! 1. [`translate_json`](crate::translations::translate_json) refuses what is no call, and gives calls with JSON the form of
//!    gRPC, so that all other layers and the handlers see one form.
//! 2. [`observe`](crate::telemetry::observe) counts, logs and traces calls. It is outside of the checks, so that rejected calls
//!    are seen, too.
//! 3. [`end_at_deadline`] ends the call and all that the layers inside do for it.
//! 4. [`explain`] gives the errors of tonic the form of ours.
//! 5. [`check_caller`] checks the host, then the token, and finds out whose call it is, which the limits per client need.
//! 6. [`admit`] comes last, because it takes a place for the call and begins to read its messages.

mod admit;
mod check_caller;
mod deadline;
mod explain;

pub(crate) use admit::{CallAdmission, admit};
pub(crate) use check_caller::{CallerChecks, check_caller};
pub(crate) use deadline::{end_at, end_at_deadline};
pub(crate) use explain::{explain, explained};
