//! The work that calls have queued, and estimates of the time that it takes.
//!
//! Work is counted in nodes (rows times the nodes of each, padding included), because that is what takes the time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use foldhash::{HashMap, HashMapExt};
use hlorank_adaptation::statistics::scalar;
use hlorank_graph::Digest;
use parking_lot::{Mutex, MutexGuard};

use super::{EngineError, Terms};
use crate::{compute::ComputePool, device};

/// The queued work of all calls.
pub(super) struct Backlog {
    workers: usize,
    /// As those of [`device`].
    run_nodes: usize,
    block_nodes: usize,
    state: Mutex<BacklogState>,
}

#[derive(Default)]
struct BacklogState {
    /// Maximum amount of queued work, in nodes.
    limit: usize,
    /// Number of the next call.
    next: u64,
    calls: HashMap<u64, QueuedWork>,
    /// Speed of each model, by its digest.
    speeds: HashMap<Digest, Speed>,
}

/// The work that one call has left.
#[derive(Clone, Copy)]
struct QueuedWork {
    model: Digest,
    /// The graph that the call is about.
    graph: Digest,
    nodes: usize,
}

/// A moving average over the last runs of a model.
#[derive(Clone, Copy)]
struct Speed {
    /// Nodes, of which each run has [`device::RUN_NODES`] more than it evaluates. Without them, small runs would
    /// make a large call look many times slower than it is.
    nodes: f64,
    seconds: f64,
    runs: u32,
    last: Instant,
}

/// The queued work of one call, until it is done or dropped.
pub(super) struct BacklogWork {
    backlog: Arc<Backlog>,
    call: u64,
    model: Digest,
}

/// Weight of the earlier runs in the moving average after a run.
const EARLIER_WEIGHT: f64 = 0.95;

/// Minimum number of runs for an estimate: the first runs are slower than the rest.
const MIN_RUNS: u32 = 3;

/// How long an average is valid. One that is too high expires, although the calls that would correct it are refused.
const VALID_FOR: Duration = Duration::from_mins(1);

impl Backlog {
    /// A backlog without a limit, which the workers of this pool process.
    pub(super) fn new(pool: &ComputePool) -> Arc<Self> {
        Self::with_sizes(pool.workers(), device::RUN_NODES, device::BLOCK_NODES)
    }

    fn with_sizes(workers: usize, run_nodes: usize, block_nodes: usize) -> Arc<Self> {
        let state = BacklogState {
            limit: usize::MAX,
            ..BacklogState::default()
        };
        Arc::new(Self {
            workers,
            run_nodes,
            block_nodes,
            state: Mutex::new(state),
        })
    }

    /// Limits the amount of queued work, in nodes.
    pub(super) fn set_limit(&self, nodes: usize) {
        self.state().limit = nodes;
    }

    /// Queues the work of a call. The work is refused if it is unlikely to be done by the deadline, or if the queue is
    /// full. An empty queue accepts any amount of work.
    pub(super) fn add(
        self: &Arc<Self>,
        model: Digest,
        graph: Digest,
        nodes: usize,
        terms: Terms,
    ) -> Result<BacklogWork, EngineError> {
        let mut state = self.state();
        let own = QueuedWork {
            model,
            graph,
            nodes,
        };
        // Calls of a model that was not measured are accepted.
        if let Some(deadline) = terms.deadline
            && let Some(seconds) = self.until_done(&state, own)
        {
            let estimate = duration(seconds / scalar(self.workers));
            let left = deadline.saturating_duration_since(Instant::now());
            if estimate > left {
                return Err(EngineError::DeadlineTooShort { estimate, left });
            }
        }
        // A call whose rows are all cached adds no work, so a full queue does not refuse it.
        if !terms.continues_request && nodes > 0 && !state.has_room(nodes) {
            return Err(self.queue_full(&state, Some(nodes)));
        }
        let call = state.next;
        state.next += 1;
        state.calls.insert(call, own);
        Ok(BacklogWork {
            backlog: Arc::clone(self),
            call,
            model,
        })
    }

    /// Refuses a call whose amount of work is not known yet if the queue is full.
    pub(super) fn check_room(&self, terms: Terms) -> Result<(), EngineError> {
        let state = self.state();
        if terms.continues_request || state.has_room(1) {
            Ok(())
        } else {
            Err(self.queue_full(&state, None))
        }
    }

    fn queue_full(&self, state: &BacklogState, nodes: Option<usize>) -> EngineError {
        let queued = state.nodes();
        let limit = state.limit;
        // What has to be evaluated first: all of it at most, because an empty queue accepts any
        // amount.
        let excess = queued
            .saturating_add(nodes.unwrap_or(1))
            .saturating_sub(limit)
            .min(queued);
        // All queued nodes count as equally fast, whatever their models.
        let seconds = self.seconds(state) * scalar(excess) / scalar(queued * self.workers);
        EngineError::QueueFull {
            nodes,
            queued,
            limit,
            room_in: duration(seconds),
        }
    }

