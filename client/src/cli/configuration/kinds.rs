//! What the commands do with configurations, for every kind. A new kind is one file beside this one and one arm of each
//! `match` below.

use std::{fs, path::Path};

use fastrand::Rng;
use hlorank_graph::{ConfigurationError, Configurations, Graph, MeasuredGraph, Task};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    feature_set::{self, NodeFeatureForm},
    fusion::{self, FusionForm},
    layout::{self, LayoutForm},
    tile::{self, TileForm},
};
use crate::cli::error::CommandError;

/// One configuration of any kind as JSON.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ConfigurationForm {
    Layout(LayoutForm),
    Tile(TileForm),
    Fusion(FusionForm),
    FeatureSet(NodeFeatureForm),
}

/// A JSON list of configurations.
enum Json<'a> {
    Text(&'a str),
    Values(Vec<Value>),
}

/// Reads a file with a JSON list of configurations of a graph.
pub(crate) fn read(path: &Path, graph: &Graph) -> Result<Configurations, CommandError> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path);
    let text = text.map_err(|source| CommandError::ConfigurationFile {
        path: name.clone(),
        source,
    })?;
    from_json(name, Json::Text(&text), graph)
}

/// Converts JSON values, which are part of a file, to configurations of a graph.
pub(crate) fn from_values(
    path: &Path,
    values: Vec<Value>,
    graph: &Graph,
) -> Result<Configurations, CommandError> {
    from_json(path.display().to_string(), Json::Values(values), graph)
}

fn from_json(name: String, json: Json<'_>, graph: &Graph) -> Result<Configurations, CommandError> {
    // The task of the graph decides which form the JSON must have, so that an error names its keys.
    let slots = graph.configurable();
    let configurations = match graph.task() {
        Task::Layout => layout::from_forms(&json.forms(&name)?, slots),
        Task::Tile => tile::from_forms(&json.forms(&name)?),
        Task::Fusion => fusion::from_forms(&json.forms(&name)?, slots),
        Task::FeatureSet => feature_set::from_forms(&json.forms(&name)?, graph.len()),
    };
    checked(name, configurations, graph)
}

impl Json<'_> {
    fn forms<T: DeserializeOwned>(self, path: &str) -> Result<Vec<T>, CommandError> {
        match self {
            // Text is not made to values first, because its errors name the line and the column.
            Self::Text(text) => parse(path, text),
            Self::Values(values) => in_file(path, serde_json::from_value(Value::Array(values))),
        }
    }
}

fn checked(
    path: String,
    configurations: Result<Configurations, ConfigurationError>,
    graph: &Graph,
) -> Result<Configurations, CommandError> {
    let checked = configurations.and_then(|read| read.check(graph).map(|()| read));
    checked.map_err(|source| CommandError::Configuration { path, source })
}

fn parse<T: DeserializeOwned>(path: &str, text: &str) -> Result<Vec<T>, CommandError> {
    in_file(path, serde_json::from_str(text))
}

fn in_file<T>(path: &str, read: serde_json::Result<T>) -> Result<T, CommandError> {
    read.map_err(|source| CommandError::ConfigurationJson {
        path: path.to_owned(),
        source,
    })
}

impl ConfigurationForm {
    /// Returns one configuration as JSON. `configurable` lists the node of each slot of a layout.
    pub(crate) fn of(configurations: &Configurations, configurable: &[u32], config: usize) -> Self {
        match configurations {
            Configurations::Layout(batch) => {
                Self::Layout(LayoutForm::of(batch, configurable, config))
            }
            Configurations::Tile(batch) => Self::Tile(TileForm::of(batch.get(config).view())),
            Configurations::Fusion(batch) => {
                Self::Fusion(FusionForm::of(batch, configurable, config))
            }
            Configurations::FeatureSet(batch) => {
                Self::FeatureSet(NodeFeatureForm::of(batch, config))
            }
        }
    }
}

/// Returns the number of the compiler's default, if the configuration itself shows that it is the default.
pub(crate) fn default_number(configurations: &Configurations) -> Option<usize> {
    match configurations {
        Configurations::Layout(batch) => layout::default_number(batch),
        // Nothing in a tile or in columns marks the default. The default of a program fuses some of
        // its nodes, and only the compiler knows which.
        Configurations::Tile(_) | Configurations::Fusion(_) | Configurations::FeatureSet(_) => None,
    }
}

