//! What the server reports about its calls: log lines, spans, and the counters of [`metrics`](crate::metrics).
//!
//! [`observe`] is a layer around the handlers. It gives a call its id and its trace ([`request_id`], [`spans`])
//! and runs it inside a log span, so that every log line of the call has both. When the call ends, the layer counts
//! it, logs it and ends its trace span, which is sent to a collector ([`export`]). Services
//! write what they know about a call into its [`CallRecord`]. A change also has a line in the [`audit`] log.
//!
//! Log lines and spans hold nothing from a request but its id, and what the registry and the engine know. They hold no
//! names from a graph, no configurations, and no error messages, which quote both. Only the audit log has the names that a change is
//! about.

mod audit;
mod call;
mod call_record;
mod export;
mod logging;
mod observe_calls;
mod request_id;
mod spans;
mod variables;

pub(crate) use audit::{AuditedChange, audit, outcome};
pub(crate) use call::Observer;
pub use call_record::CallRecord;
pub use export::SpansError;
pub(crate) use export::Tracing;
pub use logging::{LogFilter, LogFormat, LogGuard, init};
pub(crate) use observe_calls::observe;
pub use variables::unread_variables;
