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

/// Scores a batch as the papers do: encodes every segment of every configuration, in blocks of at most `block_nodes`
/// nodes but at least one row, and sums the embeddings of a configuration in double precision.
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
            let configs =
                configs.map(|config| local(configurations, config, segment, occurrence, nodes));
            let kind = graph.task.kind();
            add(
                sums,
                &encode(model, worker, segment, configs.collect(), kind),
            );
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
    let program = graph.program().expect("a program before fusion");
    let size = model.settings.embedding_size;
    let mut sums = vec![0.0_f64; batch.len() * size];
    let mut too_large = Vec::new();
    for (config, sums) in sums.chunks_exact_mut(size).enumerate() {
        let Ok(kernels) = program.kernels(batch.row(config), &KernelLimits::default()) else {
            too_large.push(config);
            continue;
        };
        for kernel in kernels {
            let segment = kernel.segment(graph);
            let without_values = vec![Vec::new()];
            let kind = Task::Fusion.kind();
            add(sums, &encode(model, worker, &segment, without_values, kind));
        }
    }
    let mut scores = score_sums(model, worker, &sums);
    for config in too_large {
        scores[config] = f32::INFINITY;
    }
    scores
}

fn add(sums: &mut [f64], embeddings: &[f32]) {
    for (sum, &value) in sums.iter_mut().zip(embeddings) {
        *sum += f64::from(value);
    }
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
    let Kind { scope, width, .. } = *configurations.task().kind();
    let row = configurations.batch().feature_row(config);
    match scope {
        Scope::Kernel | Scope::Program | Scope::EveryNode => row,
        Scope::Nodes => {
            let mut values = vec![NOT_CONFIGURABLE; nodes * width];
            for (&node, &slot) in segment.configurable.iter().zip(&occurrence.slots) {
                let place = usize::from(node) * width;
                values[place..][..width].copy_from_slice(&row[slot * width..][..width]);
            }
            values
        }
    }
}

/// Encodes configurations of a segment as `[configs, D]`. Each row has its own copy of the segment.
fn encode(
    model: &SegmentModel,
    worker: Worker,
    segment: &Segment,
    mut configs: Vec<Vec<f32>>,
    kind: &Kind,
) -> Vec<f32> {
    let size = configs.len() * model.settings.embedding_size;
    // A single row rounds differently from the same row among others.
    configs.push(configs[0].clone());
    let (rows, nodes) = (configs.len(), model.settings.bucket(segment.len()));
    let mut input = EncoderInput {
        rows,
        segments: rows,
        nodes,
        opcode: vec![0; rows * nodes],
        features: vec![0.0; rows * nodes * FEATURES],
        operands: vec![0.0; rows * nodes * nodes],
        mask: vec![0.0; rows * nodes],
        segment: (0..).take(rows).collect(),
        config: config_input(&configs, kind),
    };
    for row in 0..rows {
        for (node, &opcode) in segment.opcodes.iter().enumerate() {
            input.opcode[row * nodes + node] = opcode.into();
            input.mask[row * nodes + node] = 1.0;
        }
        let features = &mut input.features[row * nodes * FEATURES..][..segment.len() * FEATURES];
        segment.write_features(model.facts.pad, features);
        for &[consumer, producer] in &segment.edges {
            let place = (row * nodes + usize::from(consumer)) * nodes + usize::from(producer);
            input.operands[place] = 1.0;
        }
    }
    let mut embeddings = model
        .encode(worker, &input, &model.interrupt().expect("an interrupt"))
        .expect("the encoder runs");
    embeddings.truncate(size);
    embeddings
}

/// Returns the configurations of all rows.
fn config_input(configs: &[Vec<f32>], kind: &Kind) -> Option<ConfigInput> {
    let values = configs.concat();
    let shape = match kind.scope {
        Scope::Kernel => vec![configs.len(), kind.width],
        Scope::Nodes => vec![configs.len(), configs[0].len() / kind.width, kind.width],
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
