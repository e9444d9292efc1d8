//! `TpuGraphs`' own files have the published numbers when they are read (spec §10). They are not part of the
//! repository.

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
fn kernels_hash_to_the_golden_hashes_and_failed_runs_are_counted_and_left_out() {
    let Some(path) = shared("data/tpu/alexnet_tile_kernels.pb") else {
        return;
    };
    let kernels = read(&path);
    assert_eq!(kernels.len(), 15);
    let nodes = kernels.iter().map(|kernel| kernel.graph.len());
    assert_eq!(nodes.sum::<usize>(), 294);
    for (kernel, expected) in KERNEL_HASHES {
        assert_eq!(hashes(&kernels[kernel]), expected, "kernel {kernel}");
    }
    let (mut runs, mut skipped) = (0, 0);
    for kernel in &kernels {
        let measured = kernel.measurements.as_ref().unwrap();
        assert!(measured.normalizers.is_some(), "{}", kernel.name);
        runs += measured.run_times.len();
        skipped += measured.skipped;
    }
    assert_eq!((runs, skipped), (752, 2));
}

fn hashes(kernel: &MeasuredGraph) -> [String; 3] {
    let Some(measured) = &kernel.measurements else {
        panic!("{} has no runs", kernel.name);
    };
    let Configurations::Tile(tiles) = &measured.configurations else {
        panic!("{} has no tiles", kernel.name);
    };
    let tiles = tiles.iter().flat_map(|tile| tile.view().features());
    let features = kernel.graph.raw_features().iter().copied();
    let edges = kernel.graph.edges().as_flattened().iter();
    [
        short_sha256(features.flat_map(f32::to_le_bytes)),
        short_sha256(edges.flat_map(|&node| i64::from(node).to_le_bytes())),
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
    let files = folder.read_dir().unwrap();
    let kernels = files.flat_map(|file| read(&file.unwrap().path()));
    let sizes = kernels.map(|kernel| {
        let runs = kernel.measurements.unwrap();
        [kernel.graph.len(), runs.configurations.len()]
    });
    let mut sizes: Vec<[usize; 2]> = sizes.collect();
    sizes.sort_unstable();
    let published = [[2, 32], [15, 807], [21, 52], [52, 1282], [65, 2951]];
    assert_eq!(sizes, published);
}

#[test]
fn alexnet_prunes_and_cuts_to_the_published_segments() {
    let Some(path) = shared("data/tpu/alexnet_layout.npz") else {
        return;
    };
    let alexnet = read(&path).remove(0);
    let cut = SegmentedGraph::new(&alexnet.graph);
    let summary = &cut.summary;
    assert_eq!((summary.nodes, summary.edges), (372, 597));
    assert_eq!((summary.configurable, summary.kept), (26, 73));
    assert_eq!((summary.segments, summary.largest_segment), (7, 25));
    let places = cut.occurrences.iter();
    let edges = places.map(|place| cut.segments[place.segment].edges.len());
    assert_eq!(edges.sum::<usize>(), 73);
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
    let places = cut.occurrences.iter();
    let mut segments: Vec<[usize; 2]> = places
        .map(|place| [place.nodes.len(), distinct(&batch, &place.slots)])
        .collect();
    segments.sort_unstable();
    let published = [
        [3, 2],
        [7, 48],
        [9, 9],
        [9, 48],
        [9, 65],
        [11, 33],
        [25, 48],
    ];
    assert_eq!(segments, published);
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
