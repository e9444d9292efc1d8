//! What measurements of other instances of a set say of a new one: boosted trees over (features of the instance × configuration).
//!
//! Each list, of one instance on one target, has a level: what its fastest configuration takes. The level is learned, because the
//! fastest of a few measured configurations is seldom the fastest of all. Trees learn ln(seconds) above the level, clipped, and slow
//! rows count little. The columns are the features, the parameters, and what sizes and tiles say together: products, ratios, and how
//! many tiles of each parameter a size has and what the last one wastes. Some lists are left out of a second run, and tell how far a
//! first pick is expected to be above the fastest.

mod columns;
mod left_out;
mod levels;
mod measured_instance;

use std::{borrow::Cow, iter::once};

use hlorank_graph::{InstanceFeatures, InstanceValue};

use super::{
    Point,
    related_basis::{Refusal, RelatedBasis},
    trees::{Examples, Growth, Trees},
};
use columns::{Columns, InstanceRows};
use left_out::{Slowdowns, check};
use levels::{InstanceLearner, ROUNDS, ROUNDS_OF_LEVELS};

pub(crate) use left_out::Slowdown;
pub(crate) use measured_instance::MeasuredInstance;

/// What instances of a set taught.
#[derive(Debug)]
pub(crate) struct InstanceModel {
    columns: Columns,
    trees: Trees,
    /// Tells which configurations fail; `None` if few did.
    failures: Option<Trees>,
    slowdowns: Option<Slowdowns>,
    /// Deviation of ln(seconds) of an instance from what others say.
    pub(super) spread: f64,
    pub(crate) basis: RelatedBasis,
    /// Number of instances on the call's own target.
    instances: usize,
}

/// Minimum number of measured configurations of all instances.
const ENOUGH: usize = 5;

/// Number of instances from which on they are many: trees are larger, and what others say is followed without a doubt.
const MANY: usize = 50;
const FOLLOWED: usize = 20;

/// Number of instances from which on failures are predicted, and how sure of a failure is enough.
const FAILURES_FROM: usize = 100;
const SURE_OF_FAILURE: f64 = 0.9;

/// What a predicted failure adds to ln(seconds).
const FAILURE: f64 = 7.0;

/// Number of the target's own instances from which on those of other targets do not count.
const OWN_ALONE: usize = 200;

/// Bounds of the deviation of an instance from what others say.
const SPREAD: [f64; 2] = [0.05, 2.0];

impl InstanceModel {
    /// Learns from instances in the order of the store, in which the same set teaches the same. Returns only the reason if they say nothing.
    pub(crate) fn new(mut lists: Vec<MeasuredInstance>) -> Result<Self, RelatedBasis> {
        lists.retain(|list| list.measurements.measured() > 0);
        let own = |list: &&MeasuredInstance| list.other_target.is_none();
        let instances = lists.iter().filter(own).count();
        if instances >= OWN_ALONE {
            lists.retain(|list| list.other_target.is_none());
        }
        let measured = lists.iter().map(|list| list.measurements.distinct()).sum();
        let mut basis = RelatedBasis {
            lists: lists.len(),
            measured,
            refusal: Some(Refusal::TooFew),
            ..RelatedBasis::default()
        };
        let teach = |list: &MeasuredInstance| list.measurements.teach();
        if measured < ENOUGH || !lists.iter().any(teach) {
            return Err(basis);
        }
        let failed: usize = lists
            .iter()
            .map(|list| list.measurements.failed.len())
            .sum();
        let is_failed: Vec<bool> = lists
            .iter()
            .flat_map(|list| {
                let measurements = &list.measurements;
                let timed = measurements.times.iter().map(|_| false);
                timed.chain(measurements.failed.iter().map(|_| true))
            })
            .collect();
        // A failure counts as slow.
        let lists: Vec<MeasuredInstance> = lists
            .into_iter()
            .map(|list| MeasuredInstance {
                measurements: list.measurements.with_failures_slow(),
                ..list
            })
            .collect();
        let columns = Columns::new(&lists);
        let rows = InstanceRows::of_lists(&columns, &lists);
        let times: Vec<f64> = lists
            .iter()
            .flat_map(|list| &list.measurements.times)
            .copied()
            .collect();
        let learner = InstanceLearner::new(&rows, &lists, &times, lists.len() >= MANY);
        let levels = learner.levels();
        let check = check(&learner, &levels);
        let trees = learner.trees(&levels, ROUNDS, |_| true);
        basis.agreement = check.agreement;
        basis.refusal = check.is_chance.then_some(Refusal::NoBetterThanChance);
        if check.is_chance {
            return Err(basis);
        }
        let failures = (instances >= FAILURES_FROM && failed > 0).then(|| {
            let targets: Vec<f64> = is_failed
                .iter()
                .map(|&failed| f64::from(u8::from(failed)))
                .collect();
            let examples = Examples {
                rows: &learner.binned,
                targets: &targets,
                weights: None,
            };
            Trees::new(&examples, Growth::new(ROUNDS_OF_LEVELS, true))
        });
        let [least, most] = SPREAD;
        Ok(Self {
            trees,
            failures,
            slowdowns: check.slowdowns,
            spread: check.spread.clamp(least, most),
            basis,
            instances,
            columns,
        })
    }

