//! The rule by which a snapshot is answered as a model whose every state is looked at, and the store of a file.

use std::collections::{HashMap, HashSet, VecDeque};

use super::new_store;
use crate::store::{
    DecisionFilter, DecisionLookup, DecisionProposal, DecisionSubject, MeasurementFilter,
    MeasurementStore, Reporter, StoreError, StoredDecision, decision::chosen,
};

/// A job: a leader reads a snapshot, and two ranks read two keys at any time, while others decide and supersede. The first key
/// was decided before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct JobState {
    /// Key, generation and snapshot of each decision.
    made: Vec<(u8, u64, u64)>,
    /// The snapshot of the job.
    snapshot: Option<u64>,
    /// Rank, key and generation of each read; 0 if the key is unknown.
    reads: Vec<(u8, u8, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobStep {
    Snapshot,
    /// The first decision of a key, or one that supersedes the latest.
    Decide(u8),
    Read(u8, u8),
}

/// Which decision answers a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerRule {
    Latest,
    UpToSnapshot,
    Strict,
}

const KEYS: [u8; 2] = [0, 1];
const MAX_GENERATION: u64 = 3;

impl JobState {
    fn start() -> Self {
        Self {
            made: vec![(0, 1, 1)],
            snapshot: None,
            reads: Vec::new(),
        }
    }

    fn latest(&self) -> u64 {
        self.made.len() as u64
    }

    fn generation(&self, key: u8) -> u64 {
        self.made.iter().filter(|(of, ..)| *of == key).count() as u64
    }

    /// The generation that a rule answers; 0 for none.
    fn answer(&self, key: u8, rule: AnswerRule) -> u64 {
        let of_key = self.made.iter().rev().filter(|(of, ..)| *of == key);
        let newest_first = of_key.map(|&(_, generation, made)| (made, generation));
        let snapshot = match rule {
            AnswerRule::Latest => 0,
            AnswerRule::UpToSnapshot | AnswerRule::Strict => self.snapshot.unwrap(),
        };
        chosen(newest_first, snapshot, rule == AnswerRule::Strict).unwrap_or(0)
    }

    /// The steps that may come next. `unknown_counts` says whether ranks also read keys that nobody decided, and take that for an
    /// answer.
    fn steps(&self, unknown_counts: bool) -> Vec<JobStep> {
        let mut steps = Vec::new();
        if self.snapshot.is_none() {
            steps.push(JobStep::Snapshot);
        }
        for key in KEYS {
            if self.generation(key) < MAX_GENERATION {
                steps.push(JobStep::Decide(key));
            }
            for rank in [0, 1] {
                let is_read = |&(by, of, _): &(u8, u8, u64)| (by, of) == (rank, key);
                let is_known = unknown_counts || self.generation(key) > 0;
                if self.snapshot.is_some() && is_known && !self.reads.iter().any(is_read) {
                    steps.push(JobStep::Read(rank, key));
                }
            }
        }
        steps
    }

    fn after(&self, step: JobStep, rule: AnswerRule) -> Self {
        let mut next = self.clone();
        match step {
            JobStep::Snapshot => next.snapshot = Some(self.latest()),
            JobStep::Decide(key) => {
                let decision = (key, self.generation(key) + 1, self.latest() + 1);
                next.made.push(decision);
            }
            JobStep::Read(rank, key) => next.reads.push((rank, key, self.answer(key, rule))),
        }
        next
    }

    /// Whether all ranks read the same of each key.
    fn agrees(&self) -> bool {
        let mut read = HashMap::new();
        self.reads
            .iter()
            .all(|(_, key, generation)| read.entry(key).or_insert(generation) == &generation)
    }
}

/// Looks at every state that a rule leads to. Returns their number, and whether all ranks agree in each.
fn check(rule: AnswerRule, unknown_counts: bool) -> (usize, bool) {
    let mut seen = HashSet::from([JobState::start()]);
    let mut waiting = VecDeque::from([JobState::start()]);
    let mut holds = true;
    while let Some(state) = waiting.pop_front() {
        holds &= state.agrees();
        for step in state.steps(unknown_counts) {
            let next = state.after(step, rule);
            if seen.insert(next.clone()) {
                waiting.push_back(next);
            }
        }
    }
    (seen.len(), holds)
}

#[test]
fn ranks_with_one_snapshot_agree_in_every_state_and_those_that_read_the_latest_do_not() {
    assert!(!check(AnswerRule::Latest, false).1);
    assert_eq!(check(AnswerRule::UpToSnapshot, false), (9_749, true));
    // Only a strict lookup answers the same once nobody has decided yet, too.
    assert!(!check(AnswerRule::UpToSnapshot, true).1);
    assert_eq!(check(AnswerRule::Strict, true), (10_109, true));
}

fn reporter(name: &str) -> Reporter {
    Reporter::named(name).unwrap()
}

fn subject(key: u8, target: &str) -> DecisionSubject {
    DecisionSubject {
        namespace: "space".to_owned(),
        key: vec![key],
        target: target.to_owned(),
    }
}

