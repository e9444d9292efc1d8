use std::cmp::Ordering;

use hlorank_graph::pace;

/// Returns the numbers of the `top_k` (0 for all) configurations by ascending score, ties by number. Scores must be
/// finite.
pub fn rank(scores: &[f32], top_k: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(scores.len()).collect();
    let by_score = |one: &u32, other: &u32| {
        // Plus 0, so that −0 ties with 0.
        let one_score = scores[*one as usize] + 0.0;
        let other_score = scores[*other as usize] + 0.0;
        one_score.total_cmp(&other_score).then(one.cmp(other))
    };
    // Selection takes linear time, after which only `top_k` configurations are sorted. No two
    // configurations are equal by this comparison, so unstable algorithms have one result.
    if (1..order.len()).contains(&top_k) {
        order.select_nth_unstable_by(top_k, by_score);
        order.truncate(top_k);
    }
    sort_in_steps(&mut order, &by_score);
    order
}

/// Number of configurations that are sorted or merged between two pauses.
const SORTED: usize = 1 << 14;

/// Sorts runs, and merges pairs of them until one is left.
fn sort_in_steps(order: &mut Vec<u32>, compare: &impl Fn(&u32, &u32) -> Ordering) {
    // A sort of the standard library cannot pause, so each is as long as a step may be.
    for run in pace::in_steps(1, order.chunks_mut(SORTED)) {
        run.sort_unstable_by(compare);
    }
    let mut length = SORTED;
    while length < order.len() {
        let mut merged = Vec::with_capacity(order.len());
        for pair in order.chunks(2 * length) {
            let (first, second) = pair.split_at(length.min(pair.len()));
            merge(first, second, compare, &mut merged);
        }
        *order = merged;
        length *= 2;
    }
}

/// Appends two sorted runs as one.
fn merge<'a>(
    mut first: &'a [u32],
    mut second: &'a [u32],
    compare: impl Fn(&u32, &u32) -> Ordering,
    merged: &mut Vec<u32>,
) {
    while let ([one, ..], [other, ..]) = (first, second) {
        let run = if compare(one, other).is_le() {
            &mut first
        } else {
            &mut second
        };
        merged.extend(run.split_off_first());
        if merged.len().is_multiple_of(SORTED) {
            pace::pause();
        }
    }
    merged.extend_from_slice(first);
    merged.extend_from_slice(second);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_scores_come_first_and_ties_by_number() {
        let scores = [2.0, 1.0, 2.0, -3.0, 1.0];
        let all = [3, 1, 4, 0, 2];
        assert_eq!(rank(&scores, 0), all);
        for top_k in 1..=scores.len() + 1 {
            assert_eq!(rank(&scores, top_k), all[..top_k.min(scores.len())]);
        }
        assert_eq!(rank(&[0.0, -0.0, 0.0], 0), [0, 1, 2], "both zeros tie");
    }

    #[test]
    fn a_long_ranking_is_sorted_in_steps() {
        let scores: Vec<f32> = (0..100_000_u32)
            .map(|number| f32::from(u16::try_from(number * 7_919 % 1_009).unwrap()))
            .collect();
        let mut expected: Vec<u32> = (0..100_000).collect();
        expected.sort_by(|one, other| scores[*one as usize].total_cmp(&scores[*other as usize]));
        assert_eq!(rank(&scores, 0), expected);
    }
}
