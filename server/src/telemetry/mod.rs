//! What the server tells of its calls while they run and once they have ended: log lines, spans, and the counts of
//! [`metrics`](crate::metrics).
//!
//! [`ObserveCallsLayer`] goes around the services and does all of it: it gives a call its id and its trace
//! ([`request_id`], [`trace_context`]), runs it inside a span of the log, so that every line has both, sees how it
//! ends, and then counts it, logs it ([`access_log`]) and ends its span ([`spans`]), which goes to a collector
//! ([`export`]). Services only leave what they know
//! of a call in its [`CallRecord`].
//!
//! No line and no span has anything of a request but its id and what the registry and the engine know: no names from a
//! graph, no configurations, no messages of refusals, which quote them.

mod access_log;
mod call_record;
mod export;
mod logging;
mod observe_calls;
mod request_id;
mod spans;
mod trace_context;

pub(crate) use access_log::AccessLog;
pub use call_record::CallRecord;
pub use export::ExporterBuildError;
pub(crate) use export::Tracing;
pub use logging::{Logging, init};
pub(crate) use observe_calls::{ObserveCallsLayer, Observer};
