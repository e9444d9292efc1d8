//! What must hold, by the numbers of the design: of leases L1 to L7, of decisions D1 to D6. It knows what calls were answered, and
//! when, and nothing of how the server works.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message as _;

use super::calls::{Asking, Done, Kept, Leased, Plan, Thing, decision_subject, value};
use crate::{
    leases::{ClaimState, Renewal, SearchState},
    store::StoredDecision,
};

/// A lease that the server must respect, at least until a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) worker: String,
    pub(super) until: u64,
    /// Whether the server knows of it, which has forgotten it once it was killed.
    pub(super) is_known: bool,
    /// The step at which it was answered first.
    pub(super) since: usize,
}

/// What was answered until now.
#[derive(Default)]
pub(super) struct Expectations {
    time: u64,
    configs: u8,
    budget: usize,
    /// Nothing new is leased before this time.
    grace_until: u64,
    holds: BTreeMap<Thing, Hold>,
    /// The workers that were given a configuration.
    given: BTreeMap<u8, BTreeSet<String>>,
    /// The ids of leases that were given back, maybe without an answer.
    given_back: BTreeSet<Vec<u8>>,
    /// Configuration, id and seconds of each report that was sent, and the step at which each was acknowledged.
    sent: BTreeMap<(u8, Vec<u8>), f64>,
    acknowledged: BTreeMap<(u8, Vec<u8>), usize>,
    /// Keys and generations that somebody superseded, or tried to.
    superseded: BTreeSet<(usize, u64)>,
    /// When something was first known to be measured or decided, as the number of the step.
    settled: BTreeMap<Thing, usize>,
    /// The decision of each key and generation.
    decisions: BTreeMap<(usize, u64), StoredDecision>,
    /// What was answered to a lookup of a key at a snapshot, strict or not, and at which step.
    read: BTreeMap<(usize, u64, bool), (Option<u64>, usize)>,
    snapshots: BTreeSet<u64>,
}

