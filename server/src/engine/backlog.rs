//! What calls have left to evaluate, and how long that takes.
//!
//! Work is counted in nodes: rows times the nodes of each, padding included, since that is what takes the time.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use foldhash::{HashMap, HashMapExt};
use hlorank_graph::Digest;

use super::EngineError;

/// The work of all calls.
pub(super) struct Backlog {
    workers: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the next call.
    next: u64,
    calls: HashMap<u64, Owed>,
    /// Of models, by their digests.
    speeds: HashMap<Digest, Speed>,
}

/// What one call has left.
#[derive(Clone, Copy)]
struct Owed {
    /// Which the call is about.
    graph: Digest,
    nodes: usize,
    /// Of one worker; `None` where the model was not measured yet.
    seconds_per_node: Option<f64>,
}

/// A moving mean over the last runs of a model.
#[derive(Clone, Copy)]
struct Speed {
    nodes: f64,
    seconds: f64,
    runs: u32,
    last: Instant,
}

/// The work of one call, until it is done or dropped.
pub(super) struct Work {
    backlog: Arc<Backlog>,
    call: u64,
    model: Digest,
}

/// How much of the mean a run leaves to those before it.
const KEPT: f64 = 0.95;

/// Runs before which nothing is estimated: the first are slower than the rest.
const LEAST_RUNS: u32 = 3;

/// For how long a mean holds. One that is too high ends by that, although it has calls refused that would correct it.
const HOLDS: Duration = Duration::from_mins(1);

impl Backlog {
    /// Of calls that so many workers serve.
    pub(super) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self { workers, state: Mutex::default() })
    }

    /// Adds the work of a call. One that is unlikely to be done in time is refused.
    pub(super) fn add(
        self: &Arc<Self>,
        model: Digest,
        graph: Digest,
        nodes: usize,
        deadline: Option<Instant>,
    ) -> Result<Work, EngineError> {
        let mut state = self.state();
        let owed = Owed { graph, nodes, seconds_per_node: state.seconds_per_node(model) };
        if let (Some(deadline), Some(seconds)) = (deadline, state.until_done(owed)) {
            let estimate =
                Duration::try_from_secs_f64(seconds / float(self.workers)).unwrap_or(Duration::MAX);
            let left = deadline.saturating_duration_since(Instant::now());
            if estimate > left {
                return Err(EngineError::DeadlineTooShort { estimate, left });
            }
        }
        let call = state.next;
        state.next += 1;
        state.calls.insert(call, owed);
        Ok(Work { backlog: Arc::clone(self), call, model })
    }

    /// Takes note of a run of a model.
    pub(super) fn ran(&self, model: Digest, nodes: usize, took: Duration) {
        let now = Instant::now();
        let mut state = self.state();
        let speed =
            state.speeds.entry(model).or_insert(Speed { nodes: 0.0, seconds: 0.0, runs: 0, last: now });
        if !speed.holds(now) {
            *speed = Speed { nodes: 0.0, seconds: 0.0, runs: 0, last: now };
        }
        speed.nodes = speed.nodes * KEPT + float(nodes);
        speed.seconds = speed.seconds * KEPT + took.as_secs_f64();
        speed.runs = speed.runs.saturating_add(1);
        speed.last = now;
    }

    /// Drops what is known of a model.
    pub(super) fn forget(&self, model: Digest) {
        self.state().speeds.remove(&model);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn seconds_per_node(&self, model: Digest) -> Option<f64> {
        let speed = self.speeds.get(&model)?;
        let is_known = speed.runs >= LEAST_RUNS && speed.holds(Instant::now());
        is_known.then(|| speed.seconds / speed.nodes)
    }

    /// Seconds of one worker until a call is done. Calls take turns: one that has less left is done before, one that has
    /// more gets as much as this one meanwhile. Those about one graph mostly need the same rows, which are evaluated
    /// once, so that only the largest of them counts.
    fn until_done(&self, call: Owed) -> Option<f64> {
        let own = call.seconds()?;
        let mut others: HashMap<Digest, f64> = HashMap::new();
        for other in self.calls.values().filter(|other| other.graph != call.graph) {
            let most = others.entry(other.graph).or_default();
            *most = most.max(other.seconds().unwrap_or_default().min(own));
        }
        Some(own + others.values().sum::<f64>())
    }
}

