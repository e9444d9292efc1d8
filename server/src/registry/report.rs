use std::{sync::Arc, time::SystemTime};

use super::versions::{VersionReport, Versions};
use crate::model::{Model, ModelState, Rejection};

/// What is known about one version of one model.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and they combine freely"
)]
pub struct ModelReport {
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
    pub model: Option<Arc<Model>>,
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

impl ModelReport {
    pub(super) fn new(
        versions: &Versions<Arc<Model>>,
        report: VersionReport<Arc<Model>>,
        default_for_task: bool,
    ) -> Self {
        let policy = versions.policy();
        let canary = policy
            .canary
            .filter(|split| split.version == report.version);
        // The policy may name a canary that is not loaded, which gets no graphs.
        let canary = canary.filter(|_| report.state == ModelState::Serving);
        Self {
            name: versions.name().to_owned(),
            version: report.version,
            state: report.state,
            since: report.since,
            rejection: report.rejection,
            model: report.model,
            stable: versions.stable() == Some(report.version),
            canary_percent: canary.map(|split| split.percent),
            pinned: policy.pinned == Some(report.version),
            default_for_task,
            folder_gone: !report.on_disk,
        }
    }
}
