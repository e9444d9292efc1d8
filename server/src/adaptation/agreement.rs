//! Whether the measurements of several reporters contradict each other, and which of them are outvoted.
//!
//! Each reporter's measurements predict the order of the others' times, so two reporters are compared even if they measured
//! different configurations. An order that is wrong both ways by more than chance is a contradiction; so are times of the same
//! configurations that differ by more than a factor. Measurements count as one vote for each reporter, however many there are.

use std::{
    cmp::{Ordering, Reverse},
    sync::Arc,
};

use hlorank_graph::pace;

use super::{
    AdaptedCache, AdaptedModel, Measurements, Prior,
    kendall::{deviations_from_chance, tau},
};
use crate::statistics::mean;

/// What one reporter measured, and what it teaches.
pub(crate) struct Witness {
    measurements: Measurements,
    /// At most [`SAMPLE`] of them, which a fixed draw chooses.
    sample: Measurements,
    /// `None` if they teach nothing.
    taught: Option<Arc<AdaptedModel>>,
    /// Whether the call itself sent some of them. They are never left out.
    is_own: bool,
}

/// What comparing a reporter with the others tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// Number of distinct configurations that have a time.
    pub(crate) measured: usize,
    /// Mean over the other reporters of Kendall's tau of its times and what the other's measurements predict.
    pub(crate) agreement: f64,
    pub(crate) finding: Finding,
}

/// Whether a reporter contradicts others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It contradicts nobody who is right.
    Agrees,
    /// It contradicts another, and nothing tells which of them is right.
    Disputed,
    /// It contradicts another, and is outvoted.
    Outvoted,
}

/// How the measurements of two reporters relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Contradicts,
    Neutral,
    Supports,
}

/// Reporters, and how they relate pair by pair.
struct Comparison<'a> {
    witnesses: &'a [Witness],
    /// `[witnesses, witnesses]` how the times of one agree with what the other's measurements predict.
    agreements: Vec<Vec<Option<Agreement>>>,
}

/// What decides which of two reporters is left out: own measurements come first, then votes.
// The derived order compares the first field first: votes decide among equals alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    is_own: bool,
    votes: i32,
}

/// Kendall's tau, and how many deviations of chance it is from 0.
#[derive(Clone, Copy, Debug)]
struct Agreement {
    tau: f64,
    deviations: f64,
}

/// Minimum number of configurations of a reporter, since the order of fewer may be reversed by chance.
const ENOUGH: usize = 5;

/// Maximum number of configurations that a reporter is compared by.
const SAMPLE: usize = 64;

/// How many deviations of chance a reversed order is. Parts of a list that lie apart predict each other's order less well than
/// chance more often than independent numbers do.
const SURE: f64 = 4.0;

/// How many deviations of chance the model has to agree or disagree by, to count as a vote.
const VOTE: f64 = 2.0;

/// Times of one configuration that differ by more than this factor are not from one target.
const FACTOR: f64 = 2.0;

impl Witness {
    /// Learns from the measurements of a reporter. Returns nothing if they are too few to be compared.
    pub(crate) fn of(
        cache: &AdaptedCache,
        prior: Prior,
        measurements: Measurements,
        is_own: bool,
    ) -> Option<Self> {
        if measurements.measured() < ENOUGH {
            return None;
        }
        // Every reporter predicts the times of every other one, so that the work grows with the
        // square of their number. The sample bounds what each pair takes.
        let sample = measurements.drawn(SAMPLE);
        let taught = cache.learn(prior, sample.clone());
        Some(Self {
            measurements,
            sample,
            taught,
            is_own,
        })
    }

    /// How the order of its times agrees with what another's measurements predict.
    fn agreement_with(&self, other: &Self) -> Option<Agreement> {
        let taught = other.taught.as_ref()?;
        let points = pace::in_steps(8, &self.sample.points);
        let predicted: Vec<f64> = points
            .map(|point| taught.predict(point).log_seconds)
            .collect();
        Some(Agreement::of(&self.sample.times, &predicted))
    }

    /// The vote of the model, which learned from the times of other programs.
    fn vote_of_model(&self) -> i32 {
        let scores: Vec<f64> = self.sample.points.iter().map(|point| point.score).collect();
        match Agreement::of(&self.sample.times, &scores).deviations {
            VOTE.. => 1,
            against if against <= -VOTE => -1,
            _ => 0,
        }
    }

