//! TLS, bearer tokens and the limits of connections; `SECURITY.md` describes the threats behind them.

mod activity;
mod authorize;
mod certificates;
mod connections;
mod credentials;
mod error;
mod settings;
mod tokens;
mod watched;

pub(crate) use activity::ConnectionActivity;
pub(crate) use authorize::AuthorizeLayer;
pub(crate) use connections::{ConnectionGate, connections};
pub(crate) use credentials::Credentials;
pub use error::CredentialError;
pub use settings::{FileOrOff, SecuritySettings};
pub use tokens::Scope;
