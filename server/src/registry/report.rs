use std::{sync::Arc, time::SystemTime};

use crate::model::{Model, ModelState, Rejection};

/// What is known about one version of one model. `M` is a loaded version.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and they combine freely"
)]
pub struct ModelReport<M = Arc<Model>> {
    /// Name of the model.
    pub name: String,
    /// Version number, from 1.
    pub version: u64,
    /// Life-cycle state.
    pub state: ModelState,
    /// When the version entered that state.
    pub since: SystemTime,
    /// Why the version was rejected, if it was.
    pub rejection: Option<Rejection>,
    /// The model, if it is loaded.
    pub model: Option<M>,
    /// Whether requests that name no version reach it, except those that the canary serves.
    pub stable: bool,
    /// The percentage of graphs that it serves as the canary.
    pub canary_percent: Option<u8>,
    /// Whether the policy pins it.
    pub pinned: bool,
    /// Whether requests that name no model reach this model.
    pub default_for_task: bool,
    /// Whether its folder was removed.
    pub folder_gone: bool,
}
