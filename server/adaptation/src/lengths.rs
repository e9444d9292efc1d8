//! The Matérn 5/2 function of a distance, and over which distance in each column of a feature set run times change.
//!
//! The lengths, the amplitude and the noise are those that make the measurements most likely, given what is expected of them
//! beforehand. The search follows signs of the gradient (Rprop), because it takes a fixed number of steps of fixed cost.

use std::iter;

use hlorank_graph::pace;

use super::linear_algebra::{Factor, add_scaled, dot, variance};

/// What was learned.
#[derive(Clone, Debug)]
pub(super) struct Lengths {
    /// Per column.
    pub(super) of_columns: Vec<f64>,
    /// Variance of what the columns explain.
    pub(super) amplitude: f64,
    /// Variance of one run.
    pub(super) noise: f64,
}

/// What is to be explained.
pub(super) struct Observations<'a> {
    /// `[measured]` the coordinates of each configuration.
    pub(super) coordinates: &'a [Vec<f64>],
    /// `[measured]` the scores in their units.
    pub(super) scores: &'a [f64],
    /// `[measured]` times around their mean, without what the score explains.
    pub(super) residuals: &'a [f64],
    /// `[measured]` number of runs.
    pub(super) counts: &'a [f64],
    /// The deviation that was expected of the residuals.
    pub(super) spread: f64,
}

/// The measured configurations pair by pair, in units of the residuals' deviation.
struct Pairs {
    columns: usize,
    /// `[columns, pairs]` squared differences, where a pair has the larger number first.
    differences: Vec<f64>,
    /// `[measured, measured]` the covariance that is not learned: what a common offset and a line in the score share.
    fixed: Vec<f64>,
    /// `[measured]`
    residuals: Vec<f64>,
    /// `[measured]` the reciprocal of the number of runs.
    shares: Vec<f64>,
}

/// Median of a length, of the amplitude and of the noise before anything is measured, as logarithms. Their deviation is 1.
const EXPECTED_LENGTH: f64 = std::f64::consts::LN_2;
const EXPECTED_AMPLITUDE: f64 = 0.0;
const EXPECTED_NOISE: f64 = -std::f64::consts::LN_10;

/// Variance of the common offset, and of what the score's slope may differ by, relative to that of the residuals.
const OFFSET: f64 = 10.0;
const SLOPE: f64 = 0.09;

/// Number of steps, and the first, longest and shortest of them.
const STEPS: usize = 24;
const STEP: [f64; 3] = [0.3, 0.8, 0.01];

/// What a step is multiplied by if the gradient keeps or changes its sign.
const LONGER: f64 = 1.3;
const SHORTER: f64 = 0.5;

/// What larger exponents count as. Its result is as good as 0.
const LARGEST: f64 = 700.0;

/// A number to whose neighbours the distance is 1, so that adding it rounds: 1.5 · 2^52.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

/// The exponent's place in the bits of a number, and the bits of 1.
const EXPONENT: u32 = 52;
const ONE: u64 = 1.0_f64.to_bits();

/// The coefficients of e^x around 0, from that of x^9 to that of x.
const SERIES: [f64; 9] = [
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
];

impl Lengths {
    pub(super) fn new(observed: &Observations<'_>) -> Self {
        // Few residuals hardly change the deviation from what was expected.
        let deviation = variance(observed.residuals, observed.spread).sqrt();
        let pairs = Pairs::new(observed, deviation);
        let mut at: Vec<f64> = expected_logarithms(pairs.columns).collect();
        let [first, longest, shortest] = STEP;
        let mut steps = vec![first; at.len()];
        let mut slopes = vec![0.0; at.len()];
        let mut best = at.clone();
        let mut lowest = f64::INFINITY;
        for _ in 0..STEPS {
            let (loss, gradient) = pairs.loss(&at);
            // A step may overshoot, so that the last place is not always the lowest.
            if loss < lowest {
                lowest = loss;
                best.clone_from(&at);
            }
            // Signs alone count, because the sizes of slopes differ by orders of magnitude.
            for (place, &slope) in gradient.iter().enumerate() {
                let same = slopes[place] * slope;
                let step = &mut steps[place];
                if same > 0.0 {
                    *step = (*step * LONGER).min(longest);
                } else if same < 0.0 {
                    // A change of the sign means that the lowest place lies between.
                    *step = (*step * SHORTER).max(shortest);
                }
                at[place] -= step.copysign(slope);
                slopes[place] = slope;
            }
        }
        let (lengths, variances) = best.split_at(pairs.columns);
        let variance_of = |logarithm: f64| libm::exp(2.0 * logarithm) * deviation * deviation;
        Self {
            of_columns: lengths.iter().map(|&each| libm::exp(each)).collect(),
            amplitude: variance_of(variances[0]),
            noise: variance_of(variances[1]),
        }
    }
}

