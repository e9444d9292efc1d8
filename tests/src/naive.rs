//! The naive evaluation, which scores every configuration by itself and shares nothing. It is the reference for the
//! engine.

use hlorank_graph::{
    ConfigInput, ConfigValues, Configurations, Element, FEATURES, FusionBatch, Graph, KernelLimits,
    Kind, Occurrence, Scope, Segment, SegmentedGraph, Task,
};
use hlorank_server::{
    compute::Worker,
    model::{EncoderInput, SegmentModel},
};

/// Marks a node that is not configurable.
const NOT_CONFIGURABLE: f32 = -2.0;

/// Rows of one padded size, equal ones included.
struct Rows<'a> {
    nodes: usize,
    segments: Vec<&'a Segment>,
    configs: Vec<Vec<f32>>,
    kind: &'a Kind,
}

/// Scores a batch as the papers do: encodes every segment of every configuration, in blocks of at most `block_nodes`
/// nodes but at least one row, and sums the embeddings of a configuration in double precision.
///
/// # Panics
/// If the model fails.
pub fn score_naively(
    model: &SegmentModel,
    worker: Worker,
    graph: &SegmentedGraph,
    configurations: &Configurations,
    block_nodes: usize,
) -> Vec<f32> {
    if let Configurations::Fusion(batch) = configurations {
        return score_fusions_naively(model, worker, &graph.whole, batch);
    }
    let size = model.settings.embedding_size;
    let mut sums = vec![0.0_f64; configurations.len() * size];
    for occurrence in &graph.occurrences {
        let segment = &graph.segments[occurrence.segment];
        let nodes = model.settings.bucket(segment.len());
        let rows = (block_nodes / nodes).max(1);
        for (block, sums) in sums.chunks_mut(rows * size).enumerate() {
            let configs = block * rows..block * rows + sums.len() / size;
            let segments = vec![segment; configs.len()];
            let configs =
                configs.map(|config| local(configurations, config, segment, occurrence, nodes));
            let embeddings = Rows {
                nodes,
                segments,
                configs: configs.collect(),
                kind: graph.task.kind(),
            }
            .encode(model, worker);
            sums.iter_mut()
                .zip(embeddings)
                .for_each(|(sum, value)| *sum += f64::from(value));
        }
    }
    score_sums(model, worker, &sums)
}

/// Scores fusions by evaluating every kernel of every configuration by itself. A configuration whose kernels are too large
/// gets an infinite score.
fn score_fusions_naively(
    model: &SegmentModel,
    worker: Worker,
    graph: &Graph,
    batch: &FusionBatch,
) -> Vec<f32> {
    let (program, size) = (
        graph.program().expect("a program before fusion"),
        model.settings.embedding_size,
    );
    let mut sums = vec![0.0_f64; batch.len() * size];
    let mut is_scored = vec![true; batch.len()];
    for (config, sums) in sums.chunks_exact_mut(size).enumerate() {
        let Ok(kernels) = program.kernels(batch.row(config), &KernelLimits::default()) else {
            is_scored[config] = false;
            continue;
        };
        for kernel in kernels {
            let segment = kernel.segment(graph);
            let (nodes, segments) = (model.settings.bucket(segment.len()), vec![&segment]);
            let rows = Rows {
                nodes,
                segments,
                configs: vec![Vec::new()],
                kind: Task::Fusion.kind(),
            };
            let embedding = rows.encode(model, worker);
            sums.iter_mut()
                .zip(embedding)
                .for_each(|(sum, value)| *sum += f64::from(value));
        }
    }
    let scores = score_sums(model, worker, &sums).into_iter().zip(is_scored);
    scores
        .map(|(score, is_scored)| if is_scored { score } else { f32::INFINITY })
        .collect()
}

/// Runs the head on `[configs, D]` sums.
fn score_sums(model: &SegmentModel, worker: Worker, sums: &[f64]) -> Vec<f32> {
    let size = model.settings.embedding_size;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the head takes single precision"
    )]
    let mut single: Vec<f32> = sums.iter().map(|&sum| sum as f32).collect();
    // A single row rounds differently from the same row among others.
    single.extend_from_within(..size);
    let mut scores = model
        .score(worker, &single, &model.interrupt().expect("an interrupt"))
        .expect("the head runs");
    scores.truncate(sums.len() / size);
    scores
}

/// The values that the encoder gets for one configuration of one occurrence.
fn local(
    configurations: &Configurations,
    config: usize,
    segment: &Segment,
    occurrence: &Occurrence,
    nodes: usize,
) -> Vec<f32> {
    let (kind, row) = (
        configurations.task().kind(),
        configurations.batch().feature_row(config),
    );
    match kind.scope {
        Scope::Kernel | Scope::Program | Scope::EveryNode => row,
        Scope::Nodes => {
            let mut values = vec![NOT_CONFIGURABLE; nodes * kind.width];
            for (&node, &slot) in segment.configurable.iter().zip(&occurrence.slots) {
                let place = usize::from(node) * kind.width;
                values[place..place + kind.width]
                    .copy_from_slice(&row[slot * kind.width..][..kind.width]);
            }
            values
        }
    }
}

impl Rows<'_> {
    /// Encodes the rows as `[rows, D]`. Each row has its own copy of its segment.
    fn encode(mut self, model: &SegmentModel, worker: Worker) -> Vec<f32> {
        let rows = self.segments.len();
        self.segments.push(self.segments[0]);
        let (nodes, count) = (self.nodes, self.segments.len());
        let mut input = EncoderInput {
            rows: count,
            segments: count,
            nodes,
            opcode: vec![0; count * nodes],
            features: vec![0.0; count * nodes * FEATURES],
            operands: vec![0.0; count * nodes * nodes],
            mask: vec![0.0; count * nodes],
            segment: (0..).take(count).collect(),
            config: joined(&self.configs, self.kind),
        };
        for (row, segment) in self.segments.iter().enumerate() {
            for (node, &opcode) in segment.opcodes.iter().enumerate() {
                input.opcode[row * nodes + node] = opcode.into();
                input.mask[row * nodes + node] = 1.0;
            }
            let features =
                &mut input.features[row * nodes * FEATURES..][..segment.len() * FEATURES];
            segment.write_features(model.facts.pad, features);
            for &[consumer, producer] in &segment.edges {
                let place = (row * nodes + usize::from(consumer)) * nodes + usize::from(producer);
                input.operands[place] = 1.0;
            }
        }
        let mut embeddings = model
            .encode(worker, &input, &model.interrupt().expect("an interrupt"))
            .expect("the encoder runs");
        embeddings.truncate(rows * model.settings.embedding_size);
        embeddings
    }
}

/// Returns the configurations of all rows and the first one again, because a single row rounds differently.
fn joined(configs: &[Vec<f32>], kind: &Kind) -> Option<ConfigInput> {
    let rows = configs.len() + 1;
    let values: Vec<f32> = configs
        .iter()
        .chain(&configs[..1])
        .flatten()
        .copied()
        .collect();
    let shape = match kind.scope {
        Scope::Kernel => vec![rows, kind.width],
        Scope::Nodes => vec![rows, values.len() / rows / kind.width, kind.width],
        Scope::Program | Scope::EveryNode => return None,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole numbers that were stored as f32"
    )]
    let values = match kind.element {
        Element::Float32 => ConfigValues::Float32(values),
        Element::Int64 => {
            ConfigValues::Int64(values.into_iter().map(|value| value as i64).collect())
        }
    };
    Some(ConfigInput { shape, values })
}
