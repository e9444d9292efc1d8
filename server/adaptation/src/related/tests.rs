use std::iter::zip;

use hlorank_graph::{FeatureGraph, Limits};
use hlorank_proto::v1::{self, InstanceFeature, instance_feature::Value};

use super::*;
use crate::{Measurement, split_mix::mix};

const OF_KERNELS: Prior = Prior::of_model(0.05, 0.3);

/// What the model of some lists, each of a target or a kernel of its own, says beside a graph's own measurements.
fn related(kind: SourceKind, lists: &[Measurements], own: &Measurements) -> TaughtByLists {
    let lists = lists.iter().enumerate();
    let lists = lists.map(|(number, measurements)| RelatedList {
        other_target: (kind == SourceKind::Targets).then_some(number),
        measurements: measurements.clone(),
        ..RelatedList::default()
    });
    let prior = match kind {
        SourceKind::Kernels => OF_KERNELS,
        SourceKind::Instances | SourceKind::Targets => OF_TARGETS,
    };
    let learn = |lists: &[RelatedList]| RelatedModel::learn(kind, prior, lists.to_vec());
    relate(kind, lists.collect(), own, learn)
}

fn kernels(lists: &[Measurements]) -> (Option<Arc<RelatedModel>>, RelatedBasis) {
    let (model, bases) = related(SourceKind::Kernels, lists, &Measurements::default());
    (model, bases[0])
}

fn targets(lists: &[Measurements], own: &Measurements) -> TaughtByLists {
    related(SourceKind::Targets, lists, own)
}

/// What takes the place of the scores of points.
fn scores(model: Arc<RelatedModel>, mut points: Vec<Point>) -> Vec<f64> {
    let features = Arc::default();
    Expectation { model, features }.replace_scores(&mut points);
    points.iter().map(|point| point.score).collect()
}

fn tile(number: u32) -> Point {
    Point {
        score: f64::from(number * 7 % 5),
        ..Point::of_bounds(&[f64::from(number % 4), f64::from(number / 4)])
    }
}

fn tiles_measured(seconds: impl Fn(u32) -> f64) -> Measurements {
    let each = |number| Measurement::of_time(tile(number), seconds(number));
    Measurements::new((0..16).map(each).collect())
}

/// Times that rise with the second bound and not with the score. Kernels differ in how long they take.
fn kernel(size: u32, order: impl Fn(u32) -> u32) -> Measurements {
    tiles_measured(|number| 1e-3 * f64::from(size) * libm::exp(f64::from(order(number) / 4)))
}

#[test]
fn kernels_that_agree_teach_how_times_rise() {
    let (pool, basis) = kernels(&[1, 2, 3].map(|size| kernel(size, |number| number)));
    let scores = scores(pool.unwrap(), (0..16).map(tile).collect());
    let times: Vec<f64> = (0..16).map(|number| f64::from(number / 4)).collect();
    assert_eq!((basis.lists, basis.measured), (3, 48));
    assert!(basis.agreement > 0.8 && basis.score_tau < 0.2, "{basis:?}");
    assert!(tau(&times, &scores) > 0.8);
}

#[test]
fn kernels_whose_times_are_shuffled_or_known_to_the_model_are_no_pool() {
    let shuffled = [3, 5, 11].map(|factor| kernel(factor, move |number| number * factor % 16));
    let known = [(); 3].map(|()| tiles_measured(|number| libm::exp(tile(number).score)));
    for (lists, refusal) in [
        (shuffled, Refusal::NoBetterThanChance),
        (known, Refusal::NoBetterThanModel),
    ] {
        let (pool, basis) = kernels(&lists);
        assert!(pool.is_none());
        assert_eq!(basis.refusal, Some(refusal), "{basis:?}");
    }
}

#[test]
fn one_kernel_is_no_pool() {
    let (pool, basis) = kernels(&[kernel(1, |number| number), Measurements::default()]);
    assert!(pool.is_none());
    assert_eq!((basis.lists, basis.refusal), (1, Some(Refusal::TooFew)));
}

const OF_TARGETS: Prior = Prior::of_model(0.05, 0.5);

fn point(number: u32) -> Point {
    Point::of_columns(&[number % 8, number / 8].map(f64::from))
}

/// Times that fall with the first column and rise with the second, which targets differ in.
fn ln_seconds(number: u32, second: f64) -> f64 {
    let [one, other] = [number % 8, number / 8].map(f64::from);
    second * other - 0.3 * one
}

fn measured(numbers: impl Iterator<Item = u32>, time: impl Fn(u32) -> f64) -> Measurements {
    let each = |number| Measurement::of_time(point(number), libm::exp(time(number)));
    Measurements::new(numbers.map(each).collect())
}

fn target(second: f64) -> Measurements {
    measured(0..64, move |number| ln_seconds(number, second))
}

