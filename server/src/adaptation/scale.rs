//! Brings numbers of different units to one scale.

/// Mean and standard deviation of each of some numbers.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    mean: Vec<f64>,
    /// The factor for a number's distance from its mean; 0 if it never differs.
    factor: Vec<f64>,
}

impl Scale {
    /// The scale of rows of equal length.
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer than 2^53 rows")]
    pub(super) fn of<'a>(rows: impl ExactSizeIterator<Item = &'a [f64]> + Clone) -> Self {
        let count = rows.len() as f64;
        let width = rows.clone().next().map_or(0, <[f64]>::len);
        let (mut mean, mut variance) = (vec![0.0; width], vec![0.0; width]);
        for row in rows.clone() {
            mean.iter_mut().zip(row).for_each(|(mean, value)| *mean += value / count);
        }
        for row in rows {
            for ((variance, mean), value) in variance.iter_mut().zip(&mean).zip(row) {
                *variance += (value - mean) * (value - mean) / count;
            }
        }
        // Below this, numbers differ by rounding alone.
        let differs = |variance: f64, mean: f64| variance.sqrt() > 1e-9 * mean.abs().max(1e-9);
        let factors = variance.iter().zip(&mean);
        let factor = factors
            .map(|(&variance, &mean)| if differs(variance, mean) { variance.sqrt().recip() } else { 0.0 });
        Self { factor: factor.collect(), mean }
    }

    /// Mean of the number at a place, and the factor for its distance from it.
    pub(super) fn of_place(&self, place: usize) -> (f64, f64) {
        (self.mean[place], self.factor[place])
    }

    /// Standardizes a row, and multiplies it by a factor.
    pub(super) fn apply(&self, row: &[f64], factor: f64) -> Vec<f64> {
        let values = row.iter().zip(&self.mean).zip(&self.factor);
        values.map(|((value, mean), scale)| (value - mean) * scale * factor).collect()
    }
}

/// Returns the median distance between two of some points; 1 if most are equal.
pub(super) fn median_distance(points: &[Vec<f64>]) -> f64 {
    let pairs = points
        .iter()
        .enumerate()
        .flat_map(|(place, one)| points[..place].iter().map(move |other| squared_distance(one, other)));
    let mut distances: Vec<f64> = pairs.collect();
    if distances.is_empty() {
        return 1.0;
    }
    let middle = distances.len() / 2;
    let (_, median, _) = distances.select_nth_unstable_by(middle, f64::total_cmp);
    if *median > 0.0 { median.sqrt() } else { 1.0 }
}

pub(super) fn squared_distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other) * (one - other)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standardized_numbers_have_mean_0_and_deviation_1() {
        let rows = [[1.0, 7.0], [3.0, 7.0]];
        let scale = Scale::of(rows.iter().map(<[f64; 2]>::as_slice));
        assert_eq!(scale.apply(&rows[0], 1.0), [-1.0, 0.0]);
        assert_eq!(scale.apply(&[5.0, 9.0], 0.5), [1.5, 0.0], "what never differed says nothing");
    }

    #[test]
    fn the_median_distance_is_that_of_a_pair() {
        assert_eq!(median_distance(&[vec![0.0], vec![1.0], vec![10.0]]), 9.0);
        assert_eq!(median_distance(&[vec![0.0], vec![0.0], vec![0.0]]), 1.0);
    }
}
