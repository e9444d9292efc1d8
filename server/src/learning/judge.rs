//! Compares the reporters of measurements before a call learns from them.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use super::measured::{MeasuredConfigs, MeasuredPoints};
use crate::{
    adaptation::{AdaptedCache, Finding, Prior, Verdict, Witness, verdicts},
    call::{CallError, Client},
    compute::{Class, ComputePool},
    graphs::Warning,
    store::Reporter,
};

/// What comparing reporters showed.
#[derive(Clone, Debug, Default)]
pub(super) struct Judgement {
    contradictions: Vec<Contradiction>,
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

/// Compares the reporters of measurements.
pub(super) async fn judge(
    pool: &ComputePool,
    cache: &Arc<AdaptedCache>,
    prior: Prior,
    measured: &Arc<MeasuredPoints>,
) -> Result<Judgement, CallError> {
    let groups = groups(&measured.configs);
    if groups.len() < 2 {
        return Ok(Judgement::default());
    }
    let mut names = Vec::new();
    let mut witnesses = Vec::new();
    // Each reporter is one piece of work, so that other calls have their turn in between.
    for (reporter, numbers) in groups {
        let measured = Arc::clone(measured);
        let cache = Arc::clone(cache);
        let is_own = measured.configs.is_sent(numbers[0]);
        let learn = move |_| Witness::of(&cache, prior, measured.measurements(&numbers), is_own);
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
    // What was sent comes first in its group. Sorting is stable, so that reporters with equally
    // many measurements keep the order of their names.
    groups.sort_by_key(|(_, numbers)| {
        let is_own = measured.is_sent(numbers[0]);
        (Reverse(is_own), Reverse(numbers.len()))
    });
    groups.truncate(MAX_COMPARED);
    groups
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
        let compared = names.len();
        let found = names.into_iter().zip(verdicts);
        let disputed = found.filter(|(_, verdict)| verdict.finding != Finding::Agrees);
        let contradictions = disputed.map(|(reporter, verdict)| Contradiction {
            reporter,
            measured: verdict.measured,
            agreement: verdict.agreement,
            left_out: verdict.finding == Finding::Outvoted,
        });
        Self {
            contradictions: contradictions.collect(),
            compared,
        }
    }

    /// Whether the measurements of a reporter are learned from.
    pub(super) fn keeps(&self, reporter: Option<&Reporter>) -> bool {
        let mut left_out = self.contradictions.iter().filter(|each| each.left_out);
        !left_out.any(|each| each.reporter.as_ref() == reporter)
    }

    /// The contradictions, without those names that a client may not know.
    pub(super) fn shown_to(&self, client: &Client) -> Vec<Contradiction> {
        let mut contradictions = self.contradictions.clone();
        for contradiction in &mut contradictions {
            let shown = client.shown(contradiction.reporter.as_ref());
            contradiction.reporter = Reporter::named(shown);
        }
        contradictions
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
