//! `TpuGraphs`' own files have the published numbers when they are read (spec §10). They are not part of the
//! repository.

use hlorank_graph::Graph;
use hlorank_tests::prelude::*;
use sha2::{Digest as _, Sha256};

/// First 16 hexadecimal digits of SHA-256 over little-endian bytes: kernel, features (f32), sorted edges (i64),
/// configurations (f32).
const KERNEL_HASHES: [(usize, [&str; 3]); 7] = [
    (
        0,
        ["24b9076c78aa0440", "0e16a984e3436d55", "530b0414a156e1c1"],
    ),
    (
        1,
        ["2758a8026fbb2956", "217066f42cd2abc0", "d4790ae842ce3e81"],
    ),
    (
        2,
        ["5d80a57d0fe2a4d8", "3b81581f8b5260d2", "f111a5aa02c61a93"],
    ),
    (
        3,
        ["20b190fb2d6a6432", "33814202b4b82ed0", "09275731da7dae14"],
    ),
    (
        4,
        ["de25922018708514", "96b5afec9de2c0d1", "8ab2188493362ca4"],
    ),
    (
        5,
        ["05cfa544c2646c1a", "a79c41a873d9443d", "2e97e70e5e049676"],
    ),
    (
        12,
        ["8ed4b2e18f644390", "4cbbd8ca5215b8d1", "2d5565fb483d8ea4"],
    ),
];

#[test]
fn kernels_hash_to_the_golden_hashes() {
    let Some(path) = shared("data/tpu/alexnet_tile_kernels.pb") else {
        return;
    };
    let kernels = read(&path);
    assert_eq!(kernels.len(), 15);
    assert_eq!(
        kernels
            .iter()
            .map(|kernel| kernel.graph.len())
            .sum::<usize>(),
        294
    );
    for (kernel, expected) in KERNEL_HASHES {
        assert_eq!(hashes(&kernels[kernel]), expected, "kernel {kernel}");
    }
}

#[test]
fn failed_runs_of_kernels_are_counted_and_left_out() {
    let Some(path) = shared("data/tpu/alexnet_tile_kernels.pb") else {
        return;
    };
    let kernels = read(&path);
    let measurements = || {
        kernels
            .iter()
            .filter_map(|kernel| kernel.measurements.as_ref())
    };
    assert_eq!(
        measurements()
            .map(|measured| measured.run_times.len())
            .sum::<usize>(),
        752
    );
    assert_eq!(
        measurements()
            .map(|measured| measured.skipped)
            .sum::<usize>(),
        2
    );
    let normalizers = measurements()
        .filter_map(|measured| measured.normalizers.as_ref())
        .count();
    assert_eq!(normalizers, 15);
}

fn hashes(kernel: &MeasuredGraph) -> [String; 3] {
    let edges = kernel
        .graph
        .edges()
        .as_flattened()
        .iter()
        .copied()
        .map(i64::from);
    let Some(Configurations::Tile(batch)) = kernel
        .measurements
        .as_ref()
        .map(|runs| &runs.configurations)
    else {
        panic!("{} has no tiles", kernel.name);
    };
    let tiles = batch.iter().flat_map(|tile| tile.view().features());
    [
        short_sha256(
            kernel
                .graph
                .raw_features()
                .iter()
                .copied()
                .flat_map(f32::to_le_bytes),
        ),
        short_sha256(edges.flat_map(i64::to_le_bytes)),
        short_sha256(tiles.flat_map(f32::to_le_bytes)),
    ]
}

fn short_sha256(bytes: impl Iterator<Item = u8>) -> String {
    let digest = Sha256::digest(bytes.collect::<Vec<u8>>());
    format!(
        "{:016x}",
        u64::from_be_bytes(*digest.first_chunk().unwrap())
    )
}

#[test]
fn a_fusion_root_has_the_golden_row() {
    let Some(folder) = shared("data/tpu/tile_test") else {
        return;
    };
    let kernels = read(&folder.join("0a8a2b247d7a20b9dcab1daf50066a4d.npz"));
    let mut expected = [0.0; FEATURES];
    for column in [
        0, 15, 44, 52, 60, 68, 76, 84, 112, 116, 120, 124, 128, 132, 136,
    ] {
        expected[column] = 1.0;
    }
    for (column, value) in [
        (21, 2.0),
        (22, 300.0),
        (23, 300.0),
        (24, 64.0),
        (134, 2.0),
        (135, 3.0),
    ] {
        expected[column] = value;
    }
    (expected[27], expected[28]) = (666.0, 11_520_000.0);
    assert_eq!(kernels[0].graph.raw_row(14), expected);
}

#[test]
fn kernels_of_the_test_split_have_the_published_sizes() {
    let Some(folder) = shared("data/tpu/tile_test") else {
        return;
    };
    let mut sizes: Vec<[usize; 2]> = test_kernels(&folder).iter().map(size).collect();
    sizes.sort_unstable();
    assert_eq!(
        sizes,
        [[2, 32], [15, 807], [21, 52], [52, 1282], [65, 2951]]
    );
}

