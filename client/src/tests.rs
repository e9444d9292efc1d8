//! The test vectors that all clients share: `tests/data/client_vectors.json`.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use hlorank_graph::{
    Configurations, FeatureGraph, FusionBatch, Graph, GraphFile, LAYOUT_VALUES, LayoutBatchBuilder,
    LayoutEntry, Limits, NamedFeatureSet, NodeFeatureBatch, Task, TileBatch, TileConfiguration,
};
use hlorank_proto::v1::{self, ConfigBatch, InstanceFeature, instance_feature};
use prost::Message as _;
use serde_json::Value;

use crate::GraphHandle;

/// Returns a file of the fixtures that every client shares.
fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/data")
        .join(path)
}

/// Returns the cases of one section.
fn cases(section: &str) -> Vec<Value> {
    let text = fs::read_to_string(fixture("client_vectors.json")).unwrap();
    let vectors: Value = serde_json::from_str(&text).unwrap();
    let cases = vectors[section].as_array().unwrap().clone();
    assert!(!cases.is_empty(), "{section}");
    cases
}

fn list<T: serde::de::DeserializeOwned>(value: &Value) -> Vec<T> {
    serde_json::from_value(value.clone()).unwrap()
}

/// Returns tiles whose outputs have one bound each.
pub(crate) fn tiles(bounds: &[i64]) -> Configurations {
    let mut batch = TileBatch::default();
    for &bound in bounds {
        let tile = TileConfiguration {
            kernel_bounds: &[],
            output_bounds: &[bound],
            input_bounds: &[],
        };
        batch.push(tile, &Limits::default()).unwrap();
    }
    Configurations::Tile(batch)
}

fn assert_route(graph: &GraphHandle, case: &Value) {
    assert_eq!(graph.route().to_str().unwrap(), case["route"], "{case}");
}

fn assert_sent(configurations: &Configurations, case: &Value) {
    let batch = ConfigBatch {
        configs: Some(configurations.to_smallest_form()),
    };
    let mut sent = String::new();
    batch
        .encode_to_vec()
        .iter()
        .for_each(|byte| write!(sent, "{byte:02x}").unwrap());
    assert_eq!(sent, case["sent"].as_str().unwrap(), "{}", case["name"]);
}

#[test]
fn route_keys_of_modules_equal_those_of_every_client() {
    for case in cases("modules") {
        let length = case["length"].as_u64().unwrap();
        let module = (0..length)
            .map(|index| u8::try_from(index % 251).unwrap())
            .collect();
        assert_route(
            &GraphHandle::hlo_module(module, Task::Layout, vec![]),
            &case,
        );
    }
}

#[test]
fn route_keys_of_files_equal_those_of_every_client() {
    for case in cases("files") {
        let path = fixture(case["file"].as_str().unwrap());
        let file = GraphFile::read(&path, Task::Layout, &Limits::default()).unwrap();
        assert_route(&GraphHandle::from_measured(&file.graphs[0]), &case);
    }
}

#[test]
fn layouts_are_encoded_as_by_every_client() {
    for case in cases("layouts") {
        let configs: Vec<Vec<[i32; LAYOUT_VALUES]>> = list(&case["values"]);
        let mut batch = LayoutBatchBuilder::new(configs[0].len(), Limits::default());
        for config in configs {
            let entries = config
                .iter()
                .map(|values| LayoutEntry::from_values(values, String::new).unwrap());
            batch.push(&entries.collect::<Vec<_>>()).unwrap();
        }
        assert_sent(&Configurations::Layout(batch.build().unwrap()), &case);
    }
}

#[test]
fn tiles_are_encoded_as_by_every_client() {
    for case in cases("tiles") {
        let names = ["kernel_bounds", "output_bounds", "input_bounds"];
        let lists: [Option<Vec<Vec<i64>>>; 3] = names.map(|name| case.get(name).map(list));
        let configs = lists.iter().flatten().map(Vec::len).max().unwrap();
        let mut batch = TileBatch::default();
        for config in 0..configs {
            let [kernel_bounds, output_bounds, input_bounds] = lists
                .each_ref()
                .map(|list| list.as_ref().map_or(&[][..], |list| &list[config]));
            let tile = TileConfiguration {
                kernel_bounds,
                output_bounds,
                input_bounds,
            };
            batch.push(tile, &Limits::default()).unwrap();
        }
        assert_sent(&Configurations::Tile(batch), &case);
    }
}

