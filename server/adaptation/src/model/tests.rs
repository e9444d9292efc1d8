use std::iter::zip;

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::Measurement;

const PRIOR: Prior = Prior::of_model(0.05, 0.3);

/// Layouts of three tensors whose time is a sum over tensors, and whose score is half right.
fn layout(number: u32) -> Point {
    let score = f64::from(number % 3) * 2.0 + f64::from(number % 5);
    Point::of_orders(score, &[number % 3, number / 3 % 3, number / 9 % 3])
}

/// With a noise of some tenths of a percent, as measured times have.
fn time(number: u32) -> f64 {
    let noise = 1.0 + f64::from(number * 37 % 11) / 2000.0;
    let parts = [number % 3, number / 3 % 3 * 2, number / 9 % 3 * 5].map(f64::from);
    0.001 * noise * libm::exp(parts.iter().sum::<f64>() / 10.0)
}

fn measured(number: u32) -> Measurement {
    Measurement::of_time(layout(number), time(number))
}

/// The measurements of this many layouts, from all over their space.
fn spread_out(count: u32) -> Vec<Measurement> {
    (0..count)
        .map(|number| measured(number * 11 % 27))
        .collect()
}

fn tile(number: u32) -> Point {
    Point {
        score: f64::from(number % 6),
        ..Point::of_bounds(&[f64::from(number % 4), f64::from(number / 4), 0.0])
    }
}

/// Learns from measurements that teach something.
fn adapted(measured: impl IntoIterator<Item = Measurement>) -> AdaptedModel {
    AdaptedModel::new(PRIOR, Measurements::new(measured.into_iter().collect())).unwrap()
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    zip(one, other).map(|(one, other)| one * other).sum()
}

/// Solves a system, and once more for what rounding left of it.
fn solve(matrix: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut solved = eliminate(matrix.to_vec(), right.to_vec());
    let left = zip(matrix, right).map(|(row, right)| right - product(row, &solved));
    let correction = eliminate(matrix.to_vec(), left.collect());
    zip(&mut solved, correction).for_each(|(solved, correction)| *solved += correction);
    solved
}

/// Solves a system by Gauss-Jordan elimination with pivots.
fn eliminate(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for column in 0..size {
        let pivot = (column..size).max_by(|a, b| {
            matrix[*a][column]
                .abs()
                .total_cmp(&matrix[*b][column].abs())
        });
        matrix.swap(column, pivot.unwrap());
        right.swap(column, pivot.unwrap());
        for row in (0..size).filter(|row| *row != column) {
            let factor = matrix[row][column] / matrix[column][column];
            let source = matrix[column].clone();
            zip(&mut matrix[row], source).for_each(|(value, source)| *value -= factor * source);
            right[row] -= factor * right[column];
        }
    }
    (0..size).map(|row| right[row] / matrix[row][row]).collect()
}

/// How alike two points are, computed group by group straight from the points.
fn dense_kernel(all: &[Point], variances: &[f64], [one, other]: [&Point; 2]) -> f64 {
    let count = f64::from(u32::try_from(all.len()).unwrap());
    let mean = all.iter().map(|point| point.score).sum::<f64>() / count;
    let unit = PRIOR.spread / PRIOR.slope;
    let sum = variances[0] * (one.score - mean) * (other.score - mean) / (unit * unit);
    if all[0].bounds.is_empty() {
        let alike = zip(&*one.orders, &*other.orders).map(|(one, other)| one == other);
        let tensors = zip(alike, &variances[1..]).filter(|(alike, _)| *alike);
        return sum + tensors.map(|(_, variance)| variance).sum::<f64>();
    }
    let squares =
        zip(&*one.bounds, &*other.bounds).map(|(one, other)| ((one - other) / 3.5).powi(2));
    let volume = (one.bounds.iter().sum::<f64>() - other.bounds.iter().sum::<f64>()) / 3.5;
    let distance = (squares.sum::<f64>() + 0.75 * volume * volume).sqrt();
    let scaled = 5_f64.sqrt() * distance;
    sum + variances[1] * (1.0 + scaled + scaled * scaled / 3.0) * (-scaled).exp()
}

