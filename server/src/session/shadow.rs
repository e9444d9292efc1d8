//! Has a shadow version score what the stable version scored.

use std::{sync::Arc, time::Instant};

use hlorank_graph::{
    Configurations, EncodedBatch, SegmentedGraph,
    quality::{Outcome, PairCounts},
};
use tokio::sync::mpsc::error::TrySendError;

use super::{
    Bounds, Session, SessionError, Sessions, confidence::spread, score::CONFIG_BYTES,
    shadowed::ShadowedBatch,
};
use crate::compute::Class;

impl Session {
    /// A copy of a batch for its shadow, if there is one. A copy keeps the message of the batch in memory.
    pub(crate) fn copy_for_shadow(&self, batch: &EncodedBatch) -> Option<EncodedBatch> {
        self.shadow_version().map(|_| batch.clone())
    }

    /// Hands the copy of a batch to the shadow of the version that scored it, unless the shadow is busy.
    pub(crate) fn shadow(&self, copy: Option<EncodedBatch>) {
        let (Some(batch), Some(shadow)) = (copy, self.shadow_version()) else {
            return;
        };
        let (sessions, series, graph) = (self.sessions(), self.series(), self.shared_graph());
        let place = match sessions.shadowed().waiting.try_reserve() {
            Ok(place) => place,
            Err(TrySendError::Full(())) => return series.shadow.skipped.increment(1),
            Err(TrySendError::Closed(())) => return,
        };
        match sessions
            .engine()
            .memory()
            .hold(bytes(&batch, &graph, sessions.bounds()))
        {
            Err(_) => series.shadow.skipped.increment(1),
            Ok(held) => {
                let (stable, shadow, series) =
                    (self.shared_model(), Arc::clone(shadow), Arc::clone(series));
                place.send(ShadowedBatch {
                    batch,
                    graph,
                    stable,
                    shadow,
                    series,
                    held,
                });
            }
        }
    }
}

/// Bytes of a batch, which can outlive its call, while two versions score it.
fn bytes(batch: &EncodedBatch, graph: &SegmentedGraph, bounds: &Bounds) -> usize {
    let planned = graph.rows_per_config() * size_of::<u32>() + CONFIG_BYTES;
    batch.message_bytes()
        + 2 * batch.read_bytes(graph.slots(), &bounds.limits)
        + batch.count() * planned
}

impl Sessions {
    /// Scores a batch with both versions, behind all other work, and records how much they agree.
    pub(crate) async fn compare_with_shadow(&self, batch: ShadowedBatch) {
        let (started, series) = (Instant::now(), Arc::clone(&batch.series));
        match self.shadow_scores(batch).await {
            Ok([stable, shadow]) => {
                let [same, other] = pairs(&stable, &shadow);
                series.shadow.compared.increment(1);
                series.shadow.same_order.increment(same);
                series.shadow.other_order.increment(other);
            }
            Err(error) => {
                tracing::debug!(%error, "a shadow could not score a batch");
                series.shadow.failed.increment(1);
            }
        }
        self.metrics().quality.replay_took(started.elapsed());
    }

    async fn shadow_scores(&self, batch: ShadowedBatch) -> Result<[Vec<f32>; 2], SessionError> {
        let ShadowedBatch {
            batch,
            graph,
            stable,
            shadow,
            ..
        } = &batch;
        let (encoded, whole, limits) = (batch.clone(), Arc::clone(graph), self.bounds().limits);
        let read = move || -> Result<Configurations, SessionError> {
            let field = encoded.field();
            let read = encoded.read(whole.task, &whole.configurable, &limits);
            Ok(spread(&read.map_err(|source| {
                SessionError::Configuration { field, source }
            })?))
        };
        let some = self.pool().run(Class::Bulk, move |_| read()).await?.value?;
        let stable = self
            .score_in_background(stable, graph, some.clone())
            .await?;
        Ok([stable, self.score_in_background(shadow, graph, some).await?])
    }
}

/// Numbers of pairs that the shadow orders as the stable version does, and of other pairs. Pairs that the stable version gives
/// equal scores are not counted.
fn pairs(stable: &[f32], shadow: &[f32]) -> [u64; 2] {
    let outcome = |(&stable, &shadow): (&f32, &f32)| Outcome {
        run_time: stable.into(),
        score: shadow.into(),
    };
    let outcomes: Vec<Outcome> = stable.iter().zip(shadow).map(outcome).collect();
    let Some(pairs) = PairCounts::of(&outcomes) else {
        return [0; 2];
    };
    let same = pairs.concordant();
    [same, pairs.all - pairs.equal_run_times - same]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_both_versions_order_are_counted() {
        assert_eq!(pairs(&[1.0, 2.0, 3.0], &[-5.0, 0.0, 9.0]), [3, 0]);
        assert_eq!(pairs(&[1.0, 2.0, 3.0], &[9.0, 0.0, -5.0]), [0, 3]);
        assert_eq!(pairs(&[1.0, 1.0, 3.0], &[1.0, 2.0, 3.0]), [2, 0]);
    }
}
