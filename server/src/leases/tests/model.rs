//! Every interleaving of a few workers, deaths, crashes of the server, lost answers and expired leases, in steps of the real
//! [`LeasedSearch`]. Each variant breaks one rule, and has to fail.

use std::collections::{BTreeSet, HashMap, HashSet};

use hlorank_graph::Digest;

use crate::leases::search::{BudgetLeft, LeaseWorker, LeasedSearch, Renewal};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Phase {
    Idle,
    Busy,
    Measured,
    Dead,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Measurer {
    phase: Phase,
    config: u8,
    lease: u8,
}

/// All that is: the workers, the server, and what went wrong until now.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
struct World {
    workers: Vec<Measurer>,
    search: LeasedSearch,
    /// Configuration and id of each stored measurement, and of each failure that the server recorded.
    stored: BTreeSet<(u8, u8)>,
    failed: BTreeSet<u8>,
    acknowledged: BTreeSet<(u8, u8)>,
    measurements: [u8; CONFIGS as usize],
    next_lease: u8,
    is_up: bool,
    in_grace: bool,
    faults: u8,
    expiries: u8,
    deaths: u8,
    leased_twice: bool,
}

/// Which rules hold.
#[derive(Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each variant breaks one rule"
)]
struct Rules {
    /// Leases outlive the server: rows of a database.
    durable: bool,
    /// Leases of which the time ran out while the server was away are live again after that.
    extended: bool,
    grace: bool,
    adoption: bool,
    late_reports: bool,
    ids: bool,
}

const IDLE: Measurer = Measurer {
    phase: Phase::Idle,
    config: 0,
    lease: 0,
};

const WORKERS: usize = 2;
const CONFIGS: u8 = 2;
const MAX_FAULTS: u8 = 2;
const MAX_DEATHS: u8 = 1;
const MAX_EXPIRIES: u8 = 1;

/// Leases in a database, whose time goes on after the server was away.
const DATABASE: Rules = Rules {
    durable: true,
    extended: true,
    grace: false,
    adoption: true,
    late_reports: true,
    ids: true,
};

/// Leases in memory, which a server forgets.
const MEMORY: Rules = Rules {
    durable: false,
    grace: true,
    ..DATABASE
};

/// Longer than any lease of the model lasts.
const LONG: u64 = 1_000_000;

fn asking(worker: usize) -> LeaseWorker {
    LeaseWorker {
        client: String::new(),
        name: worker.to_string(),
        machine: String::new(),
        ttl: 3_000,
    }
}

fn digest(config: u8) -> Digest {
    Digest([config; 32])
}

impl World {
    fn new() -> Self {
        Self {
            workers: vec![IDLE; WORKERS],
            next_lease: 1,
            is_up: true,
            ..Self::default()
        }
    }

    fn is_measured(&self, config: u8) -> bool {
        self.failed.contains(&config) || self.stored.iter().any(|stored| stored.0 == config)
    }

    fn is_finished(&self) -> bool {
        (0..CONFIGS).all(|config| self.is_measured(config))
    }

    fn lives(&self) -> bool {
        self.workers
            .iter()
            .any(|worker| worker.phase != Phase::Dead)
    }

    /// The same with equal times and in one order, so that it is known again.
    fn normal(mut self) -> Self {
        let search = &mut self.search;
        search.used = 0;
        search.began = search.began.map(|_| 0);
        for lease in &mut search.live {
            lease.expires = lease.ttl;
            lease.since = 0;
        }
        search.live.sort_by(|one, other| one.id.cmp(&other.id));
        for ended in &mut search.ended {
            ended.at = 0;
        }
        search.ended.sort_by(|one, other| one.id.cmp(&other.id));
        search.lost.sort_by(|one, other| one.id.cmp(&other.id));
        self
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut next = self.clone();
        change(&mut next);
        next.normal()
    }

    /// A worker asks what to measure, as a call does.
    fn ask(&mut self, worker: usize) -> Option<()> {
        self.search.pass(0);
        let view = self.search.view(&asking(worker), 0);
        for crashed in view.crashed {
            let config = crashed.config.0[0];
            if !self.is_measured(config) {
                self.failed.insert(config);
            }
            self.search.settle(crashed.config);
        }
        let own = view
            .own
            .into_iter()
            .find(|lease| !self.is_measured(lease.config.0[0]));
        let lease = own.or_else(|| {
            let is_free =
                |config: &u8| !self.is_measured(*config) && !view.others.contains(&digest(*config));
            let config = (0..CONFIGS).find(is_free)?;
            self.leased_twice |= self.is_measured(config);
            let id = [self.next_lease; 16];
            let none = HashSet::new();
            let left = BudgetLeft::without_limit(&none);
            let granted = self
                .search
                .grant(&asking(worker), &[digest(config)], &left, || id, 0);
            self.next_lease += 1;
            granted.into_iter().next().flatten()
        })?;
        self.workers[worker] = Measurer {
            phase: Phase::Busy,
            config: lease.config.0[0],
            lease: lease.id[0],
        };
        Some(())
    }