fn shuffled(factor: u32) -> Measurements {
    measured(0..64, move |number| f64::from(number * factor % 61) / 20.0)
}

/// How well a model predicts a target.
fn tau_of_target(model: Option<Arc<RelatedModel>>, second: f64) -> f64 {
    let times: Vec<f64> = (0..64).map(|number| ln_seconds(number, second)).collect();
    tau(
        &times,
        &scores(model.unwrap(), (0..64).map(point).collect()),
    )
}

fn refusals(bases: &[RelatedBasis]) -> Vec<Option<Refusal>> {
    bases.iter().map(|basis| basis.refusal).collect()
}

#[test]
fn targets_that_agree_predict_another_one() {
    let (sources, bases) = targets(
        &[target(0.2), target(0.1), target(0.3)],
        &Measurements::default(),
    );
    assert!(tau_of_target(sources, 0.25) > 0.8);
    assert_eq!(refusals(&bases), [None; 3]);
    assert!(
        bases
            .iter()
            .all(|basis| basis.agreement > 0.5 && basis.measured == 64)
    );
}

#[test]
fn a_source_unlike_the_others_is_left_out() {
    let sources = [target(0.2), shuffled(23), target(0.1), target(0.3)];
    let (used, bases) = targets(&sources, &Measurements::default());
    let unlike = Some(Refusal::NoBetterThanChance);
    assert_eq!(refusals(&bases), [None, unlike, None, None]);
    assert!(used.is_some());
    let shuffled = [shuffled(23), shuffled(37), shuffled(47)];
    let (used, bases) = targets(&shuffled, &Measurements::default());
    assert_eq!(refusals(&bases), [unlike; 3]);
    assert!(used.is_none());
}

#[test]
fn own_measurements_contradict_a_source() {
    let inverted = |number| -ln_seconds(number, 0.2);
    let own = measured((0..64).step_by(5), inverted);
    let (used, bases) = targets(&[target(0.2)], &own);
    assert_eq!(refusals(&bases), [Some(Refusal::Contradicted)]);
    assert!(used.is_none() && bases[0].agreement < -0.5);
    let few = measured(0..4, inverted);
    let (used, _) = targets(&[target(0.2)], &few);
    assert!(used.is_some(), "too few to tell");
}

#[test]
fn what_is_left_teaches_without_a_contradicted_source() {
    let own = measured((0..64).step_by(2), |number| ln_seconds(number, 0.2));
    let (used, bases) = targets(&[target(0.2), target(0.1), target(0.3), target(-0.5)], &own);
    assert_eq!(refusals(&bases)[..3], [None; 3], "{bases:?}");
    assert!(refusals(&bases)[3].is_some());
    assert!(tau_of_target(used, 0.2) > 0.8);
}

#[test]
fn what_is_left_has_to_agree_without_a_contradicted_source() {
    let along = |number: u32, [one, other]: [f64; 2]| {
        let [column, next] = [number % 8, number / 8].map(f64::from);
        one * column + other * next
    };
    let source = |rises| measured(0..64, move |number| along(number, rises));
    // The first two agree with the third alone, which the graph's own times contradict.
    let sources = [source([0.3, 0.0]), source([0.0, 0.3]), source([0.3, 0.3])];
    let (used, bases) = targets(&sources, &Measurements::default());
    assert_eq!(refusals(&bases), [None; 3], "{bases:?}");
    assert!(used.is_some());
    let own = measured([0, 16, 3, 40, 6, 56].into_iter(), |number| {
        -along(number, [0.3, 0.3])
    });
    let (used, bases) = targets(&sources, &own);
    let unlike = Some(Refusal::NoBetterThanChance);
    assert_eq!(
        refusals(&bases),
        [unlike, unlike, Some(Refusal::Contradicted)],
        "{bases:?}"
    );
    assert!(used.is_none());
}

#[test]
fn too_few_measurements_are_no_source() {
    let few = measured(0..4, |number| ln_seconds(number, 0.2));
    let equal = measured(0..20, |_| 1.0);
    let failed = Measurements::new(vec![Measurement {
        seconds: None,
        ..Measurement::of_time(point(1), 1.0)
    }]);
    let lists = [few, equal, failed, Measurements::default()];
    let (used, bases) = targets(&lists, &Measurements::default());
    assert!(used.is_none());
    assert_eq!(refusals(&bases), [Some(Refusal::TooFew); 4]);
    let measured: Vec<usize> = bases.iter().map(|basis| basis.measured).collect();
    assert_eq!(measured, [4, 20, 1, 0]);
}

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

fn point_of_tile(tile: f64) -> Point {
    Point::of_columns(&[tile, 1.0])
}

fn tiles() -> impl Iterator<Item = f64> {
    (2..10).map(|exponent| f64::from(exponent).exp2())
}

