use std::{io, net::SocketAddr, time::SystemTimeError};

use crate::{
    model::ModelKeysError, registry::RegistryError, runtime::RuntimeError,
    security::CredentialError, store::OpenStoreError, telemetry::SpansError,
};

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The clock shows a time before 1970, which no HTTP answer and no check of a certificate can have.
    #[error("the clock of the system shows a time before 1970; set it, and start the server again")]
    Clock(#[from] SystemTimeError),
    /// ONNX Runtime is missing or broken.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// There are no models to serve.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The keys of models cannot be used.
    #[error(transparent)]
    ModelKeys(#[from] ModelKeysError),
    /// The compute threads cannot be started.
    #[error("cannot start the compute threads: {0}")]
    Threads(#[from] io::Error),
    /// Loading the models panicked.
    #[error("loading the models failed: {0}")]
    Loading(#[from] tokio::task::JoinError),
    /// Certificates or tokens cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The file of measurements cannot be used.
    #[error(transparent)]
    Measurements(#[from] OpenStoreError),
    /// The address is in use or not local.
    #[error("cannot listen on {address}: {source}; choose another with {flag}")]
    Listen {
        /// The flag that sets the address.
        flag: &'static str,
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The reflection service cannot read the built-in descriptors.
    #[error("server reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The settings for spans cannot be used.
    #[error("cannot send spans: {0}")]
    Spans(#[from] SpansError),
}
