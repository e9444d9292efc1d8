//! The calls of a load, and the times at which they are due.

use std::{num::NonZeroU32, path::Path, sync::Arc, time::Duration};

use fastrand::Rng;
use hlorank_client::{GraphHandle, RankCall, RankRequest, trace};
use hlorank_graph::{ConfigurationError, MeasuredGraph};

use super::{arguments::Bench, arrivals::Arrivals, draw::Source, options::Share};
use crate::cli::{error::CommandError, progress::Progress};

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

/// Calls about one graph with one number of configurations.
#[derive(Debug)]
struct Group {
    calls: Vec<Arc<RankCall>>,
    weight: f64,
}

/// The times at which calls are due.
#[derive(Debug)]
pub(super) enum Timing {
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

/// Number of configurations per call if neither the file nor the arguments determine it.
const DRAWN: usize = 100;

/// Makes the seed of the calls differ from that of the times, which is the seed itself.
const CALLS_SEED: u64 = 1 << 63;

impl Load {
    /// Returns the load of the arguments.
    pub(super) fn of(bench: &Bench) -> Result<Self, CommandError> {
        let (calls, timing, length) = if let Some(path) = &bench.trace {
            recorded(bench, path)?
        } else {
            let timing = Timing::Poisson(bench.rate.unwrap_or(RATE));
            (Calls::Drawn(groups(bench)?), timing, LENGTH)
        };
        Ok(Self {
            calls,
            timing,
            seed: bench.seed,
            length: bench.duration.unwrap_or(length),
        })
    }

