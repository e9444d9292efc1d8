//! Who may call, over what, and how much of the server a caller may take; `SECURITY.md` has the threats behind it.

mod authorize;
mod certificates;
mod connections;
mod credentials;
mod error;
mod settings;
mod tokens;
mod watched;

pub(crate) use authorize::AuthorizeLayer;
pub(crate) use connections::{Door, connections};
pub(crate) use credentials::Credentials;
pub use error::CredentialError;
pub use settings::{FileOrOff, SecuritySettings};
pub use tokens::Scope;