    /// A worker reports; returns whether the server takes it.
    fn report(&mut self, worker: usize, rules: Rules) -> bool {
        let Measurer { config, lease, .. } = self.workers[worker];
        let is_live = self.search.live.iter().any(|live| live.id[0] == lease);
        if !is_live && !rules.late_reports {
            return false;
        }
        let again = self.stored.iter().filter(|stored| stored.0 == config);
        let is_other = !rules.ids && again.count() > 0;
        let id = lease + 100 * u8::from(is_other);
        self.stored.insert((config, id));
        self.search.end(&[lease; 16], Some(digest(config)), 0);
        true
    }

    /// What can come of the report of a worker.
    fn reports(&self, number: usize, rules: Rules) -> Vec<Self> {
        let Measurer { config, lease, .. } = self.workers[number];
        let mut taken = false;
        let reported = self.with(|world| taken = world.report(number, rules));
        if !taken {
            return vec![self.with(|world| world.workers[number] = IDLE)];
        }
        let mut next = vec![reported.with(|world| {
            world.acknowledged.insert((config, lease));
            world.workers[number] = IDLE;
        })];
        // The answer is lost, and the worker reports again.
        if self.faults < MAX_FAULTS {
            next.push(reported.with(|world| world.faults += 1));
        }
        next
    }

    /// What a worker can do next, and what can happen to it.
    fn steps_of(&self, number: usize, rules: Rules) -> Vec<Self> {
        let mut next = Vec::new();
        let may_fail = self.faults < MAX_FAULTS;
        let Measurer {
            phase,
            config,
            lease,
        } = self.workers[number];
        match phase {
            Phase::Dead => return next,
            Phase::Idle if self.is_up && !self.in_grace => {
                let mut asked = self.clone();
                let given = asked.ask(number);
                if given.is_some() && may_fail {
                    // The answer is lost: the server alone knows of the lease.
                    next.push(asked.with(|world| {
                        world.faults += 1;
                        world.workers[number] = IDLE;
                    }));
                }
                next.push(asked.normal());
            }
            Phase::Busy => next.push(self.with(|world| {
                world.measurements[usize::from(config)] += 1;
                world.workers[number].phase = Phase::Measured;
            })),
            Phase::Measured if self.is_up => next.extend(self.reports(number, rules)),
            Phase::Idle | Phase::Measured => {}
        }
        let has_lease = matches!(phase, Phase::Busy | Phase::Measured);
        if has_lease && self.is_up {
            let measured = self.is_measured(config);
            next.push(self.with(|world| {
                let search = &mut world.search;
                let id = [lease; 16];
                let mut renewed = search.clone();
                let state = renewed.renew(&asking(number), &id, digest(config), Some(measured), 0);
                if rules.adoption || state == Some(Renewal::Held) {
                    *search = renewed;
                }
            }));
        }
        if has_lease && self.deaths < MAX_DEATHS {
            next.push(self.with(|world| {
                world.deaths += 1;
                world.workers[number].phase = Phase::Dead;
            }));
        }
        next
    }

    /// All that can happen next.
    fn steps(&self, rules: Rules) -> Vec<Self> {
        let mut next: Vec<Self> = (0..WORKERS)
            .flat_map(|number| self.steps_of(number, rules))
            .collect();
        let may_fail = self.faults < MAX_FAULTS;
        for place in 0..self.search.live.len() {
            let lease = &self.search.live[place];
            let holder = self.workers[lease.worker.parse::<usize>().unwrap()];
            let knows = matches!(holder.phase, Phase::Busy | Phase::Measured)
                && holder.lease == lease.id[0];
            let is_fault = knows && self.expiries >= MAX_EXPIRIES;
            if self.is_up && !is_fault {
                next.push(self.with(|world| {
                    world.expiries += u8::from(knows);
                    world.search.live[place].expires = 0;
                    world.search.pass(0);
                }));
            }
        }
        if self.is_up && may_fail {
            next.push(self.with(|world| {
                world.is_up = false;
                world.faults += 1;
                if !rules.durable {
                    world.search = LeasedSearch::default();
                }
            }));
        }
        if !self.is_up {
            next.push(self.with(|world| {
                world.is_up = true;
                world.in_grace = rules.grace;
                if !rules.extended {
                    world.search.used = LONG;
                }
                world.search.pass(LONG);
            }));
        }
        // The grace ends once every worker that lives had the time to renew.
        let is_known = |worker: &Measurer| {
            matches!(worker.phase, Phase::Idle | Phase::Dead)
                || self
                    .search
                    .live
                    .iter()
                    .any(|live| live.id[0] == worker.lease)
                || self.is_measured(worker.config)
        };
        if self.in_grace && self.is_up && self.workers.iter().all(is_known) {
            next.push(self.with(|world| world.in_grace = false));
        }
        next
    }

