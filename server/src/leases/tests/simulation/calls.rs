//! The calls of simulated workers, as handlers make them. What to measure is not predicted but drawn.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    future::poll_fn,
    pin::{Pin, pin},
    rc::Rc,
    time::Duration,
};

use fastrand::Rng;
use hlorank_adaptation::SuggestionRequest;
use hlorank_graph::{Digest, Task};

use crate::{
    leases::{
        ClaimRequest, ClaimState, GrantedLease, LeaseBudget, LeaseError, LeaseWorker, Leases,
        LeasingTurn, Places, Renewal, SearchKey, SearchState, WantedLeases,
    },
    store::{
        DecisionFilter, DecisionLookup, DecisionProposal, DecisionSubject, Measurement,
        MeasurementFilter, MeasurementStore, Outcome, Reporter, StoreError, StoredDecision,
        Subject, config_digest,
    },
};

/// What there is to do.
pub(super) struct Plan {
    /// Number of configurations, and of keys on targets.
    pub(super) configs: u8,
    pub(super) keys: usize,
    pub(super) budget: LeaseBudget,
    places: Rc<Places>,
    /// Whether the call that was polled last waits for others of its search, and not for the store.
    pub(super) waits_for_turn: Rc<Cell<bool>>,
    /// Changes with every choice.
    draw: Cell<u64>,
}

/// What is leased: a configuration to measure, or a key to tune.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thing {
    Config(u8),
    Key(usize),
}

/// What a worker leased: a configuration, with the id of the lease, or a key.
#[derive(Clone, Debug)]
pub(super) enum Leased {
    Config(u8, Vec<u8>),
    Key(usize),
}

/// A call.
#[derive(Clone, Debug)]
pub(super) enum Asking {
    /// For this number of configurations.
    Suggest(usize),
    Claim(usize),
    Renew(Leased),
    GiveBack(Leased),
    Report {
        config: u8,
        id: Vec<u8>,
        seconds: f64,
    },
    Propose {
        key: usize,
        seconds: f64,
        supersede: u64,
    },
    Read {
        key: usize,
        snapshot: u64,
        strict: bool,
    },
}

/// What came of it.
pub(super) enum Done {
    /// The worker's own leases, and new ones.
    Suggested(Vec<(u8, Vec<u8>)>, Vec<(u8, Vec<u8>)>, SearchState),
    /// The snapshot, the state, and the decision if there is one.
    Claimed(u64, ClaimState, Option<StoredDecision>),
    Renewed(Renewal),
    GivenBack,
    Reported,
    /// The decision that answers; `None` if another generation is the latest.
    Proposed(Option<StoredDecision>),
    Read(u64, Option<StoredDecision>),
}

/// All that a store has.
pub(super) struct Kept {
    /// Configuration, id and seconds of each measurement; 0 seconds if it failed.
    pub(super) measurements: Vec<(u8, Vec<u8>, f64)>,
    pub(super) decisions: Vec<StoredDecision>,
}

/// How long leases and claims last, in milliseconds.
pub(super) const TTL: u64 = 6_000;

/// Targets of keys, of which there are two for each key.
const TARGETS: [&str; 2] = ["compiler=1;device=a", "compiler=2;device=a"];

fn subject() -> Subject {
    Subject {
        target: "a board".to_owned(),
        graph: Digest([62; 32]),
    }
}

fn search_key() -> SearchKey {
    SearchKey {
        subject: subject(),
        name: String::new(),
    }
}

fn digest(config: u8) -> Digest {
    config_digest(&[config])
}

fn reporter() -> Reporter {
    Reporter::named("ci").unwrap()
}

/// The number of a key is that of its target as well.
pub(super) fn decision_subject(key: usize) -> DecisionSubject {
    DecisionSubject {
        namespace: "space".to_owned(),
        key: vec![u8::try_from(key / 2).unwrap()],
        target: TARGETS[key % 2].to_owned(),
    }
}

pub(super) fn value(key: usize, seconds: f64) -> Vec<u8> {
    format!("{{\"{key}\": {seconds}}}").into_bytes()
}

fn lookup(key: usize, snapshot: u64, strict: bool) -> DecisionLookup {
    DecisionLookup {
        subject: decision_subject(key),
        client: Some(reporter()),
        snapshot,
        strict,
        with_near: true,
    }
}

