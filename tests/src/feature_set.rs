//! A model of a feature set that a test can compute by hand, and graphs of the set.

use std::{fs, path::Path};

use fastrand::Rng;
use hlorank_graph::{
    Configurations, Digest, FeatureGraph, Graph, GraphSource, Limits, MeasuredGraph, Measurements,
    NamedFeatureSet, NodeFeatureBatch,
};
use hlorank_proto::onnx::GraphProto;
use prost::Message as _;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::{
    npz::ArrayWriter,
    onnx::{FLOAT32, INT64, floats, integers, model_of, nodes, scalar, value},
};

/// A model of a feature set. The score of a configuration is a sum over nodes and edges: with `g(n)` the weighted features of
/// node n and `v(n)` its weighted configuration columns, `Σ g(n) v(n)` over nodes, and `Σ g(producer) v(consumer)` over edges.
#[derive(Clone, Debug)]
pub struct FeatureSetModel {
    /// The set.
    pub set: NamedFeatureSet,
    /// Name of the model.
    pub name: String,
    /// Weights of the columns of a node.
    pub node_weights: Vec<f32>,
    /// Weights of the columns of a node in a configuration.
    pub config_weights: Vec<f32>,
    /// Whether scores are seconds.
    pub seconds: bool,
}

/// Graphs and configurations of the feature set `loops`: three columns of a node, two of a configuration.
pub struct Loops;

/// Number of configurations of a chunk.
const CHUNK: usize = 5;

impl FeatureSetModel {
    /// A model of the feature set `loops`.
    pub fn of_loops(name: &str) -> Self {
        Self {
            set: Loops::set("loops"),
            name: name.to_owned(),
            node_weights: vec![0.5, 0.25, 1.0],
            config_weights: vec![1.5, -0.5],
            seconds: false,
        }
    }

    /// Returns the score of every configuration.
    pub fn scores(&self, graph: &FeatureGraph, batch: &NodeFeatureBatch) -> Vec<f32> {
        let weighted = |row: &[f32], weights: &[f32]| -> f64 {
            row.iter()
                .zip(weights)
                .map(|(value, weight)| f64::from(*value) * f64::from(*weight))
                .sum()
        };
        let rows = graph.features().chunks(graph.columns());
        let gains: Vec<f64> = rows.map(|row| weighted(row, &self.node_weights)).collect();
        let score = |config| {
            let values: Vec<f32> = batch.values(config).collect();
            let rows = values.chunks(batch.columns());
            let values: Vec<f64> = rows
                .map(|row| weighted(row, &self.config_weights))
                .collect();
            let nodes: f64 = gains
                .iter()
                .zip(&values)
                .map(|(gain, value)| gain * value)
                .sum();
            let edge = |&[consumer, producer]: &[u32; 2]| {
                gains[producer as usize] * values[consumer as usize]
            };
            #[expect(
                clippy::cast_possible_truncation,
                reason = "scores have single precision"
            )]
            let score = (nodes + graph.edges().iter().map(edge).sum::<f64>()) as f32;
            score
        };
        (0..batch.len()).map(score).collect()
    }

    /// Writes a version into `folder/NAME/VERSION`.
    pub fn write(&self, folder: &Path, version: u64) {
        let folder = folder.join(&self.name).join(version.to_string());
        fs::create_dir_all(&folder).expect("a folder can be made");
        let files = [("model.onnx", self.onnx()), ("golden.npz", self.golden())];
        let digests = files.each_ref().map(|(name, bytes)| {
            fs::write(folder.join(name), bytes).expect("a file can be written");
            let digest = Digest(Sha256::digest(bytes).into()).to_string();
            ((*name).to_owned(), digest.into())
        });
        let set = &self.set;
        let mut manifest = json!({
            "schema": 1, "name": self.name, "version": version, "task": "feature-set", "kind": "graph",
            "architecture": "weighted-sum", "chunk_configs": CHUNK, "batch_dependent": false,
            "feature_digest": set.digest().to_string(),
            "feature_set": {
                "name": set.name(), "node_features": set.node_features(), "config_features": set.config_features(),
            },
            "files": serde_json::Map::from_iter(digests), "training_data_digest": "00".repeat(32),
            "measured_quality": {}, "licence": "Apache-2.0",
        });
        if self.seconds {
            manifest["unit"] = "seconds".into();
        }
        let text = serde_json::to_string_pretty(&manifest).expect("JSON");
        fs::write(folder.join("manifest.json"), text + "\n").expect("a manifest can be written");
    }

    fn onnx(&self) -> Vec<u8> {
        let nodes = nodes(
            "gains = MatMul(features, node_weights)
            values = MatMul(config, config_weights)
            of_nodes = Mul(values, gains)
            nodes = ReduceSum<keepdims=0>(of_nodes, axes)
            consumers = Gather<axis=0>(edges, first)
            producers = Gather<axis=0>(edges, second)
            of_consumers = Gather<axis=1>(values, consumers)
            of_producers = Gather<axis=0>(gains, producers)
            of_edges = Mul(of_consumers, of_producers)
            along_edges = ReduceSum<keepdims=0>(of_edges, axes)
            score = Add(nodes, along_edges)",
        );
        let column = |name: &str, weights: &[f32]| {
            let rows = weights.len().try_into().expect("few columns");
            floats(name, &[rows, 1], weights)
        };
        let graph = GraphProto {
            name: "weighted-sum".to_owned(),
            node: nodes,
            initializer: vec![
                column("node_weights", &self.node_weights),
                column("config_weights", &self.config_weights),
                integers("axes", &[1, 2]),
                scalar("first", 0),
                scalar("second", 1),
            ],
            input: vec![
                value("features", FLOAT32, 2, 0),
                value("edges", INT64, 2, 2),
                value("config", FLOAT32, 3, 0),
            ],
            output: vec![value("score", FLOAT32, 1, 0)],
            ..GraphProto::default()
        };
        model_of(graph).encode_to_vec()
    }

    /// Two golden cases: a graph with edges and several chunks, and a single node.
    fn golden(&self) -> Vec<u8> {
        let mut random = Rng::with_seed(7);
        let mut file = ArrayWriter::new();
        let [features, columns] = [self.node_weights.len(), self.config_weights.len()];
        for (case, (nodes, configs)) in [(6, 2 * CHUNK + 2), (1, 3)].into_iter().enumerate() {
            let graph = Loops::random_graph(self.set.name(), nodes, features, &mut random);
            let batch = Loops::random_batch([nodes, columns], configs, &mut random);
            let name = |array: &str| format!("{case}/{array}");
            let set = graph.set();
            file.add(&name("feature_set"), &[set.len()], set.bytes());
            let values = graph.features().iter().copied();
            file.add(&name("node_features"), &[nodes, features], values);
            let edges = graph.edges().as_flattened().iter().copied().map(i64::from);
            file.add(&name("edge_index"), &[graph.edges().len(), 2], edges);
            let values = (0..configs).flat_map(|config| batch.values(config));
            file.add(&name("config_features"), &[configs, nodes, columns], values);
            file.add(&name("score"), &[configs], self.scores(&graph, &batch));
        }
        file.finish()
    }
}

