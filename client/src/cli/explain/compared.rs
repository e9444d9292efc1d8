use hlorank_client::Ranking;
use hlorank_graph::{ConfigurationError, Configurations};

use crate::cli::{
    configuration::{default_number, with_reference},
    job::Job,
    run_times::RunTimes,
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
        if let Some(number) = own_default.or_else(|| default_number(all)) {
            return Ok(selected(number, "default"));
        }
        let Some((configurations, reference)) = with_reference(all, best, worst)? else {
            return Ok(selected(0, "first"));
        };
        Ok(Self {
            configurations,
            sent: [Some(best), None, Some(worst)],
            reference,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_the_last_one_that_can_run() {
        assert_eq!(worst(&[1.0, f32::INFINITY, 3.0, -2.0]), Some(2));
        assert_eq!(worst(&[f32::INFINITY]), None);
    }
}