fn size(kernel: &MeasuredGraph) -> [usize; 2] {
    [
        kernel.graph.len(),
        kernel
            .measurements
            .as_ref()
            .map_or(0, |runs| runs.configurations.len()),
    ]
}

fn test_kernels(folder: &Path) -> Vec<MeasuredGraph> {
    let mut paths: Vec<_> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().flat_map(|path| read(path)).collect()
}

#[test]
fn real_rows_keep_the_invariants() {
    let Some(folder) = shared("data/tpu/tile_test") else {
        return;
    };
    for kernel in test_kernels(&folder) {
        assert!(
            kernel.graph.edges().is_sorted(),
            "{}: edges are sorted",
            kernel.name
        );
        assert!(
            kernel
                .graph
                .edges()
                .iter()
                .all(|[consumer, producer]| consumer > producer)
        );
        for node in 0..kernel.graph.len() {
            check_row(&kernel.graph, node);
        }
    }
}

fn check_row(graph: &Graph, node: usize) {
    let row = graph.raw_row(node);
    assert_eq!(
        row[2..21].iter().sum::<f32>(),
        1.0,
        "node {node}: one element type"
    );
    let rank = row[21..27].iter().take_while(|size| **size > 0.0).count();
    check_sum_and_product(row, 21, rank);
    let window = row[37..43].iter().take_while(|size| **size > 0.0).count();
    for group in [37, 45, 53, 61, 69, 77] {
        check_sum_and_product(row, group, window);
    }
    let reversed = row[85..91].iter().sum::<f32>();
    assert_eq!(
        [row[91], row[91] + row[92]],
        [reversed, count(window)],
        "node {node}: window reversal"
    );
    let mut layout = row[134..134 + rank].to_vec();
    layout.sort_by(f32::total_cmp);
    assert_eq!(
        layout,
        (0..rank).map(count).collect::<Vec<f32>>(),
        "node {node}: the layout is a permutation"
    );
}

/// Asserts that the six slots from `start` hold `used` values, followed by their sum and product.
fn check_sum_and_product(row: &[f32], start: usize, used: usize) {
    let values = &row[start..start + used];
    assert_eq!(
        row[start + 6],
        values.iter().sum::<f32>(),
        "sum of column {start}"
    );
    assert_eq!(
        row[start + 7],
        values.iter().product::<f32>(),
        "product of column {start}"
    );
}

fn count(count: usize) -> f32 {
    f32::from(u8::try_from(count).unwrap())
}

#[test]
fn alexnet_prunes_and_cuts_to_the_published_segments() {
    let Some(path) = shared("data/tpu/alexnet_layout.npz") else {
        return;
    };
    let alexnet = read(&path).remove(0);
    let cut = SegmentedGraph::new(&alexnet.graph);
    assert_eq!(
        (
            cut.summary.nodes,
            cut.summary.edges,
            cut.summary.configurable
        ),
        (372, 597, 26)
    );
    assert_eq!(
        (
            cut.summary.kept,
            cut.summary.segments,
            cut.summary.largest_segment
        ),
        (73, 7, 25)
    );
    let edges: usize = cut
        .occurrences
        .iter()
        .map(|place| cut.segments[place.segment].edges.len())
        .sum();
    assert_eq!(edges, 73);
    assert_eq!(alexnet.node_splits, [0, 324, 372]);
}

#[test]
fn alexnet_has_the_published_distinct_configurations() {
    let Some(path) = shared("data/tpu/alexnet_layout.npz") else {
        return;
    };
    let alexnet = read(&path).remove(0);
    let Some(Configurations::Layout(batch)) = alexnet.measurements.map(|runs| runs.configurations)
    else {
        panic!("no layouts");
    };
    assert_eq!(batch.len(), 47_712);
    let all: Vec<usize> = (0..batch.slots()).collect();
    assert_eq!(distinct(&batch, &all), 29_905);

    let cut = SegmentedGraph::new(&alexnet.graph);
    let segments = cut
        .occurrences
        .iter()
        .map(|place| (place.nodes.len(), distinct(&batch, &place.slots)));
    let mut found: HashMap<(usize, usize), usize> = HashMap::new();
    segments.for_each(|segment| *found.entry(segment).or_default() += 1);
    let published = [
        (25, 48),
        (11, 33),
        (9, 48),
        (9, 9),
        (9, 65),
        (7, 48),
        (3, 2),
    ];
    assert_eq!(found, published.map(|segment| (segment, 1)).into());
}

/// Returns the number of distinct configurations of the slots.
fn distinct(batch: &LayoutBatch, slots: &[usize]) -> usize {
    let local =
        |config| -> Vec<u16> { slots.iter().map(|&slot| batch.row(config)[slot]).collect() };
    (0..batch.len()).map(local).collect::<HashSet<_>>().len()
}

fn read(path: &Path) -> Vec<MeasuredGraph> {
    GraphFile::read(path, Task::Tile, &Limits::default())
        .unwrap()
        .graphs
}
