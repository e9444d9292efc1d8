//! What is expected of some configurations' run times, as the times of further ones are believed to be known.

use hlorank_graph::pace;

use super::{
    AdaptedModel, Point, covariance::Covariances, kernel::ScaledPoint, linear_algebra::dot,
};
use crate::statistics::Normal;

/// The joint distribution of the run times of candidates.
///
/// Variances would take nearly all of the time, although few candidates are worth measuring. A variance falls with everything that
/// is measured or believed, and the expected improvement with it. An earlier one is therefore an upper bound, and a variance is
/// computed only where this bound reaches the best.
pub(super) struct Joint<'a> {
    adapted: &'a AdaptedModel,
    candidates: Vec<Candidate<'a>>,
    believed: Vec<BelievedMeasurement>,
    /// The lowest ln(seconds) that was measured or is believed.
    lowest: f64,
}

struct Candidate<'a> {
    number: usize,
    point: &'a Point,
    /// By how much it is expected to lower the lowest ln(seconds), at most.
    improvement: f64,
    /// `None` until its variance is needed.
    configuration: Option<Configuration>,
}

/// A configuration whose predicted time is taken for its measured one.
struct BelievedMeasurement {
    configuration: Configuration,
    /// Under each hypothesis, that of a run.
    deviations: Vec<f64>,
}

struct Configuration {
    scaled: ScaledPoint,
    /// Under each hypothesis.
    under: Vec<Posterior>,
}

/// A configuration under one hypothesis.
struct Posterior {
    normal: Normal,
    related: Covariances,
    /// How much each configuration that is believed tells of it.
    told: Vec<f64>,
}

impl<'a> Joint<'a> {
    /// The candidates of these numbers, which have these points.
    pub(super) fn new(adapted: &'a AdaptedModel, numbers: Vec<usize>, points: &'a [Point]) -> Self {
        let lowest = adapted.fastest;
        let candidates = pace::in_steps(16, numbers.into_iter().zip(points));
        let candidates = candidates.map(|(number, point)| Candidate {
            number,
            point,
            improvement: before_measuring(adapted, point).improvement(lowest),
            configuration: None,
        });
        Self {
            candidates: candidates.collect(),
            believed: Vec::new(),
            adapted,
            lowest,
        }
    }

    /// Takes the predicted time of a configuration for its measured one. Means stay as they are, and variances fall.
    pub(super) fn believe(&mut self, point: &Point) {
        let mut configuration = Configuration::new(self.adapted, point);
        configuration.condition(self.adapted, &self.believed);
        let normal = configuration.mixture(self.adapted);
        self.lowest = self.lowest.min(normal.mean);
        let under = configuration.under.iter().zip(&self.adapted.hypotheses);
        let deviations = under
            .map(|(each, hypothesis)| (each.normal.variance + hypothesis.fit.noise).sqrt())
            .collect();
        self.believed.push(BelievedMeasurement {
            configuration,
            deviations,
        });
    }

    /// Removes a candidate.
    pub(super) fn remove(&mut self, number: usize) {
        self.candidates.retain(|each| each.number != number);
    }

    /// The candidate with the largest expected improvement, the first of several.
    pub(super) fn best(&mut self) -> Option<usize> {
        // By descending upper bound of the expected improvement.
        let mut places: Vec<usize> = (0..self.candidates.len()).collect();
        let bound = |place: usize| self.candidates[place].improvement;
        places.sort_by(|&one, &other| bound(other).total_cmp(&bound(one)));
        let mut best: Option<(f64, usize)> = None;
        for place in pace::in_steps(4, places) {
            let bound = self.candidates[place].improvement;
            // No bound that follows is higher.
            if best.is_some_and(|(largest, _)| bound < largest) {
                break;
            }
            let improvement = self.update(place);
            let is_better = best.is_none_or(|(largest, first)| {
                improvement > largest || (improvement >= largest && place < first)
            });
            if is_better {
                best = Some((improvement, place));
            }
        }
        best.map(|(_, place)| self.candidates[place].number)
    }

    /// By how much a candidate is expected to lower the lowest ln(seconds); 0 for others.
    pub(super) fn improvement(&mut self, number: usize) -> f64 {
        let mut candidates = self.candidates.iter();
        let place = candidates.position(|each| each.number == number);
        place.map_or(0.0, |place| self.update(place))
    }

    /// Computes the expected improvement of the candidate at a place, given all that is measured and believed.
    fn update(&mut self, place: usize) -> f64 {
        let candidate = &mut self.candidates[place];
        let new = || Configuration::new(self.adapted, candidate.point);
        let configuration = candidate.configuration.get_or_insert_with(new);
        configuration.condition(self.adapted, &self.believed);
        candidate.improvement = configuration.mixture(self.adapted).improvement(self.lowest);
        candidate.improvement
    }
}

/// The distribution of a configuration, with its mean after the measurements, and its variances before.
fn before_measuring(adapted: &AdaptedModel, point: &Point) -> Normal {
    let kernel = &adapted.kernel;
    let scaled = kernel.scaled(point);
    let under = adapted.hypotheses.iter().map(|hypothesis| {
        let normal = Normal {
            mean: hypothesis.fit.mean(kernel, &scaled) + hypothesis.mean_of(point),
            variance: hypothesis.fit.variance_before(kernel, &scaled),
        };
        (hypothesis.weight, normal)
    });
    Normal::mixture(under)
}

impl Configuration {
    fn new(adapted: &AdaptedModel, point: &Point) -> Self {
        let kernel = &adapted.kernel;
        let scaled = kernel.scaled(point);
        let under = adapted.hypotheses.iter().map(|hypothesis| {
            let related = hypothesis.fit.relate(kernel, &scaled);
            let mut normal = hypothesis.fit.predict(kernel, &scaled, &related);
            normal.mean += hypothesis.mean_of(point);
            Posterior {
                normal,
                related,
                told: Vec::new(),
            }
        });
        Self {
            under: under.collect(),
            scaled,
        }
    }

    /// Lowers the variances by what those of the believed configurations tell that it has not heard
    /// yet.
    fn condition(&mut self, adapted: &AdaptedModel, believed: &[BelievedMeasurement]) {
        for (number, hypothesis) in adapted.hypotheses.iter().enumerate() {
            let own = &mut self.under[number];
            for known in &believed[own.told.len()..] {
                let other = &known.configuration.under[number];
                let before = hypothesis.fit.covariance(
                    &adapted.kernel,
                    (&self.scaled, &own.related),
                    (&known.configuration.scaled, &other.related),
                );
                // The configurations that were believed before explain a part of the covariance, which is
                // subtracted. `told` is a row of a Cholesky factor, which grows by a column for each believed
                // configuration.
                let left = before - dot(&own.told[..other.told.len()], &other.told);
                let told = left / known.deviations[number];
                own.told.push(told);
                // Rounding may leave less than nothing.
                own.normal.variance = (own.normal.variance - told * told).max(0.0);
            }
        }
    }

    fn mixture(&self, adapted: &AdaptedModel) -> Normal {
        let under = adapted.hypotheses.iter().zip(&self.under);
        let weighted = under.map(|(hypothesis, each)| (hypothesis.weight, each.normal));
        Normal::mixture(weighted)
    }
}
