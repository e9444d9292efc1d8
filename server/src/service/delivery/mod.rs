//! Receives the messages of a call: counts their bytes, limits their size and the time that they take, and decompresses
//! them, before tonic decodes them.

mod body;
mod call;
mod decompression;
mod error;
mod fields;
mod frames;
mod kind;
mod settings;

pub(super) use body::deliver;
pub(super) use call::DeliveredCall;
pub use error::DeliveryError;
pub(super) use kind::Kind;
pub use settings::DeliverySettings;
