//! The versions of one model, and the decision which of them serve. Reading, checking and freeing is the loader's work.

mod choice;
mod known;
mod life_cycle;
mod version;

pub(super) use life_cycle::{ServedVersions, VersionReport, Versions};
