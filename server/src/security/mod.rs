//! TLS, bearer tokens and the limits of connections; `SECURITY.md` describes the threats behind them.

mod activity;
mod authorize;
mod certificates;
mod connection;
mod credentials;
mod gate;
mod hosts;
mod settings;
mod slots;
mod tokens;
mod trusted_proxies;
mod watched;

pub(crate) use activity::{ConnectionActivity, CountedCall};
pub(crate) use authorize::TokenCheck;
pub use authorize::TokenError;
pub(crate) use connection::Connection;
pub(crate) use credentials::Credentials;
pub(crate) use gate::ConnectionGate;
pub use hosts::{AllowedHosts, HostError};
pub use settings::SecuritySettings;
pub(crate) use slots::{Eviction, Slot};
pub use trusted_proxies::TrustedProxies;
pub use watched::CredentialError;