/// Returns random configurations, each part of which is taken from any of these configurations.
pub(crate) fn recombine(
    own: &Configurations,
    count: usize,
    random: &mut Rng,
) -> Result<Configurations, ConfigurationError> {
    match own {
        Configurations::Layout(own) => layout::recombine(own, count, random),
        Configurations::Tile(own) => tile::recombine(own, count, random),
        Configurations::Fusion(own) => fusion::recombine(own, count, random),
        Configurations::FeatureSet(own) => feature_set::recombine(own, count, random),
    }
}

/// Returns the node of every slot that a configuration sets.
pub(crate) fn set_nodes(configurations: &Configurations, slots: &[u32], config: usize) -> Vec<u32> {
    match configurations {
        Configurations::Layout(batch) => {
            let is_set = |slot: &usize| !batch.entry(config, *slot).tensors().is_empty();
            let set = (0..slots.len()).filter(is_set);
            set.map(|slot| slots[slot]).collect()
        }
        Configurations::Fusion(batch) => {
            batch.fused_slots(config).map(|slot| slots[slot]).collect()
        }
        Configurations::Tile(_) | Configurations::FeatureSet(_) => Vec::new(),
    }
}

/// Returns two configurations with the one that both are compared with between them, and what it is; `None` if their kind
/// has no such configuration.
pub(crate) fn with_reference(
    all: &Configurations,
    best: usize,
    worst: usize,
) -> Result<Option<(Configurations, &'static str)>, ConfigurationError> {
    Ok(match all {
        Configurations::Layout(batch) => {
            Some((layout::with_default(batch, best, worst)?, "default"))
        }
        Configurations::Fusion(batch) => {
            Some((fusion::with_unfused(batch, best, worst)?, "unfused"))
        }
        Configurations::Tile(_) | Configurations::FeatureSet(_) => None,
    })
}

/// Checks that configurations of the graph can be drawn.
pub(crate) fn check_drawable(
    graph: &MeasuredGraph,
    path: impl Fn() -> String,
) -> Result<(), CommandError> {
    let is_fixed = graph.graph.configurable().is_empty();
    match graph.graph.task() {
        Task::Tile => Err(CommandError::NoTiles { path: path() }),
        Task::FeatureSet => Err(CommandError::NoNodeFeatures { path: path() }),
        Task::Layout if is_fixed => Err(CommandError::NothingConfigurable { path: path() }),
        Task::Fusion if is_fixed => Err(CommandError::Configuration {
            path: path(),
            source: ConfigurationError::NothingToFuse,
        }),
        // A file of features does not contain the ranks of the tensors, which layouts permute.
        Task::Layout if graph.nodes.is_empty() => Err(CommandError::NothingToDraw { path: path() }),
        Task::Layout | Task::Fusion => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal<T: DeserializeOwned>(text: &str) -> String {
        parse::<T>("configs.json", text)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_layout_is_written_as_it_was_read() {
        let text = r#"[{"nodes":[{"node":2,"tensors":[{"minor_to_major":[1,0]}]}]},{}]"#;
        let batch = layout::from_forms(&parse("configs.json", text).unwrap(), &[0, 2]).unwrap();
        let form = |config| {
            serde_json::to_string(&ConfigurationForm::of(&batch, &[0, 2], config)).unwrap()
        };
        assert_eq!(
            form(0),
            r#"{"nodes":[{"node":2,"tensors":[{"minor_to_major":[1,0]}]}]}"#
        );
        assert_eq!(form(1), r#"{"nodes":[]}"#);
    }

    #[test]
    fn missing_bounds_are_empty() {
        let forms: Vec<TileForm> = parse("configs.json", r#"[{"output_bounds":[8,128]}]"#).unwrap();
        let batch = tile::from_forms(&forms).unwrap();
        let form = serde_json::to_string(&ConfigurationForm::of(&batch, &[], 0)).unwrap();
        assert_eq!(
            form,
            r#"{"kernel_bounds":[],"output_bounds":[8,128],"input_bounds":[]}"#
        );
    }

    #[test]
    fn an_unknown_key_is_named_with_its_position() {
        let refused = refusal::<LayoutForm>("[\n{\"nodes\":[{\"node\":1,\"tensor\":[]}]}]");
        assert_eq!(
            refused,
            "configs.json: unknown field `tensor`, expected `node` or `tensors` at line 2 column 28"
        );
        assert!(refusal::<TileForm>(r#"[{"bounds":[1]}]"#).contains("unknown field `bounds`"));
    }
}
