use hlorank_adaptation::split_mix::mix;
use hlorank_graph::{Scope, Task};
use serde::Deserialize;
use serde_json::Value;

use super::fields::Fields;
use crate::model::{
    ModelFeatures, Rejection,
    onnx::{Element::Float32, Element::Int64, Interface, config_outlet, outlet},
};

/// Settings of a whole-graph model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeGraphSettings {
    /// Number of configurations that the model takes at a time; at least 1.
    pub chunk_configs: usize,
    /// Whether a score depends on the other configurations of its chunk.
    pub batch_dependent: bool,
    /// The nodes that the model takes.
    pub nodes: ModelNodes,
    /// How a batch is cut into chunks.
    pub chunking: Chunking,
    /// The orders in which a batch of several chunks is scored. Without them, that is once in the order sent.
    pub permutations: Option<Permutations>,
}

/// The nodes of a graph that a whole-graph model takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelNodes {
    /// `all`: every node.
    #[default]
    All,
    /// `pruned`: the nodes that pruning keeps.
    Pruned,
}

/// How a batch is cut into chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chunking {
    /// `full`: chunks of `chunk_configs` configurations, the last one shorter.
    #[default]
    Full,
    /// `even`: as few chunks, of sizes that differ by one at most, the larger ones first.
    Even,
}

/// Orders of the configurations of a batch, whose scores are averaged: test-time augmentation, as `TGraph` does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Permutations {
    /// Number of orders; 1 to 64.
    pub count: u32,
    /// Seed of the orders.
    pub seed: u64,
}

/// Name of the ONNX file.
pub(in crate::model) const MODEL: &str = "model.onnx";

/// Maximum number of orders.
const MAX_ORDERS: u32 = 64;

impl WholeGraphSettings {
    /// Reads the fields of a whole-graph model.
    pub(super) fn read(fields: &Fields, task: Task) -> Result<Self, Rejection> {
        let scope = task.kind().scope;
        if scope == Scope::Program {
            return Err(fields.refused("kind", "segment for fusions"));
        }
        for field in ["embedding_size", "buckets", "max_segment_nodes"] {
            fields.absent(field, "none for a whole-graph model")?;
        }
        let batch_dependent =
            fields.required("batch_dependent", "true or false", Value::as_bool)?;
        let chunk_configs = fields.required("chunk_configs", "1 or more", |configs| {
            usize::try_from(configs.as_u64()?)
                .ok()
                .filter(|configs| *configs > 0)
        })?;
        let nodes = fields.optional("nodes", "all, or pruned for layouts", |nodes| {
            match (nodes.as_str()?, scope) {
                ("all", _) => Some(ModelNodes::All),
                ("pruned", Scope::Nodes) => Some(ModelNodes::Pruned),
                _ => None,
            }
        })?;
        // The sizes and the orders of chunks matter only if a score depends on the rest of its chunk.
        let chunking = fields.optional(
            "chunking",
            "full, or even with `batch_dependent`",
            |chunking| match chunking.as_str()? {
                "full" => Some(Chunking::Full),
                "even" if batch_dependent => Some(Chunking::Even),
                _ => None,
            },
        )?;
        let permutations = fields.optional(
            "permutations",
            &format!(
                "none without `batch_dependent`, else a count of 1 to {MAX_ORDERS} and a seed"
            ),
            |written| {
                let permutations = Permutations::deserialize(written).ok()?;
                let is_sound = batch_dependent && (1..=MAX_ORDERS).contains(&permutations.count);
                is_sound.then_some(permutations)
            },
        )?;
        Ok(Self {
            chunk_configs,
            batch_dependent,
            nodes: nodes.unwrap_or_default(),
            chunking: chunking.unwrap_or_default(),
            permutations,
        })
    }

    /// Whether a score depends on the number of configurations of its batch or on those outside its chunk, so that a part
    /// of a batch has other scores than the whole.
    pub fn needs_whole_batch(&self) -> bool {
        self.chunking == Chunking::Even || self.permutations.is_some()
    }

    /// The ONNX file of such a model, with its interface.
    pub(super) fn files(task: Task, features: &ModelFeatures) -> Vec<(&'static str, Interface)> {
        let mut inputs = vec![
            outlet("features", Float32, &[None, Some(features.node_features())]),
            outlet("edges", Int64, &[Some(2), None]),
        ];
        inputs.extend(config_outlet(task, features));
        if features.named().is_none() {
            inputs.push(outlet("opcode", Int64, &[None]));
        }
        if task.kind().scope == Scope::Nodes {
            inputs.push(outlet("configurable", Int64, &[None]));
        }
        let score = outlet("score", Float32, &[None]);
        vec![(MODEL, Interface::new(inputs, score))]
    }
}

impl Permutations {
    /// Returns the configurations `0..configs` in one of the orders: by the hash of the seed, the order's number and the
    /// configuration, ties by configuration.
    pub fn order(self, number: u32, configs: usize) -> Vec<usize> {
        // The keys are hashes, so that an exporter computes the same orders without the random
        // numbers of a library.
        let of_order = mix(mix(self.seed) ^ u64::from(number));
        let mut order: Vec<usize> = (0..configs).collect();
        order.sort_by_cached_key(|&config| mix(of_order ^ config as u64));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_document() {
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        let permutations = Permutations {
            count: 2,
            seed: 101,
        };
        let orders = [0, 1].map(|number| permutations.order(number, 8));
        assert_eq!(orders, [[5, 6, 0, 4, 3, 2, 1, 7], [7, 2, 1, 4, 3, 5, 0, 6]]);
    }

    #[test]
    fn an_order_has_every_configuration_once() {
        let mut order = Permutations { count: 1, seed: 7 }.order(0, 1000);
        assert!(!order.is_sorted());
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1000));
    }
}
