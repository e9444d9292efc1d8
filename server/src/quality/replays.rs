use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::Task;
use tokio::{task::JoinHandle, time::sleep};

use super::live_quality::LiveQuality;
use crate::{
    call::CallError,
    model::Model,
    registry::VersionInUse,
    store::{MeasurementChange, MeasurementStore, Subject},
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
        let mut versions = self.quality.registry.changes();
        loop {
            // This comes before the pass looks at the versions, so that a change that the pass
            // misses begins the next one.
            versions.mark_unchanged();
            let is_complete = self.pass().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "stored measurements were not replayed");
                false
            });
            tokio::select! {
                changed = self.store.changed() => match changed {
                    MeasurementChange::Subjects(subjects) => {
                        self.quality.board.retain(|_, subject| !subjects.contains(subject));
                    }
                    MeasurementChange::All => self.quality.board.retain(|_, _| false),
                },
                alive = versions.changed() => {
                    if alive.is_err() {
                        return;
                    }
                }
                () = sleep(RETRY), if !is_complete => {}
            }
            sleep(BURST).await;
        }
    }

    /// Replays what the board lacks. Returns whether all succeeded.
    async fn pass(&self) -> Result<bool, CallError> {
        let in_use = self.quality.registry.serving().in_use();
        let subjects = self.quality.subjects().await?;
        // Graphs that were deleted, or that are not among the first any more, take no more memory.
        let kept: BTreeSet<&Subject> = subjects.iter().map(|(subject, _)| subject).collect();
        self.quality
            .board
            .retain(|_, subject| kept.contains(subject));
        let mut is_complete = true;
        let mut published = Instant::now();
        for (subject, task) in &subjects {
            let lacking = self.lacking(&in_use, subject, *task);
            if lacking.is_empty() {
                continue;
            }
            let started = Instant::now();
            let replayed = self.quality.replay(subject, &lacking).await;
            sleep(rest_after(started.elapsed(), self.share)).await;
            if let Err(error) = replayed {
                tracing::debug!(target = subject.target, graph = %subject.graph, %error, "a replay failed");
                is_complete = false;
            }
            // A pass over many graphs takes long, and the metrics show meanwhile what is known.
            if published.elapsed() >= PUBLISHED_EVERY {
                self.publish(&in_use);
                published = Instant::now();
            }
        }
        self.publish(&in_use);
        Ok(is_complete)
    }

    /// The models in use of a task that were not replayed on a graph.
    fn lacking<'a>(
        &self,
        in_use: &'a [VersionInUse],
        subject: &Subject,
        task: Task,
    ) -> Vec<&'a Arc<Model>> {
        let board = &self.quality.board;
        let models = in_use.iter().map(|version| &version.model);
        models
            .filter(|model| model.manifest().task == task && !board.has(model.digest(), subject))
            .collect()
    }

    /// Sets the metrics, and forgets versions that are not loaded any more.
    fn publish(&self, in_use: &[VersionInUse]) {
        let reports = self.quality.registry.models();
        let loaded: BTreeSet<_> = reports
            .iter()
            .filter_map(|report| Some(report.model.as_ref()?.digest()))
            .collect();
        self.quality.board.retain(|model, _| loaded.contains(model));
        let graphs = in_use.iter().map(|VersionInUse { role, model }| {
            (
                (model.manifest().name.clone(), role.name()),
                self.quality.board.graphs(model.digest()),
            )
        });
        self.quality.metrics.quality.publish(graphs);
    }
}

/// How long to rest after work, so that the work has its share of the time even if it used every thread.
fn rest_after(worked: Duration, share: f64) -> Duration {
    // Work w and rest r have the share w / (w + r), so that r is w · (1 / share − 1).
    worked.mul_f64(1.0 / share - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_makes_the_work_its_share() {
        let rest = |share| rest_after(Duration::from_secs(1), share);
        assert_eq!(rest(0.25), Duration::from_secs(3));
        assert_eq!(rest(1.0), Duration::ZERO);
    }
}
