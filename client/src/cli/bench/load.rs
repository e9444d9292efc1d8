//! The calls of a load, and the times at which they are due.

use std::{path::Path, sync::Arc, time::Duration};

use fastrand::Rng;
use hlorank_client::{GraphHandle, RankCall, trace};

use super::{
    arguments::Bench,
    arrivals::Arrivals,
    groups::{Group, groups, pick},
};
use crate::cli::error::CommandError;

/// The calls to send, and the times at which they are due.
#[derive(Debug)]
pub(super) struct Load {
    calls: Calls,
    timing: Timing,
    seed: u64,
    /// Duration of the load.
    pub(super) length: Duration,
}

/// The calls to send.
#[derive(Debug)]
enum Calls {
    /// A group is drawn by weight, then any call of the group.
    Drawn(Vec<Group>),
    /// The calls are sent in their order, and then again from the first.
    InTurn(Vec<Arc<RankCall>>),
}

/// The times at which calls are due.
#[derive(Debug)]
enum Timing {
    /// Random times, with this mean number per second.
    Poisson(f64),
    /// These times, ascending.
    Recorded(Vec<Duration>),
}

/// A call and the time at which it is due.
#[derive(Clone, Debug)]
pub(super) struct ScheduledCall {
    /// Time since the start.
    pub(super) at: Duration,
    pub(super) call: Arc<RankCall>,
}

const RATE: f64 = 100.0;
const LENGTH: Duration = Duration::from_secs(30);

// Generators with equal seeds draw equal numbers, so the pause before a call would determine which
// call it is.
/// Makes the seed of the calls differ from that of the times, which is the seed itself.
const CALLS_SEED: u64 = 1 << 63;

impl Load {
    /// Returns the load of the arguments.
    pub(super) fn of(bench: &Bench) -> Result<Self, CommandError> {
        if let Some(path) = &bench.trace {
            return Self::recorded(bench, path);
        }
        let timing = Timing::Poisson(bench.rate.unwrap_or(RATE));
        Ok(Self::new(bench, Calls::Drawn(groups(bench)?), timing))
    }

    /// Reads the calls of a trace. They are due at its times unless a rate is given.
    fn recorded(bench: &Bench, path: &Path) -> Result<Self, CommandError> {
        let trace = trace::read(path)?;
        if trace.is_empty() {
            let path = path.display().to_string();
            return Err(CommandError::NoCalls { path });
        }
        let due = |call: &trace::Recorded| call.at.div_f64(bench.speed);
        let recorded = || Timing::Recorded(trace.iter().map(due).collect());
        let timing = bench.rate.map_or_else(recorded, Timing::Poisson);
        let calls = trace.into_iter().map(|call| Arc::new(call.call));
        Ok(Self::new(bench, Calls::InTurn(calls.collect()), timing))
    }

    fn new(bench: &Bench, calls: Calls, timing: Timing) -> Self {
        Self {
            length: bench.duration.unwrap_or_else(|| timing.length()),
            calls,
            timing,
            seed: bench.seed,
        }
    }

    /// Returns every distinct graph of the load.
    pub(super) fn graphs(&self) -> Vec<Arc<GraphHandle>> {
        let graph = |call: &Arc<RankCall>| Arc::clone(call.graph());
        let mut graphs: Vec<Arc<GraphHandle>> = match &self.calls {
            // A group has at least one call, and all of its calls are about one graph.
            Calls::Drawn(groups) => groups.iter().map(|group| graph(&group.calls[0])).collect(),
            Calls::InTurn(calls) => calls.iter().map(graph).collect(),
        };
        // Calls about one graph share its handle, so the address identifies the graph.
        graphs.sort_by_key(|graph| Arc::as_ptr(graph).addr());
        graphs.dedup_by(|one, other| Arc::ptr_eq(one, other));
        graphs
    }

    /// Returns the requested number of calls per second, or `None` if a trace determines the times.
    pub(super) fn rate(&self) -> Option<f64> {
        match self.timing {
            Timing::Poisson(rate) => Some(rate),
            Timing::Recorded(_) => None,
        }
    }

    /// Returns the calls in the order in which they are due. The same load has the same calls at the same times.
    pub(super) fn schedule(self) -> impl Iterator<Item = ScheduledCall> + Send {
        let mut random = Rng::with_seed(self.seed ^ CALLS_SEED);
        let times = self.timing.times(self.length, self.seed);
        times.enumerate().map(move |(number, at)| ScheduledCall {
            at,
            call: Arc::clone(self.calls.choose(number, &mut random)),
        })
    }
}

impl Timing {
    /// Returns the duration of the load unless an argument sets it.
    fn length(&self) -> Duration {
        match self {
            Self::Poisson(_) => LENGTH,
            Self::Recorded(times) => times.last().copied().unwrap_or_default(),
        }
    }

    /// Returns the times within a duration, ascending.
    fn times(self, length: Duration, seed: u64) -> Box<dyn Iterator<Item = Duration> + Send> {
        match self {
            Self::Poisson(rate) => {
                Box::new(Arrivals::new(rate, seed).take_while(move |at| *at < length))
            }
            // The last call of a trace is due at the very end of the duration of the trace.
            Self::Recorded(times) => {
                Box::new(times.into_iter().take_while(move |at| *at <= length))
            }
        }
    }
}

impl Calls {
    /// Returns the call that is due at this position in the load.
    fn choose(&self, number: usize, random: &mut Rng) -> &Arc<RankCall> {
        match self {
            Self::InTurn(calls) => &calls[number % calls.len()],
            Self::Drawn(groups) => {
                let calls = &pick(groups, random.f64()).calls;
                &calls[random.usize(..calls.len())]
            }
        }
    }
}
