use std::collections::{BTreeMap, BTreeSet};

use hlorank_graph::Digest;
use parking_lot::{Mutex, MutexGuard};

use crate::{ranking_quality::GraphQuality, store::Subject};

/// What replays found, by the digest of the model version. It is lost when the server stops.
#[derive(Default)]
pub(crate) struct Board {
    versions: Mutex<BTreeMap<Digest, ReplayedGraphs>>,
}

/// What was found for each graph on each target; nothing if its measurements say nothing about a ranking.
type ReplayedGraphs = BTreeMap<Subject, Option<GraphQuality>>;

/// Maximum number of graphs, each on one target, that are replayed: those that come first by target and hash.
pub(super) const MAX_GRAPHS: usize = 10_000;

impl Board {
    pub(super) fn has(&self, model: Digest, subject: &Subject) -> bool {
        self.versions()
            .get(&model)
            .is_some_and(|replayed| replayed.contains_key(subject))
    }

    pub(super) fn get(&self, model: Digest, subject: &Subject) -> Option<GraphQuality> {
        self.versions().get(&model)?.get(subject).copied().flatten()
    }

    pub(super) fn set(&self, model: Digest, subject: Subject, quality: Option<GraphQuality>) {
        self.versions()
            .entry(model)
            .or_default()
            .insert(subject, quality);
    }

    /// Forgets what was found for a graph whose measurements changed.
    pub(super) fn forget(&self, subject: &Subject) {
        for replayed in self.versions().values_mut() {
            replayed.remove(subject);
        }
    }

    pub(super) fn clear(&self) {
        self.versions().clear();
    }

    /// Keeps only what was found for these graphs.
    pub(super) fn retain_subjects(&self, subjects: &BTreeSet<&Subject>) {
        let retain = |replayed: &mut ReplayedGraphs| {
            replayed.retain(|subject, _| subjects.contains(subject));
        };
        self.versions().values_mut().for_each(retain);
    }

    /// Keeps only what was found for these versions.
    pub(super) fn retain_models(&self, models: &BTreeSet<Digest>) {
        self.versions().retain(|model, _| models.contains(model));
    }

    /// Returns what was found for a version, with the target of each graph.
    pub(super) fn graphs(&self, model: Digest) -> Vec<(String, GraphQuality)> {
        let versions = self.versions();
        let replayed = versions.get(&model).into_iter().flatten();
        replayed
            .filter_map(|(subject, quality)| Some((subject.target.clone(), (*quality)?)))
            .collect()
    }

    fn versions(&self) -> MutexGuard<'_, BTreeMap<Digest, ReplayedGraphs>> {
        self.versions.lock()
    }
}
