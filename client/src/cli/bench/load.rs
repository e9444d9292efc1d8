//! Which calls are due, and when.

use std::{num::NonZeroU32, path::Path, sync::Arc, time::Duration};

use fastrand::Rng;
use hlorank_client::{GraphHandle, RankCall, RankRequest, trace};
use hlorank_graph::MeasuredGraph;

use super::{Bench, arrivals::Arrivals, draw::Candidates, options::Share};
use crate::cli::{error::CommandError, progress::Progress};

/// Calls, and when each is due.
#[derive(Debug)]
pub(super) struct Load {
    calls: Calls,
    timing: Timing,
    seed: u64,
    /// How long calls are sent.
    pub(super) length: Duration,
}

/// What is sent.
#[derive(Debug)]
enum Calls {
    /// Some group, by weight, and any of its calls.
    Drawn(Vec<Group>),
    /// In their order, and again from the first.
    InTurn(Vec<Arc<RankCall>>),
}

/// Calls of one graph and number of configurations.
#[derive(Debug)]
struct Group {
    calls: Vec<Arc<RankCall>>,
    weight: f64,
}

/// When calls are due.
#[derive(Debug)]
pub(super) enum Timing {
    /// At random times, so many a second.
    Poisson(f64),
    /// At these, ascending.
    Recorded(Vec<Duration>),
}

/// A call that is due.
#[derive(Clone, Debug)]
pub(super) struct Due {
    /// Since the start.
    pub(super) at: Duration,
    pub(super) call: Arc<RankCall>,
}

const RATE: f64 = 100.0;
const LENGTH: Duration = Duration::from_secs(30);

/// Configurations of a call where neither the file nor the arguments tell.
const DRAWN: usize = 100;

/// Keeps the draws of calls apart from those of times, which have the seed itself.
const CALLS_SEED: u64 = 1 << 63;

impl Load {
    /// What the arguments ask for.
    pub(super) fn of(bench: &Bench) -> Result<Self, CommandError> {
        let Some(path) = &bench.trace else {
            let timing = Timing::Poisson(bench.rate.unwrap_or(RATE));
            let calls = Calls::Drawn(groups(bench)?);
            return Ok(Self { calls, timing, seed: bench.seed, length: bench.duration.unwrap_or(LENGTH) });
        };
        let trace = trace::read(path)?;
        let last = trace.last().ok_or_else(|| CommandError::NoCalls { path: path.display().to_string() })?;
        let whole = last.at.div_f64(bench.speed);
        let (timing, length) = match bench.rate {
            Some(rate) => (Timing::Poisson(rate), LENGTH),
            None => {
                (Timing::Recorded(trace.iter().map(|call| call.at.div_f64(bench.speed)).collect()), whole)
            }
        };
        let calls = Calls::InTurn(trace.into_iter().map(|call| Arc::new(call.call)).collect());
        Ok(Self { calls, timing, seed: bench.seed, length: bench.duration.unwrap_or(length) })
    }

    /// Every graph, once.
    pub(super) fn graphs(&self) -> Vec<Arc<GraphHandle>> {
        let calls: Vec<_> = match &self.calls {
            Calls::Drawn(groups) => groups.iter().filter_map(|group| group.calls.first()).collect(),
            Calls::InTurn(calls) => calls.iter().collect(),
        };
        let mut graphs: Vec<Arc<GraphHandle>> = calls.iter().map(|call| Arc::clone(call.graph())).collect();
        graphs.sort_by_key(|graph| Arc::as_ptr(graph).addr());
        graphs.dedup_by(|one, other| Arc::ptr_eq(one, other));
        graphs
    }

    /// Calls a second that were asked for; `None` where a trace tells the times.
    pub(super) fn rate(&self) -> Option<f64> {
        match self.timing {
            Timing::Poisson(rate) => Some(rate),
            Timing::Recorded(_) => None,
        }
    }