/// Checks every hypothesis against its posterior by elimination.
fn check_posterior(measured: Vec<Measurement>, candidates: impl Iterator<Item = Point>) {
    let measurements = Measurements::new(measured);
    let points = measurements.points.clone();
    let times = measurements.times.clone();
    let adapted = AdaptedModel::new(PRIOR, measurements).unwrap();
    let candidates: Vec<Point> = candidates.collect();
    for each in &adapted.hypotheses {
        let fit = &each.fit;
        let covariance =
            |one, other| dense_kernel(&points, &fit.variances, [one, other]) + fit.offset;
        let cross =
            |one| -> Vec<f64> { points.iter().map(|other| covariance(one, other)).collect() };
        let mut matrix: Vec<Vec<f64>> = points.iter().map(cross).collect();
        for (place, noise) in fit.noises.iter().enumerate() {
            matrix[place][place] += noise;
        }
        let residuals: Vec<f64> = zip(&times, &points)
            .map(|(time, point)| time - each.slope * point.score - each.mean)
            .collect();
        let weights = solve(&matrix, &residuals);
        for candidate in &candidates {
            let cross = cross(candidate);
            let mean = product(&cross, &weights);
            let explained = product(&cross, &solve(&matrix, &cross));
            let variance = covariance(candidate, candidate) - explained;
            let scaled = adapted.kernel.scaled(candidate);
            let covariances = fit.relate(&adapted.kernel, &scaled);
            let found = fit.predict(&adapted.kernel, &scaled, &covariances);
            assert!((found.mean - mean).abs() < 1e-9, "{} {mean}", found.mean);
            assert!(
                (found.variance - variance).abs() < 1e-9,
                "{} {variance}",
                found.variance
            );
        }
    }
}

#[test]
fn the_posterior_of_layouts_is_that_of_a_dense_solution() {
    let all = (0..20).map(|number| measured(number * 7 % 27));
    check_posterior(all.collect(), (0..27).map(layout));
}

#[test]
fn the_posterior_of_tiles_is_that_of_a_dense_solution() {
    let of = |number| Measurement {
        repeats: 1 + number % 3,
        ..Measurement::of_time(tile(number), time(number))
    };
    check_posterior((0..12).map(of).collect(), (0..24).map(tile));
}

