//! Makes graphs of what clients send.

use std::sync::Arc;

use hlorank_graph::{
    FeatureGraph, Graph, GraphArrays, GraphError, HloModule, Limits, NodeDescription, Scope,
    SegmentedGraph, Task, is_made_by_optimization, is_usually_configurable, opcode_name,
};
use hlorank_proto::v1::{self, GraphFeatures};
use parking_lot::Mutex;

use super::{Source, Warning};

/// Makes the graph of a module.
pub(super) fn read_module(
    module: HloModule<'_>,
    task: Task,
    configurable: Vec<u32>,
) -> Result<Source, GraphError> {
    let configurable = configurable_or_default(task, configurable, &module.arrays);
    let names: Vec<&str> = module.unknown_opcodes.keys().map(String::as_str).collect();
    let warnings = unknown_opcodes(module.unknown_opcodes.values().sum(), &names);
    let (graph, nodes) = module.into_described_graph(task, configurable)?;
    source_of(&graph, nodes, warnings)
}

/// Makes the graph of arrays.
pub(super) fn read_features(
    features: &GraphFeatures,
    task: Task,
    configurable: Vec<u32>,
    limits: &Limits,
) -> Result<Source, GraphError> {
    let arrays = GraphArrays::of_message(features, limits)?;
    let configurable = configurable_or_default(task, configurable, &arrays);
    let graph = Graph::new(task, arrays, configurable)?;
    let warnings = unknown_opcodes(graph.unknown_opcodes(), &[]);
    source_of(&graph, describe(&graph), warnings)
}

/// Describes the configurable nodes of arrays, which have neither names nor shapes.
fn describe(graph: &Graph) -> Vec<NodeDescription> {
    let node = |&node: &u32| NodeDescription {
        node,
        name: String::new(),
        opcode: opcode_name(graph.opcodes()[node as usize]).to_owned(),
        dimensions: Vec::new(),
        tensor_ranks: Vec::new(),
    };
    graph.configurable().iter().map(node).collect()
}

/// Checks and cuts a graph of HLO, and adds to the warnings about it.
fn source_of(
    graph: &Graph,
    nodes: Vec<NodeDescription>,
    mut warnings: Vec<Warning>,
) -> Result<Source, GraphError> {
    graph.check_range()?;
    warnings.extend(unusual_nodes(graph));
    warnings.extend(optimized_module(graph));
    warnings.extend(guessed_loops(graph));
    Ok(Source {
        graph: Arc::new(SegmentedGraph::new(graph)),
        nodes,
        warnings,
        program: None,
        in_use: Mutex::default(),
    })
}

/// Makes the graph of a feature set. Its nodes have no descriptions.
pub(super) fn read_feature_graph(
    graph: &v1::FeatureGraph,
    task: Task,
    limits: &Limits,
) -> Result<Source, GraphError> {
    if task.kind().scope != Scope::EveryNode {
        return Err(GraphError::WrongSource { task });
    }
    let graph = FeatureGraph::of_message(graph, limits)?;
    let graph = SegmentedGraph::new(&Graph::of_features(graph));
    Ok(Source {
        graph: Arc::new(graph),
        nodes: Vec::new(),
        warnings: Vec::new(),
        program: None,
        in_use: Mutex::default(),
    })
}

fn configurable_or_default(task: Task, configurable: Vec<u32>, arrays: &GraphArrays) -> Vec<u32> {
    match task.kind().scope {
        Scope::Nodes if configurable.is_empty() => arrays.default_configurable(),
        _ => configurable,
    }
}

fn unknown_opcodes(nodes: usize, names: &[&str]) -> Vec<Warning> {
    if nodes == 0 {
        return Vec::new();
    }
    // A client chooses the names, so the message has few of them.
    let shown: Vec<&str> = names.iter().copied().take(8).collect();
    let names = if shown.is_empty() {
        String::new()
    } else {
        format!(" ({})", shown.join(", "))
    };
    let message = format!(
        "{nodes} nodes have an opcode that the model does not know{names}; they count as unknown"
    );
    vec![Warning {
        reason: "UNKNOWN_OPCODES",
        message,
    }]
}

/// Warns about configurable nodes whose layouts no model was trained with.
fn unusual_nodes(graph: &Graph) -> Option<Warning> {
    let unusual = |node: &&u32| !is_usually_configurable(graph.opcodes()[**node as usize]);
    let count = graph.configurable().iter().filter(unusual).count();
    (graph.task() == Task::Layout && count > 0).then(|| Warning {
        reason: "UNUSUAL_CONFIGURABLE_NODES",
        message: format!("{count} configurable nodes are neither convolution, dot nor reshape"),
    })
}

/// Warns about the arrays of a kernel that lack what models read its loops from.
fn guessed_loops(graph: &Graph) -> Option<Warning> {
    let is_guessed = graph.task() == Task::Tile && graph.operands().is_none();
    is_guessed.then(|| Warning {
        reason: "LOOPS_GUESSED",
        message: "the arrays lack `operands`, so models that read the loops of a kernel guess the operands of each instruction \
                  and the dimensions of dots by equal sizes, and may rank less well; send the module, or arrays that `hlorank \
                  graph features` writes"
            .to_owned(),
    })
}

/// Warns about a module after optimization, if its layouts are chosen: models learn from modules before it, since layouts
/// are assigned early. Kernels, whose tiles are chosen, may contain fusions.
fn optimized_module(graph: &Graph) -> Option<Warning> {
    let count = graph
        .opcodes()
        .iter()
        .filter(|opcode| is_made_by_optimization(**opcode))
        .count();
    (graph.task() == Task::Layout && count > 0).then(|| Warning {
        reason: "OPTIMIZED_MODULE",
        message: format!(
            "{count} nodes are fusions or bitcasts, so this module was dumped after optimization; models of layouts \
             were trained on modules before it, and may rank this one wrongly. `XLA_FLAGS=--xla_dump_to=FOLDER` writes \
             the module to send as *.before_optimizations.txt, and with --xla_dump_hlo_pass_re=layout-assignment also \
             as *.before_layout-assignment.txt"
        ),
    })
}
