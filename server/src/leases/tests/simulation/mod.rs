//! The real keeper and the real store of a file, driven by workers and faults that a seed draws, beside a
//! [model](expectations) of what must hold.
//!
//! Some workers measure the configurations of a search, and decide keys, all by leases. Their calls are futures that the simulation
//! polls one at a time, so that every wait of a call is a place where another call, a fault or time may come in between: a worker
//! dies or stops for a while, a client does not wait for its answer, an answer is lost, the server is killed with all calls in
//! flight and starts again on its file. Time is tokio's paused clock, which only the simulation advances.
//!
//! ```console
//! $ HLORANK_SIMULATION_SEEDS=10000 cargo test --release -p hlorank-server simulation -- --nocapture   # new seeds
//! $ HLORANK_SIMULATION_SEED=62 cargo test -p hlorank-server simulation   # one seed again
//! ```

mod calls;
mod expectations;

use std::{
    env, iter,
    path::Path,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use fastrand::Rng;
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    time::advance,
};

use self::{
    calls::{Asking, Done, Leased, Plan, TTL},
    expectations::{Expectations, Hold},
};
use crate::{
    leases::{Leases, Renewal, SearchState, claim::ClaimState, search::renewals},
    metrics::Metrics,
    store::{MeasurementStore, polled},
};

/// Number of seeds if none are given.
const SEEDS: u64 = 200;

/// Number of workers at any time.
const WORKERS: usize = 4;

/// What happens in one simulation before faults end.
const STEPS: usize = 400;

/// Time in which everything must be done once faults have ended.
const MAX_REST: u64 = 100 * TTL;

/// Maximum number of times that a call may have to wait for the store.
const MAX_WAITS: usize = 40;

/// A world of workers and a server.
struct Simulation {
    random: Rng,
    runtime: Runtime,
    folder: TempDir,
    /// `None` while it is down.
    server: Option<Rc<Leases>>,
    plan: Plan,
    workers: Vec<SimulatedWorker>,
    named: usize,
    time: u64,
    steps: usize,
    with_faults: bool,
    expected: Expectations,
}

struct SimulatedWorker {
    name: String,
    call: Option<Call>,
    task: Option<Task>,
    /// It does nothing before this time.
    sleeps_until: u64,
    /// Whether its search has ended, and which keys it knows to be decided.
    has_ended: bool,
    decided: Vec<bool>,
}

/// What a worker measures or tunes.
struct Task {
    leased: Leased,
    renew_at: u64,
    done_at: u64,
    seconds: f64,
}

/// A call in flight.
struct Call {
    future: Pin<Box<dyn Future<Output = Done>>>,
    asking: Asking,
    begun: u64,
    step: usize,
    waits: usize,
    /// Whether it waits for another call of its search.
    waits_for_turn: bool,
    waker: Arc<ThreadWaker>,
}

/// Wakes the thread of the simulation once the store has done its part of a call.
struct ThreadWaker {
    is_woken: AtomicBool,
    thread: Thread,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, SeqCst);
        self.thread.unpark();
    }
}

/// Says which seed failed.
struct ShownSeed(u64);

impl Drop for ShownSeed {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("HLORANK_SIMULATION_SEED={} fails", self.0);
        }
    }
}

