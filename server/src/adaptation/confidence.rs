use hlorank_graph::Task;

use super::{Basis, kendall::tau};

/// How far a ranking can be trusted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Confidence {
    /// Kendall's tau of the scores of two models; `None` if there is no second one, or if it tells nothing.
    pub(crate) agreement: Option<f64>,
    /// How many of the first configurations to measure.
    pub(crate) measure_first: u32,
}

/// Number of measurements from which on the leave-one-out tau tells more than what models think.
const LEFT_OUT: usize = 5;

/// How many tiles were measured in the order of the model until the fastest was within 2 % of the fastest of its list, for nine
/// of ten of 193 held-out kernels, whose models agreed by this tau at least.
const BY_AGREEMENT: [(f64, u32); 2] = [(0.9, 3), (-1.0, 14)];

/// The same for 259 held-out kernels after 5 measurements, by the leave-one-out tau.
const BY_LEFT_OUT: [(f64, u32); 4] = [(0.85, 2), (0.5, 5), (0.2, 6), (-1.0, 11)];

/// The same for layouts of 26 held-out graphs, where neither tells much.
const LAYOUTS: u32 = 12;

impl Confidence {
    /// Compares two models' scores of some configurations. `basis` has what was learned from measurements.
    pub(crate) fn of(task: Task, scores: Option<[&[f32]; 2]>, basis: Option<Basis>) -> Self {
        let agreement = scores.and_then(|scores| {
            let [one, other] = scores.map(|scores| {
                scores
                    .iter()
                    .map(|&score| score.into())
                    .collect::<Vec<f64>>()
            });
            let differ = |scores: &[f64]| scores.iter().any(|score| *score != scores[0]);
            (differ(&one) && differ(&other)).then(|| tau(&one, &other))
        });
        Self {
            agreement,
            measure_first: measure_first(task, agreement, basis),
        }
    }
}

fn measure_first(task: Task, agreement: Option<f64>, basis: Option<Basis>) -> u32 {
    if task != Task::Tile {
        return LAYOUTS;
    }
    match basis.filter(|basis| basis.learned >= LEFT_OUT) {
        Some(basis) => reached(&BY_LEFT_OUT, basis.left_out_tau),
        None => reached(&BY_AGREEMENT, agreement.unwrap_or(-1.0)),
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

    #[test]
    fn models_that_agree_need_few_measurements() {
        let one = [1.0, 2.0, 3.0, 4.0];
        let other = [2.0, 3.0, 4.0, 9.0];
        let agreed = Confidence::of(Task::Tile, Some([&one, &other]), None);
        assert_eq!(
            agreed,
            Confidence {
                agreement: Some(1.0),
                measure_first: 3
            }
        );
        let contrary = Confidence::of(Task::Tile, Some([&one, &[4.0, 3.0, 2.0, 1.0]]), None);
        assert_eq!(
            (contrary.agreement, contrary.measure_first),
            (Some(-1.0), 14)
        );
        assert_eq!(
            Confidence::of(Task::Layout, Some([&one, &other]), None).measure_first,
            12
        );
    }

    #[test]
    fn equal_scores_and_no_second_model_tell_nothing() {
        let unsure = Confidence {
            agreement: None,
            measure_first: 14,
        };
        assert_eq!(
            Confidence::of(Task::Tile, Some([&[1.0, 1.0], &[1.0, 2.0]]), None),
            unsure
        );
        assert_eq!(Confidence::of(Task::Tile, None, None), unsure);
    }

    #[test]
    fn measurements_tell_more_than_models() {
        let basis = |learned, left_out_tau| Basis {
            learned,
            trust: 1.0,
            noise: 0.1,
            left_out_tau,
            ..Basis::default()
        };
        let number = |basis| Confidence::of(Task::Tile, None, Some(basis)).measure_first;
        assert_eq!(
            [
                number(basis(5, 0.9)),
                number(basis(5, 0.6)),
                number(basis(5, -0.2))
            ],
            [2, 5, 11]
        );
        assert_eq!(number(basis(4, 0.9)), 14);
    }
}
