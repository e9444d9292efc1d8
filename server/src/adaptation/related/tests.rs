use super::*;
use crate::adaptation::{Measurement, point::NodeColumns};

const OF_KERNELS: Prior = Prior::of_model(0.05, 0.3);

/// What takes the place of the scores of points.
fn scores(expectation: &Expectation, mut points: Vec<Point>) -> Vec<f64> {
    expectation.replace_scores(&mut points);
    points.iter().map(|point| point.score).collect()
}

fn tile(number: u32) -> Point {
    let bounds = [f64::from(number % 4), f64::from(number / 4)].into();
    Point {
        score: f64::from(number * 7 % 5),
        bounds,
        ..Point::default()
    }
}

/// Times that rise with the second bound and not with the score. Kernels differ in how long they take.
fn kernel(size: u32, order: impl Fn(u32) -> u32) -> Measurements {
    let seconds = |number| 1e-3 * f64::from(size) * libm::exp(f64::from(order(number) / 4));
    let each = |number| Measurement {
        point: tile(number),
        seconds: Some(seconds(number)),
        repeats: 1,
    };
    Measurements::new((0..16).map(each).collect())
}

#[test]
fn kernels_that_agree_teach_how_times_rise() {
    let (pool, basis) = Expectation::of_kernels(
        OF_KERNELS,
        &[1, 2, 3].map(|size| kernel(size, |number| number)),
    );
    let scores = scores(&pool.unwrap(), (0..16).map(tile).collect());
    let times: Vec<f64> = (0..16).map(|number| f64::from(number / 4)).collect();
    println!("{basis:?}, tau {}", tau(&times, &scores));
    assert_eq!((basis.lists, basis.measured), (3, 48));
    assert!(basis.agreement > 0.8 && basis.score_tau < 0.2);
    assert!(tau(&times, &scores) > 0.8);
}

#[test]
fn shuffled_times_make_no_pool() {
    let shuffled = [3, 5, 11].map(|factor| kernel(factor, move |number| number * factor % 16));
    let (pool, basis) = Expectation::of_kernels(OF_KERNELS, &shuffled);
    assert!(pool.is_none());
    let chance = Some(Refusal::NoBetterThanChance);
    assert_eq!(basis.refusal, chance, "{basis:?}");
}

#[test]
fn kernels_that_the_model_predicts_as_well_are_no_pool() {
    let seconds = |number| libm::exp(f64::from(number * 7 % 5));
    let each = |number| Measurement {
        point: tile(number),
        seconds: Some(seconds(number)),
        repeats: 1,
    };
    let known = [(); 3].map(|()| Measurements::new((0..16).map(each).collect()));
    let (pool, basis) = Expectation::of_kernels(OF_KERNELS, &known);
    assert!(pool.is_none());
    let model = Some(Refusal::NoBetterThanModel);
    assert_eq!(basis.refusal, model, "{basis:?}");
}

#[test]
fn one_kernel_is_no_pool() {
    let (pool, basis) = Expectation::of_kernels(
        OF_KERNELS,
        &[kernel(1, |number| number), Measurements::default()],
    );
    assert!(pool.is_none());
    assert_eq!((basis.lists, basis.refusal), (1, Some(Refusal::TooFew)));
}

const OF_TARGETS: Prior = Prior::of_model(0.05, 0.5);

fn point(number: u32) -> Point {
    let columns = [number % 8, number / 8].map(f64::from);
    Point {
        columns: NodeColumns::of_values(&columns),
        ..Point::default()
    }
}

/// Times that fall with the first column and rise with the second, which targets differ in.
fn ln_seconds(number: u32, second: f64) -> f64 {
    let [one, other] = [number % 8, number / 8].map(f64::from);
    second * other - 0.3 * one
}

fn measured(numbers: impl Iterator<Item = u32>, time: impl Fn(u32) -> f64) -> Measurements {
    let each = |number| Measurement {
        point: point(number),
        seconds: Some(libm::exp(time(number))),
        repeats: 1,
    };
    Measurements::new(numbers.map(each).collect())
}

fn target(second: f64) -> Measurements {
    measured(0..64, move |number| ln_seconds(number, second))
}

fn shuffled(factor: u32) -> Measurements {
    measured(0..64, move |number| f64::from(number * factor % 61) / 20.0)
}

fn refusals(bases: &[RelatedBasis]) -> Vec<Option<Refusal>> {
    bases.iter().map(|basis| basis.refusal).collect()
}

#[test]
fn targets_that_agree_predict_another_one() {
    let studied = StudiedTargets::new(OF_TARGETS, &[target(0.2), target(0.1), target(0.3)]);
    let (sources, bases) = studied.given(&Measurements::default());
    let sources = sources.unwrap();
    let times: Vec<f64> = (0..64).map(|number| ln_seconds(number, 0.25)).collect();
    let predicted = scores(&sources, (0..64).map(point).collect());
    println!("{bases:?}, tau {}", tau(&times, &predicted));
    assert!(tau(&times, &predicted) > 0.8);
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
    let (used, bases) = StudiedTargets::new(OF_TARGETS, &sources).given(&Measurements::default());
    let unlike = Some(Refusal::NoBetterThanChance);
    assert_eq!(refusals(&bases), [None, unlike, None, None]);
    assert!(used.is_some());
    let shuffled = [shuffled(23), shuffled(37), shuffled(47)];
    let (used, bases) = StudiedTargets::new(OF_TARGETS, &shuffled).given(&Measurements::default());
    assert_eq!(refusals(&bases), [unlike; 3]);
    assert!(used.is_none());
}

#[test]
fn own_measurements_contradict_a_source() {
    let studied = StudiedTargets::new(OF_TARGETS, &[target(0.2)]);
    let inverted = |number| -ln_seconds(number, 0.2);
    let own = measured((0..64).step_by(5), inverted);
    let (used, bases) = studied.given(&own);
    assert_eq!(refusals(&bases), [Some(Refusal::Contradicted)]);
    assert!(used.is_none() && bases[0].agreement < -0.5);
    let few = measured(0..4, inverted);
    assert!(studied.given(&few).0.is_some(), "too few to tell");
}

#[test]
fn too_few_measurements_are_no_source() {
    let few = measured(0..4, |number| ln_seconds(number, 0.2));
    let equal = measured(0..20, |_| 1.0);
    let failed = Measurements::new(vec![Measurement {
        point: point(1),
        seconds: None,
        repeats: 1,
    }]);
    let studied = StudiedTargets::new(OF_TARGETS, &[few, equal, failed, Measurements::default()]);
    let (used, bases) = studied.given(&Measurements::default());
    assert!(used.is_none());
    assert_eq!(refusals(&bases), [Some(Refusal::TooFew); 4]);
    let measured: Vec<usize> = bases.iter().map(|basis| basis.measured).collect();
    assert_eq!(measured, [4, 20, 1, 0]);
}
