//! Translations between what clients send and what the handlers read: the form of JSON, and the delivery of messages within limits.

mod delivery;
mod header;
mod json;

pub use delivery::DeliverySettings;
pub(crate) use delivery::{CallConnection, DeliveredCall, Gzip, MethodKind, OpenedCall, deliver};
pub(crate) use header::read_header;
pub(crate) use json::{JsonMethod, answer_json, openapi, translate_json};