impl Pairs {
    fn new(observed: &Observations<'_>, deviation: f64) -> Self {
        let Observations {
            coordinates,
            scores,
            residuals,
            counts,
            ..
        } = observed;
        let columns = coordinates.first().map_or(0, Vec::len);
        let count = coordinates.len();
        let mut differences = Vec::with_capacity(count * count / 2 * columns);
        for column in pace::in_steps(1, 0..columns) {
            for (number, one) in coordinates.iter().enumerate() {
                let others = coordinates[..number].iter();
                differences.extend(others.map(|other| (one[column] - other[column]).powi(2)));
            }
        }
        let mut fixed = Vec::with_capacity(count * count);
        for one in *scores {
            fixed.extend(scores.iter().map(|other| OFFSET + SLOPE * one * other));
        }
        Self {
            columns,
            differences,
            fixed,
            residuals: residuals.iter().map(|each| each / deviation).collect(),
            shares: counts.iter().map(|count| count.recip()).collect(),
        }
    }

    /// The negative logarithm of the probability of some logarithms of lengths, of the amplitude's and of the noise's deviation, and
    /// its gradient.
    fn loss(&self, at: &[f64]) -> (f64, Vec<f64>) {
        let count = self.residuals.len();
        let pairs = count * count.saturating_sub(1) / 2;
        let (lengths, deviations) = at.split_at(self.columns);
        // What a squared difference in each column counts: 1 / length².
        let weights: Vec<f64> = lengths.iter().map(|&each| libm::exp(-2.0 * each)).collect();
        let [amplitude, noise] = [0, 1].map(|place| libm::exp(2.0 * deviations[place]));
        // A single configuration has no pairs, and a chunk may not be empty.
        let columns = || self.differences.chunks_exact(pairs.max(1)).zip(&weights);
        let mut distances = vec![0.0; pairs];
        for (differences, &weight) in pace::in_steps(1, columns()) {
            add_scaled(&mut distances, differences, weight);
        }
        let alike: Vec<f64> = distances.iter().map(|&squared| matern(squared)).collect();
        // The lower triangle of the covariance A.
        let mut covariance = self.fixed.clone();
        let mut from = 0;
        for row in 0..count {
            let values = &mut covariance[row * count..][..=row];
            add_scaled(&mut values[..row], &alike[from..][..row], amplitude);
            values[row] += amplitude + noise * self.shares[row];
            from += row;
        }
        let factor = Factor::new(covariance, count);
        let solved = factor.solve(&self.residuals);
        let inverse = factor.inverse();
        let mut loss = 0.5 * (dot(&self.residuals, &solved) + factor.log_determinant);
        // By how much A exceeds what the residuals r show of it: A⁻¹ − A⁻¹r·rᵀA⁻¹ is twice the derivative of the negative logarithm
        // of a normal density with respect to A. Pairs count in both halves of A, which the half before the loss takes back.
        let mut of_pairs = Vec::with_capacity(pairs);
        let mut own = Vec::with_capacity(count);
        for row in pace::in_steps(1, 0..count) {
            let inverse = &inverse[row * count..][..=row];
            let others = inverse[..row].iter().zip(&solved);
            of_pairs.extend(others.map(|(inverse, other)| inverse - solved[row] * other));
            own.push(inverse[row] - solved[row] * solved[row]);
        }
        // By the chain rule: over the covariance, the squared distance and the weight of the column, whose derivative has the
        // factor −2.
        let rises = of_pairs.iter().zip(&distances);
        let rises: Vec<f64> = rises
            .map(|(lack, &squared)| lack * -2.0 * matern_slope(squared))
            .collect();
        let of_lengths = pace::in_steps(1, columns())
            .map(|(differences, weight)| amplitude * weight * dot(&rises, differences));
        let mut gradient: Vec<f64> = of_lengths.collect();
        gradient.push(amplitude * (2.0 * dot(&of_pairs, &alike) + own.iter().sum::<f64>()));
        gradient.push(noise * dot(&own, &self.shares));
        // How unlikely the logarithms are before anything is measured: each has a normal distribution with a deviation of 1.
        let expected = expected_logarithms(self.columns);
        for ((at, slope), expected) in at.iter().zip(&mut gradient).zip(expected) {
            let off = at - expected;
            loss += 0.5 * off * off;
            *slope += off;
        }
        (loss, gradient)
    }
}

