//! How many rows a second the encoders of the repository take on one thread, by padded size and block size: what the
//! sizes in manifests and the engine's block size are chosen by.

use hlorank_graph::{FEATURES, LAYOUT_VALUES, TILE_FEATURES, Task};
use hlorank_server::{
    compute::Worker,
    model::{ConfigInput, EncoderInput},
};
use hlorank_tests::{load_model, times};

/// Nodes of a block.
const BLOCKS: [usize; 6] = [256, 512, 1024, 2048, 4096, 8192];

const RUNS: usize = 12;

fn main() {
    for task in [Task::Layout, Task::Tile] {
        let model = load_model(task, 1);
        println!("\nthousand rows of {task}s a second on one thread; fastest of {RUNS}");
        print!("{:>15}", "nodes a row");
        for block in BLOCKS {
            print!("{block:>8}");
        }
        println!("  nodes a block");
        for nodes in model.manifest().buckets.clone() {
            print!("{nodes:>15}");
            for block in BLOCKS {
                let rows = (block / nodes / 4).max(1) * 4;
                let input = input(task, rows, nodes);
                let encode = || drop(model.encode(Worker(0), &input).expect("the encoder runs"));
                encode();
                let fastest = times(RUNS, encode)[0];
                print!("{:>8.1}", rows as f64 / fastest.as_secs_f64() / 1e3);
            }
            println!();
        }
    }
}

/// Rows of one segment for tiles; of a segment for every eight rows for layouts, as real batches have them.
fn input(task: Task, rows: usize, nodes: usize) -> EncoderInput {
    let rows_a_segment = if task == Task::Tile { rows } else { 8 };
    let segments = rows.div_ceil(rows_a_segment);
    let mut operands = vec![0.0; segments * nodes * nodes];
    for segment in operands.chunks_exact_mut(nodes * nodes) {
        (1..nodes).for_each(|node| segment[node * nodes + node - 1] = 1.0);
    }
    let small = |place: usize| f32::from(u8::try_from(place % 7).expect("less than 7"));
    EncoderInput {
        rows,
        segments,
        nodes,
        opcode: (0..).map(|place| place % 100).take(segments * nodes).collect(),
        features: (0..segments * nodes * FEATURES).map(small).collect(),
        operands,
        mask: vec![1.0; segments * nodes],
        segment: (0..rows).map(|row| i64::try_from(row / rows_a_segment).expect("few rows")).collect(),
        config: match task {
            Task::Layout => ConfigInput::Layout(
                (0..).map(|place| place % 8 - 2).take(rows * nodes * LAYOUT_VALUES).collect(),
            ),
            Task::Tile => ConfigInput::Tile((0..rows * TILE_FEATURES).map(small).collect()),
        },
    }
}
