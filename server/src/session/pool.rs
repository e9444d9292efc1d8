//! Learns from stored measurements of kernels that have the structure of the call's kernel.

use std::{fmt::Display, sync::Arc};

use hlorank_graph::Task;

use super::{
    Session, SessionError,
    adapt::{Pooled, Scores, points},
    replay::MeasuredList,
};
use crate::{
    adaptation::{Measurement, Measurements, Pool, Prior},
    compute::Class,
    model::ScoreUnit,
    store::{Reporter, Subject},
};

/// Maximum number of kernels of a pool.
const MAX_KERNELS: usize = 8;

/// Maximum number of measurements of each.
const MAX_MEASURED: usize = 64;

impl Session {
    /// Learns from the kernels of the structure of the call's kernel that were measured on a target, by one reporter if one is
    /// given. Returns nothing for other tasks, and if the store cannot be read.
    pub(super) async fn pooled(
        &mut self,
        target: &str,
        reporter: Option<Reporter>,
    ) -> Option<Pooled> {
        if self.graph().task != Task::Tile {
            return None;
        }
        let pooled = self.pool(target, reporter).await;
        pooled
            .map_err(|error| self.warn_of_store(&error as &dyn Display))
            .ok()
    }

    async fn pool(&self, target: &str, reporter: Option<Reporter>) -> Result<Pooled, SessionError> {
        let (sessions, own) = (self.sessions(), self.shared_graph());
        let subject = Subject {
            target: target.to_owned(),
            graph: own.hash,
        };
        let structure = own.whole.structure();
        let unit = self.model().manifest().unit();
        let mut measured = Vec::new();
        for alike in sessions
            .store()?
            .alike(subject, structure, MAX_KERNELS)
            .await?
        {
            if let Some(list) = sessions
                .measured_list(&alike, reporter.clone(), MAX_MEASURED)
                .await?
            {
                let scores = sessions.replay(self.model(), &list).await?;
                measured.push(measurements(&list, &scores, unit));
            }
        }
        let learn = move |_| Pool::of(Prior::of(Task::Tile, unit), &measured);
        let (pool, basis) = sessions
            .engine()
            .pool()
            .run(Class::Bulk, learn)
            .await?
            .value;
        Ok(Pooled {
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
            pool: None,
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
