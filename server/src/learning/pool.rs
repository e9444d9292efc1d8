//! Learns from stored measurements of kernels that have the structure of the call's kernel.

use std::sync::Arc;

use hlorank_graph::Task;

use super::{Learner, Learning, learn::Source, lesson::KernelPool, predict::points_of_measured};
use crate::{
    adaptation::{Measurement, Measurements, Pool},
    call::CallError,
    compute::Class,
    model::ScoreUnit,
    stored_measurements::MeasuredList,
};

/// Maximum number of kernels of a pool.
const MAX_KERNELS: usize = 8;

/// Maximum number of measurements of each.
const MAX_MEASURED: usize = 64;

impl Learning {
    /// Learns from the kernels of the structure of the call's kernel that were measured. Returns nothing for other tasks.
    pub(super) async fn pooled(
        &self,
        learner: Learner<'_>,
        source: &Source,
    ) -> Result<Option<KernelPool>, CallError> {
        if learner.graph.task != Task::Tile {
            return Ok(None);
        }
        let measured = self.kernels_alike(learner, source).await?;
        let prior = learner.model.manifest().prior();
        let learn = move |_| Pool::of(prior, &measured);
        let (pool, basis) = self.pool().run(Class::Bulk, learn).await?.value;
        Ok(Some(KernelPool {
            pool: pool.map(Arc::new),
            basis,
        }))
    }

    /// The stored measurements of other kernels with the structure of the call's kernel, with the
    /// model's scores.
    async fn kernels_alike(
        &self,
        learner: Learner<'_>,
        source: &Source,
    ) -> Result<Vec<Measurements>, CallError> {
        let subject = source.subject(learner.graph);
        let structure = learner.graph.whole.structure();
        let unit = learner.model.manifest().unit();
        let alike = self.stored.store()?.alike(subject, structure, MAX_KERNELS);
        let mut measured = Vec::new();
        // Lists are read one by one, so that the memory of one is free again before the next.
        for kernel in alike.await? {
            let list = self
                .stored
                .measured_list(&kernel, &source.whose, MAX_MEASURED);
            if let Some(list) = list.await? {
                let scores = self.stored.replay(learner.model, &list).await?;
                measured.push(measurements(&list, &scores, unit));
            }
        }
        Ok(measured)
    }
}

fn measurements(list: &MeasuredList, scores: &[f32], unit: ScoreUnit) -> Measurements {
    let points = points_of_measured(&list.configurations, scores, unit).into_iter();
    let finite = points
        .zip(&list.seconds)
        .filter(|(point, _)| point.score.is_finite());
    let measured = finite.map(|(point, &seconds)| Measurement {
        point,
        seconds: Some(seconds),
        repeats: 1,
    });
    Measurements::of(measured.collect())
}
