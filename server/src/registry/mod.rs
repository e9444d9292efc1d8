//! The life cycle of model versions: which versions exist, which of them serve, and how a new version takes over.
//!
//! Threads of low priority scan the model folder, load and check versions, and publish the serving versions through one
//! atomic pointer. A request keeps the version that it began with. A version that no longer serves is freed after its
//! last request.

mod admin;
mod admin_error;
mod catalogue;
mod error;
mod folder;
mod handle;
mod lanes;
mod loader;
mod policy;
mod policy_change;
mod policy_error;
mod policy_lock;
mod report;
mod selection;
mod serving;
mod settings;
mod shared;
mod validation;
mod version_loader;
mod versions;
mod watch;

pub use admin_error::AdminError;
pub use error::{RegistryError, ScanError};
pub use handle::Registry;
pub use policy::{CanarySplit, Policy};
pub use policy_change::PolicyChange;
pub use policy_error::PolicyError;
pub use report::ModelReport;
pub use selection::{Role, SelectError, Selection, VersionInUse, Wanted};
pub use settings::{Defaults, RegistrySettings};