fn proposal(key: u8, supersede: u64, value: &str) -> DecisionProposal {
    DecisionProposal {
        subject: subject(key, TARGET),
        for_itself: false,
        reporter: reporter("ci"),
        supersede,
        value: value.as_bytes().to_vec(),
        evidence: Vec::new(),
        decided_at: 1_000,
    }
}

fn lookup(key: u8, snapshot: u64, strict: bool) -> DecisionLookup {
    DecisionLookup {
        subject: subject(key, TARGET),
        client: Some(reporter("reader")),
        snapshot,
        strict,
        with_near: true,
    }
}

async fn all(store: &MeasurementStore, client: &str) -> Vec<StoredDecision> {
    let all = DecisionFilter {
        subject: DecisionSubject {
            namespace: String::new(),
            key: Vec::new(),
            target: String::new(),
        },
        client: reporter(client),
        all_generations: true,
        after: 0,
    };
    store.decisions(&all, 10_000).await.unwrap().decisions
}

const TARGET: &str = "device=a;triton=3.9.0";

/// The size of each store.
const LIMIT: u64 = 1 << 20;

/// Proposes what has to become the decision.
async fn decide(store: &MeasurementStore, proposal: DecisionProposal) -> StoredDecision {
    store.propose(proposal).await.unwrap().unwrap()
}

#[tokio::test]
async fn another_target_has_candidates_and_never_the_answer() {
    let (_folder, store) = new_store(LIMIT);
    for target in ["device=a;triton=3.8.0", "device=b;triton=3.9.0", "a board"] {
        let mut other = proposal(0, 0, "{}");
        other.subject = subject(0, target);
        decide(&store, other).await;
    }
    decide(&store, proposal(1, 0, "{}")).await;
    let view = store.decision(&lookup(0, 0, false)).await.unwrap();
    assert_eq!(view.decision, None);
    let targets: Vec<&str> = view.near.iter().map(|near| &*near.subject.target).collect();
    assert_eq!(targets, ["device=a;triton=3.8.0"]);
}

#[tokio::test]
async fn what_a_client_decides_for_itself_answers_it_alone_and_for_ever() {
    let (_folder, store) = new_store(LIMIT);
    let own = |key| DecisionProposal {
        for_itself: true,
        reporter: reporter("reader"),
        ..proposal(key, 0, "\"own\"")
    };
    let made = decide(&store, own(0)).await;
    decide(&store, proposal(0, 0, "\"for all\"")).await;
    let of = async |client: &str| {
        let asked = DecisionLookup {
            client: Some(reporter(client)),
            ..lookup(0, 0, false)
        };
        let view = store.decision(&asked).await.unwrap();
        view.decision.unwrap().value
    };
    assert_eq!(of("reader").await, b"\"own\"");
    assert_eq!(of("other").await, b"\"for all\"");
    assert_eq!(store.propose(own(0)).await, Ok(None));
    assert_eq!(all(&store, "other").await.len(), 1);
    assert!(all(&store, "reader").await.contains(&made));
    // Where everybody has an answer, it is this client's, too.
    decide(&store, proposal(1, 0, "\"for all\"")).await;
    assert_eq!(store.propose(own(1)).await, Ok(None));
}

#[tokio::test]
async fn a_decision_supersedes_the_latest_generation_alone_and_deletion_leaves_it() {
    let (_folder, store) = new_store(LIMIT);
    let wrong = |found, latest| Err(StoreError::OtherGeneration { found, latest });
    assert_eq!(store.propose(proposal(0, 1, "{}")).await, wrong(1, 0));
    for generation in 0..4 {
        let made = decide(&store, proposal(0, generation, &generation.to_string())).await;
        assert_eq!(
            (made.generation, made.snapshot),
            (generation + 1, generation + 1)
        );
    }
    assert_eq!(store.propose(proposal(0, 1, "{}")).await, wrong(1, 4));
    store.delete(&MeasurementFilter::default()).await.unwrap();
    assert_eq!(all(&store, "ci").await.len(), 4);
    let unknown = StoreError::UnknownSnapshot {
        found: 5,
        latest: 4,
    };
    assert_eq!(store.decision(&lookup(0, 5, false)).await, Err(unknown));
    let latest = DecisionFilter {
        subject: subject(0, TARGET),
        client: reporter("ci"),
        all_generations: false,
        after: 0,
    };
    let listed = store.decisions(&latest, 1).await.unwrap();
    assert_eq!(listed.decisions[0].generation, 4);
    let none = DecisionFilter { after: 4, ..latest };
    assert_eq!(store.decisions(&none, 1).await.unwrap().decisions, []);
}

#[tokio::test]
async fn decisions_count_in_the_size_of_the_store() {
    let (_folder, store) = new_store(LIMIT);
    let value = format!("\"{}\"", "a".repeat(60_000));
    let mut full = None;
    for key in 0..30 {
        full = full.or(store.propose(proposal(key, 0, &value)).await.err());
    }
    assert!(
        matches!(full, Some(StoreError::ShareFull { .. })),
        "{full:?}"
    );
}
