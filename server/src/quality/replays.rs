use std::{
    collections::BTreeSet,
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{task::JoinHandle, time::sleep};

use super::{budget::Budget, live_quality::LiveQuality};
use crate::{
    call::CallError,
    model::Model,
    registry::VersionInUse,
    store::{Changed, MeasurementStore},
};

/// Replays stored measurements through the versions in use, in the background.
pub(crate) struct Replays {
    pub(crate) quality: Arc<LiveQuality>,
    pub(crate) store: Arc<MeasurementStore>,
    /// Maximum share of the time of the compute threads.
    pub(crate) share: f64,
}

/// Replays that go on until this is dropped.
pub(crate) struct RunningReplays(JoinHandle<()>);

/// Time for further reports of a burst.
const BURST: Duration = Duration::from_secs(1);

/// Time until replays that failed are tried again.
const RETRY: Duration = Duration::from_mins(1);

/// Minimum time between updates of the metrics.
const PUBLISHED_EVERY: Duration = Duration::from_secs(1);

impl Drop for RunningReplays {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Replays {
    /// Starts to replay what changed.
    pub(crate) fn start(self) -> RunningReplays {
        RunningReplays(tokio::spawn(self.run()))
    }

    async fn run(self) {
        let mut versions = self.quality.registry().changes();
        let budget = Budget::new(self.share);
        loop {
            versions.mark_unchanged();
            let is_complete = self.pass(&budget).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "stored measurements were not replayed");
                false
            });
            let retry = async {
                if is_complete {
                    pending::<()>().await;
                } else {
                    sleep(RETRY).await;
                }
            };
            tokio::select! {
                changed = self.store.changed() => self.forget(&changed),
                alive = versions.changed() => {
                    if alive.is_err() {
                        return;
                    }
                }
                () = retry => {}
            }
            sleep(BURST).await;
        }
    }

    fn forget(&self, changed: &Changed) {
        match changed {
            Changed::Subjects(subjects) => {
                for subject in subjects {
                    self.quality.board.forget(subject);
                }
            }
            Changed::All => self.quality.board.clear(),
        }
    }

    /// Replays what the board lacks. Returns whether all succeeded.
    async fn pass(&self, budget: &Budget) -> Result<bool, CallError> {
        let in_use = self.quality.registry().in_use();
        let subjects = self.quality.subjects().await?;
        self.quality
            .board
            .retain_subjects(&subjects.iter().map(|(subject, _)| subject).collect());
        let mut is_complete = true;
        let mut published = Instant::now();
        for (subject, task) in &subjects {
            let of_task = in_use
                .iter()
                .filter(|version| version.model.manifest().task() == *task);
            let models: Vec<Arc<Model>> =
                of_task.map(|version| Arc::clone(&version.model)).collect();
            let lacks = |model: &&Arc<Model>| !self.quality.board.has(model.digest(), subject);
            let lacking: Vec<&Arc<Model>> = models.iter().filter(lacks).collect();
            if lacking.is_empty() {
                continue;
            }
            if let Err(error) = budget.spend(self.quality.replay(subject, &lacking)).await {
                tracing::debug!(target = subject.target, graph = %subject.graph, %error, "a replay failed");
                is_complete = false;
            }
            if published.elapsed() >= PUBLISHED_EVERY {
                self.publish(&in_use);
                published = Instant::now();
            }
        }
        self.publish(&in_use);
        Ok(is_complete)
    }

    /// Sets the metrics, and forgets versions that are not loaded any more.
    fn publish(&self, in_use: &[VersionInUse]) {
        let reports = self.quality.registry().models();
        let loaded: BTreeSet<_> = reports
            .iter()
            .filter_map(|report| Some(report.model.as_ref()?.digest()))
            .collect();
        self.quality.board.retain_models(&loaded);
        let graphs = in_use.iter().map(|VersionInUse { role, model }| {
            (
                (model.manifest().name.clone(), role.name()),
                self.quality.board.graphs(model.digest()),
            )
        });
        self.quality.series().publish(graphs);
    }
}
