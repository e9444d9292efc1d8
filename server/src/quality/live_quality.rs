use std::{collections::BTreeMap, sync::Arc, time::Instant};

use hlorank_graph::{Digest, Task};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::{
    call::CallError,
    metrics::Metrics,
    model::Model,
    ranking_quality::{GraphQuality, QualitySummary},
    registry::Registry,
    store::{ReporterFilter, Subject},
    stored_measurements::{MeasuredList, StoredMeasurements},
};

/// How well model versions rank what clients measured.
pub(crate) struct LiveQuality {
    pub(super) registry: Arc<Registry>,
    pub(super) stored: Arc<StoredMeasurements>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) board: QualityBoard,
    /// Held by the comparison in progress.
    pub(super) comparing: Semaphore,
}

/// Maximum number of measurements of a graph that are replayed.
const MAX_REPLAYED: usize = 1_000;

/// Number of subjects that are read at a time.
const PAGE: usize = 1_000;

impl LiveQuality {
    pub(crate) fn new(
        registry: Arc<Registry>,
        stored: Arc<StoredMeasurements>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            registry,
            stored,
            metrics,
            board: QualityBoard::default(),
            comparing: Semaphore::new(1),
        }
    }

    /// Returns what is known of a version, by target.
    pub(crate) fn summaries(&self, model: Digest) -> BTreeMap<String, QualitySummary> {
        QualitySummary::by_key(self.board.graphs(model))
    }

    /// Returns the graphs that can be replayed, each on one target, and their tasks.
    pub(super) async fn subjects(&self) -> Result<Vec<(Subject, Task)>, CallError> {
        let store = self.stored.store()?;
        let mut all = Vec::<(Subject, Task)>::new();
        loop {
            let after = all.last().map(|(subject, _)| subject.clone());
            let count = PAGE.min(MAX_GRAPHS - all.len());
            let page = store.subjects(after, count).await?;
            all.extend_from_slice(&page);
            if page.len() < PAGE || all.len() >= MAX_GRAPHS {
                return Ok(all);
            }
        }
    }

    /// Replays the measurements of a graph on a target through some models of its task.
    pub(super) async fn replay(
        &self,
        subject: &Subject,
        models: &[&Arc<Model>],
    ) -> Result<(), CallError> {
        let list = self
            .stored
            .measured_list(subject, &ReporterFilter::Everyone, MAX_REPLAYED);
        let list = list.await?;
        for model in models {
            let started = Instant::now();
            // What cannot be ranked is noted as well, so that it is not replayed again.
            let quality = match &list {
                Some(list) if takes(model, list) => self.quality(model, list).await,
                _ => Ok(None),
            };
            let series = &self.metrics.quality;
            series.replayed(quality.is_ok(), started.elapsed());
            let found = (model.digest(), subject.clone());
            self.board.0.lock().insert(found, quality?);
        }
        Ok(())
    }

    async fn quality(
        &self,
        model: &Model,
        list: &MeasuredList,
    ) -> Result<Option<GraphQuality>, CallError> {
        let scores = self.stored.replay(model, list).await?;
        Ok(GraphQuality::new(
            &scores,
            &list.seconds,
            model.manifest().unit,
        ))
    }
}

/// Whether a model takes the columns of a graph of a feature set.
fn takes(model: &Model, list: &MeasuredList) -> bool {
    match (
        model.manifest().features.named(),
        list.graph.whole.feature_graph(),
    ) {
        (Some(set), Some(graph)) => {
            set.name() == graph.set() && set.node_features().len() == graph.columns()
        }
        (named, graph) => named.is_none() && graph.is_none(),
    }
}

/// Maximum number of graphs, each on one target, that are replayed: those that come first by target and hash.
const MAX_GRAPHS: usize = 10_000;

/// What replays found, by the digest of the model version and by graph and target; nothing if the measurements say nothing about a
/// ranking. It is lost when the server stops.
#[derive(Default)]
pub(crate) struct QualityBoard(Mutex<BTreeMap<(Digest, Subject), Option<GraphQuality>>>);

impl QualityBoard {
    pub(super) fn has(&self, model: Digest, subject: &Subject) -> bool {
        self.0.lock().contains_key(&(model, subject.clone()))
    }

    pub(super) fn get(&self, model: Digest, subject: &Subject) -> Option<GraphQuality> {
        *self.0.lock().get(&(model, subject.clone()))?
    }

    /// Forgets what was found for all others.
    pub(super) fn retain(&self, is_kept: impl Fn(&Digest, &Subject) -> bool) {
        self.0
            .lock()
            .retain(|(model, subject), _| is_kept(model, subject));
    }

    /// Returns what was found for a version, with the target of each graph.
    pub(super) fn graphs(&self, model: Digest) -> Vec<(String, GraphQuality)> {
        let replays = self.0.lock();
        let own = replays.iter().filter(|((of, _), _)| *of == model);
        own.filter_map(|((_, subject), quality)| Some((subject.target.clone(), (*quality)?)))
            .collect()
    }
}