    /// Whether more than half of the configurations that both measured differ by more than [`FACTOR`].
    fn is_far_from(&self, other: &Self) -> bool {
        let mut shared = 0;
        let mut far = 0;
        // Both lists are in the order of configurations, so that one pass over them finds what both
        // measured.
        let mut others = other.measurements.timed().peekable();
        for (point, time) in self.measurements.timed() {
            while others
                .next_if(|(next, _)| next.compare(point) == Ordering::Less)
                .is_some()
            {}
            if let Some((_, other)) = others.next_if(|(next, _)| *next == point) {
                shared += 1;
                far += usize::from((time - other).abs() > libm::log(FACTOR));
            }
        }
        // Another target differs in most times, whereas single times may be outliers.
        shared >= ENOUGH && 2 * far > shared
    }
}

impl Agreement {
    fn of(times: &[f64], predicted: &[f64]) -> Self {
        let tau = tau(times, predicted);
        Self {
            tau,
            deviations: deviations_from_chance(tau, times.len()),
        }
    }
}

impl Relation {
    fn of(one: &Witness, other: &Witness, agreements: [Option<Agreement>; 2]) -> Self {
        if one.is_far_from(other) {
            return Self::Contradicts;
        }
        let [Some(forth), Some(back)] = agreements.map(|each| each.map(|each| each.deviations))
        else {
            return Self::Neutral;
        };
        if forth > 0.0 && back > 0.0 {
            return Self::Supports;
        }
        // Both directions count, because few measurements may teach others nothing. The sum of two
        // independent numbers of deviation 1 has a deviation of √2.
        let both = forth + back;
        let is_reversed = forth < 0.0 && back < 0.0 && both <= -SURE * std::f64::consts::SQRT_2;
        if is_reversed {
            Self::Contradicts
        } else {
            Self::Neutral
        }
    }

    fn vote(self) -> i32 {
        match self {
            Self::Contradicts => -1,
            Self::Neutral => 0,
            Self::Supports => 1,
        }
    }
}

/// Compares reporters with each other. Of two that contradict each other, the one with fewer votes is left out: the votes of
/// the other reporters and of the model, for or against it. With equal votes, none is.
pub(crate) fn verdicts(witnesses: &[Witness]) -> Vec<Verdict> {
    let comparison = Comparison::of(witnesses);
    let kept = comparison.kept();
    let all = 0..witnesses.len();
    all.map(|one| comparison.verdict(one, &kept)).collect()
}

impl<'a> Comparison<'a> {
    fn of(witnesses: &'a [Witness]) -> Self {
        let with_all = |one: &Witness| {
            let others = witnesses.iter();
            others.map(|other| one.agreement_with(other)).collect()
        };
        Self {
            witnesses,
            agreements: witnesses.iter().map(with_all).collect(),
        }
    }