impl Loops {
    /// The feature set under a name.
    pub fn set(name: &str) -> NamedFeatureSet {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let (nodes, configs) = (
            owned(&["depth", "iterations", "flops"]),
            owned(&["tile", "unroll"]),
        );
        NamedFeatureSet::new(name.to_owned(), nodes, configs).expect("names of a set")
    }

    /// A random graph of the set.
    pub fn graph(nodes: usize, random: &mut Rng) -> FeatureGraph {
        Self::random_graph("loops", nodes, 3, random)
    }

    /// Random configurations of a graph with this many nodes. Rows are often equal.
    pub fn batch(nodes: usize, configs: usize, random: &mut Rng) -> NodeFeatureBatch {
        Self::random_batch([nodes, 2], configs, random)
    }

    /// A graph with measured configurations, whose times follow the scores of a model.
    pub fn measured(
        model: &FeatureSetModel,
        nodes: usize,
        configs: usize,
        random: &mut Rng,
    ) -> MeasuredGraph {
        let (graph, batch) = (
            Self::graph(nodes, random),
            Self::batch(nodes, configs, random),
        );
        #[expect(clippy::cast_possible_truncation, reason = "nanoseconds")]
        let run_times = model
            .scores(&graph, &batch)
            .into_iter()
            .map(|score| 1_000 + (score * 100.0) as i64);
        let measurements = Measurements {
            run_times: run_times.collect(),
            configurations: Configurations::FeatureSet(batch),
            normalizers: None,
            default: None,
            numbers: (0..configs).collect(),
            skipped: 0,
        };
        MeasuredGraph {
            name: "loops".to_owned(),
            source: GraphSource::Features,
            graph: Graph::of_features(graph),
            node_splits: vec![0, nodes],
            nodes: Vec::new(),
            measurements: Some(measurements),
        }
    }

    fn random_graph(set: &str, nodes: usize, columns: usize, random: &mut Rng) -> FeatureGraph {
        let features = (0..nodes * columns)
            .map(|_| f32::from(random.u8(0..20)) / 4.0)
            .collect();
        let node = |node: usize| u32::try_from(node).expect("few nodes");
        let edges = (1..nodes)
            .map(|consumer| [node(consumer), node(random.usize(..consumer))])
            .collect();
        let limits = Limits::default();
        FeatureGraph::new(set.to_owned(), nodes, features, edges, &limits)
            .expect("a graph of the set")
    }

    fn random_batch(
        [nodes, columns]: [usize; 2],
        configs: usize,
        random: &mut Rng,
    ) -> NodeFeatureBatch {
        let values: Vec<f32> = (0..configs * nodes * columns)
            .map(|_| f32::from(random.u8(1..5)))
            .collect();
        NodeFeatureBatch::from_values([nodes, columns], &values, &Limits::default())
            .expect("configurations")
    }
}

/// A flat space of parameters, which the sender describes: a tile, whose size decides, and a number of warps.
pub struct ParameterSpace {
    /// Its graph, of one node.
    pub graph: FeatureGraph,
    /// All configurations.
    pub batch: NodeFeatureBatch,
}

impl ParameterSpace {
    /// Makes the space of an instance, with four tiles and five numbers of warps.
    pub fn new(instance: &str) -> Self {
        let limits = Limits::default();
        let graph = FeatureGraph::new("gemm".to_owned(), 1, vec![], vec![], &limits);
        let columns = ["tile", "warps"].map(str::to_owned).to_vec();
        let graph = graph.and_then(|graph| graph.described(vec![], columns));
        let graph = graph.and_then(|graph| graph.of_instance(instance.to_owned()));
        let pairs = (1..=4u8).flat_map(|tile| (1..=5u8).map(move |warps| [tile, warps]));
        let values: Vec<f32> = pairs.flatten().map(f32::from).collect();
        Self {
            graph: graph.expect("a described graph"),
            batch: NodeFeatureBatch::from_values([1, 2], &values, &limits).expect("configurations"),
        }
    }
}
