//! The REST form of the Open Inference Protocol, version 2: its paths become those of the gRPC form, and its JSON the messages.

mod answer;
mod calls;
mod path;
mod request;

pub(super) use answer::write_message;
pub use calls::RestCalls;
pub(super) use path::RestPath;
pub(super) use request::read_message;
