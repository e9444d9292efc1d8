//! Graphs that are long, or few bytes that stand for long ones.

use hlorank_proto::{
    v1::{FeatureGraph, Graph, GraphFeatures, Task, graph::Source},
    xla::{HloInstructionProto, Window, WindowDimension},
};

use crate::{
    graph_of, graph_of_module, graph_of_text,
    module::{operation, single},
};

/// Makes a graph of a size with a number.
pub type SizedGraph = fn(usize, u32) -> Graph;

/// Graphs that are long, or few bytes that stand for long ones.
pub const GRAPHS: [(&str, SizedGraph); 11] = [
    ("an array of many dimensions without shapes", |_, number| {
        text(Task::Tile, number, &array(60_000), chain("negate", 4_000))
    }),
    ("a tuple of many elements without shapes", |_, number| {
        let tuple = format!("({})", vec!["f32[]"; 60_000].join(", "));
        text(Task::Tile, number, &tuple, chain("copy", 4_000))
    }),
    ("many arrays without shapes", |nodes, number| {
        text(Task::Tile, number, &array(64), chain("negate", nodes))
    }),
    ("many new arrays without shapes", |nodes, number| {
        let line = |node| {
            format!(
                "  p{node} = concatenate(p{}, p0), dimensions={{0}}\n",
                node - 1
            )
        };
        text(Task::Tile, number, &array(64), (1..=nodes).map(line))
    }),
    ("many nodes", reshapes),
    ("many computations", |nodes, number| {
        let computation = |at| format!("c{at} {{ p = f32[] parameter(0) }}\n");
        let all: String = (0..nodes / 2).map(computation).collect();
        let entry = "ENTRY e { p = f32[] parameter(0) }\n";
        of_task(
            Task::Tile,
            graph_of_text(format!("HloModule m{number}\n{all}{entry}")),
        )
    }),
    ("many computations inside one", |nodes, number| {
        let line =
            |node| format!("  p{node} = f32[] call(p0), to_apply={{ q = f32[] parameter(0) }}\n");
        text(Task::Tile, number, "f32[]", (1..=nodes / 2).map(line))
    }),
    ("instructions of a module", |nodes, number| {
        let first = parameter(number);
        let last = i64::try_from(nodes).expect("a small number");
        let others = (2..=last).map(|id| operation("negate", id, &[id - 1]));
        let module = single([first].into_iter().chain(others).collect());
        of_task(Task::Tile, graph_of_module(module))
    }),
    ("a window of many dimensions", |_, number| {
        let dimensions = vec![WindowDimension::default(); (2 << 20) - 16];
        let reduce = HloInstructionProto {
            window: Some(Window { dimensions }),
            ..operation("reduce-window", 2, &[1, 1])
        };
        let first = parameter(number);
        let module = single(vec![first, reduce]);
        of_task(Task::Tile, graph_of_module(module))
    }),
    ("features of many nodes", |nodes, number| {
        let mut opcodes = vec![1; nodes];
        opcodes[number as usize % nodes] = 2;
        let features = GraphFeatures {
            node_opcode: opcodes.into(),
            node_feat: vec![0; nodes * hlorank_graph::FEATURES * size_of::<f32>()].into(),
            edge_index: (1..1_000).chain(0..999).collect(),
            ..GraphFeatures::default()
        };
        of_task(Task::Tile, graph_of(Source::Features(features)))
    }),
    ("columns with long names", |_, number| {
        let names = |column| format!("{column:0128}");
        space_of(1, (0..65_536).map(names).collect(), number)
    }),
];

/// A chain of nodes whose layouts are chosen.
pub fn reshapes(nodes: usize, number: u32) -> Graph {
    let line = |node: usize| {
        let dimensions = if node.is_multiple_of(2) { "8" } else { "2,4" };
        format!("  p{node} = f32[{dimensions}] reshape(p{})\n", node - 1)
    };
    text(Task::Layout, number, "f32[8]", (1..nodes).map(line))
}

/// A parameter whose shape has this number.
pub fn parameter(number: u32) -> HloInstructionProto {
    let mut parameter = operation("parameter", 1, &[]);
    if let Some(shape) = &mut parameter.shape {
        shape.dimensions = vec![8, 8 + i64::from(number)];
    }
    parameter
}

fn chain(opcode: &str, length: usize) -> impl Iterator<Item = String> {
    (1..=length).map(move |node| format!("  p{node} = {opcode}(p{})\n", node - 1))
}

/// The shape of an array of this many dimensions.
fn array(dimensions: usize) -> String {
    format!("f32[{}]", vec!["1"; dimensions].join(","))
}

/// A graph of HLO text: a parameter `p0` of this shape, and these lines.
pub fn text(
    task: Task,
    number: u32,
    shape: &str,
    lines: impl IntoIterator<Item = String>,
) -> Graph {
    let lines: String = lines.into_iter().collect();
    let text =
        format!("HloModule m{number}\n\nENTRY e {{\n  p0 = {shape} parameter(0)\n{lines}}}\n");
    of_task(task, graph_of_text(text))
}

/// The same graph for a task.
pub fn of_task(task: Task, graph: Graph) -> Graph {
    Graph {
        task: task.into(),
        ..graph
    }
}

/// A graph of a feature set that it describes.
pub fn space_of(nodes: u32, config_columns: Vec<String>, number: u32) -> Graph {
    let size = (number as f32).to_le_bytes();
    let source = Source::FeatureGraph(FeatureGraph {
        feature_set: "space".to_owned(),
        nodes,
        node_features: size.repeat(nodes as usize).into(),
        node_columns: vec!["size".to_owned()],
        config_columns,
        ..FeatureGraph::default()
    });
    of_task(Task::FeatureSet, graph_of(source))
}
