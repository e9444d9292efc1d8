//! Learns from measured configurations of a feature set over which distance in each column run times change.
//!
//! The lengths, the amplitude and the noise of a Matérn 5/2 function of the columns are those that make the measurements most
//! likely, given what is expected of them beforehand. The search follows signs of the gradient (Rprop), because it takes a fixed
//! number of steps of fixed cost.

use std::iter;

use hlorank_graph::pace;

use super::{
    linear_algebra::{Factor, add_scaled, dot},
    matern::{matern, matern_slope},
    normal::variance,
};

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
    count: usize,
    columns: usize,
    /// `[columns, pairs]` squared differences, where a pair has the larger number first.
    differences: Vec<f64>,
    /// `[count, count]` the covariance that is not learned.
    fixed: Vec<f64>,
    residuals: Vec<f64>,
    /// `[count]` the reciprocal of the number of runs.
    shares: Vec<f64>,
}

/// The negative logarithm of the probability of some logarithms of lengths, amplitude and noise, and its gradient.
struct Loss {
    value: f64,
    gradient: Vec<f64>,
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

/// A search that follows the signs of the gradient.
struct Descent {
    /// The length of the next step in each coordinate.
    steps: Vec<f64>,
    /// The gradient at the place before.
    slopes: Vec<f64>,
}

/// What the covariance depends on.
struct Parameters {
    /// `[columns]` what a squared difference in each column counts: 1 / length².
    weights: Vec<f64>,
    amplitude: f64,
    noise: f64,
}

/// How the loss rises with the covariance of two configurations, twice, and of each with itself.
struct Lacks {
    /// `[pairs]`
    of_pairs: Vec<f64>,
    /// `[count]`
    own: Vec<f64>,
}

impl Lengths {
    pub(super) fn of(observed: &Observations<'_>) -> Self {
        let deviation = observed.deviation();
        let pairs = Pairs::of(observed, deviation);
        let at = lowest(&pairs, expected_logarithms(pairs.columns).collect());
        let (lengths, variances) = at.split_at(pairs.columns);
        let variance_of = |logarithm: f64| libm::exp(2.0 * logarithm) * deviation * deviation;
        Self {
            of_columns: lengths.iter().map(|&each| libm::exp(each)).collect(),
            amplitude: variance_of(variances[0]),
            noise: variance_of(variances[1]),
        }
    }
}

impl Observations<'_> {
    /// The deviation of the residuals, which few of them hardly change from what was expected.
    fn deviation(&self) -> f64 {
        variance(self.residuals, self.spread).sqrt()
    }
}

/// Returns the place of the lowest loss on the way.
fn lowest(pairs: &Pairs, mut at: Vec<f64>) -> Vec<f64> {
    let mut descent = Descent {
        steps: vec![STEP[0]; at.len()],
        slopes: vec![0.0; at.len()],
    };
    let mut best = at.clone();
    let mut lowest = f64::INFINITY;
    for _ in 0..STEPS {
        let loss = pairs.loss(&at);
        // A step may overshoot, so that the last place is not always the lowest.
        if loss.value < lowest {
            lowest = loss.value;
            best.clone_from(&at);
        }
        descent.follow(&loss.gradient, &mut at);
    }
    best
}

impl Descent {
    /// Takes a step down in each coordinate. Signs alone count, because the sizes of slopes differ
    /// by orders of magnitude.
    fn follow(&mut self, gradient: &[f64], at: &mut [f64]) {
        let [_, longest, shortest] = STEP;
        for (place, &slope) in gradient.iter().enumerate() {
            let same = self.slopes[place] * slope;
            let step = &mut self.steps[place];
            if same > 0.0 {
                *step = (*step * LONGER).min(longest);
            } else if same < 0.0 {
                // A change of the sign means that the lowest place lies between.
                *step = (*step * SHORTER).max(shortest);
            }
            at[place] -= step.copysign(slope);
            self.slopes[place] = slope;
        }
    }
}

impl Pairs {
    fn of(observed: &Observations<'_>, deviation: f64) -> Self {
        let columns = observed.coordinates.first().map_or(0, Vec::len);
        let residuals = observed.residuals.iter();
        Self {
            count: residuals.len(),
            columns,
            differences: squared_differences(observed.coordinates, columns),
            fixed: fixed_covariance(observed.scores),
            residuals: residuals.map(|each| each / deviation).collect(),
            shares: observed.counts.iter().map(|count| count.recip()).collect(),
        }
    }

