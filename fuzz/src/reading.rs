//! Checks what every reader promises: of graphs and configurations that were read, and of error messages.

use std::fmt;

use hlorank_graph::{
    ConfigurationError, Configurations, EncodedBatch, FeatureGraph, FusionProgram, Graph,
    GraphArrays, HloModule, LayoutBatch, LayoutEntry, Limits, MAX_SEGMENT_NODES, OperandLists, Pad,
    SegmentedGraph, Task,
};
use hlorank_proto::v1::{ConfigBatch, config_batch::Configs};
use prost::{Message as _, bytes::Bytes};

use crate::{
    every_form::{forms, slots},
    fusion::check_kernels,
    reference,
};

/// Limits that are small enough for small inputs to reach them.
pub(crate) const LIMITS: Limits = Limits {
    nodes: 1500,
    edges: 6000,
    configs: 1000,
    config_entries: 50_000,
};

/// Maximum length of an error message in bytes, including what it quotes.
const MAX_MESSAGE: usize = 1000;

/// Feature columns that hold lists, in which a negative number may mark an unused place.
const LISTS: [std::ops::Range<usize>; 4] = [31..37, 95..99, 101..105, 134..140];

/// Checks the message of an error.
pub(crate) fn check_error(error: &impl fmt::Display) {
    let message = error.to_string();
    assert!(
        message.len() <= MAX_MESSAGE,
        "a message of {} bytes: {message}",
        message.len()
    );
}

/// Checks a module that was read.
pub(crate) fn check_module(module: HloModule<'_>) {
    let nodes = module.len();
    assert!((1..=LIMITS.nodes).contains(&nodes), "{nodes} nodes");
    assert!(
        module.arrays.edges.len() <= LIMITS.edges,
        "{} edges",
        module.arrays.edges.len()
    );
    let described = (0..).map_while(|node| module.describe(node)).count();
    assert_eq!(described, nodes, "nodes that can be described");
    let splits = &module.node_splits;
    assert!(
        splits.is_sorted() && splits.first() == Some(&0) && splits.last() == Some(&nodes),
        "{splits:?}"
    );
    let unknown: usize = module.unknown_opcodes.values().sum();
    assert_eq!(unknown, module.arrays.unknown_opcodes());
    let configurable = module.arrays.default_configurable();
    let fusion = FusionProgram::new(&module).inspect_err(check_error);
    // Kernels have operands beside the arrays. One module is one graph here.
    let (task, configurable) = match nodes % 2 {
        0 => (Task::Layout, configurable),
        _ => (Task::Tile, Vec::new()),
    };
    match module.into_graph(task, configurable) {
        Ok(graph) => {
            check_graph(&graph);
            if let Ok(program) = &fusion
                && task == Task::Layout
            {
                check_kernels(program, &graph).unwrap_or_else(|error| check_error(&error));
            }
        }
        Err(error) => check_error(&error),
    }
}

/// Checks a graph that was read, and its segments.
pub(crate) fn check_graph(graph: &Graph) {
    assert!(
        graph
            .raw_features()
            .iter()
            .all(|feature| feature.is_finite()),
        "a feature is not finite"
    );
    assert!(
        graph.edges().is_sorted_by(|one, next| one < next),
        "edges are not sorted and distinct"
    );
    let cut = SegmentedGraph::new(graph);
    if let Some(features) = graph.feature_graph() {
        assert_eq!(
            (cut.slots(), cut.segments.len()),
            (features.nodes(), 0),
            "a graph of a feature set"
        );
        return check_feature_graph(features, graph);
    }
    if let Some(program) = graph.program() {
        assert_eq!(
            program.slots(),
            graph.configurable(),
            "the slots of a program"
        );
        assert!(cut.segments.is_empty() && cut.summary.segments <= cut.rows_per_config());
        return;
    }
    check_features(graph);
    let mut nodes: Vec<u32> = cut
        .occurrences
        .iter()
        .flat_map(|place| place.nodes.iter().copied())
        .collect();
    let mut slots: Vec<usize> = cut
        .occurrences
        .iter()
        .flat_map(|place| place.slots.iter().copied())
        .collect();
    nodes.sort_unstable();
    slots.sort_unstable();
    assert!(
        nodes.is_sorted_by(|one, next| one < next),
        "a node lies in two segments"
    );
    assert_eq!(nodes.len(), cut.summary.kept, "nodes in segments");
    assert!(
        slots.into_iter().eq(0..graph.configurable().len()),
        "slots in segments"
    );
    assert!(
        cut.segments
            .iter()
            .all(|segment| (1..=MAX_SEGMENT_NODES).contains(&segment.len()))
    );
}

