//! The life cycle of model versions: which versions exist, which of them serve, and how a new version takes over.
//!
//! Facts have one place each. The disk has the versions (`folder`) and what operators chose (`policy`).
//! `versions` has the state of each version of one model and decides which of them serve; `catalogue` has those of all models, behind
//! one lock. What requests see is `serving`, an immutable snapshot behind one atomic pointer, so that no call waits for a lock; a
//! request keeps the version that it began with, which is freed after its last request. `CatalogueState` ties these together: every
//! change of the catalogue publishes the next snapshot.
//!
//! One thread, `loader`, scans the folder when it changes and hands each version that is wanted to a lane (`lanes`), where
//! `version_loader` reads, checks and warms it up on threads of its own (`validation_engine`, `golden`), with low priority. A version
//! that hangs costs a lane, not the others. `handle` is what the server sees, and `admin` makes the changes that operators ask for.

mod admin;
mod catalogue;
mod error;
mod folder;
mod golden;
mod handle;
mod lanes;
mod loader;
mod policy;
mod serving;
mod settings;
mod validation_engine;
mod version_loader;
mod versions;

pub use admin::PolicyChange;
pub use error::{AdminError, RegistryError, ScanError};
pub use handle::Registry;
pub use policy::PolicyError;
pub use policy::{CanarySplit, Policy};
pub use serving::ServingModels;
pub use serving::{Role, SelectError, Selection, VersionInUse, VersionSelector};
pub use settings::{Defaults, RegistrySettings};
pub use versions::ModelReport;