impl Expectations {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            configs: plan.configs,
            budget: plan.budget.measurements,
            ..Self::default()
        }
    }

    /// The snapshots that were answered.
    pub(super) fn snapshots(&self) -> impl ExactSizeIterator<Item = u64> {
        let snapshots: Vec<u64> = self.snapshots.iter().copied().collect();
        snapshots.into_iter()
    }

    /// The latest known generation of a key; 0 if there is none.
    pub(super) fn generation(&self, key: usize) -> u64 {
        let of_key = self.decisions.range((key, 0)..=(key, u64::MAX));
        of_key.last().map_or(0, |((_, generation), _)| *generation)
    }

    pub(super) fn pass(&mut self, time: u64) {
        self.time = time;
        self.holds.retain(|_, hold| hold.until > time);
    }

    /// The server is killed. Nobody could renew until it starts.
    pub(super) fn kill(&mut self) {
        for hold in self.holds.values_mut() {
            hold.until = u64::MAX;
        }
    }

    /// The server starts, and leases nothing new before a time, until when those who live have renewed.
    pub(super) fn start(&mut self, grace_until: u64) {
        self.grace_until = grace_until;
        for hold in self.holds.values_mut() {
            hold.until = grace_until;
            hold.is_known = false;
        }
    }

    /// A call begins.
    pub(super) fn begin(&mut self, asking: &Asking, worker: &str) {
        match asking {
            Asking::GiveBack(leased) => {
                if let Leased::Config(_, id) = leased {
                    self.given_back.insert(id.clone());
                }
                let thing = leased.thing();
                self.holds
                    .retain(|held, hold| *held != thing || hold.worker != worker);
            }
            // A server that has forgotten the leases of several workers adopts the one that is renewed first.
            Asking::Renew(leased) => {
                let thing = leased.thing();
                self.holds
                    .retain(|held, hold| *held != thing || hold.worker == worker || hold.is_known);
            }
            Asking::Report {
                config,
                id,
                seconds,
            } => {
                let sent = self.sent.insert((*config, id.clone()), *seconds);
                assert!(sent.is_none_or(|before| before == *seconds));
            }
            Asking::Propose { key, supersede, .. } => {
                self.superseded.insert((*key, *supersede));
            }
            _ => {}
        }
    }

    /// A call that began at a step is answered at another, whoever gets the answer. `hold` is what a lease would be.
    pub(super) fn answered(
        &mut self,
        asking: &Asking,
        done: &Done,
        hold: &Hold,
        began: usize,
        step: usize,
    ) {
        match (asking, done) {
            (_, Done::Suggested(own, granted, state)) => {
                self.suggested(own, hold, began, true);
                self.suggested(granted, hold, began, false);
                self.check_state(*state);
            }
            (asking, Done::Claimed(snapshot, state, decision)) => {
                let (key, renews) = match asking {
                    Asking::Claim(key) => (*key, false),
                    Asking::Renew(Leased::Key(key)) => (*key, true),
                    _ => return,
                };
                let thing = Thing::Key(key);
                self.snapshots.insert(*snapshot);
                match decision {
                    Some(decision) => self.decided(key, decision, step),
                    None if *state == ClaimState::Granted => {
                        self.lease(thing, hold, began, renews);
                    }
                    None => assert!(
                        !renews || !self.is_held_by(thing, hold),
                        "D5: {hold:?} lost"
                    ),
                }
            }
            (Asking::Renew(Leased::Config(config, id)), Done::Renewed(renewed)) => {
                self.renewed(*config, id, *renewed, hold, began);
            }
            (Asking::Report { config, id, .. }, Done::Reported) => {
                let thing = Thing::Config(*config);
                self.acknowledged.insert((*config, id.clone()), step);
                self.settled.entry(thing).or_insert(step);
                self.holds.remove(&thing);
            }
            (
                Asking::Propose {
                    key,
                    seconds,
                    supersede,
                },
                Done::Proposed(decision),
            ) => match decision {
                Some(decision) => {
                    let is_own = decision.value == value(*key, *seconds);
                    let is_next = decision.generation == supersede + 1;
                    assert!(
                        is_own || !is_next || *supersede == 0,
                        "D1: superseded twice"
                    );
                    self.decided(*key, decision, step);
                    self.holds.remove(&Thing::Key(*key));
                }
                None => assert!(*supersede > 0, "D1: a first proposal is refused"),
            },
            (
                Asking::Read {
                    key,
                    snapshot,
                    strict,
                },
                Done::Read(latest, decision),
            ) => {
                self.snapshots.insert(*latest);
                if let Some(decision) = decision {
                    self.decided(*key, decision, step);
                }
                if *snapshot == 0 {
                    let settled = self.settled.get(&Thing::Key(*key));
                    let was_settled = settled.is_some_and(|settled| *settled < began);
                    assert!(!was_settled || decision.is_some(), "D1: forgotten");
                    return;
                }
                let at = (*key, *snapshot, *strict);
                self.check_read(at, decision.as_ref(), began, step);
            }
            _ => {}
        }
    }

    /// A worker was given leases of configurations, which are its own, or new.
    fn suggested(&mut self, leases: &[(u8, Vec<u8>)], hold: &Hold, began: usize, are_own: bool) {
        for (config, id) in leases {
            let workers = self.given.entry(*config).or_default();
            workers.insert(hold.worker.clone());
            // It may have been given back before the answer came.
            if !self.given_back.contains(id) {
                self.lease(Thing::Config(*config), hold, began, are_own);
            }
        }
    }

    /// A snapshot was read: the latest decision up to it or, unless that is strict, the first one ever made.
    fn check_read(
        &mut self,
        (key, snapshot, strict): (usize, u64, bool),
        decision: Option<&StoredDecision>,
        began: usize,
        step: usize,
    ) {
        let of_key = self.decisions.range((key, 0)..=(key, u64::MAX));
        let mut newest_first = of_key.rev().map(|(_, known)| known);
        let latest = newest_first.find(|known| known.snapshot <= snapshot);
        match (decision, latest) {
            (Some(decision), None) => {
                assert!(!strict && decision.generation == 1, "D2: {decision:?}");
            }
            (decision, latest) => assert_eq!(decision, latest, "D2"),
        }
        let generation = decision.map(|decision| decision.generation);
        let at = (key, snapshot, strict);
        let Some((before, answered)) = self.read.insert(at, (generation, step)) else {
            return;
        };
        // What nobody had decided may have been decided since, unless the lookup is strict. Answers of calls that overlap come in any
        // order.
        let is_first = !strict && before.is_none();
        let is_earlier = !strict && generation.is_none() && answered >= began;
        let is_same = before == generation;
        assert!(
            is_first || is_earlier || is_same,
            "D2: {before:?}, then {generation:?}"
        );
    }

    /// A worker renewed its lease of a configuration.
    fn renewed(&mut self, config: u8, id: &[u8], renewed: Renewal, hold: &Hold, began: usize) {
        let thing = Thing::Config(config);
        match renewed {
            Renewal::Held | Renewal::Adopted => {
                let reported = self.acknowledged.get(&(config, id.to_vec()));
                let was_reported = reported.is_some_and(|reported| *reported < began);
                assert!(!was_reported, "L4: {hold:?} did not end with its report");
                if !self.given_back.contains(id) {
                    self.lease(thing, hold, began, true);
                }
            }
            Renewal::Taken => assert!(!self.is_held_by(thing, hold), "L1: {hold:?} lost"),
            Renewal::Ended => {
                let is_given_back = self.given_back.contains(id);
                let may_end = is_given_back || self.may_be_measured(config);
                assert!(may_end, "L7: {hold:?} ended for nothing");
            }
        }
    }

    /// A worker has a lease, new or not.
    fn lease(&mut self, thing: Thing, hold: &Hold, began: usize, is_own: bool) {
        let Self { time, holds, .. } = self;
        if hold.until <= *time {
            // Its call took longer than the lease lasts.
            return;
        }
        let before = holds.get(&thing);
        assert!(
            before.is_none_or(|before| before.worker == hold.worker),
            "L1, D5: {thing:?} is of {before:?} and {hold:?}"
        );
        let since = before.map_or(hold.since, |before| before.since);
        let is_new = !is_own && before.is_none();
        if is_new {
            assert!(
                *time >= self.grace_until,
                "L6: {thing:?} leased in the grace"
            );
            let settled = self.settled.get(&thing);
            let was_settled = settled.is_some_and(|settled| *settled < began);
            assert!(!was_settled, "L4: {thing:?} leased although it is settled");
        }
        if is_new && matches!(thing, Thing::Config(_)) {
            // What others adopt or report during the call may come after its choice.
            let settled = self.settled.iter().filter(|(_, step)| **step < began);
            let is_before = |other: &Hold| other.since < began || other.since == hold.since;
            let leased = holds.iter().filter(|(_, other)| is_before(other));
            let taken = settled
                .map(|(thing, _)| thing)
                .chain(leased.map(|(thing, _)| thing));
            let taken: BTreeSet<&Thing> = taken
                .filter(|thing| matches!(thing, Thing::Config(_)))
                .collect();
            assert!(taken.len() < self.budget, "the budget is exceeded");
        }
        holds.insert(
            thing,
            Hold {
                since,
                ..hold.clone()
            },
        );
    }

    fn is_held_by(&self, thing: Thing, hold: &Hold) -> bool {
        let known = self.holds.get(&thing);
        known.is_some_and(|known| known.worker == hold.worker && known.until > self.time)
    }

    /// Whether a configuration may be stored: it was reported, or took two workers with it.
    fn may_be_measured(&self, config: u8) -> bool {
        let is_sent = self.sent.keys().any(|(sent, _)| *sent == config);
        is_sent || self.given.get(&config).is_some_and(|given| given.len() > 1)
    }

    fn check_state(&self, state: SearchState) {
        let measured = (0..self.configs).filter(|config| self.may_be_measured(*config));
        let measured = measured.count();
        match state {
            SearchState::Exhausted => assert_eq!(measured, usize::from(self.configs), "L7"),
            SearchState::BudgetSpent => assert!(measured >= self.budget, "L7"),
            _ => {}
        }
    }

    /// A key has a decision.
    fn decided(&mut self, key: usize, decision: &StoredDecision, step: usize) {
        assert_eq!(decision.subject, decision_subject(key), "D3");
        let known = self.decisions.entry((key, decision.generation));
        assert_eq!(known.or_insert_with(|| decision.clone()), decision, "D1");
        let before = (key, decision.generation - 1);
        assert!(
            before.1 == 0 || self.superseded.contains(&before),
            "D1: {decision:?}"
        );
        self.settled.entry(Thing::Key(key)).or_insert(step);
    }

    /// Compares what a store has with what was acknowledged.
    pub(super) fn check_kept(&self, kept: &Kept) {
        let mut stored = BTreeSet::new();
        for (config, id, seconds) in &kept.measurements {
            assert!(stored.insert((*config, id.clone())), "L2: stored twice");
            match self.sent.get(&(*config, id.clone())) {
                Some(sent) if *seconds > 0.0 => assert_eq!(sent, seconds, "L2"),
                _ => {
                    let given = self.given.get(config).map_or(0, BTreeSet::len);
                    assert!(
                        *seconds == 0.0 && given > 1,
                        "{config} has taken {given} workers"
                    );
                }
            }
        }
        let mut acknowledged = self.acknowledged.keys();
        assert!(
            acknowledged.all(|report| stored.contains(report)),
            "L2: lost"
        );
        for decision in self.decisions.values() {
            assert!(kept.decisions.contains(decision), "D1, D6: lost");
        }
        let of =
            |decision: &StoredDecision| (decision.subject.encode_to_vec(), decision.generation);
        let keys: BTreeSet<_> = kept.decisions.iter().map(of).collect();
        assert_eq!(keys.len(), kept.decisions.len(), "D1: decided twice");
    }
}