    /// Returns every distinct graph of the load.
    pub(super) fn graphs(&self) -> Vec<Arc<GraphHandle>> {
        let calls: Vec<_> = match &self.calls {
            Calls::Drawn(groups) => groups
                .iter()
                .filter_map(|group| group.calls.first())
                .collect(),
            Calls::InTurn(calls) => calls.iter().collect(),
        };
        let mut graphs: Vec<Arc<GraphHandle>> =
            calls.iter().map(|call| Arc::clone(call.graph())).collect();
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
    pub(super) fn schedule(self) -> Box<dyn Iterator<Item = ScheduledCall> + Send> {
        let length = self.length;
        let mut random = Rng::with_seed(self.seed ^ CALLS_SEED);
        let times: Box<dyn Iterator<Item = Duration> + Send> = match self.timing {
            Timing::Poisson(rate) => {
                Box::new(Arrivals::new(rate, self.seed).take_while(move |at| *at < length))
            }
            Timing::Recorded(times) => {
                Box::new(times.into_iter().take_while(move |at| *at <= length))
            }
        };
        match self.calls {
            Calls::InTurn(calls) => {
                let call = move |(number, at): (usize, Duration)| ScheduledCall {
                    at,
                    call: Arc::clone(&calls[number % calls.len()]),
                };
                Box::new(times.enumerate().map(call))
            }
            Calls::Drawn(groups) => Box::new(times.map(move |at| {
                let calls = &pick(&groups, random.f64()).calls;
                ScheduledCall {
                    at,
                    call: Arc::clone(&calls[random.usize(..calls.len())]),
                }
            })),
        }
    }
}

/// Returns the group at a position from 0 to 1 in the cumulative weights.
fn pick(groups: &[Group], place: f64) -> &Group {
    let mut left = place * groups.iter().map(|group| group.weight).sum::<f64>();
    let last = groups.len() - 1;
    let found = groups[..last].iter().find(|group| {
        left -= group.weight;
        left < 0.0
    });
    found.unwrap_or(&groups[last])
}

impl Group {
    /// Splits the group into unary calls and the same calls as streams, which are a `part` of all from 0 to 1.
    fn split_streams(self, part: f64, batch: NonZeroU32) -> impl Iterator<Item = Self> {
        let streams = self
            .calls
            .iter()
            .map(|call| RankCall::clone(call).in_batches(Some(batch)));
        let streams = Self {
            calls: streams.map(Arc::new).collect(),
            weight: self.weight * part,
        };
        let unary = Self {
            weight: self.weight * (1.0 - part),
            ..self
        };
        [unary, streams]
            .into_iter()
            .filter(|group| group.weight > 0.0)
    }
}

/// Reads the calls of a trace. Returns their timing and its length, too: its own unless a rate is given.
fn recorded(bench: &Bench, path: &Path) -> Result<(Calls, Timing, Duration), CommandError> {
    let trace = trace::read(path)?;
    let last = trace.last().ok_or_else(|| CommandError::NoCalls {
        path: path.display().to_string(),
    })?;
    let due = |call: &trace::Recorded| call.at.div_f64(bench.speed);
    let (timing, length) = match bench.rate {
        Some(rate) => (Timing::Poisson(rate), LENGTH),
        None => (Timing::Recorded(trace.iter().map(due).collect()), due(last)),
    };
    let calls = trace.into_iter().map(|call| Arc::new(call.call));
    Ok((Calls::InTurn(calls.collect()), timing, length))
}

/// Reads the files and draws the calls. The graphs of a file share its weight.
fn groups(bench: &Bench) -> Result<Vec<Group>, CommandError> {
    let files = bench.files.len();
    let weights = bench.weights.len();
    if weights != 0 && weights != files {
        return Err(CommandError::Weights { files, weights });
    }
    let mut groups = Vec::new();
    let mut random = Rng::with_seed(bench.seed);
    let progress = Progress::over(files);
    for (number, path) in bench.files.iter().enumerate() {
        let graphs = bench.selection.read(path, &progress)?.graphs;
        #[expect(clippy::cast_precision_loss, reason = "files hold few graphs")]
        let weight = bench.weights.get(number).copied().unwrap_or(1.0) / graphs.len() as f64;
        for graph in &graphs {
            let drawn = groups_of(bench, path, &graph.measured, weight, &mut random)?;
            for group in drawn {
                groups.extend(group.split_streams(bench.streams, bench.batch));
            }
            progress.advance();
        }
    }
    Ok(groups)
}

fn groups_of(
    bench: &Bench,
    path: &Path,
    graph: &MeasuredGraph,
    weight: f64,
    random: &mut Rng,
) -> Result<Vec<Group>, CommandError> {
    let path = || path.display().to_string();
    let source = Source::of(graph).ok_or_else(|| CommandError::NothingToDraw { path: path() })?;
    let handle = Arc::new(GraphHandle::of(graph));
    let call = |configurations: &_| {
        let request = RankRequest::new(&handle, configurations)
            .model(bench.model.model.clone())
            .top(bench.top);
        Arc::new(RankCall::new(Arc::clone(&handle), request))
    };
    let default_share = [Share {
        configs: DRAWN,
        weight: 1.0,
    }];
    let shares = match source {
        Source::Own(own) if bench.configs.is_empty() => {
            return Ok(vec![Group {
                calls: vec![call(own)],
                weight,
            }]);
        }
        Source::AnyLayout(_) if bench.configs.is_empty() => &default_share[..],
        _ => &bench.configs,
    };
    let mut group = |share: &Share| {
        let drawn = (0..bench.distinct).map(|_| Ok(call(&source.draw(share.configs, random)?)));
        Ok(Group {
            calls: drawn.collect::<Result<_, ConfigurationError>>()?,
            weight: weight * share.weight,
        })
    };
    let groups: Result<_, ConfigurationError> = shares.iter().map(&mut group).collect();
    groups.map_err(|source| CommandError::Configuration {
        path: path(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(weight: f64) -> Group {
        Group {
            calls: Vec::new(),
            weight,
        }
    }

    #[test]
    fn groups_are_picked_by_weight() {
        let groups = [group(1.0), group(2.0), group(1.0)];
        let places = [0.0, 0.24, 0.26, 0.74, 0.76, 0.999_999];
        let picked = places.map(|place| {
            groups
                .iter()
                .position(|one| std::ptr::eq(one, pick(&groups, place)))
        });
        assert_eq!(picked, [0, 0, 1, 1, 2, 2].map(Some));
    }
}
