//! Translations between what clients send and what the handlers read: the form of JSON, compression, and the delivery of
//! messages within limits.

mod compression;
mod delivery;
mod header;
mod json;

pub(crate) use compression::Compression;
pub use delivery::DeliverySettings;
pub(crate) use delivery::{CallConnection, DeliveredCall, Gzip, MethodKind, OpenedCall, deliver};
pub(crate) use header::read_header;
pub(crate) use json::{JsonMethod, answer_json, openapi, translate_json};
