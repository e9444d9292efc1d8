//! Configurations that have one part of another one. They show what a part does to a score.

/// One of three configurations, with one part replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    /// Number of the part.
    pub(super) part: usize,
    /// Number of the configuration: best, reference or worst.
    pub(super) of: usize,
}

/// The configuration from which each of the three takes the part: the best and the worst take the reference's, and the
/// reference takes the best's.
const FROM: [usize; 3] = [1, 0, 1];

/// Returns what each exchange that changes something makes of its configuration. A part is a set of places of a
/// configuration, and all three have the same number of places.
pub(super) fn exchanges<T: Copy + PartialEq>(
    three: &[Vec<T>; 3],
    parts: &[Vec<usize>],
) -> Vec<(Exchange, Vec<T>)> {
    let exchange = |part: usize, of: usize| {
        let (own, other) = (&three[of], &three[FROM[of]]);
        let mut exchanged = own.clone();
        for &place in &parts[part] {
            exchanged[place] = other[place];
        }
        // An exchange that changes nothing has no effect, so it need not be scored.
        (exchanged != *own).then_some((Exchange { part, of }, exchanged))
    };
    (0..parts.len())
        .flat_map(|part| (0..3).filter_map(move |of| exchange(part, of)))
        .collect()
}

/// Returns what each part does to the scores of the three, from the scores of the three and of the exchanges. For the best
/// and the worst, it is by how much the score is higher than with the reference's part; for the reference, by how much it
/// would be higher with the best's part.
pub(super) fn effects(
    parts: usize,
    scores: [f32; 3],
    exchanged: &[(Exchange, f32)],
) -> Vec<[f64; 3]> {
    let mut effects = vec![[0.0; 3]; parts];
    for &(Exchange { part, of }, score) in exchanged {
        let without = f64::from(scores[of]) - f64::from(score);
        // For the reference, the exchange is the one with the best's part, so the difference has the
        // other sign.
        effects[part][of] = if of == 1 { -without } else { without };
    }
    effects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_equal_is_not_exchanged() {
        let three = [vec![1, 2, 3], vec![1, 0, 0], vec![9, 0, 3]];
        let found = exchanges(&three, &[vec![0], vec![1, 2]]);
        let expected = [
            (Exchange { part: 0, of: 2 }, vec![1, 0, 3]),
            (Exchange { part: 1, of: 0 }, vec![1, 0, 0]),
            (Exchange { part: 1, of: 1 }, vec![1, 2, 3]),
            (Exchange { part: 1, of: 2 }, vec![9, 0, 0]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn parts_of_a_sum_have_the_effects_of_their_terms() {
        let score = |values: &[f32]| values.iter().sum::<f32>();
        let three = [vec![-2.0, 1.0], vec![0.0, 0.0], vec![5.0, 0.0]];
        let exchanged = exchanges(&three, &[vec![0], vec![1]]);
        let scored: Vec<_> = exchanged
            .iter()
            .map(|(exchange, values)| (*exchange, score(values)))
            .collect();
        let whole = [0, 1, 2].map(|of: usize| score(&three[of]));
        assert_eq!(
            effects(2, whole, &scored),
            [[-2.0, -2.0, 5.0], [1.0, 1.0, 0.0]]
        );
    }
}