/// The tile that is nearest to a quarter of the size is the fastest, and every size has another level.
fn seconds(size: f64, tile: f64) -> f64 {
    let off = (size / 4.0 / tile).log2();
    size * (0.1 * off * off).exp()
}

fn list(number: u32, tiles: impl Iterator<Item = f64>) -> RelatedList {
    let size = 16.0 + 37.0 * f64::from(number);
    let measured = tiles.map(|tile| Measurement {
        point: point_of_tile(tile),
        // A tile that is larger than the size does not run.
        seconds: (tile <= size).then(|| seconds(size, tile)),
        repeats: 1,
    });
    let dtype = ["f32", "bf16"][number as usize % 2];
    RelatedList {
        features: features(size, dtype),
        other_target: None,
        measurements: Measurements::new(measured.collect()),
    }
}

fn learned(lists: Vec<RelatedList>) -> TaughtByLists {
    RelatedModel::learn(SourceKind::Instances, OF_TARGETS, lists)
}

fn expected(model: &Arc<RelatedModel>, features: Arc<InstanceFeatures>) -> Expectation {
    let model = Arc::clone(model);
    Expectation { model, features }
}

/// What is predicted of tiles of an instance of a size.
fn predicted(model: &Arc<RelatedModel>, size: f64, tiles: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut points: Vec<Point> = tiles.map(point_of_tile).collect();
    expected(model, features(size, "f32")).replace_scores(&mut points);
    points.iter().map(|point| point.score).collect()
}

/// The mean of ln(slowdown) of the first picks for sizes that are not known.
fn slowdown(model: &Arc<RelatedModel>) -> f64 {
    let of_size = |number: u32| {
        let size = 30.0 + 51.0 * f64::from(number);
        let predicted = zip(tiles(), predicted(model, size, tiles()));
        let first = predicted.min_by(|one, other| one.1.total_cmp(&other.1));
        let times = tiles().map(|tile| seconds(size, tile));
        (seconds(size, first.unwrap().0) / times.fold(f64::INFINITY, f64::min)).ln()
    };
    mean(&(1..30).map(of_size).collect::<Vec<_>>())
}

#[test]
fn instances_teach_what_is_fast_for_another_size() {
    let (model, bases) = learned((0..40).map(|number| list(number, tiles())).collect());
    let model = model.unwrap();
    assert!(slowdown(&model) < 0.04, "{}", slowdown(&model));
    assert!(bases[0].agreement > 0.7, "{bases:?}");
    let slowdown = expected(&model, features(1.0, "f8")).slowdown(0.0, 8);
    let Slowdown {
        expected: mean,
        upper,
    } = slowdown.unwrap();
    assert!(mean < 1.2 && upper >= mean, "{slowdown:?}");
    let unknown = expected(&model, features(1.0, "f8")).unknown_values();
    assert_eq!(unknown, [("dtype".to_owned(), "f8".to_owned())]);
    let known = expected(&model, features(1.0, "f32")).unknown_values();
    assert!(known.is_empty());
}

#[test]
fn instances_of_which_few_configurations_were_measured_teach_too() {
    // The fastest of each is seldom among them.
    let some = |number: u32| tiles().skip(number as usize % 3).step_by(3);
    let (model, _) = learned((0..120).map(|number| list(number, some(number))).collect());
    let model = model.unwrap();
    assert!(slowdown(&model) < 0.05, "{}", slowdown(&model));
}

#[test]
fn what_fails_is_predicted_to_be_slow() {
    let (model, _) = learned((0..150).map(|number| list(number, tiles())).collect());
    let predicted = predicted(&model.unwrap(), 40.0, [8.0, 512.0].into_iter());
    assert!(predicted[1] - predicted[0] > FAILURE / 2.0, "{predicted:?}");
}

#[test]
fn equal_lists_teach_the_same_and_random_times_nothing() {
    let lists = || (0..20).map(|number| list(number, tiles()));
    let taught = || predicted(&learned(lists().collect()).0.unwrap(), 100.0, tiles());
    assert_eq!(taught(), taught());
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
    let bases = learned(random.collect()).1;
    assert_eq!(refusals(&bases), [Some(Refusal::NoBetterThanChance)]);
    let bases = learned(Vec::new()).1;
    assert_eq!(refusals(&bases), [Some(Refusal::TooFew)]);
}

#[test]
fn the_spread_is_that_of_all_lists_that_were_left_out() {
    let list = |(squares, weights)| LeftOutList {
        list: 0,
        configs: 16,
        tau: 0.5,
        score_tau: 0.5,
        squares,
        weights,
        pick: (0.0, 0.0),
    };
    let lists = [(0.5, 1.0), (0.3, 4.0)].map(list);
    assert!((spread(lists.iter()) - 0.4).abs() < 1e-12);
    assert_eq!(spread([].iter()), SPREAD_OF_ONE);
}
