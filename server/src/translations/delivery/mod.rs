//! Receives the messages of a call: counts their bytes, limits their size and the time that they take, and decompresses
//! them, before tonic decodes them. tonic's own decoder would decompress a message in one go on an async thread, and nobody
//! would have counted what it becomes: 65 kB of gzip become 64 MiB, which takes 0.3 s.

mod body;
mod call;
mod decompression;
mod fields;
mod frames;
mod read_ahead;
mod settings;

pub(crate) use body::{OpenedCall, deliver};
pub(crate) use call::{CallConnection, DeliveredCall, MethodKind};
pub(crate) use decompression::Gzip;
pub use settings::DeliverySettings;
