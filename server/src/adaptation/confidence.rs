use hlorank_graph::Task;

use super::{Basis, kendall::variance_by_chance};
use crate::model::{ExpectedTau, TargetMatch};

/// How far a ranking can be trusted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Confidence {
    /// Kendall's tau of the ranking and the run times, as expected; `None` if nothing tells it.
    pub(crate) expected: Option<ExpectedTau>,
    /// How many of the first configurations to measure.
    pub(crate) measure_first: u32,
}

/// What tells how far a ranking can be trusted.
pub(crate) struct Signs {
    pub(crate) task: Task,
    /// What is expected of a list like this one, if the artifact of the model says it.
    pub(crate) calibrated: Option<ExpectedTau>,
    /// How well the model suits the target of the call.
    pub(crate) suits: TargetMatch,
    /// What was learned from measurements.
    pub(crate) basis: Option<Basis>,
}

/// Number of measurements from which on the leave-one-out tau tells more than what models think.
const LEFT_OUT: usize = 5;

/// How many tiles were measured in the order of the model until the fastest was within 2 % of the fastest of its list, for nine
/// of ten held-out kernels of which this tau was expected at least: 86, 140, 113 and 714 kernels, with 16 to 18 tiles each, of
/// IREE's and of other compilers.
const BY_EXPECTED: [(f64, u32); 4] = [(0.7, 3), (0.6, 5), (0.5, 9), (-1.0, 16)];

/// The same for 259 held-out kernels after 5 measurements, by the leave-one-out tau.
const BY_LEFT_OUT: [(f64, u32); 4] = [(0.85, 2), (0.5, 5), (0.2, 6), (-1.0, 11)];

/// The same for layouts of 26 held-out graphs, where neither tells much.
const LAYOUTS: u32 = 12;

/// How much of the expected tau remains on hardware that the model was not trained for.
const OTHER_HARDWARE: f64 = 0.5;

impl Confidence {
    /// Judges a ranking by what tells of it.
    pub(crate) fn of(signs: &Signs) -> Self {
        let expected = expected(signs);
        Self {
            expected,
            measure_first: measure_first(signs, expected),
        }
    }
}

/// Joins what the model's validation data say with what the measurements of the call say, each by its precision.
fn expected(signs: &Signs) -> Option<ExpectedTau> {
    let before = signs.calibrated.map(|tau| on_target(tau, signs.suits));
    let Some(basis) = signs.basis else {
        return before;
    };
    let before = before.unwrap_or(ExpectedTau::UNKNOWN);
    // Two independent estimates of a number are best combined by a mean that weights each of them
    // with its precision, the reciprocal of its variance. The precision of the mean is their sum.
    // The variance of the measured tau is taken to be that of two random orders.
    let precision = 1.0 / (before.deviation * before.deviation);
    let measured = 1.0 / variance_by_chance(basis.learned);
    let sum = precision + measured;
    Some(ExpectedTau {
        tau: (precision * before.tau + measured * basis.left_out_tau) / sum,
        deviation: sum.recip().sqrt(),
    })
}

/// What remains of an expectation on the target of a call.
fn on_target(expected: ExpectedTau, suits: TargetMatch) -> ExpectedTau {
    match suits {
        TargetMatch::Same | TargetMatch::Unknown => expected,
        // Validation lists of the model's own hardware do not tell how uncertain this is.
        TargetMatch::OtherHardware => ExpectedTau {
            tau: OTHER_HARDWARE * expected.tau,
            deviation: expected.deviation.max(ExpectedTau::UNKNOWN.deviation),
        },
        TargetMatch::OtherCompiler => ExpectedTau::UNKNOWN,
    }
}

fn measure_first(signs: &Signs, expected: Option<ExpectedTau>) -> u32 {
    if signs.task != Task::Tile {
        return LAYOUTS;
    }
    let learned = signs.basis.filter(|basis| basis.learned >= LEFT_OUT);
    match (learned, expected) {
        (Some(basis), _) => reached(&BY_LEFT_OUT, basis.left_out_tau),
        (None, expected) => reached(&BY_EXPECTED, expected.map_or(-1.0, |expected| expected.tau)),
    }
}

/// The number that belongs to the first tau that is reached.
fn reached(numbers: &[(f64, u32)], tau: f64) -> u32 {
    numbers
        .iter()
        .find(|(least, _)| tau >= *least)
        .map_or(LAYOUTS, |(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNS: Signs = Signs {
        task: Task::Tile,
        calibrated: None,
        suits: TargetMatch::Unknown,
        basis: None,
    };

    const CALIBRATED: ExpectedTau = ExpectedTau {
        tau: 0.72,
        deviation: 0.15,
    };

    fn basis(learned: usize, left_out_tau: f64) -> Basis {
        Basis {
            learned,
            noise: 0.1,
            left_out_tau,
            ..Basis::default()
        }
    }

    #[test]
    fn without_a_calibration_nothing_is_expected_and_much_is_measured() {
        let unsure = Confidence {
            expected: None,
            measure_first: 16,
        };
        assert_eq!(Confidence::of(&SIGNS), unsure);
        let layouts = Signs {
            task: Task::Layout,
            ..SIGNS
        };
        assert_eq!(Confidence::of(&layouts).measure_first, 12);
    }

    #[test]
    fn measurements_tell_more_than_models() {
        let number = |basis| {
            let basis = Some(basis);
            Confidence::of(&Signs { basis, ..SIGNS }).measure_first
        };
        assert_eq!(
            [
                number(basis(5, 0.9)),
                number(basis(5, 0.6)),
                number(basis(5, -0.2))
            ],
            [2, 5, 11]
        );
        assert_eq!(number(basis(4, 0.9)), 16);
    }

    #[test]
    fn less_is_expected_on_other_targets() {
        let on = |suits| {
            let calibrated = Some(CALIBRATED);
            Confidence::of(&Signs {
                calibrated,
                suits,
                ..SIGNS
            })
        };
        let same = on(TargetMatch::Same);
        assert_eq!((same.expected, same.measure_first), (Some(CALIBRATED), 3));
        assert_eq!(on(TargetMatch::Unknown), same);
        let hardware = on(TargetMatch::OtherHardware).expected.unwrap();
        assert_eq!((hardware.tau, hardware.deviation), (0.36, 0.3));
        let compiler = on(TargetMatch::OtherCompiler);
        assert_eq!(
            (compiler.expected, compiler.measure_first),
            (Some(ExpectedTau::UNKNOWN), 16)
        );
    }

    #[test]
    fn measurements_correct_what_a_model_expects() {
        let after = |basis| {
            let expected = Confidence::of(&Signs {
                calibrated: Some(CALIBRATED),
                basis: Some(basis),
                ..SIGNS
            });
            expected.expected.unwrap()
        };
        let [few, many] = [after(basis(5, -0.5)), after(basis(100, -0.5))];
        assert!(few.tau < CALIBRATED.tau && few.tau > 0.3, "{few:?}");
        assert!(many.tau < -0.2, "{many:?}");
        assert!(many.deviation < few.deviation && few.deviation < CALIBRATED.deviation);
    }
}