/// The logarithms that are expected of the columns' lengths, of the amplitude and of the noise.
fn expected_logarithms(columns: usize) -> impl Iterator<Item = f64> {
    let lengths = iter::repeat_n(EXPECTED_LENGTH, columns);
    lengths.chain([EXPECTED_AMPLITUDE, EXPECTED_NOISE])
}

/// The Matérn 5/2 function of a squared distance.
#[inline]
pub(super) fn matern(squared: f64) -> f64 {
    let distance = (5.0 * squared).sqrt();
    (1.0 + distance + 5.0 / 3.0 * squared) * exp_of_minus(distance)
}

/// How the function falls with the squared distance, per unit.
#[inline]
pub(super) fn matern_slope(squared: f64) -> f64 {
    let distance = (5.0 * squared).sqrt();
    -5.0 / 6.0 * (1.0 + distance) * exp_of_minus(distance)
}

/// Returns e^−x of a number that is not negative, to 11 digits.
///
/// That of a library takes one number at a time. This one has no branch, so that a processor computes several in a loop, and the
/// same bits on every processor.
#[inline]
fn exp_of_minus(x: f64) -> f64 {
    // e^−x = 2^−halvings = 2^−whole · e^rest, where the rest is so small that a short series gives it.
    let halvings = x.min(LARGEST) * std::f64::consts::LOG2_E;
    // The sum has no digits after the point, and its last bits are the whole number. Shifted to the
    // place of the exponent and taken from the bits of 1, they are a power of 2.
    let shifted = halvings + ROUNDING;
    let whole = shifted - ROUNDING;
    let rest = (whole - halvings) * std::f64::consts::LN_2;
    let series = SERIES
        .iter()
        .fold(0.0, |sum, coefficient| sum * rest + coefficient);
    let power = f64::from_bits(ONE.wrapping_sub(shifted.to_bits() << EXPONENT));
    (series * rest + 1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Configurations on a grid whose time depends on the first of two columns.
    fn grid() -> (Vec<Vec<f64>>, Vec<f64>) {
        let at = |number: u32| [number % 5, number * 7 / 5 % 5].map(|each| f64::from(each) / 1.5);
        let coordinates: Vec<Vec<f64>> = (0..25).map(|number| at(number).to_vec()).collect();
        let times = coordinates.iter().map(|at| libm::sin(3.0 * at[0]));
        let mean = times.clone().sum::<f64>() / 25.0;
        let residuals = times.map(|time| time - mean).collect();
        (coordinates, residuals)
    }

    fn observed<'a>(coordinates: &'a [Vec<f64>], residuals: &'a [f64]) -> Observations<'a> {
        Observations {
            coordinates,
            residuals,
            scores: &[0.0; 25],
            counts: &[1.0; 25],
            spread: 0.5,
        }
    }

    #[test]
    fn a_column_without_effect_gets_a_long_length() {
        let (coordinates, residuals) = grid();
        let learned = Lengths::new(&observed(&coordinates, &residuals));
        assert!(
            learned.of_columns[1] > 3.0 * learned.of_columns[0],
            "{learned:?}"
        );
        assert!(learned.noise < 0.1 * learned.amplitude, "{learned:?}");
    }

    #[test]
    fn the_gradient_is_how_the_loss_rises() {
        let (coordinates, residuals) = grid();
        let observed = observed(&coordinates, &residuals);
        let pairs = Pairs::new(&observed, variance(&residuals, observed.spread).sqrt());
        let at = [0.3, 0.9, -0.2, -1.5];
        let gradient = pairs.loss(&at).1;
        for place in 0..at.len() {
            let moved = |by: f64| {
                let mut at = at;
                at[place] += by;
                pairs.loss(&at).0
            };
            let rise = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!(
                (rise - gradient[place]).abs() < 1e-4 * rise.abs().max(1.0),
                "{place}"
            );
        }
    }

    #[test]
    fn the_exponential_is_that_of_a_library() {
        for step in 0..7_000_u32 {
            let x = f64::from(step) / 10.0;
            let relative = exp_of_minus(x) / libm::exp(-x) - 1.0;
            assert!(relative.abs() < 1e-11, "{x}: {relative}");
        }
        assert_eq!(exp_of_minus(0.0), 1.0);
        assert!(exp_of_minus(1e300) < 1e-300);
    }

    #[test]
    fn a_configuration_is_like_itself() {
        assert_eq!(matern(0.0), 1.0);
        assert!(matern(1.0) < matern(0.5));
    }

    #[test]
    fn the_slope_is_how_the_function_falls() {
        for squared in [0.1, 1.0, 4.0] {
            let fall = (matern(squared + 1e-6) - matern(squared - 1e-6)) / 2e-6;
            assert!((fall - matern_slope(squared)).abs() < 1e-6);
        }
    }
}
