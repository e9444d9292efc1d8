//! The columns of a tile that follow from the loops of its kernel: those of dispatches of IREE's are what another
//! implementation made of them, and the README has every column.

use std::{collections::HashMap, fs};

use hlorank_graph::{
    Graph, GraphArrays, GraphError, GraphFile, HloModule, LOOP_COLUMNS, LOOP_FEATURES, Limits,
    LoopNest, MeasuredGraph, Pad, SegmentedGraph, Task,
};

use crate::fixture;

const README: &str = include_str!("../../README.md");

/// A dot that contracts the first dimensions of both operands.
const TEXT: &str = "HloModule kernel
ENTRY main {
  a = f32[16,16] parameter(0)
  b = f32[16,16] parameter(1)
  ROOT dot = f32[16,16] dot(b, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
";

const TILE: [f32; 24] = [
    4., 0., 0., 0., 0., 0., 4., 4., 8., 4., 0., 0., 0., 0., 12., 32., 8., 2., 0., 0., 0., 0., 10.,
    16.,
];

fn dispatch(name: &str) -> MeasuredGraph {
    let path = fixture(&format!("loops/{name}.pb"));
    let file = GraphFile::read(&path, Task::Tile, &Limits::default()).unwrap();
    file.graphs.into_iter().next().unwrap()
}

fn kernel(text: &str) -> Graph {
    let module = HloModule::read_text(text, &Limits::default()).unwrap();
    module.into_graph(Task::Tile, Vec::new()).unwrap()
}

/// The arrays of a graph, with the lengths of lists.
fn arrays(graph: &Graph) -> GraphArrays {
    GraphArrays::from_features(
        graph.opcodes().to_vec(),
        graph.features(Pad::MinusOne).unwrap(),
        graph.edges().to_vec(),
        Pad::MinusOne,
        &Limits::default(),
    )
    .unwrap()
}

fn columns(loops: &LoopNest, tile: &[f32]) -> Vec<f32> {
    let mut columns = Vec::new();
    loops.write(tile, &mut columns);
    columns
}

#[test]
fn tiles_of_dispatches_have_the_columns_of_another_implementation() {
    let expected = fs::read(fixture("loops/columns.json")).unwrap();
    let expected: HashMap<String, Vec<Vec<f32>>> = serde_json::from_slice(&expected).unwrap();
    let names: Vec<String> = LOOP_COLUMNS
        .iter()
        .flat_map(|(group, names)| names.iter().map(move |name| format!("{group}.{name}")))
        .collect();
    for (name, tiles) in expected {
        let MeasuredGraph {
            graph,
            measurements,
            ..
        } = dispatch(&name);
        let loops = graph.loops().unwrap();
        assert!(loops.is_exact());
        let configurations = measurements.unwrap().configurations;
        for (config, expected) in tiles.iter().enumerate() {
            let found = columns(&loops, &configurations.feature_row(config));
            assert_eq!(
                (found.len(), expected.len()),
                (LOOP_FEATURES, LOOP_FEATURES)
            );
            for ((column, found), expected) in names.iter().zip(found).zip(expected) {
                let is_equal = (found - expected).abs() <= 1e-5 * expected.abs().max(1.0);
                assert!(
                    is_equal,
                    "{name}, tile {config}, {column}: {found}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn a_kernel_sent_as_arrays_has_the_hash_and_the_loops_of_its_module() {
    for graph in [kernel(TEXT), dispatch("unet_nchw.1").graph] {
        let operands = graph.operands().unwrap().numbers().to_vec();
        let sent = arrays(&graph).with_operands(operands).unwrap();
        let again = Graph::new(Task::Tile, sent, Vec::new()).unwrap();
        assert_eq!(again.hash(), graph.hash());
        assert_eq!(again.loops(), graph.loops());
    }
}

#[test]
fn without_operands_loops_are_guessed_by_equal_sizes() {
    let guessed = Graph::new(Task::Tile, arrays(&kernel(TEXT)), Vec::new()).unwrap();
    assert_ne!(guessed.hash(), kernel(TEXT).hash());
    let loops = guessed.loops().unwrap();
    assert!(!loops.is_exact());
    // Every dimension is 16, so the contracted ones were guessed wrongly.
    assert_ne!(
        columns(&loops, &TILE),
        columns(&kernel(TEXT).loops().unwrap(), &TILE)
    );
    let sizes = TEXT.replace("f32[16,16] parameter(1)", "f32[16,8] parameter(1)");
    let sizes = sizes.replace("f32[16,16] dot", "f32[8,16] dot");
    let distinct = kernel(&sizes);
    let guessed = LoopNest::new(&arrays(&distinct));
    let exact = distinct.loops().unwrap();
    assert_eq!(columns(&guessed, &TILE), columns(&exact, &TILE));
}

#[test]
fn operands_that_do_not_fit_the_graph_are_refused() {
    let sound = kernel(TEXT).operands().unwrap().numbers().to_vec();
    assert_eq!(sound, [0, 3, 2, 0, 0, 0, 0, 2, 0, 1, 6, 1, 0, 1, 0, 0, 0]);
    for (place, value, found) in [
        (0, 3, 1),
        (1, 4, 1),
        (2, 3, 2),
        (3, 9, 3),
        (8, 2, 7),
        (10, 5, 16),
        (10, 99, 7),
    ] {
        let mut numbers = sound.clone();
        numbers[place] = value;
        let refused = arrays(&kernel(TEXT)).with_operands(numbers).unwrap_err();
        assert_eq!(refused, GraphError::Operands { place: found }, "{place}");
    }
}

#[test]
fn graphs_of_layouts_have_neither_operands_nor_loops() {
    let module = HloModule::read_text(TEXT, &Limits::default()).unwrap();
    let graph = module.into_graph(Task::Layout, vec![2]).unwrap();
    assert_eq!((graph.operands(), graph.loops()), (None, None));
}

#[test]
fn kernels_that_differ_in_operands_alone_have_segments_of_their_own() {
    let digest = |text: &str| SegmentedGraph::new(&kernel(text)).segments[0].digest;
    let swapped = TEXT.replace("dot(b, a)", "dot(a, b)");
    assert_ne!(digest(&swapped), digest(TEXT));
}

#[test]
fn a_nest_of_any_arrays_has_finite_columns() {
    // A node without a size, an unknown opcode, and a dot of nothing.
    for opcodes in [vec![63], vec![0, 34], vec![34, 63, 87]] {
        let nodes = opcodes.len();
        let features = vec![0.0; nodes * hlorank_graph::FEATURES];
        let edges = (1..).take(nodes - 1).map(|node| [0, node]).collect();
        let limits = Limits::default();
        let arrays =
            GraphArrays::from_features(opcodes, features, edges, Pad::Zero, &limits).unwrap();
        let found = columns(&LoopNest::new(&arrays), &TILE);
        assert!(found.iter().all(|column| column.is_finite()));
    }
}

#[test]
fn the_readme_has_every_column() {
    for (group, names) in LOOP_COLUMNS {
        let group = group.trim_end_matches(|last: char| last == '.' || last.is_ascii_digit());
        let heading = format!("`{group}");
        assert!(README.contains(&heading), "the README lacks {group}");
        for name in names {
            assert!(
                README.contains(&format!("`{name}`")),
                "the README lacks {group}.{name}"
            );
        }
    }
}