    /// What is wrong with it.
    fn faults_of(&self) -> Vec<&'static str> {
        let live = self.search.live.iter().map(|live| &live.config[..]);
        let leased: BTreeSet<&[u8]> = live.collect();
        let all: u8 = self.measurements.iter().sum();
        let stored_twice = self.stored.len() > usize::from(all);
        let is_lost = |config: u8| {
            let holds = |worker: &Measurer| worker.phase != Phase::Idle && worker.config == config;
            self.measurements[usize::from(config)] > 0
                && self.deaths == 0
                && !self.stored.iter().any(|stored| stored.0 == config)
                && !self.workers.iter().any(holds)
        };
        let twice = |&count: &u8| count > 1 + self.expiries + self.deaths;
        [
            ("L1 two leases", leased.len() < self.search.live.len()),
            ("L2 not stored", !self.acknowledged.is_subset(&self.stored)),
            ("L2 stored twice", stored_twice),
            ("L3 lost", (0..CONFIGS).any(is_lost)),
            ("L4 leased although measured", self.leased_twice),
            ("L5 measured twice", self.measurements.iter().any(twice)),
        ]
        .into_iter()
        .filter_map(|(fault, is_so)| is_so.then_some(fault))
        .collect()
    }
}

/// Visits every world. Returns their number, and what is wrong with any of them.
fn explore(rules: Rules) -> (usize, BTreeSet<&'static str>) {
    let mut worlds = vec![World::new()];
    let mut known = HashMap::from([(worlds[0].clone(), 0)]);
    let mut wrong = BTreeSet::new();
    let mut before: Vec<Vec<usize>> = vec![Vec::new()];
    let mut place = 0;
    while place < worlds.len() {
        wrong.extend(worlds[place].faults_of());
        for next in worlds[place].steps(rules) {
            let number = *known.entry(next).or_insert_with_key(|next| {
                worlds.push(next.clone());
                before.push(Vec::new());
                worlds.len() - 1
            });
            before[number].push(place);
        }
        place += 1;
    }
    // From every world where a worker lives, everything can still be measured.
    let mut waiting: Vec<usize> = (0..worlds.len())
        .filter(|&number| worlds[number].is_finished())
        .collect();
    let mut ends = vec![false; worlds.len()];
    while let Some(number) = waiting.pop() {
        if !ends[number] {
            ends[number] = true;
            waiting.extend(&before[number]);
        }
    }
    if worlds
        .iter()
        .zip(ends)
        .any(|(world, ends)| !ends && world.lives())
    {
        wrong.insert("L7 stuck");
    }
    (worlds.len(), wrong)
}

fn check(rules: Rules, expected: &[&'static str]) {
    let (worlds, wrong) = explore(rules);
    println!("{worlds} worlds");
    assert_eq!(wrong, expected.iter().copied().collect());
}

#[test]
fn leases_in_memory_hold_what_they_promise() {
    check(MEMORY, &[]);
}

#[test]
fn leases_in_a_database_hold_what_they_promise() {
    check(DATABASE, &[]);
}

#[test]
fn leases_that_run_out_or_are_forgotten_while_the_server_is_away_are_measured_twice() {
    let run_out = Rules {
        extended: false,
        adoption: false,
        ..DATABASE
    };
    let forgotten = Rules {
        grace: false,
        ..MEMORY
    };
    for rules in [run_out, forgotten] {
        check(rules, &["L5 measured twice"]);
    }
}

#[test]
fn refused_late_reports_are_lost_work() {
    let rules = Rules {
        late_reports: false,
        ..DATABASE
    };
    check(rules, &["L3 lost"]);
}

#[test]
fn reports_without_an_id_are_stored_twice() {
    let rules = Rules {
        ids: false,
        ..DATABASE
    };
    check(rules, &["L2 not stored", "L2 stored twice"]);
}