    /// Records a run of a model over `nodes` nodes, padding included.
    pub(super) fn ran(&self, model: Digest, nodes: usize, took: Duration) {
        let now = Instant::now();
        let unknown = Speed {
            nodes: 0.0,
            seconds: 0.0,
            runs: 0,
            last: now,
        };
        let mut state = self.state();
        let speed = state.speeds.entry(model).or_insert(unknown);
        if !speed.is_valid(now) {
            *speed = unknown;
        }
        // Both sums fade alike, so their quotient is a mean over nodes rather than over runs: a
        // small run counts as little as it took.
        speed.nodes = speed.nodes * EARLIER_WEIGHT + scalar(nodes + self.run_nodes);
        speed.seconds = speed.seconds * EARLIER_WEIGHT + took.as_secs_f64();
        speed.runs = speed.runs.saturating_add(1);
        speed.last = now;
    }

    /// Drops the speed of a model.
    pub(super) fn forget(&self, model: Digest) {
        self.state().speeds.remove(&model);
    }

    /// Returns the amount of queued work and its limit, in nodes.
    pub(super) fn nodes(&self) -> (usize, usize) {
        let state = self.state();
        (state.nodes(), state.limit)
    }

    /// Estimates how long half of the queued work takes; zero if that is not known.
    pub(super) fn half_done_in(&self) -> Duration {
        duration(self.seconds(&self.state()) / scalar(2 * self.workers))
    }

    /// Time of one worker for all work whose model was measured.
    fn seconds(&self, state: &BacklogState) -> f64 {
        state
            .calls
            .values()
            .filter_map(|queued_call| self.seconds_of(state, *queued_call))
            .sum()
    }

    /// Time of one worker for a call, in full blocks; `None` if the model was not measured.
    fn seconds_of(&self, state: &BacklogState, queued_call: QueuedWork) -> Option<f64> {
        let speed = state.speeds.get(&queued_call.model)?;
        let is_known = speed.runs >= MIN_RUNS && speed.is_valid(Instant::now());
        let runs = scalar(queued_call.nodes) / scalar(self.block_nodes);
        let nodes = scalar(queued_call.nodes) + runs * scalar(self.run_nodes);
        is_known.then(|| nodes * speed.seconds / speed.nodes)
    }

    /// Time of one worker until a call is done. Calls take turns: one with less work is done before this one, and one with
    /// more work gets as much time as this one meanwhile. Calls about one graph mostly need the same rows, which are
    /// evaluated once, so only the largest of them counts.
    fn until_done(&self, state: &BacklogState, call: QueuedWork) -> Option<f64> {
        let own = self.seconds_of(state, call)?;
        let mut others: HashMap<Digest, f64> = HashMap::new();
        let of_other_graphs = state
            .calls
            .values()
            .filter(|other| other.graph != call.graph);
        for other in of_other_graphs {
            let most = others.entry(other.graph).or_default();
            *most = most.max(self.seconds_of(state, *other).unwrap_or_default().min(own));
        }
        Some(own + others.values().sum::<f64>())
    }

    fn state(&self) -> MutexGuard<'_, BacklogState> {
        self.state.lock()
    }
}

impl BacklogState {
    fn nodes(&self) -> usize {
        self.calls
            .values()
            .map(|queued_call| queued_call.nodes)
            .fold(0, usize::saturating_add)
    }

    /// Returns whether `nodes` more may be queued. An empty queue accepts any amount.
    fn has_room(&self, nodes: usize) -> bool {
        let queued = self.nodes();
        queued == 0 || queued.saturating_add(nodes) <= self.limit
    }
}

impl Speed {
    fn is_valid(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) < VALID_FOR
    }
}

impl BacklogWork {
    /// Takes work that is done out of the queue.
    pub(super) fn done(&self, nodes: usize) {
        if let Some(queued_call) = self.backlog.state().calls.get_mut(&self.call) {
            queued_call.nodes = queued_call.nodes.saturating_sub(nodes);
        }
    }

    /// Takes work out of the queue that a run of its own did.
    pub(super) fn ran(&self, nodes: usize, took: Duration) {
        self.backlog.ran(self.model, nodes, took);
        self.done(nodes);
    }
}

impl Drop for BacklogWork {
    fn drop(&mut self) {
        self.backlog.state().calls.remove(&self.call);
    }
}