/// Checks that a graph of a feature set that is sent again has the same hash.
fn check_feature_graph(features: &FeatureGraph, graph: &Graph) {
    let again = FeatureGraph::of_message(&features.to_message(), &LIMITS);
    assert_eq!(
        Graph::of_features(again.expect("a graph that was read")).hash(),
        graph.hash(),
        "sent again"
    );
}

/// Checks that a graph sent as arrays of features has the same hash.
fn check_features(graph: &Graph) {
    let in_list = |column: usize| LISTS.iter().any(|list| list.contains(&column));
    let values = graph.raw_features().iter().enumerate();
    if values
        .into_iter()
        .any(|(place, value)| *value < 0.0 && in_list(place % hlorank_graph::FEATURES))
    {
        return;
    }
    let (pad, features) = match graph.features(Pad::MinusOne) {
        Some(features) => (Pad::MinusOne, features),
        None => (Pad::Zero, graph.raw_features().to_vec()),
    };
    let arrays = GraphArrays::from_features(
        graph.opcodes().to_vec(),
        features,
        graph.edges().to_vec(),
        pad,
        &LIMITS,
    );
    let operands = graph.operands().map_or(&[][..], OperandLists::numbers);
    let arrays = arrays.and_then(|arrays| arrays.with_operands(operands.to_vec()));
    let again = Graph::new(
        graph.task(),
        arrays.expect("arrays of a graph"),
        graph.configurable().to_vec(),
    );
    let again = again.expect("a graph");
    assert_eq!(
        again.hash(),
        graph.hash(),
        "the hash of a graph that came as features"
    );
    assert_eq!(again.loops(), graph.loops(), "the loops of it");
    if let Some(loops) = graph.loops() {
        let mut columns = Vec::new();
        loops.write(&TILE, &mut columns);
        assert!(
            columns.iter().all(|column| column.is_finite()),
            "{columns:?}"
        );
    }
}

/// Features of a tile with bounds in every list.
const TILE: [f32; 24] = [
    3., 2., 0., 0., 0., 0., 5., 6., 16., 4., 1., 0., 0., 0., 21., 64., 8., 1., 1., 0., 0., 0., 10.,
    8.,
];

/// Checks a `ConfigBatch` in any form, read for a graph that fits it.
pub(crate) fn check_batch(input: &[u8]) {
    let decoded = ConfigBatch::decode(input).map(|batch| batch.configs);
    let encoded = EncodedBatch::parse(&Bytes::copy_from_slice(input));
    let (configs, encoded) = match (decoded, encoded) {
        (Ok(Some(configs)), Ok(Some(encoded))) => (configs, encoded),
        (Ok(None), encoded) => return assert!(matches!(encoded, Ok(None)), "no form is set"),
        (Ok(Some(_)), Err(ConfigurationError::SeveralForms)) => return,
        (Err(error), encoded) => {
            check_error(&error);
            let read = encoded.map(|batch| batch.map(|batch| read_encoded(&batch, 1, &LIMITS)));
            return assert!(
                !matches!(read, Ok(None | Some(Ok(_)))),
                "accepted, but it does not decode"
            );
        }
        (Ok(Some(_)), encoded) => panic!(
            "{:?}, but it decodes",
            encoded.map(|batch| batch.map(|_| ()))
        ),
    };
    let slots = slots_of(&configs);
    let read = read_encoded(&encoded, slots, &LIMITS).ok();
    assert_eq!(
        read,
        reference::read(&configs, slots, &LIMITS),
        "the reference"
    );
    if let Some(configurations) = read {
        // Larger batches take the same paths, and are read three more times.
        if configurations.len() < 50 {
            check_limits(&configs, slots, &configurations);
        }
        check_forms(&configurations);
    }
}