    fn loss(&self, at: &[f64]) -> Loss {
        let parameters = Parameters::at(at);
        let distances = self.distances(&parameters.weights);
        let alike: Vec<f64> = distances.iter().map(|&squared| matern(squared)).collect();
        let factor = Factor::of(self.covariance(&alike, &parameters), self.count);
        let solved = factor.solve(&self.residuals);
        let lacks = self.lacks(&solved, &factor.inverse());
        let mut loss = Loss {
            value: 0.5 * (dot(&self.residuals, &solved) + factor.log_determinant),
            gradient: self.gradient(&parameters, &distances, &alike, &lacks),
        };
        loss.add_expectations(at);
        loss
    }

    /// How the loss rises with the logarithms of the lengths, of the amplitude and of the noise.
    fn gradient(
        &self,
        parameters: &Parameters,
        distances: &[f64],
        alike: &[f64],
        lacks: &Lacks,
    ) -> Vec<f64> {
        let amplitude = parameters.amplitude;
        let mut gradient = self.slopes_of_lengths(parameters, distances, lacks);
        let own: f64 = lacks.own.iter().sum();
        // A pair counts in both halves of the covariance. The half before the loss takes back the
        // factor 2 of the derivative of a squared deviation with respect to its logarithm.
        gradient.push(amplitude * (2.0 * dot(&lacks.of_pairs, alike) + own));
        gradient.push(parameters.noise * dot(&lacks.own, &self.shares));
        gradient
    }

    /// How the loss rises with the logarithm of each length, by the chain rule: over the
    /// covariance, the squared distance and the weight of the column.
    fn slopes_of_lengths(
        &self,
        parameters: &Parameters,
        distances: &[f64],
        lacks: &Lacks,
    ) -> Vec<f64> {
        let of_pairs = lacks.of_pairs.iter().zip(distances);
        // A pair counts in both halves of the covariance, which the half before the loss takes
        // back. The factor −2 is that of the derivative of a weight, 1 / length².
        let rises: Vec<f64> = of_pairs
            .map(|(lack, &squared)| lack * -2.0 * matern_slope(squared))
            .collect();
        let amplitude = parameters.amplitude;
        let columns = pace::in_steps(1, self.columns().zip(&parameters.weights));
        columns
            .map(|(differences, weight)| amplitude * weight * dot(&rises, differences))
            .collect()
    }

    /// The squared differences of every pair, column by column.
    fn columns(&self) -> impl Iterator<Item = &[f64]> {
        // A single configuration has no pairs, and a chunk may not be empty.
        self.differences.chunks_exact(self.pairs().max(1))
    }

    fn pairs(&self) -> usize {
        self.count * self.count.saturating_sub(1) / 2
    }

    /// `[pairs]` squared, given what each column counts.
    fn distances(&self, weights: &[f64]) -> Vec<f64> {
        let mut distances = vec![0.0; self.pairs()];
        for (differences, &weight) in pace::in_steps(1, self.columns().zip(weights)) {
            add_scaled(&mut distances, differences, weight);
        }
        distances
    }

    /// The lower triangle of the covariance.
    fn covariance(&self, alike: &[f64], parameters: &Parameters) -> Vec<f64> {
        let amplitude = parameters.amplitude;
        let mut covariance = self.fixed.clone();
        let mut from = 0;
        for row in 0..self.count {
            let values = &mut covariance[row * self.count..][..=row];
            add_scaled(&mut values[..row], &alike[from..][..row], amplitude);
            values[row] += amplitude + parameters.noise * self.shares[row];
            from += row;
        }
        covariance
    }

