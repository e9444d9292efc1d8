//! Graphs of a few blocks that repeat, like real networks, and configurations of them.

use hlorank_graph::{
    Configurations, FEATURES, Graph, GraphArrays, LayoutBatch, LayoutBatchBuilder, LayoutEntry,
    Limits, Pad, Task, TileBatch, TileConfiguration,
};

/// Entries that layouts are drawn from: the compiler's choice, and both orders of two dimensions.
const ENTRIES: [[u32; 3]; 5] = [[0, 0, 0], [9, 0, 0], [15, 9, 0], [0, 15, 15], [9, 9, 9]];

/// Nodes of a block.
const BLOCK_NODES: usize = 5;

/// Feature columns: whether a node is a root, and the first of its dimensions.
const ROOT: usize = 0;
const DIMENSION: usize = 21;

/// Returns a module of blocks of five nodes, one or two of them configurable. Equal numbers are equal blocks, and a
/// block 0 is connected to the block before it.
pub fn block_graph(opcodes: &[u8], sizes: &[u16], blocks: &[usize]) -> Graph {
    let (mut features, mut edges, mut configurable) = (vec![], vec![], vec![]);
    for (first, &kind) in (0..).step_by(BLOCK_NODES).zip(blocks) {
        for node in 0..BLOCK_NODES {
            let dimensions = [kind * 3 + node, kind + node].map(|size| sizes[size % sizes.len()]);
            features.push(row(dimensions, node + 1 == BLOCK_NODES));
        }
        edges.extend([[1, 0], [2, 1], [3, 1], [4, 3]].map(|edge| edge.map(|node| first + node)));
        if kind == 0 && first > 0 {
            edges.push([first, first - 4]);
        }
        configurable.extend([1, 3][..=kind % 2].iter().map(|node| first + node));
    }
    let opcode = |(block, node): (&usize, usize)| opcodes[(block + node) % opcodes.len()];
    let opcodes = blocks
        .iter()
        .flat_map(|block| (0..BLOCK_NODES).map(move |node| (block, node)))
        .map(opcode);
    graph(
        Task::Layout,
        opcodes.collect(),
        &features,
        edges,
        configurable,
    )
}

/// Returns a kernel that is a chain of nodes.
pub fn chain_kernel(opcodes: &[u8], sizes: &[u16]) -> Graph {
    let dimensions = |node| [sizes[node % sizes.len()], 1];
    let features: Vec<_> = (0..opcodes.len())
        .map(|node| row(dimensions(node), node + 1 == opcodes.len()))
        .collect();
    let edges = (1..)
        .take(opcodes.len() - 1)
        .map(|node| [node, node - 1])
        .collect();
    graph(Task::Tile, opcodes.to_vec(), &features, edges, vec![])
}

/// Returns a kernel of this number of arbitrary nodes.
pub fn kernel_of(nodes: u8) -> Graph {
    let opcodes: Vec<u8> = (1..=nodes).collect();
    chain_kernel(&opcodes, &[128, 64, 256])
}

/// Returns a kernel whose tiles take long to score, so that even a slow server reads [`MANY_TILES`] in a hundredth of
/// the time that it scores them in.
pub fn slow_kernel() -> Graph {
    kernel_of(200)
}

/// More tiles of [`slow_kernel`] than any server scores within several seconds.
pub const MANY_TILES: i64 = 60_000;

/// Returns this number of distinct tiles.
pub fn grid_tiles(count: i64) -> TileBatch {
    let outputs: Vec<[i64; 2]> = (0..count)
        .map(|tile| [1 + tile % 43, 1 + tile / 43])
        .collect();
    tiles(&outputs)
}

/// Returns this number of distinct tiles, as configurations.
pub fn grid_configurations(count: i64) -> Configurations {
    Configurations::Tile(grid_tiles(count))
}

fn row(dimensions: [u16; 2], root: bool) -> [f32; FEATURES] {
    let mut row = [0.0; FEATURES];
    row[ROOT] = f32::from(u8::from(root));
    row[DIMENSION..][..2].copy_from_slice(&dimensions.map(f32::from));
    row
}

/// Opcodes of parameters and constants, which consume nothing, and of what takes their place at a node that does.
const SOURCES: [u8; 2] = [24, 63];
const TAN: u8 = 120;

fn graph(
    task: Task,
    mut opcodes: Vec<u8>,
    features: &[[f32; FEATURES]],
    edges: Vec<[u32; 2]>,
    configurable: Vec<u32>,
) -> Graph {
    for &[consumer, _] in &edges {
        let opcode = &mut opcodes[consumer as usize];
        if SOURCES.contains(opcode) {
            *opcode = TAN;
        }
    }
    let features = features.as_flattened().to_vec();
    let arrays =
        GraphArrays::from_features(opcodes, features, edges, Pad::Zero, &Limits::default());
    Graph::new(task, arrays.expect("arrays that fit"), configurable).expect("an acyclic graph")
}

/// Returns one layout configuration for each of `choices`, which is repeated over the slots.
pub fn layouts(slots: usize, choices: &[Vec<usize>]) -> LayoutBatch {
    let mut builder = LayoutBatchBuilder::new(slots, Limits::default());
    for choices in choices {
        let entry = |choice: &usize| {
            LayoutEntry::from_numbers(ENTRIES[choice % ENTRIES.len()], String::new)
        };
        let entries = choices
            .iter()
            .cycle()
            .take(slots)
            .map(|choice| entry(choice).expect("numbers in range"));
        builder
            .push(&entries.collect::<Vec<_>>())
            .expect("a batch within the limits");
    }
    builder.build().expect("a batch with a configuration")
}

/// Returns one tile for each output.
pub fn tiles<const N: usize>(outputs: &[[i64; N]]) -> TileBatch {
    let mut batch = TileBatch::default();
    for output_bounds in outputs {
        let tile = TileConfiguration {
            kernel_bounds: &[2],
            output_bounds,
            input_bounds: &[],
        };
        batch
            .push(tile, &Limits::default())
            .expect("a batch within the limits");
    }
    batch
}

/// Returns the graph of a number, of either task and with up to several hundred nodes, and few or many configurations
/// of it. Graphs of different numbers differ, up to many thousands.
pub fn varying(number: usize) -> (Graph, Configurations) {
    let size = 1 + number * 7 % 113;
    let opcodes: Vec<u8> = (0..)
        .map(|node| u8::try_from((number + node) % 119 + 1).expect("an opcode"))
        .take(size)
        .collect();
    let sizes = [8, 64, u16::try_from(number % 5_000 + 1).expect("a size")];
    let count = 1 + number * 13 % 150;
    if number.is_multiple_of(2) {
        let outputs: Vec<[i64; 2]> = (1..).map(|tile| [tile, 1 + tile % 5]).take(count).collect();
        return (
            chain_kernel(&opcodes, &sizes),
            Configurations::Tile(tiles(&outputs)),
        );
    }
    let blocks: Vec<usize> = (0..size).map(|block| block * number % 9).collect();
    let graph = block_graph(&opcodes, &sizes, &blocks);
    let choices: Vec<Vec<usize>> = (0..count)
        .map(|config| vec![config, config / 3, config % 7])
        .collect();
    let layouts = layouts(graph.configurable().len(), &choices);
    (graph, Configurations::Layout(layouts))
}
