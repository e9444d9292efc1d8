//! What holds of everything that was read, and of every refusal.

use std::fmt;

use hlorank_graph::{
    Configurations, Graph, GraphArrays, HloModule, LayoutBatch, Limits, MAX_SEGMENT_NODES, Pad,
    SegmentedGraph, Task, TileBatch,
};
use hlorank_proto::v1::{ConfigBatch, config_batch::Configs};
use prost::Message as _;

/// Small enough that inputs reach them.
pub(crate) const LIMITS: Limits = Limits { nodes: 1500, edges: 6000, configs: 1000, config_entries: 50_000 };

/// Bytes of a message that a person reads, whatever it quotes.
const MAX_MESSAGE: usize = 1000;

/// Columns of features that are lists, in which a negative number may stand for nothing.
const LISTS: [std::ops::Range<usize>; 4] = [31..37, 95..99, 101..105, 134..140];

/// What a refusal says, without numbers and quotations.
pub(crate) fn refused(error: &impl fmt::Display) -> String {
    let message = error.to_string();
    assert!(message.len() <= MAX_MESSAGE, "a message of {} bytes: {message}", message.len());
    let unquoted: String = message.split(['`', '"']).step_by(2).collect();
    unquoted.chars().filter(|character| character.is_ascii_alphabetic() || *character == ' ').collect()
}

/// A size as outcomes tell it.
fn size(count: usize) -> u32 {
    count.checked_ilog2().map_or(0, |size| size + 1)
}

/// A module that was read.
pub(crate) fn check_module(module: HloModule<'_>) -> String {
    let nodes = module.len();
    assert!((1..=LIMITS.nodes).contains(&nodes), "{nodes} nodes");
    assert!(module.arrays.edges.len() <= LIMITS.edges, "{} edges", module.arrays.edges.len());
    let described = (0..).map_while(|node| module.describe(node)).count();
    assert_eq!(described, nodes, "nodes that can be described");
    let splits = &module.node_splits;
    assert!(splits.is_sorted() && splits.first() == Some(&0) && splits.last() == Some(&nodes), "{splits:?}");
    let unknown: usize = module.unknown_opcodes.values().sum();
    assert_eq!(unknown, module.arrays.unknown_opcodes());
    let configurable = module.arrays.default_configurable();
    match module.into_graph(Task::Layout, configurable) {
        Ok(graph) => format!("{}, {} unknown", check_graph(&graph), size(unknown)),
        Err(error) => refused(&error),
    }
}

/// A graph that was read, and how it is cut.
pub(crate) fn check_graph(graph: &Graph) -> String {
    assert!(graph.raw_features().iter().all(|feature| feature.is_finite()), "a feature is not finite");
    assert!(graph.edges().is_sorted_by(|one, next| one < next), "edges are sorted, each once");
    check_features(graph);
    let cut = SegmentedGraph::new(graph);
    let mut nodes: Vec<u32> = cut.occurrences.iter().flat_map(|place| place.nodes.iter().copied()).collect();
    let mut slots: Vec<usize> =
        cut.occurrences.iter().flat_map(|place| place.slots.iter().copied()).collect();
    nodes.sort_unstable();
    slots.sort_unstable();
    assert!(nodes.is_sorted_by(|one, next| one < next), "a node lies in two segments");
    assert_eq!(nodes.len(), cut.summary.kept, "nodes in segments");
    assert!(slots.into_iter().eq(0..graph.configurable().len()), "slots in segments");
    assert!(cut.segments.iter().all(|segment| (1..=MAX_SEGMENT_NODES).contains(&segment.len())));
    let summary = cut.summary;
    format!(
        "{} nodes, {} edges, {} slots, {} segments, {} distinct",
        size(summary.nodes),
        size(summary.edges),
        size(summary.configurable),
        size(summary.segments),
        size(summary.distinct_segments)
    )
}

/// A graph that is sent as its arrays is the same graph.
fn check_features(graph: &Graph) {
    let in_list = |column: usize| LISTS.iter().any(|list| list.contains(&column));
    let values = graph.raw_features().iter().enumerate();
    if values.into_iter().any(|(place, value)| *value < 0.0 && in_list(place % hlorank_graph::FEATURES)) {
        return;
    }
    let (pad, features) = match graph.features(Pad::MinusOne) {
        Some(features) => (Pad::MinusOne, features),
        None => (Pad::Zero, graph.raw_features().to_vec()),
    };
    let arrays =
        GraphArrays::from_features(graph.opcodes().to_vec(), features, graph.edges().to_vec(), pad, &LIMITS);
    let again = Graph::new(graph.task(), arrays.expect("arrays of a graph"), graph.configurable().to_vec());
    assert_eq!(again.expect("a graph").hash(), graph.hash(), "the hash of a graph that came as features");
}

