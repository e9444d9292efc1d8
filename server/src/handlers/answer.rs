//! Writes results into the messages of an answer.

use std::time::{Duration, Instant};

use hlorank_graph::SegmentedGraph;
use hlorank_proto::v1::{
    self, ConfigurableNode, GraphSummary, ModelSelector, ReuseCounts, StageTimings,
};

use crate::{
    graphs::{FoundGraph, Warning},
    model::{Model, ScoreUnit},
    outcome::{KernelTime, Reuse, Timings},
    session::{Assessment, Query, Scored},
};

pub(super) fn selector(model: &Model) -> ModelSelector {
    ModelSelector {
        name: model.manifest().name.clone(),
        version: model.manifest().version,
        ..ModelSelector::default()
    }
}

/// Writes a count.
pub(super) fn count(count: usize) -> u32 {
    // Limits keep all counts far below the maximum.
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The unit of scores. Those that are adapted to measurements are logarithms of seconds, whatever the
/// model's are.
pub(super) fn unit_of(query: &Query) -> v1::ScoreUnit {
    if query.is_adapted() {
        v1::ScoreUnit::LogSeconds
    } else {
        query.unit().into()
    }
}

impl From<ScoreUnit> for v1::ScoreUnit {
    fn from(unit: ScoreUnit) -> Self {
        match unit {
            ScoreUnit::None => Self::Unspecified,
            ScoreUnit::Seconds => Self::Seconds,
        }
    }
}

/// Writes the kernels of a configuration.
pub(super) fn config_kernels(kernels: Vec<KernelTime>) -> v1::ConfigKernels {
    let kernel = |kernel: KernelTime| v1::KernelTime {
        node: kernel.node,
        computed_nodes: count(kernel.computed_nodes),
        seconds: kernel.seconds,
    };
    v1::ConfigKernels {
        kernels: kernels.into_iter().map(kernel).collect(),
    }
}

/// Writes what was unusual about a graph, about what predictions rest on, and about what was scored.
pub(super) fn warnings(
    of_graph: &[Warning],
    query: &Query,
    scored: Option<(&Scored, &Assessment)>,
) -> Vec<v1::Warning> {
    let (scored, assessment) = scored.unzip();
    let unsure = assessment.and_then(|assessment| assessment.warning.clone());
    let all = of_graph
        .iter()
        .cloned()
        .chain(query.warnings())
        .chain(unsure);
    let all = all.chain(scored.and_then(Scored::warning));
    all.map(v1::Warning::from).collect()
}

/// Returns the time of each stage of a call with one batch, until now.
pub(super) fn timings(found: &FoundGraph, scored: &Scored, started: Instant) -> Timings {
    Timings {
        featurize: found.featurize,
        total: started.elapsed(),
        ..scored.timings()
    }
}

/// Writes the time of each stage.
pub(super) fn stage_timings(timings: Timings) -> StageTimings {
    StageTimings {
        queue: to_proto(timings.queue),
        featurize: to_proto(timings.featurize),
        parse: to_proto(timings.parse),
        encode: to_proto(timings.encode),
        head: to_proto(timings.head),
        rank: to_proto(timings.rank),
        total: to_proto(timings.total),
    }
}

fn to_proto(duration: Duration) -> Option<prost_types::Duration> {
    prost_types::Duration::try_from(duration).ok()
}

pub(super) fn reuse_counts(reuse: Reuse) -> ReuseCounts {
    ReuseCounts {
        configs: reuse.configs as u64,
        distinct_configs: reuse.distinct_configs as u64,
        segment_rows: reuse.segment_rows as u64,
        distinct_segment_rows: reuse.distinct_segment_rows as u64,
        rows_evaluated: reuse.rows_evaluated as u64,
        rows_cached: reuse.rows_cached() as u64,
    }
}

pub(super) fn summary(graph: &SegmentedGraph) -> GraphSummary {
    let summary = graph.summary;
    GraphSummary {
        nodes: count(summary.nodes),
        edges: count(summary.edges),
        configurable_nodes: count(summary.configurable),
        kept_nodes: count(summary.kept),
        segments: count(summary.segments),
        distinct_segments: count(summary.distinct_segments),
        largest_segment: count(summary.largest_segment),
    }
}

pub(super) fn configurable_node(node: &hlorank_graph::NodeDescription) -> ConfigurableNode {
    ConfigurableNode {
        node: node.node,
        name: node.name.clone(),
        opcode: node.opcode.clone(),
        dimensions: node.dimensions.clone(),
        tensor_ranks: node.tensor_ranks.clone(),
    }
}

impl From<Warning> for v1::Warning {
    fn from(warning: Warning) -> Self {
        Self {
            reason: warning.reason.to_owned(),
            message: warning.message,
        }
    }
}