    /// The calls, in the order in which they are due. The same load has the same calls at the same times.
    pub(super) fn schedule(self) -> Box<dyn Iterator<Item = Due> + Send> {
        let (length, mut random) = (self.length, Rng::with_seed(self.seed ^ CALLS_SEED));
        let times: Box<dyn Iterator<Item = Duration> + Send> = match self.timing {
            Timing::Poisson(rate) => {
                Box::new(Arrivals::new(rate, self.seed).take_while(move |at| *at < length))
            }
            Timing::Recorded(times) => Box::new(times.into_iter().take_while(move |at| *at <= length)),
        };
        match self.calls {
            Calls::InTurn(calls) => {
                let call = move |(number, at): (usize, Duration)| Due {
                    at,
                    call: Arc::clone(&calls[number % calls.len()]),
                };
                Box::new(times.enumerate().map(call))
            }
            Calls::Drawn(groups) => Box::new(times.map(move |at| {
                let calls = &pick(&groups, random.f64()).calls;
                Due { at, call: Arc::clone(&calls[random.usize(..calls.len())]) }
            })),
        }
    }
}

/// The group at a place from 0 to 1 of all weights.
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
    /// The same calls, of which a part is sent as streams.
    fn streamed(self, part: f64, batch: NonZeroU32) -> impl Iterator<Item = Self> {
        let streams = self.calls.iter().map(|call| RankCall::clone(call).in_batches(Some(batch)));
        let streams = Self { calls: streams.map(Arc::new).collect(), weight: self.weight * part };
        let lone = Self { weight: self.weight * (1.0 - part), ..self };
        [lone, streams].into_iter().filter(|group| group.weight > 0.0)
    }
}

/// Reads the files, and draws the calls. A file's weight is shared by its graphs.
fn groups(bench: &Bench) -> Result<Vec<Group>, CommandError> {
    let (files, weights) = (bench.files.len(), bench.weights.len());
    if weights != 0 && weights != files {
        return Err(CommandError::Weights { files, weights });
    }
    let (mut groups, mut random) = (Vec::new(), Rng::with_seed(bench.seed));
    let progress = Progress::over(files);
    for (number, path) in bench.files.iter().enumerate() {
        let graphs = bench.selection.read(path, &progress)?.graphs;
        #[expect(clippy::cast_precision_loss, reason = "files hold few graphs")]
        let weight = bench.weights.get(number).copied().unwrap_or(1.0) / graphs.len() as f64;
        for graph in &graphs {
            let drawn = groups_of(bench, path, &graph.measured, weight, &mut random)?;
            groups.extend(drawn.into_iter().flat_map(|group| group.streamed(bench.streams, bench.batch)));
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
    let name = || path.display().to_string();
    let candidates = Candidates::of(graph).ok_or_else(|| CommandError::NothingToDraw { path: name() })?;
    let handle = Arc::new(GraphHandle::of(graph));
    let call = |configurations: &_| {
        let request =
            RankRequest::new(&handle, configurations).model(bench.model.model.clone()).top(bench.top);
        Arc::new(RankCall::new(Arc::clone(&handle), request))
    };
    let shares = match candidates {
        Candidates::Own(own) if bench.configs.is_empty() => {
            return Ok(vec![Group { calls: vec![call(own)], weight }]);
        }
        Candidates::Any(_) if bench.configs.is_empty() => &[Share { configs: DRAWN, weight: 1.0 }][..],
        _ => &bench.configs,
    };
    let mut group = |share: &Share| {
        let drawn = (0..bench.distinct).map(|_| Ok(call(&candidates.draw(share.configs, random)?)));
        Ok(Group { calls: drawn.collect::<Result<_, _>>()?, weight: weight * share.weight })
    };
    let drawn = shares.iter().map(&mut group).collect::<Result<_, _>>();
    drawn.map_err(|source| CommandError::Configuration { path: name(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(weight: f64) -> Group {
        Group { calls: Vec::new(), weight }
    }

    #[test]
    fn groups_are_picked_by_weight() {
        let groups = [group(1.0), group(2.0), group(1.0)];
        let places = [0.0, 0.24, 0.26, 0.74, 0.76, 0.999_999];
        let picked =
            places.map(|place| groups.iter().position(|one| std::ptr::eq(one, pick(&groups, place))));
        assert_eq!(picked, [0, 0, 1, 1, 2, 2].map(Some));
    }
}
