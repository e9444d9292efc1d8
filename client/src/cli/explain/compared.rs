use hlorank_client::Ranking;
use hlorank_graph::{
    ConfigurationError, Configurations, FusionBatch, LayoutBatch, LayoutBatchBuilder, LayoutEntry,
};

use crate::cli::{
    configuration::default_number, input::FILE_LIMITS, job::Job, run_times::RunTimes,
};

/// The configurations that are explained: the best and the worst of a ranking, and between them the one that both are
/// compared with.
pub(super) struct Compared {
    /// All three, in this order.
    pub(super) configurations: Configurations,
    /// Their numbers in the order sent. The middle one may be none of those that were sent.
    pub(super) sent: [Option<usize>; 3],
    /// What the middle one is.
    pub(super) reference: &'static str,
}

impl Compared {
    /// Chooses them from a ranking with all scores. The middle one is the compiler's default; of fusions whose default is
    /// not known the program without fusion, and of other configurations whose default is not known the first one.
    pub(super) fn of(job: &Job<'_>, ranking: &Ranking) -> Result<Self, ConfigurationError> {
        let best = ranking.best.first().map_or(0, |ranked| ranked.config);
        let worst = worst(&ranking.scores).unwrap_or(best);
        let own_default = job.run_times.as_ref().and_then(RunTimes::default_config);
        let all = job.configurations;
        let selected = |number, reference| Self {
            configurations: all.select(&[best, number, worst]),
            sent: [Some(best), Some(number), Some(worst)],
            reference,
        };
        let beside = |configurations, reference| Self {
            configurations,
            sent: [Some(best), None, Some(worst)],
            reference,
        };
        Ok(match (own_default.or_else(|| default_number(all)), all) {
            (Some(number), _) => selected(number, "default"),
            (None, Configurations::Layout(batch)) => {
                beside(with_default(batch, best, worst)?, "default")
            }
            (None, Configurations::Fusion(batch)) => {
                beside(with_unfused(batch, best, worst)?, "unfused")
            }
            (None, Configurations::Tile(_) | Configurations::FeatureSet(_)) => selected(0, "first"),
        })
    }
}

/// Returns the number of the highest finite score.
fn worst(scores: &[f32]) -> Option<usize> {
    let finite = scores
        .iter()
        .enumerate()
        .filter(|(_, score)| score.is_finite());
    finite
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
        .map(|(number, _)| number)
}

fn with_default(
    batch: &LayoutBatch,
    best: usize,
    worst: usize,
) -> Result<Configurations, ConfigurationError> {
    let entries = |config| {
        (0..batch.slots())
            .map(|slot| batch.entry(config, slot))
            .collect::<Vec<_>>()
    };
    let mut three = LayoutBatchBuilder::new(batch.slots(), FILE_LIMITS);
    for layout in [
        entries(best),
        vec![LayoutEntry::DEFAULT; batch.slots()],
        entries(worst),
    ] {
        three.push(&layout)?;
    }
    Ok(Configurations::Layout(three.build()?))
}

fn with_unfused(
    batch: &FusionBatch,
    best: usize,
    worst: usize,
) -> Result<Configurations, ConfigurationError> {
    let bits = |config| {
        (0..batch.slots())
            .map(|slot| batch.is_fused(config, slot))
            .collect::<Vec<_>>()
    };
    let three = [bits(best), vec![false; batch.slots()], bits(worst)];
    Ok(Configurations::Fusion(FusionBatch::from_bits(
        batch.slots(),
        &three,
        &FILE_LIMITS,
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_the_last_one_that_can_run() {
        assert_eq!(worst(&[1.0, f32::INFINITY, 3.0, -2.0]), Some(2));
        assert_eq!(worst(&[f32::INFINITY]), None);
    }
}