#[test]
fn the_mean_of_a_layout_is_that_of_both_hypotheses() {
    let adapted = adapted(spread_out(20));
    for point in (0..27).map(layout) {
        let scaled = adapted.kernel.scaled(&point);
        let mean =
            |each: &Hypothesis| each.weight * each.predict(&adapted.kernel, &point, &scaled).mean;
        let expected: f64 = adapted.hypotheses.iter().map(mean).sum();
        let found = adapted.predict(&point).log_seconds;
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
}

/// The predicted ln(seconds) of all layouts.
fn predictions(adapted: &AdaptedModel) -> Vec<f64> {
    let of = |number| adapted.predict(&layout(number)).log_seconds;
    (0..27).map(of).collect()
}

#[test]
fn additive_times_are_learned() {
    let adapted = adapted(spread_out(14));
    let times: Vec<f64> = (0..27).map(time).collect();
    let scores: Vec<f64> = (0..27).map(|number| layout(number).score).collect();
    let before = tau(&times, &scores);
    let after = tau(&times, &predictions(&adapted));
    assert!(after > 0.9 && after > before + 0.3, "{before} {after}");
    assert!(adapted.basis.left_out_tau > adapted.basis.score_tau);
}

#[test]
fn one_outlier_of_ten_times_moves_the_order_of_the_others_little() {
    let mut all = spread_out(20);
    let times: Vec<f64> = (0..27).map(time).collect();
    let clean = tau(&times, &predictions(&adapted(all.clone())));
    all[3].seconds = all[3].seconds.map(|seconds| seconds * 10.0);
    let disturbed = tau(&times, &predictions(&adapted(all)));
    assert!(disturbed > clean - 0.05, "{clean} {disturbed}");
}

#[test]
fn a_deviation_is_widened_by_as_much_as_was_left_over() {
    let mut adapted = adapted((0..9).map(measured));
    let point = layout(20);
    let scaled = adapted.kernel.scaled(&point);
    let mut deviation = |widening| {
        adapted.hypotheses[0].fit.widening = widening;
        let predicted = adapted.hypotheses[0].predict(&adapted.kernel, &point, &scaled);
        predicted.variance.sqrt()
    };
    assert!((deviation(3.0) - 3.0 * deviation(1.0)).abs() < 1e-12);
}

#[test]
fn measurements_that_say_nothing_change_nothing() {
    let equal = (0..9).map(|number| Measurement::of_time(layout(number), 1.0));
    for all in [Vec::new(), (0..2).map(measured).collect(), equal.collect()] {
        assert!(AdaptedModel::new(PRIOR, Measurements::new(all)).is_none());
    }
}

#[test]
fn a_configuration_that_failed_is_last() {
    let failed = Measurement {
        seconds: None,
        ..measured(20)
    };
    let adapted = adapted((0..9).map(measured).chain([failed]));
    assert_eq!(adapted.predict(&layout(20)).log_seconds, f64::INFINITY);
    assert!(adapted.predict(&layout(21)).log_seconds.is_finite());
}

#[test]
fn what_is_far_from_every_measurement_is_less_certain() {
    let adapted = adapted((0..9).map(measured));
    let unseen = Point::of_orders(layout(0).score, &[7, 8, 9]);
    assert!(adapted.predict(&unseen).deviation > adapted.predict(&layout(0)).deviation);
}

#[test]
fn more_measurements_than_fit_a_matrix_teach_if_they_differ_in_few_places() {
    let layout = |number: u32| {
        let orders = [number % 9, number / 9 % 9, number / 81];
        Point::of_orders(f64::from(number % 5), &orders)
    };
    let seconds = |number: u32| {
        let parts = [number % 9, number / 9 % 9 * 2, number / 81 * 5].map(f64::from);
        0.001
            * libm::exp(parts.iter().sum::<f64>() / 30.0)
            * (1.0 + f64::from(number * 37 % 11) / 2000.0)
    };
    let each = |number| Measurement::of_time(layout(number), seconds(number));
    let adapted = adapted((0..600).map(each));
    assert_eq!(adapted.basis.learned, 600);
    for number in 600..648 {
        let predicted = adapted.predict(&layout(number)).log_seconds;
        assert!(
            (predicted - libm::log(seconds(number))).abs() < 0.02,
            "{number}"
        );
    }
    let tiles: Vec<Point> = (0..400).map(tile).collect();
    assert_eq!(
        Kernel::of_points(&tiles, 1.0, None).size(),
        400,
        "tiles have no columns"
    );
}

proptest! {
    #[test]
    fn the_order_of_measurements_changes_no_bit(
        (all, shuffled) in vec((0_u32..27, 1e-6_f64..1e3, 1_u32..9), 1..24)
            .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))
    ) {
        let predictions = |all: &[(u32, f64, u32)]| {
            let each = |&(number, seconds, repeats): &(u32, f64, u32)| {
                Measurement { repeats, ..Measurement::of_time(layout(number), seconds) }
            };
            let adapted = AdaptedModel::new(PRIOR, Measurements::new(all.iter().map(each).collect()));
            adapted.map(|adapted| {
                let predicted = (0..27).map(|number| adapted.predict(&layout(number)));
                let bits = predicted.map(|each| (each.log_seconds.to_bits(), each.deviation.to_bits()));
                bits.collect::<Vec<_>>()
            })
        };
        prop_assert_eq!(predictions(&all), predictions(&shuffled));
    }

    #[test]
    fn any_times_give_finite_predictions(times in vec(1e-9_f64..1e9, 3..30)) {
        let each = |(number, &seconds): (u32, &f64)| Measurement::of_time(tile(number), seconds);
        let adapted = AdaptedModel::new(PRIOR, Measurements::new(zip(0.., &times).map(each).collect()));
        for number in 0..30 {
            let predicted = adapted.as_ref().map(|adapted| adapted.predict(&tile(number)));
            let mean = adapted.as_ref().map(|adapted| adapted.predict_mean(&tile(number)));
            prop_assert_eq!(mean, predicted.map(|each| each.log_seconds));
            prop_assert!(predicted.is_none_or(|each| each.log_seconds.is_finite() && each.deviation.is_finite()));
        }
    }
}

