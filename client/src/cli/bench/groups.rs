//! The calls of a load that are drawn, in groups.

use std::{num::NonZeroU32, path::Path, slice, sync::Arc};

use fastrand::Rng;
use hlorank_client::{GraphHandle, RankCall, RankRequest};
use hlorank_graph::{ConfigurationError, Configurations, MeasuredGraph};

use super::{arguments::Bench, draw::Source, options::Share};
use crate::cli::{error::CommandError, progress::Progress};

/// Calls about one graph with one number of configurations.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) calls: Vec<Arc<RankCall>>,
    weight: f64,
}

/// Makes the calls about one graph.
struct CallMaker<'a> {
    bench: &'a Bench,
    path: &'a Path,
    graph: Arc<GraphHandle>,
    source: Source<'a>,
}

/// The configurations of a call if neither the file nor the arguments determine their number.
const DRAWN: Share = Share {
    configs: 100,
    weight: 1.0,
};

/// Returns the group at a position from 0 to 1 in the cumulative weights.
pub(super) fn pick(groups: &[Group], place: f64) -> &Group {
    let mut left = place * groups.iter().map(|group| group.weight).sum::<f64>();
    // The last group takes all that is left, because rounding may leave a little more than its
    // weight.
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
        let stream = |call: &Arc<RankCall>| RankCall::clone(call).in_batches(Some(batch));
        let streams = Self {
            calls: self.calls.iter().map(stream).map(Arc::new).collect(),
            weight: self.weight * part,
        };
        let unary = Self {
            weight: self.weight * (1.0 - part),
            ..self
        };
        // `pick` falls back to the last group, so that group must have a weight.
        let groups = [unary, streams].into_iter();
        groups.filter(|group| group.weight > 0.0)
    }
}

/// Reads the files and draws the calls. The graphs of a file share its weight.
pub(super) fn groups(bench: &Bench) -> Result<Vec<Group>, CommandError> {
    let weights = weights(bench)?;
    let mut groups = Vec::new();
    // One generator draws for all files, so graphs that occur twice get different calls.
    let mut random = Rng::with_seed(bench.seed);
    let progress = Progress::over(bench.files.len());
    for (path, weight) in bench.files.iter().zip(weights) {
        let graphs = bench.selection.read(path, &progress)?.graphs;
        #[expect(clippy::cast_precision_loss, reason = "files hold few graphs")]
        let weight = weight / graphs.len() as f64;
        for graph in &graphs {
            let maker = CallMaker::of(bench, path, &graph.measured)?;
            groups.extend(maker.groups(weight, &mut random)?);
            progress.advance();
        }
    }
    Ok(groups)
}

/// Returns the weight of every file.
fn weights(bench: &Bench) -> Result<Vec<f64>, CommandError> {
    let files = bench.files.len();
    match bench.weights.len() {
        0 => Ok(vec![1.0; files]),
        weights if weights == files => Ok(bench.weights.clone()),
        weights => Err(CommandError::Weights { files, weights }),
    }
}

impl<'a> CallMaker<'a> {
    fn of(
        bench: &'a Bench,
        path: &'a Path,
        graph: &'a MeasuredGraph,
    ) -> Result<Self, CommandError> {
        let source = Source::of(graph).ok_or_else(|| CommandError::NothingToDraw {
            path: path.display().to_string(),
        })?;
        Ok(Self {
            bench,
            path,
            graph: Arc::new(GraphHandle::of(graph)),
            source,
        })
    }

    /// Draws unary calls and streams with each number of configurations. They share a weight.
    fn groups(&self, weight: f64, random: &mut Rng) -> Result<Vec<Group>, CommandError> {
        let groups = self.unary_groups(weight, random);
        let groups = groups.map_err(|source| CommandError::configuration(self.path, source))?;
        let split = |group: Group| group.split_streams(self.bench.streams, self.bench.batch);
        Ok(groups.into_iter().flat_map(split).collect())
    }

    /// Draws a group of calls for each number of configurations.
    fn unary_groups(
        &self,
        weight: f64,
        random: &mut Rng,
    ) -> Result<Vec<Group>, ConfigurationError> {
        let shares = match (self.source, self.bench.configs.as_slice()) {
            // Every call would have all configurations of the file, so one call is enough.
            (Source::Own(own), []) => {
                let calls = vec![self.call(own)];
                return Ok(vec![Group { calls, weight }]);
            }
            (Source::AnyLayout(_), []) => slice::from_ref(&DRAWN),
            (_, shares) => shares,
        };
        let group = |share: &Share| {
            Ok(Group {
                calls: self.draw(share.configs, random)?,
                weight: weight * share.weight,
            })
        };
        shares.iter().map(group).collect()
    }

    /// Draws the different calls with this number of configurations. They are encoded before the
    /// load begins, because a call that is encoded when it is due begins late.
    fn draw(
        &self,
        configs: usize,
        random: &mut Rng,
    ) -> Result<Vec<Arc<RankCall>>, ConfigurationError> {
        let draw = |_| Ok(self.call(&self.source.draw(configs, random)?));
        (0..self.bench.distinct).map(draw).collect()
    }

    fn call(&self, configurations: &Configurations) -> Arc<RankCall> {
        let request = RankRequest::new(&self.graph, configurations)
            .model(self.bench.model.model.clone())
            .top(self.bench.top);
        Arc::new(RankCall::new(Arc::clone(&self.graph), request))
    }
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
