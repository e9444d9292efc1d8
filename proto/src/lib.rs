//! Messages of the `hlorank.v1` wire contract, and the few messages of XLA, TpuGraphs and ONNX that are read.
//!
//! Generated at build time from the `.proto` files of this folder, whose comments are the documentation.
#![allow(
    missing_docs,
    clippy::large_enum_variant,
    clippy::pedantic,
    clippy::unwrap_used,
    reason = "generated code"
)]

pub mod methods;

/// The wire contract: `hlorank.v1`.
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/hlorank.v1.rs"));
}

/// The requests of the cost model service as the server receives them: `graph` and `batch` are still encoded.
#[cfg(feature = "grpc")]
pub mod received {
    include!(concat!(env!("OUT_DIR"), "/received/hlorank.v1.rs"));
}

/// The fields of XLA's messages that featurizing reads.
pub mod xla {
    include!(concat!(env!("OUT_DIR"), "/xla.rs"));
}

/// The fields of ONNX models that are checked before they run.
pub mod onnx {
    include!(concat!(env!("OUT_DIR"), "/onnx.rs"));
}

/// TpuGraphs' files of measured configurations.
pub mod tpu_graphs {
    include!(concat!(env!("OUT_DIR"), "/tpu_graphs.rs"));
}

/// Encoded `FileDescriptorSet` of all of the above, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