/// A tile of a flat space: two sizes and a switch.
fn parameters(number: u32) -> Point {
    let [width, height] = [number % 6, number / 6 % 6].map(|exponent| f64::from(1 << exponent));
    Point::of_columns(&[width, height, f64::from(number / 36)])
}

/// Fast where the product of the sizes is 128, and with the switch.
fn seconds_of(parameters: &Point) -> f64 {
    let [width, height, switch] = [0, 1, 2].map(|place| parameters.feature(place));
    let off = libm::log2(width * height) - 7.0;
    1e-3 * libm::exp(0.1 * off * off - 0.2 * switch)
}

fn measured_parameters(number: u32) -> Measurement {
    let point = parameters(number);
    let seconds = seconds_of(&point);
    Measurement::of_time(point, seconds)
}

#[test]
fn columns_without_a_model_reorder_what_was_not_measured() {
    let measured = (0..72).filter(|number| number % 5 < 2);
    let adapted = adapted(measured.map(measured_parameters));
    let others: Vec<Point> = (0..72)
        .filter(|number| number % 5 > 1)
        .map(parameters)
        .collect();
    let times: Vec<f64> = others.iter().map(seconds_of).collect();
    let predicted: Vec<f64> = others
        .iter()
        .map(|point| adapted.predict_mean(point))
        .collect();
    let whole = others
        .iter()
        .map(|point| adapted.predict(point).log_seconds);
    assert!(whole.eq(predicted.iter().copied()));
    let found = tau(&times, &predicted);
    assert!(found > 0.8, "{found} {:?}", adapted.basis);
}

#[test]
fn scores_beyond_doubt_are_followed_unless_the_measurements_contradict_them() {
    let prior = Prior {
        doubt: 0.0,
        ..Prior::of_model(1.0, 0.5)
    };
    let learned = |sign: f64| {
        let scored = |number| {
            let mut measured = measured_parameters(number);
            measured.point.score = sign * libm::log(seconds_of(&measured.point));
            measured
        };
        AdaptedModel::new(prior, Measurements::new((0..24).map(scored).collect())).unwrap()
    };
    let slopes = |adapted: &AdaptedModel| -> Vec<f64> {
        let hypotheses = adapted.hypotheses.iter();
        hypotheses.map(|each| each.slope).collect()
    };
    let [agreeing, reversed] = [1.0, -1.0].map(learned);
    assert_eq!(slopes(&agreeing), [1.0]);
    assert!(!agreeing.basis.contradicts, "{:?}", agreeing.basis);
    assert_eq!(slopes(&reversed), [0.0]);
    assert!(reversed.basis.contradicts, "{:?}", reversed.basis);
}

#[test]
fn what_was_measured_of_parameters_is_known_however_rough_their_space_is() {
    // Every seventh configuration is a hundred times as fast as all around it.
    let rough = |number: u32| {
        let point = parameters(number);
        let factor = if number % 7 == 3 { 0.01 } else { 1.0 };
        let seconds = factor * seconds_of(&point);
        Measurement::of_time(point, seconds)
    };
    let measured: Vec<Measurement> = (0..72).filter(|number| number % 5 < 2).map(rough).collect();
    let adapted = adapted(measured.clone());
    for each in measured {
        let predicted = adapted.predict(&each.point);
        let expected = libm::log(each.seconds.unwrap());
        assert!((predicted.log_seconds - expected).abs() < 1e-12);
        assert!(predicted.deviation.is_finite());
    }
}

#[test]
fn a_failure_of_parameters_teaches_as_a_slow_run() {
    let measured = (0..72).step_by(5).map(measured_parameters);
    let failed = [1, 6, 8, 13].map(|number| Measurement {
        seconds: None,
        ..measured_parameters(number)
    });
    let predicted = |adapted: AdaptedModel| adapted.predict(&parameters(7)).log_seconds;
    let before = predicted(adapted(measured.clone()));
    let after = predicted(adapted(measured.chain(failed)));
    assert!(after > before, "all its neighbours failed");
}