    /// The features of a new instance whose values no known one has: texts, with their names.
    pub(crate) fn unknown_values(&self, features: &InstanceFeatures) -> Vec<(String, String)> {
        let texts = features.iter().filter_map(|feature| match feature.value() {
            InstanceValue::Text(text) => Some((feature.name().to_owned(), text.clone())),
            InstanceValue::Number(_) => None,
        });
        texts
            .filter(|text| self.columns.texts.binary_search(text).is_err())
            .collect()
    }

    /// `[points]` ln(seconds) above the fastest configuration of an instance on the call's own target.
    pub(crate) fn predict(&self, features: &InstanceFeatures, points: &[Point]) -> Vec<f64> {
        let rows = InstanceRows {
            columns: &self.columns,
            lists: Cow::Owned(vec![self.columns.list_values(features, 0)]),
            parameters: Cow::Owned(
                points
                    .iter()
                    .flat_map(|point| self.columns.parameters_of(point))
                    .collect(),
            ),
            rows: Cow::Owned(
                points
                    .iter()
                    .enumerate()
                    .map(|(number, point)| (0, number, point.score))
                    .collect(),
            ),
        };
        let mut predicted = self.trees.predict(&rows);
        if let Some(failures) = &self.failures {
            for (time, failure) in predicted.iter_mut().zip(failures.predict(&rows)) {
                if failure > SURE_OF_FAILURE {
                    *time += FAILURE;
                }
            }
        }
        predicted
    }

    /// How far a first pick of some configurations is expected to be above the fastest, given what is predicted of it; nothing if instances
    /// do not tell.
    pub(crate) fn slowdown(&self, predicted: f64, configs: usize) -> Option<Slowdown> {
        let slowdowns = self.slowdowns.as_ref()?;
        if !slowdowns.hold_for(configs) {
            return None;
        }
        let expected = slowdowns.expected(predicted);
        Some(Slowdown {
            expected: libm::exp(expected),
            upper: libm::exp(expected * slowdowns.upper),
        })
    }