/// Returns the number of configurable nodes of a graph that fits a batch.
fn slots_of(batch: &Configs) -> usize {
    match batch {
        Configs::LayoutConfigs(message) => {
            let nodes = message
                .configs
                .iter()
                .flat_map(|config| &config.nodes)
                .map(|node| node.node);
            nodes.max().map_or(1, |node| (node as usize).min(63) + 1)
        }
        Configs::PackedLayoutConfigs(message) => message.tables.len(),
        Configs::DeltaLayoutConfigs(message) => message.tables.len(),
        Configs::FusionConfigs(message) => {
            let nodes = message
                .configs
                .iter()
                .flat_map(|config| &config.fused_nodes);
            nodes.max().map_or(1, |&node| (node as usize).min(63) + 1)
        }
        // Whole bytes, so that one more slot does not fit.
        Configs::PackedFusionConfigs(message) => {
            let bytes = message
                .fused
                .len()
                .checked_div(message.config_count as usize);
            8 * bytes.unwrap_or_default()
        }
        Configs::NodeFeatureConfigs(message) => {
            let row_bytes = message.column_count as usize * size_of::<f32>();
            let (array, bytes) = if message.row_indices.is_empty() {
                (&message.features, row_bytes)
            } else {
                (&message.row_indices, size_of::<u32>())
            };
            array
                .len()
                .checked_div(message.config_count as usize * bytes)
                .unwrap_or_default()
        }
        Configs::ParameterConfigs(_) => 1,
        Configs::TileConfigs(_) | Configs::PackedTileConfigs(_) => 0,
    }
}

fn read_encoded(batch: &EncodedBatch, slots: usize, limits: &Limits) -> Result<Configurations, ()> {
    batch
        .read(batch.task(), &nodes_of(slots), limits)
        .map_err(|error| check_error(&error))
}

fn read_batch(batch: &Configs, slots: usize, limits: &Limits) -> Result<Configurations, ()> {
    read_encoded(
        &EncodedBatch::try_from(batch).expect("it was encoded"),
        slots,
        limits,
    )
}

fn nodes_of(slots: usize) -> Vec<u32> {
    (0..).take(slots).collect()
}

/// Checks that a batch is read at each limit and rejected one past it.
fn check_limits(batch: &Configs, slots: usize, configurations: &Configurations) {
    let configs = configurations.len();
    let entries = configs * slots * configurations.columns().unwrap_or(1);
    let at = Limits {
        configs,
        config_entries: entries,
        ..LIMITS
    };
    assert_eq!(
        read_batch(batch, slots, &at).as_ref(),
        Ok(configurations),
        "at the limit"
    );
    let past = [
        Limits {
            configs: configs - 1,
            ..at
        },
        Limits {
            config_entries: at.config_entries.wrapping_sub(1),
            ..at
        },
    ];
    let past = &past[..if slots == 0 { 1 } else { 2 }];
    assert!(
        past.iter()
            .all(|limits| read_batch(batch, slots, limits).is_err()),
        "one past the limit"
    );
    let fits_any = matches!(
        batch,
        Configs::TileConfigs(_)
            | Configs::PackedTileConfigs(_)
            | Configs::LayoutConfigs(_)
            | Configs::FusionConfigs(_)
    );
    assert!(
        fits_any || read_batch(batch, slots + 1, &LIMITS).is_err(),
        "a graph with one more slot"
    );
}

/// Checks that configurations read the same from every form that can hold them.
pub(crate) fn check_forms(configurations: &Configurations) {
    let slots = slots(configurations);
    for form in forms(configurations, &nodes_of(slots)) {
        let again = read_batch(&form, slots, &LIMITS);
        match (configurations, again) {
            // The tables of the readable form have another order.
            (Configurations::Layout(batch), Ok(Configurations::Layout(again))) => {
                assert_eq!(entries(&again), entries(batch), "from {}", name(&form));
            }
            (_, again) => assert_eq!(again.as_ref(), Ok(configurations), "from {}", name(&form)),
        }
    }
    if let Configurations::Layout(batch) = configurations {
        let changes = batch.changes();
        assert!(changes <= batch.len() * slots, "{changes} changes");
    }
    let batch = configurations.batch();
    let mut features = (0..batch.len()).flat_map(|config| batch.feature_row(config));
    assert!(features.all(f32::is_finite), "a feature is not finite");
}

fn name(batch: &Configs) -> &'static str {
    EncodedBatch::try_from(batch)
        .expect("it was encoded")
        .field()
}

fn entries(batch: &LayoutBatch) -> Vec<LayoutEntry> {
    let places =
        (0..batch.len()).flat_map(|config| (0..batch.slots()).map(move |slot| (config, slot)));
    places
        .map(|(config, slot)| batch.entry(config, slot))
        .collect()
}
