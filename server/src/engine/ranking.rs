/// Returns the numbers of the `top_k` (0 for all) configurations by ascending score, ties by number. Scores must be
/// finite.
#[must_use]
pub fn rank(scores: &[f32], top_k: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(scores.len()).collect();
    let by_score = |one: &u32, other: &u32| {
        // Plus 0, so that −0 ties with 0.
        let (one_score, other_score) = (scores[*one as usize] + 0.0, scores[*other as usize] + 0.0);
        one_score.total_cmp(&other_score).then(one.cmp(other))
    };
    if (1..order.len()).contains(&top_k) {
        order.select_nth_unstable_by(top_k, by_score);
        order.truncate(top_k);
    }
    order.sort_unstable_by(by_score);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_scores_come_first_and_ties_by_number() {
        assert_eq!(rank(&[2.0, 1.0, 2.0, -3.0, 1.0], 0), [3, 1, 4, 0, 2]);
    }

    #[test]
    fn both_zeros_tie() {
        assert_eq!(rank(&[0.0, -0.0, 0.0], 0), [0, 1, 2]);
    }

    #[test]
    fn the_top_is_the_start_of_the_whole_ranking() {
        let scores: Vec<f32> = [5_u8, 3, 3, 9, 1, 3, 7].map(f32::from).to_vec();
        let all = rank(&scores, 0);
        for top_k in 1..=scores.len() + 1 {
            assert_eq!(rank(&scores, top_k), all[..top_k.min(scores.len())]);
        }
    }
}