    /// Whether enough instances are known to measure what they predict to be fastest, whatever is uncertain.
    pub(super) fn is_followed(&self) -> bool {
        self.instances >= FOLLOWED
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let trees = once(&self.trees).chain(&self.failures).map(Trees::bytes);
        self.columns.bytes() + trees.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use std::{iter::zip, sync::Arc};

    use hlorank_graph::{FeatureGraph, Limits};
    use hlorank_proto::v1::{self, InstanceFeature, instance_feature::Value};

    use super::*;
    use crate::{
        adaptation::{Measurement, Measurements, point::NodeColumns},
        split_mix::mix,
        statistics::mean,
    };

    fn features(size: f64, dtype: &str) -> Arc<InstanceFeatures> {
        let feature = |name: &str, value| InstanceFeature {
            name: name.to_owned(),
            value: Some(value),
        };
        let graph = v1::FeatureGraph {
            feature_set: "set".to_owned(),
            instance_features: vec![
                feature("size", Value::Number(size)),
                feature("dtype", Value::Text(dtype.to_owned())),
            ],
            ..v1::FeatureGraph::default()
        };
        let graph = FeatureGraph::of_message(&graph, &Limits::default()).unwrap();
        Arc::new(graph.instance_features().clone())
    }

    fn point(tile: f64) -> Point {
        Point {
            columns: NodeColumns::of_values(&[tile, 1.0]),
            ..Point::default()
        }
    }

    fn tiles() -> impl Iterator<Item = f64> {
        (2..10).map(|exponent| f64::from(exponent).exp2())
    }

    /// The tile that is nearest to a quarter of the size is the fastest, and every size has another level.
    fn seconds(size: f64, tile: f64) -> f64 {
        let off = (size / 4.0 / tile).log2();
        size * (0.1 * off * off).exp()
    }

    fn list(number: u32, tiles: impl Iterator<Item = f64>) -> MeasuredInstance {
        let size = 16.0 + 37.0 * f64::from(number);
        let measured = tiles.map(|tile| Measurement {
            point: point(tile),
            // A tile that is larger than the size does not run.
            seconds: (tile <= size).then(|| seconds(size, tile)),
            repeats: 1,
        });
        MeasuredInstance {
            features: features(
                size,
                if number.is_multiple_of(2) {
                    "f32"
                } else {
                    "bf16"
                },
            ),
            other_target: None,
            measurements: Measurements::new(measured.collect()),
        }
    }

    /// The mean of ln(slowdown) of the first picks for sizes that are not known.
    fn slowdown(model: &InstanceModel) -> f64 {
        let points: Vec<Point> = tiles().map(point).collect();
        let of_size = |number: u32| {
            let size = 30.0 + 51.0 * f64::from(number);
            let predicted = model.predict(&features(size, "f32"), &points);
            let order = zip(tiles(), predicted).min_by(|one, other| one.1.total_cmp(&other.1));
            let fastest = tiles()
                .map(|tile| seconds(size, tile))
                .fold(f64::INFINITY, f64::min);
            (seconds(size, order.unwrap().0) / fastest).ln()
        };
        mean(&(1..30).map(of_size).collect::<Vec<_>>())
    }

    #[test]
    fn instances_teach_what_is_fast_for_another_size() {
        let model =
            InstanceModel::new((0..40).map(|number| list(number, tiles())).collect()).unwrap();
        assert!(slowdown(&model) < 0.04, "{}", slowdown(&model));
        assert!(model.basis.agreement > 0.7, "{:?}", model.basis);
        let expected = model.slowdown(0.0, 8).unwrap();
        assert!(
            expected.expected < 1.2 && expected.upper >= expected.expected,
            "{expected:?}"
        );
        let unknown = model.unknown_values(&features(1.0, "f8"));
        assert_eq!(unknown, [("dtype".to_owned(), "f8".to_owned())]);
        assert!(model.unknown_values(&features(1.0, "f32")).is_empty());
    }

    #[test]
    fn instances_of_which_few_configurations_were_measured_teach_too() {
        // The fastest of each is seldom among them.
        let some = |number: u32| tiles().skip(number as usize % 3).step_by(3);
        let model = InstanceModel::new((0..120).map(|number| list(number, some(number))).collect());
        let model = model.unwrap();
        assert!(slowdown(&model) < 0.05, "{}", slowdown(&model));
    }

    #[test]
    fn what_fails_is_predicted_to_be_slow() {
        let model =
            InstanceModel::new((0..150).map(|number| list(number, tiles())).collect()).unwrap();
        let predicted = model.predict(&features(40.0, "f32"), &[point(8.0), point(512.0)]);
        assert!(predicted[1] - predicted[0] > FAILURE / 2.0, "{predicted:?}");
    }

    #[test]
    fn equal_lists_teach_the_same_and_random_times_nothing() {
        let lists = || (0..20).map(|number| list(number, tiles()));
        let taught = |lists: Vec<MeasuredInstance>| {
            let model = InstanceModel::new(lists).unwrap();
            model.predict(
                &features(100.0, "f32"),
                &tiles().map(point).collect::<Vec<_>>(),
            )
        };
        assert_eq!(taught(lists().collect()), taught(lists().collect()));
        let random = lists().enumerate().map(|(number, mut list)| {
            // Which tiles fail is no chance.
            list.measurements.failed.clear();
            let times = &mut list.measurements.times;
            let places = 0..times.len();
            let shuffled = places.map(|place| mix((number * 100 + place) as u64) % 1_000);
            *times = shuffled
                .map(|time| f64::from(u32::try_from(time).unwrap()) / 1_000.0)
                .collect();
            list
        });
        let basis = InstanceModel::new(random.collect()).err().unwrap();
        assert_eq!(basis.refusal, Some(Refusal::NoBetterThanChance));
        let nothing = InstanceModel::new(Vec::new()).err().unwrap();
        assert_eq!(nothing.refusal, Some(Refusal::TooFew));
    }
}
