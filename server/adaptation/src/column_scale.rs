use hlorank_graph::pace;

use super::{Point, linear_algebra::dot};
use crate::statistics::{centered, scalar};

/// How the columns of a feature set become coordinates, in which a distance of 1 means that run times have changed.
#[derive(Clone, Debug)]
pub(super) struct ColumnScale(Vec<Column>);

#[derive(Clone, Debug)]
struct Column {
    /// Position in a point's columns.
    place: usize,
    /// The least value if the logarithm counts, because all values are positive.
    least: Option<f64>,
    /// About the deviation of its values, times the length that was learned.
    unit: f64,
}

/// Maximum number of columns, since learning takes time with their number.
const MAX_COLUMNS: usize = 64;

/// Deviation that is expected of the logarithm of a positive column before any value is known, such as of sizes from 1 to 32.
const EXPECTED_LOGARITHM: f64 = 1.2;

/// The same of a switch, which is 0 or 1.
const EXPECTED_SWITCH: f64 = 0.5;

/// What is expected counts as much as this many points. Those of a search lie close together, which says nothing of the space.
const EXPECTED_COUNT: f64 = 10.0;

impl ColumnScale {
    /// The scale of points, all with the same number of columns, before lengths are learned. If there are too many columns, those
    /// are left out whose values go least with the `times`.
    pub(super) fn new(points: &[Point], times: &[f64]) -> Self {
        let count = points.first().map_or(0, |point| point.columns.len());
        let all = pace::in_steps(1, 0..count).map(|place| Column::new(place, points, times));
        let mut columns: Vec<(f64, Column)> = all.collect();
        if count > MAX_COLUMNS {
            // The second sort restores the order of the columns, which fixes the order of sums.
            columns.sort_by(|(one, _), (other, _)| other.total_cmp(one));
            columns.truncate(MAX_COLUMNS);
            columns.sort_by_key(|(_, column)| column.place);
        }
        Self(columns.into_iter().map(|(_, column)| column).collect())
    }

    /// Makes each column's unit longer by a factor.
    pub(super) fn lengthen(&mut self, factors: &[f64]) {
        for (column, factor) in self.0.iter_mut().zip(factors) {
            column.unit *= factor;
        }
    }

    pub(super) fn coordinates(&self, point: &Point) -> Vec<f64> {
        let coordinate = |column: &Column| column.of_value(point.columns.value(column.place));
        self.0.iter().map(coordinate).collect()
    }
}

impl Column {
    /// A column, and how well its values go with the times.
    fn new(place: usize, points: &[Point], times: &[f64]) -> (f64, Self) {
        let values: Vec<f64> = points
            .iter()
            .map(|point| point.columns.value(place))
            .collect();
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut column = Self {
            place,
            least: (lowest > 0.0).then_some(lowest),
            unit: 1.0,
        };
        let values = values.into_iter().map(|value| column.of_value(value));
        let coordinates = centered(values.collect());
        let spread = dot(&coordinates, &coordinates);
        let expected = match column.least {
            Some(_) => EXPECTED_LOGARITHM,
            // A switch may have any two values.
            None if highest > lowest => EXPECTED_SWITCH * (highest - lowest),
            None => EXPECTED_SWITCH,
        };
        let expected = EXPECTED_COUNT * expected * expected;
        column.unit = ((expected + spread) / (EXPECTED_COUNT + scalar(points.len()))).sqrt();
        let shared = dot(&coordinates, &centered(times.to_vec()));
        // A line through the coordinates explains this much of the sum of the times' squares.
        let explained = if spread > 0.0 {
            shared * shared / spread
        } else {
            0.0
        };
        (explained, column)
    }

    fn of_value(&self, value: f64) -> f64 {
        match self.least {
            // A value that is not positive lies beyond the least that is known.
            Some(least) => libm::log(value.max(least / 4.0)) / self.unit,
            None => value / self.unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positive_columns_count_by_their_logarithm() {
        let points =
            [[1.0, 0.0], [2.0, 1.0], [4.0, 1.0]].map(|columns| Point::of_columns(&columns));
        let scale = ColumnScale::new(&points, &[0.0; 3]);
        let at = |number: usize| scale.coordinates(&points[number]);
        let step = at(1)[0] - at(0)[0];
        assert!((at(2)[0] - at(1)[0] - step).abs() < 1e-12 && step > 0.0);
        assert!(at(1)[1] > at(0)[1] && at(1)[1] == at(2)[1]);
    }

    #[test]
    fn of_many_columns_those_that_go_with_the_times_are_kept() {
        let point = |row: u32| {
            let noise = |column: u32| f64::from((row * 5 + column * 3) % 7);
            let mut columns: Vec<f64> = (0..100).map(noise).collect();
            columns[70] = f64::from(row);
            Point::of_columns(&columns)
        };
        let points: Vec<Point> = (0..8).map(point).collect();
        let times: Vec<f64> = (0..8).map(f64::from).collect();
        let scale = ColumnScale::new(&points, &times);
        assert_eq!(scale.0.len(), MAX_COLUMNS);
        assert!(scale.0.iter().any(|column| column.place == 70));
        assert!(scale.0.is_sorted_by_key(|column| column.place));
    }
}
