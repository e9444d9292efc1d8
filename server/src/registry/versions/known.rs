use std::{collections::BTreeMap, mem::replace};

use super::version::{Stage, Version};

/// The known versions of one model, by number.
#[derive(Debug)]
pub(super) struct KnownVersions<M>(pub(super) BTreeMap<u64, Version<M>>);

impl<M> KnownVersions<M> {
    pub(super) fn get(&self, version: u64) -> Option<&Version<M>> {
        self.0.get(&version)
    }

    pub(super) fn get_mut(&mut self, version: u64) -> Option<&mut Version<M>> {
        self.0.get_mut(&version)
    }

    /// Returns the version numbers, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = u64> {
        self.0.keys().rev().copied()
    }

    /// Returns whether a version may serve, as far as is known.
    pub(super) fn is_usable(&self, version: u64) -> bool {
        self.get(version).is_some_and(Version::is_usable)
    }

    /// Returns whether a version may serve, and its folder is there.
    pub(super) fn is_available(&self, version: u64) -> bool {
        self.is_usable(version) && self.is_on_disk(version)
    }

    pub(super) fn is_on_disk(&self, version: u64) -> bool {
        self.get(version).is_some_and(|known| known.on_disk)
    }

    /// Returns whether a version is loaded or draining.
    pub(super) fn has_model(&self, version: u64) -> bool {
        self.get(version)
            .is_some_and(|known| known.stage.model().is_some())
    }

    /// Returns the model of a version that is loaded and not draining.
    pub(super) fn loaded_model(&self, version: u64) -> Option<&M> {
        match &self.get(version)?.stage {
            Stage::Loaded(model) => Some(model),
            _ => None,
        }
    }

    /// Sets the stage of a version, and returns its previous stage.
    pub(super) fn set_stage(&mut self, version: u64, stage: Stage<M>) -> Option<Stage<M>> {
        Some(replace(&mut self.get_mut(version)?.stage, stage))
    }

    /// Starts to drain loaded versions that are not wanted, and returns draining versions that are wanted to service.
    pub(super) fn drain_all_but(&mut self, wanted: &[u64]) {
        for (version, known) in &mut self.0 {
            // The stage is moved out so that its model can go on to the next one.
            let stage = replace(&mut known.stage, Stage::Unloaded);
            known.stage = match stage {
                Stage::Loaded(model) if !wanted.contains(version) => Stage::Draining(model),
                Stage::Draining(model) if wanted.contains(version) => Stage::Loaded(model),
                stage => stage,
            };
        }
    }

    /// Forgets versions that are neither on disk nor loaded.
    pub(super) fn forget_removed(&mut self) {
        self.0.retain(|_, known| known.exists());
    }
}
