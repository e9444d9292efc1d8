//! Receives the messages of a call: counts their bytes, limits their size and the time that they take, and decompresses
//! them, before tonic decodes them.

mod body;
mod call;
mod decompression;
mod fields;
mod frames;
mod kind;
mod read_ahead;
mod settings;
mod waits;

pub(super) use body::{OpenedCall, deliver};
pub(super) use call::DeliveredCall;
pub(super) use decompression::{GRPC as GRPC_ENCODING, Gzip};
pub(super) use frames::PREFIX;
pub(super) use kind::Kind;
pub use settings::DeliverySettings;