/// A batch in any form, read against a graph that fits it.
pub(crate) fn check_batch(input: &[u8]) -> String {
    let batch = match ConfigBatch::decode(input) {
        Ok(ConfigBatch { configs: Some(configs) }) => configs,
        Ok(ConfigBatch { configs: None }) => return "nothing".to_owned(),
        Err(error) => return refused(&error),
    };
    let slots = match &batch {
        Configs::LayoutConfigs(message) => {
            let nodes = message.configs.iter().flat_map(|config| &config.nodes).map(|node| node.node);
            nodes.max().map_or(1, |node| (node as usize).min(63) + 1)
        }
        Configs::PackedLayoutConfigs(message) => message.tables.len(),
        Configs::DeltaLayoutConfigs(message) => message.tables.len(),
        Configs::TileConfigs(_) | Configs::PackedTileConfigs(_) => 0,
    };
    match read_batch(&batch, slots, &LIMITS) {
        Ok(configurations) => {
            // They are the same code for more, and reading again and again takes its time.
            if configurations.len() < 50 {
                check_limits(&batch, slots, &configurations);
            }
            check_forms(&configurations)
        }
        Err(refusal) => refusal,
    }
}

fn read_batch(batch: &Configs, slots: usize, limits: &Limits) -> Result<Configurations, String> {
    let configurable = nodes_of(slots);
    let read = match batch {
        Configs::LayoutConfigs(message) => {
            LayoutBatch::from_readable(message, &configurable, limits).map(Configurations::Layout)
        }
        Configs::PackedLayoutConfigs(message) => {
            LayoutBatch::from_packed(message, slots, limits).map(Configurations::Layout)
        }
        Configs::DeltaLayoutConfigs(message) => {
            LayoutBatch::from_delta(message, slots, limits).map(Configurations::Layout)
        }
        Configs::TileConfigs(message) => TileBatch::from_readable(message, limits).map(Configurations::Tile),
        Configs::PackedTileConfigs(message) => {
            TileBatch::from_packed(message, limits).map(Configurations::Tile)
        }
    };
    read.map_err(|error| refused(&error))
}

fn nodes_of(slots: usize) -> Vec<u32> {
    (0..).take(slots).collect()
}

/// What is read at a limit is refused one past it.
fn check_limits(batch: &Configs, slots: usize, configurations: &Configurations) {
    let configs = configurations.len();
    let at = Limits { configs, config_entries: configs * slots, ..LIMITS };
    assert_eq!(read_batch(batch, slots, &at).as_ref(), Ok(configurations), "at the limit");
    let past = [
        Limits { configs: configs - 1, ..at },
        Limits { config_entries: at.config_entries.wrapping_sub(1), ..at },
    ];
    let past = &past[..if slots == 0 { 1 } else { 2 }];
    assert!(past.iter().all(|limits| read_batch(batch, slots, limits).is_err()), "one past the limit");
    let fits_any =
        matches!(batch, Configs::TileConfigs(_) | Configs::PackedTileConfigs(_) | Configs::LayoutConfigs(_));
    assert!(fits_any || read_batch(batch, slots + 1, &LIMITS).is_err(), "a graph of one slot more");
}

/// Configurations that were read are the same in every form that can hold them.
pub(crate) fn check_forms(configurations: &Configurations) -> String {
    let again = |form, slots| read_batch(&form, slots, &LIMITS);
    match configurations {
        Configurations::Layout(batch) => {
            let slots = batch.slots();
            let packed = again(Configs::PackedLayoutConfigs(batch.to_packed()), slots);
            assert_eq!(packed.as_ref(), Ok(configurations), "packed");
            let delta = again(Configs::DeltaLayoutConfigs(batch.to_delta()), slots);
            assert_eq!(delta.as_ref(), Ok(configurations), "as changes");
            let readable = again(Configs::LayoutConfigs(batch.to_readable(&nodes_of(slots))), slots);
            let Ok(Configurations::Layout(readable)) = readable else { panic!("readable: {readable:?}") };
            let entries = |batch: &LayoutBatch| -> Vec<_> {
                let places = (0..batch.len()).flat_map(|config| (0..slots).map(move |slot| (config, slot)));
                places.map(|(config, slot)| batch.entry(config, slot)).collect()
            };
            assert_eq!(entries(&readable), entries(batch), "readable");
            let changes = batch.changes();
            assert!(changes <= batch.len() * slots, "{changes} changes");
            let table = (0..slots).map(|slot| batch.table(slot).len()).max().unwrap_or(0);
            format!(
                "{} layouts of {} slots, {} entries, {} changes",
                size(batch.len()),
                size(slots),
                size(table),
                size(changes)
            )
        }
        Configurations::Tile(batch) => {
            let readable = again(Configs::TileConfigs(batch.to_readable()), 0);
            assert_eq!(readable.as_ref(), Ok(configurations), "readable");
            let packed = batch.to_packed();
            let is_packed = packed.is_some();
            if let Some(packed) = packed {
                assert_eq!(
                    again(Configs::PackedTileConfigs(packed), 0).as_ref(),
                    Ok(configurations),
                    "packed"
                );
            }
            let mut features = batch.iter().flat_map(|tile| tile.features());
            assert!(features.all(f32::is_finite), "a feature of a tile is not finite");
            let bounds = batch.iter().map(|tile| tile.output_bounds.len()).max().unwrap_or(0);
            format!("{} tiles of {} bounds, packed {is_packed}", size(batch.len()), size(bounds))
        }
    }
}
