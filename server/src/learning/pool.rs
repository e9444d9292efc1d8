//! Learns from stored measurements of kernels that have the structure of the call's kernel.

use std::sync::Arc;

use hlorank_graph::Task;

use super::{Learner, Learning, Scores, lesson::KernelPool, predict::points};
use crate::{
    adaptation::{Measurement, Measurements, Pool},
    call::CallError,
    compute::Class,
    model::ScoreUnit,
    store::{Reporter, Subject},
    stored_measurements::MeasuredList,
};

/// Maximum number of kernels of a pool.
const MAX_KERNELS: usize = 8;

/// Maximum number of measurements of each.
const MAX_MEASURED: usize = 64;

impl Learning {
    /// Learns from the kernels of the structure of the call's kernel that were measured on a target, by one reporter if one is
    /// given. Returns nothing for other tasks.
    pub(super) async fn pooled(
        &self,
        learner: Learner<'_>,
        target: &str,
        reporter: Option<Reporter>,
    ) -> Option<Result<KernelPool, CallError>> {
        if learner.graph.task != Task::Tile {
            return None;
        }
        Some(self.kernel_pool(learner, target, reporter).await)
    }

    async fn kernel_pool(
        &self,
        learner: Learner<'_>,
        target: &str,
        reporter: Option<Reporter>,
    ) -> Result<KernelPool, CallError> {
        let subject = Subject {
            target: target.to_owned(),
            graph: learner.graph.hash,
        };
        let structure = learner.graph.whole.structure();
        let unit = learner.model.manifest().unit();
        let store = self.stored.store()?;
        let mut measured = Vec::new();
        for alike in store.alike(subject, structure, MAX_KERNELS).await? {
            let list = self
                .stored
                .measured_list(&alike, reporter.clone(), MAX_MEASURED)
                .await?;
            if let Some(list) = list {
                let scores = self.stored.replay(learner.model, &list).await?;
                measured.push(measurements(&list, &scores, unit));
            }
        }
        let prior = learner.model.manifest().prior();
        let learn = move |_| Pool::of(prior, &measured);
        let (pool, basis) = self.pool().run(Class::Bulk, learn).await?.value;
        Ok(KernelPool {
            pool: pool.map(Arc::new),
            basis,
        })
    }
}

fn measurements(list: &MeasuredList, scores: &[f32], unit: ScoreUnit) -> Measurements {
    let all: Vec<usize> = (0..list.seconds.len()).collect();
    let points = points(
        &list.configurations,
        &all,
        &Scores {
            values: scores,
            unit,
            expectation: None,
        },
    );
    let finite = points
        .into_iter()
        .zip(&list.seconds)
        .filter(|(point, _)| point.score.is_finite());
    let measured = finite.map(|(point, &seconds)| Measurement {
        point,
        seconds: Some(seconds),
        repeats: 1,
    });
    Measurements::of(measured.collect())
}