fn measurement(config: u8, id: Vec<u8>, seconds: f64) -> Measurement {
    Measurement {
        task: Task::FeatureSet,
        config: vec![config],
        id,
        outcome: Outcome {
            seconds,
            repeats: 1,
            failure: i32::from(seconds == 0.0),
        },
        reporter: reporter(),
        reported_at: 1_000,
        machine: String::new(),
    }
}

impl Plan {
    pub(super) fn new(random: &mut Rng) -> Self {
        let configs = random.u8(3..8);
        let measurements = if random.bool() {
            usize::MAX
        } else {
            random.usize(2..8)
        };
        let places = (0..configs).map(|config| (digest(config), usize::from(config)));
        Self {
            configs,
            keys: 4,
            budget: LeaseBudget {
                measurements,
                time: Duration::MAX,
            },
            places: Rc::new(places.collect()),
            waits_for_turn: Rc::default(),
            draw: Cell::new(random.u64(..)),
        }
    }
}

impl Leased {
    pub(super) fn thing(&self) -> Thing {
        match self {
            Self::Config(config, _) => Thing::Config(*config),
            Self::Key(key) => Thing::Key(*key),
        }
    }
}

impl Asking {
    /// Begins the call of a worker.
    pub(super) fn start(
        &self,
        leases: Rc<Leases>,
        name: &str,
        plan: &Plan,
    ) -> Pin<Box<dyn Future<Output = Done>>> {
        let worker = LeaseWorker {
            client: String::new(),
            name: name.to_owned(),
            machine: String::new(),
            ttl: TTL,
        };
        let claim = |renew, give_back| ClaimRequest {
            worker: LeaseWorker {
                client: reporter().name().to_owned(),
                ..worker.clone()
            },
            for_itself: false,
            renew,
            give_back,
        };
        match self.clone() {
            Self::Suggest(count) => {
                plan.draw.set(plan.draw.get() + 1);
                let suggesting = Suggesting {
                    count,
                    wanted: WantedLeases {
                        key: search_key(),
                        worker,
                        budget: plan.budget,
                        crash: measurement(0, Vec::new(), 0.0).outcome,
                        is_listed: true,
                    },
                    places: Rc::clone(&plan.places),
                    waits_for_turn: Rc::clone(&plan.waits_for_turn),
                    random: Rng::with_seed(plan.draw.get()),
                };
                Box::pin(suggesting.done(leases))
            }
            Self::Claim(key) => Box::pin(claimed(leases, key, claim(false, false))),
            Self::Renew(Leased::Key(key)) => Box::pin(claimed(leases, key, claim(true, false))),
            Self::GiveBack(Leased::Key(key)) => Box::pin(claimed(leases, key, claim(false, true))),
            Self::Renew(Leased::Config(config, id)) => Box::pin(async move {
                let renewed = leases
                    .renew(&search_key(), &worker, &[(id, digest(config))])
                    .await;
                Done::Renewed(renewed.unwrap()[0])
            }),
            Self::GiveBack(Leased::Config(_, id)) => Box::pin(async move {
                leases.end(&search_key(), &[id], None).await.unwrap();
                Done::GivenBack
            }),
            Self::Report {
                config,
                id,
                seconds,
            } => Box::pin(async move {
                let reported = [measurement(config, id.clone(), seconds)];
                // A report is taken whatever became of its lease.
                let store = leases.store().unwrap();
                store.report(subject(), reported, None).await.unwrap();
                let configs = Some(&[digest(config)][..]);
                leases.end(&search_key(), &[id], configs).await.unwrap();
                Done::Reported
            }),
            Self::Propose {
                key,
                seconds,
                supersede,
            } => Box::pin(proposed(leases, key, seconds, supersede)),
            Self::Read {
                key,
                snapshot,
                strict,
            } => Box::pin(async move {
                let store = leases.store().unwrap();
                let view = store
                    .decision(&lookup(key, snapshot, strict))
                    .await
                    .unwrap();
                Done::Read(view.snapshot, view.decision)
            }),
        }
    }
}

async fn claimed(leases: Rc<Leases>, key: usize, request: ClaimRequest) -> Done {
    let claimed = leases
        .claim_unless_decided(&lookup(key, 0, false), &request)
        .await;
    let (view, state) = claimed.unwrap();
    Done::Claimed(view.snapshot, state, view.decision)
}

