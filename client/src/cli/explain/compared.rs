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
        // A default that was sent is preferred, because it has a number and perhaps a run time.
        if let Some(number) = own_default.or_else(|| default_number(all)) {
            return Ok(Self::of_sent(all, [best, number, worst], "default"));
        }
        let Some((configurations, reference)) = with_reference(all, best, worst)? else {
            return Ok(Self::of_sent(all, [best, 0, worst], "first"));
        };
        Ok(Self {
            configurations,
            sent: [Some(best), None, Some(worst)],
            reference,
        })
    }

    fn of_sent(all: &Configurations, numbers: [usize; 3], reference: &'static str) -> Self {
        Self {
            configurations: all.select(&numbers),
            sent: numbers.map(Some),
            reference,
        }
    }
}

/// Returns the number of the highest finite score.
fn worst(scores: &[f32]) -> Option<usize> {
    // An infinite score says that a kernel is too large for the model, and not how slow it is.
    let numbered = scores.iter().enumerate();
    let finite = numbered.filter(|(_, score)| score.is_finite());
    let worst = finite.max_by(|(_, one), (_, other)| one.total_cmp(other));
    worst.map(|(number, _)| number)
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