/// Converts an estimate. Too many seconds for a duration are the longest one.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: Digest = Digest([1; 32]);
    const OTHER: Digest = Digest([2; 32]);
    const GRAPH: Digest = Digest([3; 32]);

    /// A backlog of a device whose runs have no fixed cost.
    fn unmeasured() -> Arc<Backlog> {
        Backlog::with_sizes(2, 0, device::BLOCK_NODES)
    }

    /// A backlog of two workers, each of which takes a millisecond for a thousand nodes.
    fn measured() -> Arc<Backlog> {
        let backlog = unmeasured();
        for _ in 0..MIN_RUNS {
            backlog.ran(MODEL, 1000, Duration::from_millis(1));
        }
        backlog
    }

    /// Those of a call that has to end in this time.
    fn within(time: Duration) -> Terms {
        Terms {
            deadline: Some(Instant::now() + time),
            ..Terms::default()
        }
    }

    fn now() -> Terms {
        within(Duration::ZERO)
    }

    /// Returns the estimated time for `nodes` nodes.
    fn estimate(backlog: &Arc<Backlog>, nodes: usize) -> Duration {
        match backlog.add(MODEL, GRAPH, nodes, now()) {
            Err(EngineError::DeadlineTooShort { estimate, .. }) => estimate,
            _ => panic!("not refused"),
        }
    }

    fn assert_near(one: Duration, other: Duration) {
        assert!(
            one.abs_diff(other) < Duration::from_micros(1),
            "{one:?}, {other:?}"
        );
    }

    #[test]
    fn nothing_is_estimated_before_it_was_measured() {
        let backlog = unmeasured();
        for _ in 1..MIN_RUNS {
            backlog.ran(MODEL, 1000, Duration::from_secs(1));
        }
        assert!(backlog.add(MODEL, GRAPH, usize::MAX, now()).is_ok());
        assert!(measured().add(OTHER, GRAPH, usize::MAX, now()).is_ok());
    }

    #[test]
    fn small_runs_tell_the_time_of_large_ones() {
        let [small, large] = [(10, 110), (1000, 1100)].map(|(nodes, micros)| {
            let backlog = Backlog::with_sizes(1, 100, 1000);
            (0..MIN_RUNS).for_each(|_| backlog.ran(MODEL, nodes, Duration::from_micros(micros)));
            estimate(&backlog, 1_000_000)
        });
        assert_near(small, large);
        assert_near(large, Duration::from_millis(1100));
    }

    #[test]
    fn workers_share_the_work() {
        assert_near(estimate(&measured(), 8_000), Duration::from_millis(4));
    }

    #[test]
    fn calls_take_turns() {
        let backlog = measured();
        let [large, small] = [(4, 1_000_000), (5, 1_000)].map(|(graph, nodes)| {
            let waiting = backlog.add(MODEL, Digest([graph; 32]), nodes, Terms::default());
            waiting.unwrap()
        });
        assert_near(estimate(&backlog, 10_000), Duration::from_micros(10_500));
        large.done(998_000);
        assert_near(estimate(&backlog, 10_000), Duration::from_micros(6_500));
        drop((large, small));
        assert_near(estimate(&backlog, 10_000), Duration::from_millis(5));
    }

    #[test]
    fn calls_about_one_graph_share() {
        let backlog = measured();
        let same: Vec<_> = (0..50)
            .map(|_| backlog.add(MODEL, GRAPH, 10_000, Terms::default()).unwrap())
            .collect();
        assert_near(estimate(&backlog, 10_000), Duration::from_millis(5));
        let others =
            [4_000, 6_000].map(|nodes| backlog.add(MODEL, OTHER, nodes, Terms::default()).unwrap());
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
        let soon = within(Duration::from_secs(10));
        assert!(backlog.add(MODEL, GRAPH, 10_000_000, soon).is_ok());
        assert!(backlog.add(MODEL, GRAPH, 1_000_000, now()).is_err());
        assert!(
            backlog.add(MODEL, GRAPH, 0, now()).is_ok(),
            "nothing to evaluate takes no time"
        );
    }

    #[test]
    fn a_full_queue_refuses_and_says_when_there_is_room() {
        let backlog = measured();
        backlog.set_limit(100_000);
        let add = |nodes| backlog.add(MODEL, GRAPH, nodes, Terms::default());
        let alone = add(1_000_000).expect("nothing waits");
        let Err(EngineError::QueueFull {
            nodes,
            queued,
            limit,
            room_in,
        }) = add(1_000)
        else {
            panic!("not refused");
        };
        assert_eq!((nodes, queued, limit), (Some(1_000), 1_000_000, 100_000));
        assert_near(room_in, Duration::from_micros(450_500));
        assert!(add(0).is_ok(), "what needs nothing evaluated is taken");
        assert!(matches!(
            backlog.check_room(Terms::default()),
            Err(EngineError::QueueFull { nodes: None, .. })
        ));
        let rest = Terms {
            continues_request: true,
            ..Terms::default()
        };
        assert!(
            backlog.add(MODEL, GRAPH, 1_000, rest).is_ok(),
            "so is the rest of what was taken"
        );
        alone.done(901_000);
        let fits = add(1_000).expect("there is room");
        assert_eq!(backlog.nodes(), (100_000, 100_000));
        assert_near(backlog.half_done_in(), Duration::from_millis(25));
        assert!(add(1).is_err() && backlog.check_room(Terms::default()).is_err());
        drop((alone, fits));
        assert_eq!(backlog.nodes().0, 0);
    }
}