    fn others(&self, one: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.witnesses.len()).filter(move |other| *other != one)
    }

    fn relation(&self, one: usize, other: usize) -> Relation {
        let both = [self.agreements[one][other], self.agreements[other][one]];
        Relation::of(&self.witnesses[one], &self.witnesses[other], both)
    }

    fn contradict(&self, one: usize, other: usize) -> bool {
        one != other && self.relation(one, other) == Relation::Contradicts
    }

    fn standing(&self, one: usize) -> Standing {
        let others = self.others(one);
        let votes: i32 = others.map(|other| self.relation(one, other).vote()).sum();
        Standing {
            is_own: self.witnesses[one].is_own,
            votes: votes + self.witnesses[one].vote_of_model(),
        }
    }

    /// The reporters that are not outvoted.
    fn kept(&self) -> Vec<usize> {
        let all = 0..self.witnesses.len();
        let standings: Vec<Standing> = all.clone().map(|one| self.standing(one)).collect();
        // From the highest standing on, because only one that is itself kept outvotes others.
        let mut order: Vec<usize> = all.collect();
        order.sort_by_key(|&one| Reverse(standings[one]));
        let mut kept: Vec<usize> = Vec::new();
        for one in order {
            let outvotes =
                |&other: &usize| standings[other] > standings[one] && self.contradict(one, other);
            if !kept.iter().any(outvotes) {
                kept.push(one);
            }
        }
        kept
    }

    fn verdict(&self, one: usize, kept: &[usize]) -> Verdict {
        let agreements = self
            .others(one)
            .filter_map(|other| self.agreements[one][other]);
        let taus: Vec<f64> = agreements.map(|each| each.tau).collect();
        let finding = if !kept.contains(&one) {
            Finding::Outvoted
        } else if kept.iter().any(|&other| self.contradict(one, other)) {
            Finding::Disputed
        } else {
            Finding::Agrees
        };
        Verdict {
            measured: self.witnesses[one].measurements.measured(),
            agreement: mean(&taus),
            finding,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::{Measurement, Point};

    const PRIOR: Prior = Prior::of_model(0.076, 0.5);

    fn tile(number: u32) -> Point {
        let bounds = vec![f64::from(number % 8), f64::from(number / 8)];
        Point {
            score: f64::from(number * 5 % 40) / 10.0,
            bounds,
            ..Point::default()
        }
    }

    /// A reporter that measured some tiles.
    fn witness(
        tiles: impl IntoIterator<Item = u32>,
        seconds: impl Fn(f64) -> f64,
        is_own: bool,
    ) -> Witness {
        let time = |tile: &Point| libm::exp(0.4 * tile.score + 0.3 * tile.bounds[1]);
        let measured = |number| {
            let point = tile(number);
            let seconds = seconds(time(&point));
            Measurement {
                point,
                seconds: Some(seconds),
                repeats: 1,
            }
        };
        let measurements = Measurements::of(tiles.into_iter().map(measured).collect());
        Witness::of(&AdaptedCache::default(), PRIOR, measurements, is_own).unwrap()
    }

    fn right(seconds: f64) -> f64 {
        1e-3 * seconds
    }

    fn inverted(seconds: f64) -> f64 {
        1e-3 / seconds
    }

    fn findings(witnesses: &[Witness]) -> Vec<Finding> {
        verdicts(witnesses)
            .iter()
            .map(|verdict| verdict.finding)
            .collect()
    }

    use Finding::{Agrees, Disputed, Outvoted};

    #[test]
    fn reporters_of_one_target_agree_whatever_they_measured() {
        let witnesses = [
            witness(0..12, right, false),
            witness(12..40, right, false),
            witness(5..30, right, false),
        ];
        assert_eq!(findings(&witnesses), [Agrees; 3]);
        assert!(
            verdicts(&witnesses)
                .iter()
                .all(|verdict| verdict.agreement > 0.3)
        );
    }

    #[test]
    fn an_inverted_reporter_is_outvoted_by_another_and_the_model() {
        let witnesses = [
            witness(0..12, right, false),
            witness(11..40, inverted, false),
        ];
        assert_eq!(findings(&witnesses), [Agrees, Outvoted]);
        assert!(verdicts(&witnesses)[1].agreement < -0.4);
    }

    #[test]
    fn many_measurements_are_one_vote() {
        let few = || witness((0..40).step_by(4), right, false);
        let witnesses = [witness(0..40, inverted, false), few(), few()];
        assert_eq!(findings(&witnesses), [Outvoted, Agrees, Agrees]);
    }

    #[test]
    fn times_of_another_machine_are_outvoted_although_their_order_is_right() {
        let slower = |seconds: f64| 5.0 * right(seconds);
        let witnesses = [
            witness(0..20, right, false),
            witness(0..20, slower, false),
            witness(10..30, right, false),
        ];
        assert_eq!(findings(&witnesses), [Agrees, Outvoted, Agrees]);
        let two = [witness(0..20, right, false), witness(0..20, slower, false)];
        assert_eq!(
            findings(&two),
            [Disputed; 2],
            "nothing tells which is right"
        );
    }

    #[test]
    fn what_the_call_sent_is_never_left_out() {
        let other = || witness(0..40, inverted, false);
        let witnesses = [other(), witness(0..20, right, true), other()];
        assert_eq!(findings(&witnesses), [Outvoted, Agrees, Outvoted]);
    }

    #[test]
    fn fewer_than_five_configurations_are_not_compared() {
        let measured = |number| Measurement {
            point: tile(number),
            seconds: Some(1.0),
            repeats: 1,
        };
        let few = Measurements::of((0..4).map(measured).collect());
        assert!(Witness::of(&AdaptedCache::default(), PRIOR, few, false).is_none());
    }
}
