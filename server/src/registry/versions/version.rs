use std::{mem::replace, time::SystemTime};

use hlorank_graph::Digest;

use crate::{
    clock::now,
    model::{ModelState, Rejection},
};

/// One version of a model. `M` is a loaded version.
#[derive(Debug)]
pub(super) struct Version<M> {
    pub(super) fingerprint: Digest,
    pub(super) on_disk: bool,
    pub(super) stage: Stage<M>,
    /// The state that was logged last, and the time of that change.
    pub(super) reported: ModelState,
    pub(super) since: SystemTime,
    /// Whether to load the version again although it was rejected. Only an operator, changed files and a failure that may
    /// pass set it; a policy that names the version does not.
    pub(super) retry: bool,
    /// The number of the scan that found its folder.
    pub(super) found_in: u64,
    /// The number of the scan that found its folder gone.
    pub(super) gone_since: Option<u64>,
    /// Number of the last attempt to load the version.
    pub(super) attempt: u64,
}

/// How far a version is.
#[derive(Debug)]
pub(super) enum Stage<M> {
    Discovered,
    Validating,
    Warming,
    Loaded(M),
    /// Loaded, but no new request reaches it. It is unloaded when its last request has ended.
    Draining(M),
    Rejected(Rejection),
    Unloaded,
}

impl<M> Version<M> {
    /// Returns a version whose folder was found by the scan with this number.
    pub(super) fn new(fingerprint: Digest, scan: u64) -> Self {
        Self {
            fingerprint,
            on_disk: true,
            stage: Stage::Discovered,
            reported: ModelState::Discovered,
            since: now(),
            retry: false,
            found_in: scan,
            gone_since: None,
            attempt: 0,
        }
    }

    /// The model of a loaded or draining version.
    pub(super) fn model(&self) -> Option<&M> {
        match &self.stage {
            Stage::Loaded(model) | Stage::Draining(model) => Some(model),
            _ => None,
        }
    }

    /// Tries the version again if it was rejected.
    pub(super) fn retry(&mut self) {
        self.retry = matches!(self.stage, Stage::Rejected(_));
    }

    /// Notes that the version is in a state. Returns whether that is a change.
    pub(super) fn report(&mut self, state: ModelState) -> bool {
        let changed = self.reported != state;
        if changed {
            (self.reported, self.since) = (state, now());
        }
        changed
    }

    /// Starts to drain a loaded version that is not wanted, and returns a draining version that is wanted to service.
    pub(super) fn drain_unless(&mut self, wanted: bool) {
        // The stage is moved out so that its model can go on to the next one.
        self.stage = match replace(&mut self.stage, Stage::Unloaded) {
            Stage::Loaded(model) if !wanted => Stage::Draining(model),
            Stage::Draining(model) if wanted => Stage::Loaded(model),
            stage => stage,
        };
    }

    /// Returns whether the version could be loaded, as far as is known.
    pub(super) fn is_loadable(&self) -> bool {
        self.on_disk
            && match self.stage {
                Stage::Discovered | Stage::Unloaded => true,
                Stage::Rejected(_) => self.retry,
                _ => false,
            }
    }

    /// Returns whether the version is being loaded.
    pub(super) fn is_loading(&self) -> bool {
        matches!(self.stage, Stage::Validating | Stage::Warming)
    }

    /// Returns whether the version may serve, as far as is known.
    pub(super) fn is_usable(&self) -> bool {
        match self.stage {
            Stage::Loaded(_) | Stage::Draining(_) => true,
            Stage::Rejected(_) => self.retry && self.on_disk,
            _ => self.on_disk,
        }
    }
}