#[test]
fn leases_and_decisions_hold_what_they_promise_whatever_fails_and_when() {
    let number = |name| env::var(name).ok().map(|text| text.parse().unwrap());
    let given: Option<u64> = number("HLORANK_SIMULATION_SEED");
    let count = number("HLORANK_SIMULATION_SEEDS").or(given.map(|_| 1));
    // The same seeds each time unless a number is asked for, so that what fails is what was changed.
    let new = || count.map_or(1, |_| fastrand::u64(..1 << 48));
    let first = given.unwrap_or_else(new);
    let mut time = Duration::ZERO;
    for seed in first..first + count.unwrap_or(SEEDS) {
        let _shown = ShownSeed(seed);
        let mut simulation = Simulation::new(seed);
        simulation.run();
        time += Duration::from_millis(simulation.time);
    }
    println!("seeds from {first}, {time:?} simulated");
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        // Its commits need not survive the machine.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let plan = Plan::new(&mut random);
        Self {
            expected: Expectations::new(&plan),
            plan,
            random,
            runtime: runtime.unwrap(),
            folder: folder.unwrap(),
            server: None,
            workers: Vec::new(),
            named: 0,
            time: 0,
            steps: 0,
            with_faults: true,
        }
    }

    fn run(&mut self) {
        self.start();
        for _ in 0..WORKERS {
            let worker = self.new_worker();
            self.workers.push(worker);
        }
        for _ in 0..STEPS {
            self.step();
        }
        self.with_faults = false;
        for worker in &mut self.workers {
            worker.sleeps_until = 0;
        }
        if self.server.is_none() {
            self.start();
        }
        let rest = self.time + MAX_REST;
        while !self.workers.iter().all(SimulatedWorker::is_finished) {
            self.step();
            assert!(
                self.time < rest,
                "L7: not everything is measured and decided"
            );
        }
        self.check_store();
    }

    fn new_worker(&mut self) -> SimulatedWorker {
        self.named += 1;
        SimulatedWorker {
            name: format!("worker {}", self.named),
            call: None,
            task: None,
            sleeps_until: 0,
            has_ended: false,
            decided: vec![false; self.plan.keys],
        }
    }

    /// One thing happens.
    fn step(&mut self) {
        self.steps += 1;
        if self.with_faults && self.random.u8(..) < 8 {
            return self.fail();
        }
        let number = self.random.usize(..self.workers.len());
        let worker = &self.workers[number];
        if worker.sleeps_until > self.time {
            return self.pass();
        }
        if worker.call.is_some() {
            return self.poll(number);
        }
        let asking = self.next_asking(number);
        match (self.server.clone(), asking) {
            (Some(server), Some(asking)) => {
                let worker = &mut self.workers[number];
                let future = asking.start(server, &worker.name, &self.plan);
                self.expected.begin(&asking, &worker.name);
                worker.call = Some(Call {
                    future,
                    asking,
                    begun: self.time,
                    step: self.steps,
                    waits: 0,
                    waits_for_turn: false,
                    waker: Arc::new(ThreadWaker {
                        is_woken: AtomicBool::new(false),
                        thread: thread::current(),
                    }),
                });
                self.poll(number);
            }
            _ => self.pass(),
        }
    }

    /// What a worker does next, if it does not wait.
    fn next_asking(&mut self, number: usize) -> Option<Asking> {
        let worker = &self.workers[number];
        let Some(task) = &worker.task else {
            let undecided = |key: &usize| !worker.decided[*key];
            let undecided: Vec<usize> = (0..self.plan.keys).filter(undecided).collect();
            return match self.random.u8(..10) {
                0 if self.with_faults => Some(Asking::Read {
                    key: self.random.usize(..self.plan.keys),
                    snapshot: self.random.choice(self.expected.snapshots()).unwrap_or(0),
                    strict: self.random.bool(),
                }),
                // Whoever has no claim may propose as well, or supersede.
                1 if self.with_faults => {
                    let key = self.random.usize(..self.plan.keys);
                    Some(Asking::Propose {
                        key,
                        seconds: self.random.f64(),
                        supersede: self.expected.generation(key),
                    })
                }
                2..=4 => Some(Asking::Claim(self.random.choice(undecided)?)),
                5..=9 if !worker.has_ended => {
                    let count = 1 + usize::from(self.random.u8(..4) == 0);
                    Some(Asking::Suggest(count))
                }
                _ => None,
            };
        };
        let leased = task.leased.clone();
        // Its renewals go on while it reports.
        let renews = self.time >= task.renew_at && self.random.bool();
        if self.time >= task.done_at && !renews {
            let seconds = task.seconds;
            return Some(match leased {
                Leased::Config(config, id) => Asking::Report {
                    config,
                    id,
                    seconds,
                },
                Leased::Key(key) => Asking::Propose {
                    key,
                    seconds,
                    supersede: 0,
                },
            });
        }
        if self.time >= task.renew_at {
            return Some(Asking::Renew(leased));
        }
        let gives_back = self.with_faults && self.random.u8(..) < 2;
        gives_back.then_some(Asking::GiveBack(leased))
    }

    /// Time passes, at most until somebody who is awake has to do something.
    fn pass(&mut self) {
        let has_call = self.workers.iter().any(|worker| {
            let call = worker.call.as_ref();
            worker.sleeps_until <= self.time && call.is_some_and(|call| !call.waits_for_turn)
        });
        if has_call {
            return;
        }
        let awake = self.workers.iter();
        let awake = awake.filter(|worker| worker.sleeps_until <= self.time);
        let due = awake.filter_map(|worker| worker.task.as_ref());
        let due = due.map(|task| task.renew_at.min(task.done_at).saturating_sub(self.time));
        let most = match &self.server {
            Some(_) => due.min().unwrap_or(TTL),
            None => TTL,
        };
        let time = self.random.u64(..=most.min(TTL / 8));
        self.runtime.block_on(advance(Duration::from_millis(time)));
        self.time += time;
        self.expected.pass(self.time);
    }

    /// Something fails.
    fn fail(&mut self) {
        let number = self.random.usize(..self.workers.len());
        match self.random.u8(..8) {
            0 => {
                let new = self.new_worker();
                self.workers[number] = new;
            }
            1..=2 => {
                // It stands still, also in the middle of a call, for longer than its lease may last.
                let time = self.random.u64(..2 * TTL);
                self.workers[number].sleeps_until = self.time + time;
            }
            3 => self.workers[number].call = None,
            _ => match &self.server {
                Some(_) if self.random.u8(..4) == 0 => self.kill(),
                Some(_) => {}
                None => self.start(),
            },
        }
    }

    /// Kills the server with all calls in flight.
    fn kill(&mut self) {
        for worker in &mut self.workers {
            worker.call = None;
        }
        self.server = None;
        self.expected.kill();
    }

    /// Starts the server, which has a file from the second time on.
    fn start(&mut self) {
        let _runtime = self.runtime.enter();
        let path = self.folder.path().join("measurements");
        // The writer of a server that was killed ends a moment after it.
        let opened =
            iter::repeat_with(|| MeasurementStore::open(&path, 1 << 30, Metrics::default().store));
        let store = Arc::new(opened.flatten().next().unwrap());
        self.server = Some(Rc::new(Leases::new(Some(store))));
        let grace = renewals(Duration::from_millis(TTL));
        if self.time > 0 || self.steps > 0 {
            let grace = u64::try_from(grace.as_millis()).unwrap();
            self.expected.start(self.time + grace);
        }
        self.check_store();
    }

    /// Compares what is kept with what was acknowledged.
    fn check_store(&mut self) {
        let _runtime = self.runtime.enter();
        let store = self.server.as_ref().unwrap().store().unwrap();
        let kept = self.runtime.block_on(calls::kept(store, &self.plan));
        self.expected.check_kept(&kept);
    }

    /// A call goes on until its next use of the file, or until it waits for another call.
    fn poll(&mut self, number: usize) {
        let _runtime = self.runtime.enter();
        let worker = &mut self.workers[number];
        let call = worker.call.as_mut().unwrap();
        let waker = Waker::from(Arc::clone(&call.waker));
        let mut context = Context::from_waker(&waker);
        let polled = loop {
            call.waker.is_woken.store(false, SeqCst);
            self.plan.waits_for_turn.set(false);
            let (polled, has_paused) = polled(|| call.future.as_mut().poll(&mut context));
            call.waits_for_turn = self.plan.waits_for_turn.get();
            if polled.is_ready() || has_paused || call.waits_for_turn {
                break polled;
            }
            while !call.waker.is_woken.load(SeqCst) {
                thread::park();
            }
        };
        let Poll::Ready(done) = polled else {
            call.waits += usize::from(!call.waits_for_turn);
            assert!(call.waits < MAX_WAITS, "D4: {:?} takes long", call.asking);
            // Between what is on disk and its answer.
            let is_write = matches!(call.asking, Asking::Report { .. } | Asking::Propose { .. });
            if self.with_faults && is_write && self.random.u8(..) < 8 {
                self.kill();
            }
            return;
        };
        let Call {
            asking,
            begun,
            step,
            ..
        } = worker.call.take().unwrap();
        let hold = Hold {
            worker: worker.name.clone(),
            until: begun + TTL,
            is_known: true,
            since: self.steps,
        };
        self.expected
            .answered(&asking, &done, &hold, step, self.steps);
        if self.with_faults && self.random.u8(..) < 13 {
            // The answer is lost, which a client finds out after a while.
            let time = self.random.u64(..TTL / 2);
            self.workers[number].sleeps_until = self.time + time;
            return;
        }
        self.deliver(number, asking, done);
    }

    /// A worker gets an answer.
    fn deliver(&mut self, number: usize, asking: Asking, done: Done) {
        let worker = &mut self.workers[number];
        let tunes = |random: &mut Rng, leased| Task {
            leased,
            renew_at: self.time + TTL / 3,
            done_at: self.time + random.u64(..2 * TTL),
            seconds: random.f64() + 0.1,
        };
        match (done, asking) {
            (Done::Suggested(own, granted, state), _) => {
                let ended = [SearchState::Exhausted, SearchState::BudgetSpent];
                worker.has_ended = ended.contains(&state);
                // Others of its leases come first when it asks again.
                let lease = own.into_iter().chain(granted).next();
                let lease = lease.map(|(config, id)| Leased::Config(config, id));
                worker.task = lease.map(|leased| tunes(&mut self.random, leased));
            }
            (Done::Claimed(_, ClaimState::Granted, None), Asking::Claim(key)) => {
                worker.task = Some(tunes(&mut self.random, Leased::Key(key)));
            }
            (Done::Claimed(_, _, Some(_)), Asking::Claim(key)) => worker.decided[key] = true,
            (Done::Renewed(Renewal::Held | Renewal::Adopted), _)
            | (Done::Claimed(_, ClaimState::Granted, None), Asking::Renew(_)) => {
                if let Some(task) = &mut worker.task {
                    task.renew_at = self.time + TTL / 3;
                }
            }
            // Whoever has lost a lease goes on, because its report counts.
            (Done::Renewed(_) | Done::Claimed(..), Asking::Renew(_)) => {
                if let Some(task) = &mut worker.task {
                    task.renew_at = u64::MAX;
                }
            }
            (Done::Reported | Done::GivenBack | Done::Claimed(..), Asking::GiveBack(_))
            | (Done::Reported, _) => worker.task = None,
            (Done::Proposed(..), Asking::Propose { key, .. }) => {
                worker.task = None;
                worker.decided[key] = true;
            }
            _ => {}
        }
    }
}

impl SimulatedWorker {
    fn is_finished(&self) -> bool {
        let is_idle = self.task.is_none() && self.call.is_none();
        is_idle && self.has_ended && self.decided.iter().all(|decided| *decided)
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.kill();
    }
}
