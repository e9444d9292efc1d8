//! What is expected of some configurations' run times, as the times of further ones are believed to be known.

use std::rc::Rc;

use hlorank_graph::pace;

use super::{
    AdaptedModel, Point,
    kernel::{Kernel, ScaledPoint},
    linear_algebra::dot,
    model::Hypothesis,
    solution::Covariances,
};

/// The joint distribution of the run times of candidates.
pub(super) struct Joint<'a> {
    numbers: Vec<usize>,
    kernel: &'a Kernel,
    conditioned: Vec<ConditionedPoint<'a>>,
    /// The lowest ln(seconds) that was measured or is believed.
    lowest: f64,
}

/// The candidates under one hypothesis.
struct ConditionedPoint<'a> {
    kernel: &'a Kernel,
    hypothesis: &'a Hypothesis,
    candidates: Vec<Posterior>,
    /// With their deviations.
    believed: Vec<(Posterior, f64)>,
}

/// One configuration.
struct Posterior {
    scaled: Rc<ScaledPoint>,
    related: Covariances,
    mean: f64,
    variance: f64,
    /// How much each configuration that is believed tells of it.
    told: Vec<f64>,
}

impl<'a> Joint<'a> {
    /// The candidates of these numbers, which have these points.
    pub(super) fn of(adapted: &'a AdaptedModel, numbers: Vec<usize>, points: &[Point]) -> Self {
        let kernel = &adapted.kernel;
        let scaled: Vec<Rc<ScaledPoint>> = points
            .iter()
            .map(|point| Rc::new(kernel.scaled(point)))
            .collect();
        let conditioned = adapted.hypotheses.iter().map(|hypothesis| {
            let candidates = pace::in_steps(4, points).zip(&scaled);
            let new = |(point, scaled)| Posterior::of(kernel, hypothesis, point, scaled);
            ConditionedPoint {
                kernel,
                hypothesis,
                candidates: candidates.map(new).collect(),
                believed: Vec::new(),
            }
        });
        Self {
            numbers,
            kernel,
            conditioned: conditioned.collect(),
            lowest: adapted.fastest,
        }
    }

    /// Takes the predicted time of a configuration for its measured one. Means stay as they are, and variances fall.
    pub(super) fn believe(&mut self, point: &Point) {
        let scaled = Rc::new(self.kernel.scaled(point));
        let means = self.conditioned.iter_mut();
        let means = means.map(|each| each.hypothesis.weight * each.believe(point, &scaled));
        self.lowest = self.lowest.min(means.sum());
    }

    /// Removes a candidate.
    pub(super) fn remove(&mut self, number: usize) {
        if let Some(place) = self.numbers.iter().position(|&each| each == number) {
            self.numbers.remove(place);
            for each in &mut self.conditioned {
                each.candidates.remove(place);
            }
        }
    }

    /// The candidate with the largest expected improvement, the first of several.
    pub(super) fn best(&self) -> Option<usize> {
        let improvements = self
            .numbers
            .iter()
            .enumerate()
            .map(|(place, &number)| (self.at(place), number));
        let larger =
            |best: (f64, usize), next: (f64, usize)| if next.0 > best.0 { next } else { best };
        improvements.reduce(larger).map(|(_, number)| number)
    }

    /// By how much a candidate is expected to lower the lowest ln(seconds); 0 for others.
    pub(super) fn improvement(&self, number: usize) -> f64 {
        self.numbers
            .iter()
            .position(|&each| each == number)
            .map_or(0.0, |place| self.at(place))
    }

    fn at(&self, place: usize) -> f64 {
        let parts = || {
            let conditioned = self.conditioned.iter();
            conditioned.map(|each| (each.hypothesis.weight, &each.candidates[place]))
        };
        let mean: f64 = parts().map(|(weight, each)| weight * each.mean).sum();
        let spread = |each: &Posterior| each.variance + (each.mean - mean) * (each.mean - mean);
        let variance: f64 = parts().map(|(weight, each)| weight * spread(each)).sum();
        expected_improvement(self.lowest - mean, variance.sqrt())
    }
}

impl ConditionedPoint<'_> {
    /// Returns the mean of the configuration.
    fn believe(&mut self, point: &Point, scaled: &Rc<ScaledPoint>) -> f64 {
        let mut new = Posterior::of(self.kernel, self.hypothesis, point, scaled);
        for (earlier, deviation) in &self.believed {
            new.condition(self.kernel, self.hypothesis, earlier, *deviation);
        }
        let deviation = (new.variance + self.hypothesis.fit.noise).sqrt();
        for candidate in pace::in_steps(16, &mut self.candidates) {
            candidate.condition(self.kernel, self.hypothesis, &new, deviation);
        }
        let mean = new.mean;
        self.believed.push((new, deviation));
        mean
    }
}

impl Posterior {
    fn of(
        kernel: &Kernel,
        hypothesis: &Hypothesis,
        point: &Point,
        scaled: &Rc<ScaledPoint>,
    ) -> Self {
        let related = hypothesis.fit.relate(kernel, scaled);
        let (mean, variance) = hypothesis.fit.predict(kernel, scaled, &related);
        let scaled = Rc::clone(scaled);
        let mean = mean + hypothesis.mean_of(point);
        Self {
            scaled,
            related,
            mean,
            variance,
            told: Vec::new(),
        }
    }

    /// Lowers the variance by what another configuration, which is known up to a deviation, tells of this one.
    fn condition(
        &mut self,
        kernel: &Kernel,
        hypothesis: &Hypothesis,
        known: &Self,
        deviation: f64,
    ) {
        let parts = (
            (&*self.scaled, &self.related),
            (&*known.scaled, &known.related),
        );
        let before = hypothesis.fit.covariance(kernel, parts.0, parts.1);
        let told = (before - dot(&self.told[..known.told.len()], &known.told)) / deviation;
        self.told.push(told);
        self.variance = (self.variance - told * told).max(0.0);
    }
}

/// What a normally distributed number exceeds 0 by in expectation, given its mean and deviation.
fn expected_improvement(mean: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return mean.max(0.0);
    }
    let standard = mean / deviation;
    let density = libm::exp(-0.5 * standard * standard) / std::f64::consts::TAU.sqrt();
    let below = 0.5 * libm::erfc(-standard * std::f64::consts::FRAC_1_SQRT_2);
    (mean * below + deviation * density).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn improvement_is_expected_of_what_is_fast_or_uncertain() {
        assert_eq!(expected_improvement(0.25, 0.0), 0.25);
        assert_eq!(expected_improvement(-0.25, 0.0), 0.0);
        // The mean of the positive half of a standard normal distribution, times its probability.
        assert!((expected_improvement(0.0, 1.0) - 0.398_942_280_401_432_7).abs() < 1e-12);
        assert!(expected_improvement(-0.2, 0.5) > expected_improvement(-0.1, 0.01));
        assert!(expected_improvement(-100.0, 1.0) >= 0.0);
    }
}
