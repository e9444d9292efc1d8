//! Rows per second of the repository's encoders on one thread, by padded size and block size. The sizes in manifests
//! and the engine's block size are chosen by these numbers.

use hlorank_graph::{ConfigInput, ConfigValues, Element, Scope};
use hlorank_server::{compute::Worker, model::EncoderInput};
use hlorank_tests::prelude::*;

/// Sizes of a block, in nodes.
const BLOCKS: [usize; 6] = [256, 512, 1024, 2048, 4096, 8192];

const RUNS: usize = 12;

fn main() {
    for task in [Task::Layout, Task::Tile] {
        let model = load_model(task, 1);
        let model = model.segment().expect("a segment model");
        println!("\nthousand rows of {task}s a second on one thread; fastest of {RUNS}");
        print!("{:>15}", "nodes a row");
        for block in BLOCKS {
            print!("{block:>8}");
        }
        println!("  nodes a block");
        for nodes in model.settings.buckets.clone() {
            print!("{nodes:>15}");
            for block in BLOCKS {
                let rows = (block / nodes / 4).max(1) * 4;
                let input = input(task, rows, nodes);
                let interrupt = model.interrupt().expect("an interrupt");
                let encode = || {
                    let embeddings = model.encode(Worker(0), &input, &interrupt);
                    embeddings.expect("the encoder runs");
                };
                encode();
                let fastest = Times::of_runs(RUNS, encode).fastest();
                print!("{:>8.1}", rows as f64 / fastest);
            }
            println!();
        }
    }
}

/// Returns rows as real batches have them: of one segment for tiles, and of one segment per eight rows for layouts.
fn input(task: Task, rows: usize, nodes: usize) -> EncoderInput {
    let rows_a_segment = if task == Task::Tile { rows } else { 8 };
    let segments = rows.div_ceil(rows_a_segment);
    let mut operands = vec![0.0; segments * nodes * nodes];
    for segment in operands.chunks_exact_mut(nodes * nodes) {
        (1..nodes).for_each(|node| segment[node * nodes + node - 1] = 1.0);
    }
    EncoderInput {
        rows,
        segments,
        nodes,
        opcode: (0..)
            .map(|place| place % 100)
            .take(segments * nodes)
            .collect(),
        features: (0..segments * nodes * FEATURES).map(small).collect(),
        operands,
        mask: vec![1.0; segments * nodes],
        segment: (0..rows)
            .map(|row| i64::try_from(row / rows_a_segment).expect("few rows"))
            .collect(),
        config: config_input(task, rows, nodes),
    }
}

fn config_input(task: Task, rows: usize, nodes: usize) -> Option<ConfigInput> {
    let kind = task.kind();
    let shape = match kind.scope {
        Scope::Kernel => vec![rows, kind.width],
        Scope::Nodes => vec![rows, nodes, kind.width],
        Scope::Program | Scope::EveryNode => return None,
    };
    let count = shape.iter().product();
    let values = match kind.element {
        Element::Float32 => ConfigValues::Float32((0..count).map(small).collect()),
        Element::Int64 => {
            ConfigValues::Int64((0..).map(|place| place % 8 - 2).take(count).collect())
        }
    };
    Some(ConfigInput { shape, values })
}

fn small(place: usize) -> f32 {
    f32::from(u8::try_from(place % 7).expect("less than 7"))
}