impl Owed {
    fn seconds(&self) -> Option<f64> {
        Some(float(self.nodes) * self.seconds_per_node?)
    }
}

impl Speed {
    fn holds(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) < HOLDS
    }
}

impl Work {
    /// So much of it is done.
    pub(super) fn done(&self, nodes: usize) {
        if let Some(owed) = self.backlog.state().calls.get_mut(&self.call) {
            owed.nodes = owed.nodes.saturating_sub(nodes);
        }
    }

    /// So much of it is done, by a run of its own.
    pub(super) fn ran(&self, nodes: usize, took: Duration) {
        self.backlog.ran(self.model, nodes, took);
        self.done(nodes);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.backlog.state().calls.remove(&self.call);
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate, and counts do not go so far")]
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: Digest = Digest([1; 32]);
    const OTHER: Digest = Digest([2; 32]);
    const GRAPH: Digest = Digest([3; 32]);

    /// Of two workers, each of which takes a millisecond for a thousand nodes.
    fn measured() -> Arc<Backlog> {
        let backlog = Backlog::new(2);
        for _ in 0..LEAST_RUNS {
            backlog.ran(MODEL, 1000, Duration::from_millis(1));
        }
        backlog
    }

    fn now() -> Option<Instant> {
        Some(Instant::now())
    }

    /// What is estimated for so many nodes.
    fn estimate(backlog: &Arc<Backlog>, nodes: usize) -> Duration {
        match backlog.add(MODEL, GRAPH, nodes, now()) {
            Err(EngineError::DeadlineTooShort { estimate, .. }) => estimate,
            _ => panic!("not refused"),
        }
    }

    fn assert_near(one: Duration, other: Duration) {
        assert!(one.abs_diff(other) < Duration::from_micros(1), "{one:?}, {other:?}");
    }

    #[test]
    fn nothing_is_estimated_before_it_was_measured() {
        let backlog = Backlog::new(2);
        for _ in 1..LEAST_RUNS {
            backlog.ran(MODEL, 1000, Duration::from_secs(1));
        }
        assert!(backlog.add(MODEL, GRAPH, usize::MAX, now()).is_ok());
        assert!(measured().add(OTHER, GRAPH, usize::MAX, now()).is_ok());
    }

    #[test]
    fn workers_share_the_work() {
        assert_near(estimate(&measured(), 8_000), Duration::from_millis(4));
    }

    #[test]
    fn calls_take_turns() {
        let backlog = measured();
        let large = backlog.add(MODEL, Digest([4; 32]), 1_000_000, None).unwrap();
        let small = backlog.add(MODEL, Digest([5; 32]), 1_000, None).unwrap();
        assert_near(estimate(&backlog, 10_000), Duration::from_micros(10_500));
        large.done(998_000);
        assert_near(estimate(&backlog, 10_000), Duration::from_micros(6_500));
        drop((large, small));
        assert_near(estimate(&backlog, 10_000), Duration::from_millis(5));
    }

    #[test]
    fn calls_about_one_graph_share() {
        let backlog = measured();
        let same: Vec<_> = (0..50).map(|_| backlog.add(MODEL, GRAPH, 10_000, None).unwrap()).collect();
        assert_near(estimate(&backlog, 10_000), Duration::from_millis(5));
        let others = [4_000, 6_000].map(|nodes| backlog.add(MODEL, OTHER, nodes, None).unwrap());
        assert_near(estimate(&backlog, 10_000), Duration::from_millis(8));
        drop((same, others));
    }

    #[test]
    fn later_runs_count_more() {
        let backlog = measured();
        for _ in 0..300 {
            backlog.ran(MODEL, 1000, Duration::from_millis(3));
        }
        assert_near(estimate(&backlog, 2_000), Duration::from_millis(3));
    }

    #[test]
    fn what_fits_the_deadline_is_taken() {
        let backlog = measured();
        let soon = Instant::now() + Duration::from_secs(10);
        assert!(backlog.add(MODEL, GRAPH, 10_000_000, Some(soon)).is_ok());
        assert!(backlog.add(MODEL, GRAPH, 1_000_000, now()).is_err());
        assert!(backlog.add(MODEL, GRAPH, 0, now()).is_ok(), "nothing to evaluate takes no time");
    }
}
