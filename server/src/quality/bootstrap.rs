use hlorank_graph::pace;

use crate::split_mix::{below, mix};

/// Number of draws. The ends of the interval change by about a twentieth of its width from seed to seed.
const DRAWS: usize = 2_000;

/// The same graphs have the same interval.
const SEED: u64 = 0x5EED;

/// Share of the draws below the interval, and above it.
const TAIL: f64 = 0.025;

/// Returns a 95 % interval of the mean of each of `N` differences over graphs, by a bootstrap over the graphs: as many graphs
/// as there are, drawn with replacement, for all differences the same ones.
pub(super) fn intervals<const N: usize>(graphs: &[[f64; N]]) -> [[f64; 2]; N] {
    let mut means = [const { Vec::new() }; N];
    let mut state = SEED;
    for _ in pace::in_steps(1, 0..DRAWS) {
        let drawn = drawn_means(graphs, &mut state);
        for (means, mean) in means.iter_mut().zip(drawn) {
            means.push(mean);
        }
    }
    means.map(|mut means| {
        means.sort_unstable_by(f64::total_cmp);
        [TAIL, 1.0 - TAIL].map(|part| means[place(part)])
    })
}

/// The mean of each difference over as many graphs as there are, drawn with replacement.
#[expect(
    clippy::cast_precision_loss,
    reason = "there are far fewer than 2^53 graphs"
)]
fn drawn_means<const N: usize>(graphs: &[[f64; N]], state: &mut u64) -> [f64; N] {
    let mut sums = [0.0; N];
    for _ in graphs {
        // One number draws a graph for all differences, which are not independent of each other.
        *state = state.wrapping_add(1);
        let drawn = graphs[below(mix(*state), graphs.len())];
        for (sum, difference) in sums.iter_mut().zip(drawn) {
            *sum += difference;
        }
    }
    sums.map(|sum| sum / graphs.len() as f64)
}

/// The place of a quantile among the sorted draws.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "it is from 0 to DRAWS - 1"
)]
fn place(part: f64) -> usize {
    (part * (DRAWS - 1) as f64).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

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
