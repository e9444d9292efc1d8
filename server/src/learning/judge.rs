//! Compares the reporters of measurements before a call learns from them.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use super::measured::MeasuredConfigs;
use crate::{
    adaptation::{
        AdaptedCache, Finding, Measurement, Measurements, Point, Prior, Verdict, Witness, verdicts,
    },
    call::{CallError, Client},
    compute::{Class, ComputePool},
    graphs::Warning,
    store::{Outcome, Reporter},
};

/// What comparing reporters showed.
#[derive(Clone, Debug, Default)]
pub(super) struct Judgement {
    /// The measurements of these reporters are left out.
    left_out: Vec<Option<Reporter>>,
    pub(super) contradictions: Vec<Contradiction>,
    /// Number of reporters that were compared.
    compared: usize,
}

/// A reporter that contradicts others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Contradiction {
    /// `None` if it is not known.
    pub(crate) reporter: Option<Reporter>,
    /// Number of its distinct configurations that have a time.
    pub(crate) measured: usize,
    /// Mean of Kendall's tau of its times and what each other reporter's measurements predict.
    pub(crate) agreement: f64,
    pub(crate) left_out: bool,
}

/// Maximum number of reporters that are compared: the call's client, and those with the most measurements.
const MAX_COMPARED: usize = 8;

/// Compares the reporters of measurements. `points` has the point of each.
pub(super) async fn judge(
    pool: &ComputePool,
    cache: &Arc<AdaptedCache>,
    prior: Prior,
    measured: &Arc<MeasuredConfigs>,
    points: &Arc<Vec<Point>>,
) -> Result<Judgement, CallError> {
    let groups = groups(measured);
    if groups.len() < 2 {
        return Ok(Judgement::default());
    }
    let mut names = Vec::new();
    let mut witnesses = Vec::new();
    for (reporter, numbers) in groups {
        let measured = Arc::clone(measured);
        let points = Arc::clone(points);
        let cache = Arc::clone(cache);
        let is_own = measured.is_sent(numbers[0]);
        let learn = move |_| {
            let measurements = measurements(&measured, &points, &numbers);
            Witness::of(&cache, prior, measurements, is_own)
        };
        if let Some(witness) = pool.run(Class::Bulk, learn).await?.value {
            names.push(reporter);
            witnesses.push(witness);
        }
    }
    let compare = move |_| verdicts(&witnesses);
    let verdicts = pool.run(Class::Bulk, compare).await?.value;
    Ok(Judgement::of(names, &verdicts))
}

/// Returns the numbers of the measurements of each reporter that is compared, in an order that depends on nothing but the set.
fn groups(measured: &MeasuredConfigs) -> Vec<(Option<Reporter>, Vec<usize>)> {
    let mut groups = BTreeMap::<_, Vec<usize>>::new();
    for (number, reporter) in measured.reporters.iter().enumerate() {
        groups.entry(reporter.clone()).or_default().push(number);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    // What was sent comes first in its group.
    groups.sort_by_key(|(_, numbers)| {
        let is_own = measured.is_sent(numbers[0]);
        (Reverse(is_own), Reverse(numbers.len()))
    });
    groups.truncate(MAX_COMPARED);
    groups
}

/// The measurements of these numbers.
pub(super) fn measurements(
    measured: &MeasuredConfigs,
    points: &[Point],
    numbers: &[usize],
) -> Measurements {
    let of = |&number: &usize| (points[number].clone(), measured.outcomes[number]);
    measurements_of(numbers.iter().map(of))
}

/// The measurements of points, and what came of each.
pub(super) fn measurements_of(measured: impl Iterator<Item = (Point, Outcome)>) -> Measurements {
    // A configuration that the model gives no score tells nothing of how times rise with scores.
    let finite = measured.filter(|(point, _)| point.score.is_finite());
    let measured = finite.map(|(point, outcome)| Measurement {
        point,
        seconds: (outcome.failure == 0).then_some(outcome.seconds),
        repeats: outcome.repeats,
    });
    Measurements::of(measured.collect())
}

impl Contradiction {
    /// Describes it for a client, which may not know the names of others.
    fn describe(&self, client: &Client) -> String {
        let name = match client.shown(self.reporter.as_ref()) {
            "" => "another client".to_owned(),
            name => format!("`{name}`"),
        };
        let used = if self.left_out {
            "left out, because others outvote it"
        } else {
            "used"
        };
        format!(
            "{name} ({} configurations, tau {:.2} with what the others predict; {used})",
            self.measured, self.agreement
        )
    }
}

impl Judgement {
    fn of(names: Vec<Option<Reporter>>, verdicts: &[Verdict]) -> Self {
        let mut judgement = Self {
            compared: names.len(),
            ..Self::default()
        };
        for (reporter, verdict) in names.into_iter().zip(verdicts) {
            if verdict.finding == Finding::Agrees {
                continue;
            }
            let left_out = verdict.finding == Finding::Outvoted;
            if left_out {
                judgement.left_out.push(reporter.clone());
            }
            judgement.contradictions.push(Contradiction {
                reporter,
                measured: verdict.measured,
                agreement: verdict.agreement,
                left_out,
            });
        }
        judgement
    }

    /// Whether the measurements of a reporter are learned from.
    pub(super) fn keeps(&self, reporter: Option<&Reporter>) -> bool {
        !self
            .left_out
            .iter()
            .any(|left_out| left_out.as_ref() == reporter)
    }

    /// The share of the compared reporters that have no contradiction.
    #[expect(clippy::cast_precision_loss, reason = "at most MAX_COMPARED reporters")]
    pub(super) fn undisputed(&self) -> f64 {
        if self.contradictions.is_empty() {
            return 1.0;
        }
        (self.compared - self.contradictions.len()) as f64 / self.compared as f64
    }

    /// Warns about contradictions, if there are some.
    pub(super) fn warning(&self, client: &Client) -> Option<Warning> {
        if self.contradictions.is_empty() {
            return None;
        }
        let contradictions = self.contradictions.iter();
        let described: Vec<String> = contradictions.map(|each| each.describe(client)).collect();
        let message = format!(
            "the measurements of {} of {} reporters contradict others: {}; set adapt.own_only to learn from your own \
             measurements alone, or have those of a reporter deleted",
            described.len(),
            self.compared,
            described.join(", ")
        );
        Some(Warning {
            reason: "MEASUREMENTS_CONTRADICT",
            message,
        })
    }
}