#[test]
fn features_of_tiles_are_encoded_as_by_every_client() {
    for case in cases("tile_features") {
        let mut batch = TileBatch::default();
        for features in list::<Vec<f32>>(&case["features"]) {
            batch.push_features(&features, &Limits::default()).unwrap();
        }
        assert_sent(&Configurations::Tile(batch), &case);
    }
}

#[test]
fn fusions_are_encoded_as_by_every_client() {
    for case in cases("fusions") {
        let configs: Vec<Vec<u8>> = list(&case["fused"]);
        let slots = configs[0].len();
        let byte = |bits: &[u8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
        let fused = configs
            .iter()
            .flat_map(|bits| bits.chunks(8).map(byte))
            .collect();
        let batch = FusionBatch::new(configs.len(), slots, fused, &Limits::default()).unwrap();
        assert_sent(&Configurations::Fusion(batch), &case);
    }
}

#[test]
fn digests_of_feature_sets_equal_those_of_every_client() {
    for case in cases("feature_sets") {
        let (nodes, configs) = (list(&case["node_features"]), list(&case["config_features"]));
        let set = NamedFeatureSet::new(case["name"].as_str().unwrap().to_owned(), nodes, configs)
            .unwrap();
        assert_eq!(
            set.digest().to_string(),
            case["digest"].as_str().unwrap(),
            "{case}"
        );
    }
}

#[test]
fn graphs_of_feature_sets_equal_those_of_every_client() {
    for case in cases("feature_graphs") {
        let features: Vec<Vec<f32>> = list(&case["node_features"]);
        let (set, nodes) = (
            case["feature_set"].as_str().unwrap().to_owned(),
            features.len(),
        );
        let edges = list(&case["edges"]);
        let graph =
            FeatureGraph::new(set, nodes, features.concat(), edges, &Limits::default()).unwrap();
        assert_route(&GraphHandle::feature_graph(&graph), &case);
        assert_eq!(
            Graph::of_features(graph).hash().to_string(),
            case["hash"].as_str().unwrap(),
            "{case}"
        );
    }
}

#[test]
fn spaces_equal_those_of_every_client() {
    for case in cases("spaces") {
        let text = |field: &str| case[field].as_str().unwrap_or_default().to_owned();
        let features = case["instance"].as_object().into_iter().flatten();
        let features = features.map(|(name, value)| InstanceFeature {
            name: name.clone(),
            value: Some(match value {
                Value::String(text) => instance_feature::Value::Text(text.clone()),
                _ => instance_feature::Value::Number(value.as_f64().unwrap()),
            }),
        });
        let message = v1::FeatureGraph {
            feature_set: text("feature_set"),
            nodes: 1,
            config_columns: list(&case["parameters"]),
            instance: text("instance"),
            instance_features: features.collect(),
            ..v1::FeatureGraph::default()
        };
        let graph = FeatureGraph::of_message(&message, &Limits::default()).unwrap();
        assert_route(&GraphHandle::feature_graph(&graph), &case);
        let hash = Graph::of_features(graph).hash().to_string();
        assert_eq!(hash, text("hash"), "{case}");
    }
}

#[test]
fn columns_of_feature_sets_are_encoded_as_by_every_client() {
    for case in cases("node_features") {
        let configs: Vec<Vec<Vec<f32>>> = list(&case["values"]);
        let shape = [configs[0].len(), configs[0][0].len()];
        let values = configs.concat().concat();
        let batch = NodeFeatureBatch::from_values(shape, &values, &Limits::default()).unwrap();
        assert_sent(&Configurations::FeatureSet(batch), &case);
    }
}