async fn proposed(leases: Rc<Leases>, key: usize, seconds: f64, supersede: u64) -> Done {
    let proposal = DecisionProposal {
        subject: decision_subject(key),
        for_itself: false,
        reporter: reporter(),
        supersede,
        value: value(key, seconds),
        evidence: Vec::new(),
        decided_at: 1_000,
    };
    match leases.propose(lookup(key, 0, false), proposal).await {
        Ok(proposed) => Done::Proposed(proposed.view.decision),
        Err(LeaseError::Store(StoreError::OtherGeneration { .. })) => Done::Proposed(None),
        Err(error) => panic!("{error}"),
    }
}

/// A call for configurations.
struct Suggesting {
    count: usize,
    wanted: WantedLeases,
    places: Rc<Places>,
    waits_for_turn: Rc<Cell<bool>>,
    random: Rng,
}

impl Suggesting {
    async fn done(mut self, leases: Rc<Leases>) -> Done {
        let WantedLeases { key, worker, .. } = &self.wanted;
        let mut turn = pin!(leases.turn(key));
        let turn = poll_fn(|context| {
            let polled = turn.as_mut().poll(context);
            self.waits_for_turn.set(polled.is_pending());
            polled
        });
        let _turn = turn.await;
        let view = leases.view(key, worker).await.unwrap();
        let mut measured: HashSet<Digest> = leases.measured(key).await.unwrap();
        let by_digest: HashMap<Digest, usize> = HashMap::clone(&self.places);
        for crashed in &view.crashed {
            if measured.insert(crashed.config) {
                let config = u8::try_from(by_digest[&crashed.config]).unwrap();
                let failure = measurement(config, crashed.id.clone(), 0.0);
                let store = leases.store().unwrap();
                store.report(subject(), [failure], None).await.unwrap();
            }
            leases.settle(key, crashed.config).await.unwrap();
        }
        let asked = SuggestionRequest {
            count: self.count,
            pending: Vec::new(),
            since_improvement: 0,
            seed: 0,
        };
        let grace = leases.grace(Duration::from_millis(TTL)).unwrap();
        let turn = LeasingTurn::new(&self.places, view, &measured, &asked, &self.wanted, grace);
        if let Some(state) = turn.nothing {
            return Done::Suggested(Vec::new(), Vec::new(), state);
        }
        let is_free =
            |config: &usize| !turn.pending.contains(config) && !turn.measured.contains(config);
        let mut free: Vec<usize> = (0..self.places.len()).filter(is_free).collect();
        self.random.shuffle(&mut free);
        let numbers = free
            .into_iter()
            .take(turn.fresh)
            .map(|config| u8::try_from(config).unwrap());
        let numbers: Vec<u8> = numbers.collect();
        let fresh: Vec<Digest> = numbers.iter().map(|config| digest(*config)).collect();
        let granted = leases.grant(key, worker, &fresh, &turn.left).await.unwrap();
        let known =
            |GrantedLease { id, config, .. }| (u8::try_from(by_digest[&config]).unwrap(), id);
        let own = turn.own.into_iter().map(|(_, lease)| known(lease));
        let granted = granted.into_iter().flatten().map(known);
        Done::Suggested(own.collect(), granted.collect(), SearchState::Running)
    }
}

/// Reads all that a store has.
pub(super) async fn kept(store: &MeasurementStore, plan: &Plan) -> Kept {
    let page = store
        .list(&MeasurementFilter::default(), None, 10_000)
        .await;
    let measurements = page.unwrap().measurements.into_iter();
    let measurements =
        measurements.map(|(_, each)| (each.config[0], each.id, each.outcome.seconds));
    let filter = DecisionFilter {
        subject: DecisionSubject {
            namespace: String::new(),
            key: Vec::new(),
            target: String::new(),
        },
        client: reporter(),
        all_generations: true,
        after: 0,
    };
    let decisions = store.decisions(&filter, 10_000).await.unwrap().decisions;
    let measurements: Vec<(u8, Vec<u8>, f64)> = measurements.collect();
    assert!(
        measurements
            .iter()
            .all(|(config, ..)| *config < plan.configs)
    );
    Kept {
        measurements,
        decisions,
    }
}
