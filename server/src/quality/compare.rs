use std::sync::Arc;

use hlorank_adaptation::split_mix::{below, mix};
use hlorank_graph::pace;

use super::LiveQuality;
use crate::{
    call::CallError,
    compute::Class,
    model::Model,
    ranking_quality::{GraphQuality, QualitySummary},
};

/// How two model versions rank the same measurements.
pub(crate) struct Comparison {
    /// Each version on the graphs that both rank.
    pub(crate) versions: [QualitySummary; 2],
    /// 95 % interval of the second's mean minus the first's.
    pub(crate) tau: [f64; 2],
    /// The same of the share of pairs.
    pub(crate) ordered_pairs: [f64; 2],
    /// The same of the slowdown of the top pick.
    pub(crate) regret: [f64; 2],
    pub(crate) verdict: Verdict,
}

/// Which version ranks better, by Kendall's tau.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// There are too few graphs, or the interval of the difference contains 0.
    Undecided,
    First,
    Second,
}

/// Intervals of fewer graphs are too narrow.
const MIN_GRAPHS: usize = 5;

/// Number of draws. The ends of the interval change by about a twentieth of its width from seed to seed.
const DRAWS: usize = 2_000;

/// The same graphs have the same interval.
const SEED: u64 = 0x5EED;

/// Share of the draws below the interval, and above it.
const TAIL: f64 = 0.025;

impl LiveQuality {
    /// Compares two versions of one task on all kept measurements, or on those of a target. Replays what the board lacks,
    /// behind other work. One comparison runs at a time.
    pub(crate) async fn compare(
        &self,
        versions: [&Arc<Model>; 2],
        target: Option<&str>,
    ) -> Result<Comparison, CallError> {
        let _turn = self.comparing.acquire().await;
        let task = versions[0].manifest().task;
        let mut pairs = Vec::new();
        for (subject, of) in self.subjects().await? {
            if of != task || target.is_some_and(|target| target != subject.target) {
                continue;
            }
            let lacks = |version: &&Arc<Model>| !self.board.has(version.digest(), &subject);
            let lacking: Vec<&Arc<Model>> = versions.into_iter().filter(lacks).collect();
            if !lacking.is_empty() {
                self.replay(&subject, &lacking).await?;
            }
            // Both versions count on the graphs that both can rank, or one would have the easier
            // ones.
            let found = versions.map(|version| self.board.get(version.digest(), &subject));
            if let [Some(first), Some(second)] = found {
                pairs.push([first, second]);
            }
        }
        let compare = move |_| Comparison::new(&pairs);
        Ok(self.stored.pool().run(Class::Bulk, compare).await?.value)
    }
}

impl Comparison {
    fn new(pairs: &[[GraphQuality; 2]]) -> Self {
        let version = |number: usize| pairs.iter().map(|pair| pair[number]).collect::<Vec<_>>();
        let versions = [0, 1].map(|number| QualitySummary::new(&version(number)));
        // Versions are compared graph by graph, because graphs differ more from each other than
        // versions do.
        let differences = pairs.iter().map(|[first, second]| {
            [
                second.tau - first.tau,
                second.ordered_pairs - first.ordered_pairs,
                second.regret - first.regret,
            ]
        });
        let differences: Vec<[f64; 3]> = differences.collect();
        let [tau, ordered_pairs, regret] = if pairs.is_empty() {
            [[0.0; 2]; 3]
        } else {
            intervals(&differences)
        };
        Self {
            versions,
            tau,
            ordered_pairs,
            regret,
            verdict: match tau {
                _ if pairs.len() < MIN_GRAPHS => Verdict::Undecided,
                [low, _] if low > 0.0 => Verdict::Second,
                [_, high] if high < 0.0 => Verdict::First,
                _ => Verdict::Undecided,
            },
        }
    }
}

/// Returns a 95 % interval of the mean of each of `N` differences over graphs, by a bootstrap over the graphs: as many graphs
/// as there are, drawn with replacement, for all differences the same ones.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "there are far fewer than 2^53 graphs, and places are from 0 to DRAWS - 1"
)]
fn intervals<const N: usize>(graphs: &[[f64; N]]) -> [[f64; 2]; N] {
    let mut means = [const { Vec::new() }; N];
    let mut state = SEED;
    for _ in pace::in_steps(1, 0..DRAWS) {
        let mut sums = [0.0; N];
        for _ in graphs {
            // One number draws a graph for all differences, which are not independent of each other.
            state = state.wrapping_add(1);
            let drawn = graphs[below(mix(state), graphs.len())];
            for (sum, difference) in sums.iter_mut().zip(drawn) {
                *sum += difference;
            }
        }
        for (means, sum) in means.iter_mut().zip(sums) {
            means.push(sum / graphs.len() as f64);
        }
    }
    means.map(|mut means| {
        means.sort_unstable_by(f64::total_cmp);
        [TAIL, 1.0 - TAIL].map(|part| means[(part * (DRAWS - 1) as f64).round() as usize])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(taus: &[[f64; 2]]) -> Vec<[GraphQuality; 2]> {
        let quality = |tau| GraphQuality {
            measured: 3,
            tau,
            ordered_pairs: 0.5,
            regret: 0.1,
            time: None,
        };
        taus.iter().map(|pair| pair.map(quality)).collect()
    }

    #[test]
    fn the_version_with_the_larger_tau_on_every_graph_ranks_better() {
        let better = pairs(&[[0.1, 0.5], [0.2, 0.4], [0.3, 0.6], [0.2, 0.3], [0.5, 0.7]]);
        let comparison = Comparison::new(&better);
        assert_eq!(comparison.verdict, Verdict::Second);
        assert!(comparison.tau[0] > 0.0 && comparison.regret == [0.0; 2]);
        let swapped: Vec<_> = better
            .iter()
            .map(|[first, second]| [*second, *first])
            .collect();
        assert_eq!(Comparison::new(&swapped).verdict, Verdict::First);
    }

    #[test]
    fn few_graphs_and_mixed_ones_decide_nothing() {
        assert_eq!(
            Comparison::new(&pairs(&[[0.1, 0.9]; 4])).verdict,
            Verdict::Undecided
        );
        let mixed = pairs(&[[0.1, 0.5], [0.5, 0.1], [0.2, 0.5], [0.5, 0.3], [0.4, 0.4]]);
        assert_eq!(Comparison::new(&mixed).verdict, Verdict::Undecided);
        assert_eq!(Comparison::new(&[]).verdict, Verdict::Undecided);
    }

    #[test]
    fn the_interval_of_equal_differences_is_that_difference() {
        assert_eq!(intervals(&[[0.25, -1.0]; 7]), [[0.25, 0.25], [-1.0, -1.0]]);
    }

    #[test]
    fn the_interval_is_about_two_standard_errors_on_each_side() {
        // 100 graphs, half 0 and half 1: the standard error of their mean is 0.05.
        let graphs: Vec<[f64; 1]> = (0..100).map(|graph| [f64::from(graph % 2)]).collect();
        let [[low, high]] = intervals(&graphs);
        assert!(
            (low - 0.4).abs() < 0.02 && (high - 0.6).abs() < 0.02,
            "{low} {high}"
        );
        assert_eq!(intervals(&graphs), [[low, high]], "every time");
    }
}