    /// By how much the covariance exceeds what the residuals show of it, as far as the loss rises with it.
    fn lacks(&self, solved: &[f64], inverse: &[f64]) -> Lacks {
        let mut lacks = Lacks {
            of_pairs: Vec::with_capacity(self.pairs()),
            own: Vec::with_capacity(self.count),
        };
        // With the covariance A and the residuals r, this is A⁻¹ − A⁻¹r·rᵀA⁻¹: twice the derivative
        // of the negative logarithm of a normal density with respect to A.
        for row in pace::in_steps(1, 0..self.count) {
            let others = inverse[row * self.count..][..row].iter().zip(solved);
            let of_pairs = others.map(|(inverse, other)| inverse - solved[row] * other);
            lacks.of_pairs.extend(of_pairs);
            let own = inverse[row * self.count + row] - solved[row] * solved[row];
            lacks.own.push(own);
        }
        lacks
    }
}

/// `[columns, pairs]`
fn squared_differences(coordinates: &[Vec<f64>], columns: usize) -> Vec<f64> {
    let count = coordinates.len();
    let mut differences = Vec::with_capacity(count * count / 2 * columns);
    for column in pace::in_steps(1, 0..columns) {
        for (number, one) in coordinates.iter().enumerate() {
            let others = coordinates[..number].iter();
            differences.extend(others.map(|other| (one[column] - other[column]).powi(2)));
        }
    }
    differences
}

/// `[measured, measured]` what a common offset and a line in the score share.
fn fixed_covariance(scores: &[f64]) -> Vec<f64> {
    let mut fixed = Vec::with_capacity(scores.len() * scores.len());
    for one in scores {
        fixed.extend(scores.iter().map(|other| OFFSET + SLOPE * one * other));
    }
    fixed
}

impl Parameters {
    /// Those of logarithms of lengths, and of deviations that the last two are.
    fn at(logarithms: &[f64]) -> Self {
        let (lengths, deviations) = logarithms.split_at(logarithms.len() - 2);
        Self {
            weights: lengths.iter().map(|&each| libm::exp(-2.0 * each)).collect(),
            amplitude: libm::exp(2.0 * deviations[0]),
            noise: libm::exp(2.0 * deviations[1]),
        }
    }
}

/// The logarithms that are expected of the columns' lengths, of the amplitude and of the noise.
fn expected_logarithms(columns: usize) -> impl Iterator<Item = f64> {
    let lengths = iter::repeat_n(EXPECTED_LENGTH, columns);
    lengths.chain([EXPECTED_AMPLITUDE, EXPECTED_NOISE])
}

impl Loss {
    /// Adds how unlikely the logarithms are before anything is measured.
    fn add_expectations(&mut self, at: &[f64]) {
        let expected = expected_logarithms(at.len() - 2);
        // Each logarithm has a normal distribution with a deviation of 1.
        for ((at, slope), expected) in at.iter().zip(&mut self.gradient).zip(expected) {
            let off = at - expected;
            self.value += 0.5 * off * off;
            *slope += off;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Configurations on a grid whose time depends on the first of two columns.
    fn grid() -> (Vec<Vec<f64>>, Vec<f64>) {
        let coordinates: Vec<Vec<f64>> = (0..25_u32)
            .map(|number| {
                [number % 5, number * 7 / 5 % 5]
                    .map(|each| f64::from(each) / 1.5)
                    .to_vec()
            })
            .collect();
        let times: Vec<f64> = coordinates
            .iter()
            .map(|at| libm::sin(3.0 * at[0]))
            .collect();
        let mean = times.iter().sum::<f64>() / 25.0;
        (coordinates, times.iter().map(|time| time - mean).collect())
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
        let learned = Lengths::of(&observed(&coordinates, &residuals));
        println!("{learned:?}");
        assert!(learned.of_columns[1] > 3.0 * learned.of_columns[0]);
        assert!(learned.noise < 0.1 * learned.amplitude);
    }

    #[test]
    fn the_gradient_is_how_the_loss_rises() {
        let (coordinates, residuals) = grid();
        let observed = observed(&coordinates, &residuals);
        let pairs = Pairs::of(&observed, observed.deviation());
        let at = [0.3, 0.9, -0.2, -1.5];
        let gradient = pairs.loss(&at).gradient;
        for place in 0..at.len() {
            let moved = |by: f64| {
                let mut at = at;
                at[place] += by;
                pairs.loss(&at).value
            };
            let rise = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!(
                (rise - gradient[place]).abs() < 1e-4 * rise.abs().max(1.0),
                "{place}"
            );
        }
    }
}
