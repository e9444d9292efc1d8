use std::sync::Arc;

use crate::{
    GraphArrays, GraphError, InstanceFeatureError, InstanceFeatures, InstanceValue, Limits,
    NamedFeatureSet,
    arrays::{check_acyclic, check_ends, check_finite, clear_signs_of_zeros},
    features::is_set_name,
    hash::CanonicalForm,
};

/// A graph of `n` nodes with the columns of a named feature set, which the manifest of a model or the sender defines, and `m`
/// edges. Edges form no cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureGraph {
    /// Name of the feature set.
    set: String,
    /// The set, if the sender describes it.
    description: Option<Arc<NamedFeatureSet>>,
    /// Which instance of the set it is, where features do not tell; may be empty.
    instance: String,
    /// How the instance differs from others; may be none.
    instance_features: InstanceFeatures,
    nodes: usize,
    /// `[n, columns]` row-major features, all finite.
    features: Vec<f32>,
    /// `[m]` pairs (consumer, producer), sorted and without duplicates.
    edges: Vec<[u32; 2]>,
}

/// Maximum length of the name of an instance.
const MAX_INSTANCE_BYTES: usize = 256;

impl FeatureGraph {
    /// Checks a graph: `[nodes, columns]` features of any number of columns, which may be none if there is one node, and edges in
    /// any order.
    pub fn new(
        set: String,
        nodes: usize,
        mut features: Vec<f32>,
        mut edges: Vec<[u32; 2]>,
        limits: &Limits,
    ) -> Result<Self, GraphError> {
        if !is_set_name(&set) {
            return Err(GraphError::FeatureSetName);
        }
        GraphArrays::check_sizes(nodes, edges.len(), limits)?;
        check_features(nodes, &features)?;
        check_ends(nodes, &edges)?;
        clear_signs_of_zeros(&mut features);
        // The search for a cycle finds the edges of a node by their order.
        edges.sort_unstable();
        edges.dedup();
        check_acyclic(nodes, &edges)?;
        Ok(Self {
            set,
            description: None,
            instance: String::new(),
            instance_features: InstanceFeatures::default(),
            nodes,
            features,
            edges,
        })
    }

    /// Names the instance: a text of at most 256 bytes.
    pub fn of_instance(self, instance: String) -> Result<Self, GraphError> {
        if instance.len() > MAX_INSTANCE_BYTES {
            return Err(GraphError::InstanceTooLong {
                found: instance.len(),
                limit: MAX_INSTANCE_BYTES,
            });
        }
        Ok(Self { instance, ..self })
    }

    /// Says how the instance differs from others. Only a graph of one node is an instance.
    pub(super) fn with_instance_features(
        self,
        instance_features: InstanceFeatures,
    ) -> Result<Self, GraphError> {
        let nodes = self.nodes;
        if nodes > 1 && !instance_features.is_empty() {
            let error = InstanceFeatureError::SeveralNodes { nodes };
            return Err(GraphError::InstanceFeatures(error));
        }
        Ok(Self {
            instance_features,
            ..self
        })
    }

    /// Describes the feature set by the names of its columns.
    pub fn described(
        self,
        node_columns: Vec<String>,
        config_columns: Vec<String>,
    ) -> Result<Self, GraphError> {
        let found = node_columns.len();
        let expected = self.columns();
        if found != expected {
            return Err(GraphError::ColumnNames { found, expected });
        }
        let set = NamedFeatureSet::new(self.set.clone(), node_columns, config_columns)
            .map_err(GraphError::SetDescription)?;
        Ok(Self {
            description: Some(Arc::new(set)),
            ..self
        })
    }

    /// Returns the feature set, if the sender described it.
    pub fn description(&self) -> Option<&Arc<NamedFeatureSet>> {
        self.description.as_ref()
    }

    /// Returns the name of the instance, which may be empty.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Returns how the instance differs from others.
    pub fn instance_features(&self) -> &InstanceFeatures {
        &self.instance_features
    }

    /// Returns the name of the feature set.
    pub fn set(&self) -> &str {
        &self.set
    }

    /// Returns the number of nodes, which is at least 1.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the number of columns of a node, which is at least 1 if there are several nodes.
    pub fn columns(&self) -> usize {
        self.features.len() / self.nodes
    }

    /// Returns the `[n, columns]` features.
    pub fn features(&self) -> &[f32] {
        &self.features
    }

    /// Returns the `[m]` pairs (consumer, producer), sorted and without duplicates.
    pub fn edges(&self) -> &[[u32; 2]] {
        &self.edges
    }

    /// Returns the bytes that the names take.
    pub(super) fn name_bytes(&self) -> usize {
        let described = self.description.as_ref().map_or(0, |set| set.bytes());
        self.set.len() + self.instance.len() + self.instance_features.bytes() + described
    }

    /// Returns the canonical form in `graph/README.md`.
    pub(super) fn form(&self) -> CanonicalForm {
        let mut form = CanonicalForm::new(b"hlorank-feature-graph");
        form.count(self.set.len());
        form.bytes(self.set.as_bytes());
        form.count(self.nodes);
        form.count(self.edges.len());
        form.count(self.columns());
        form.floats(&self.features);
        form.numbers(self.edges.as_flattened().iter().copied());
        // What is not sent adds nothing, so that it changes no hash.
        if let Some(set) = &self.description {
            // The word in front tells a description from an instance, either of which may be
            // absent.
            form.bytes(b"description");
            form.bytes(&set.digest().0);
        }
        if !self.instance.is_empty() {
            form.bytes(b"instance");
            form.count(self.instance.len());
            form.bytes(self.instance.as_bytes());
        }
        if !self.instance_features.is_empty() {
            form.bytes(b"instance features");
            self.write_instance(&mut form);
        }
        form
    }

    fn write_instance(&self, form: &mut CanonicalForm) {
        form.count(self.instance_features.iter().count());
        for feature in self.instance_features.iter() {
            let (kind, bytes) = match feature.value() {
                InstanceValue::Number(number) => {
                    (b"number", number.to_bits().to_le_bytes().to_vec())
                }
                InstanceValue::Text(text) => (b"text  ", text.clone().into_bytes()),
            };
            form.count(feature.name().len());
            form.bytes(feature.name().as_bytes());
            form.bytes(kind);
            form.count(bytes.len());
            form.bytes(&bytes);
        }
    }

    /// Writes what instances of one set share, whose measurements say something of each other.
    pub(super) fn write_set(&self, form: &mut CanonicalForm) {
        if self.instance_features.is_empty() {
            return;
        }
        form.bytes(b"instances");
        form.count(self.set.len());
        form.bytes(self.set.as_bytes());
        if let Some(set) = &self.description {
            form.bytes(&set.digest().0);
        }
    }
}

/// Checks that every node has the same number of features, and that all are finite.
fn check_features(nodes: usize, features: &[f32]) -> Result<(), GraphError> {
    // A space of parameters has one node without columns. Nothing would tell several nodes
    // without columns apart.
    let lacks_features = features.is_empty() && nodes > 1;
    if lacks_features || !features.len().is_multiple_of(nodes) {
        return Err(GraphError::NodeFeatures {
            found: features.len(),
            nodes,
        });
    }
    check_finite(features, features.len() / nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Graph, Task};

    fn feature_graph(nodes: usize, features: &[f32], edges: &[[u32; 2]]) -> FeatureGraph {
        let (features, edges) = (features.to_vec(), edges.to_vec());
        FeatureGraph::new("set".to_owned(), nodes, features, edges, &Limits::default()).unwrap()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_graph_of_a_feature_set_has_columns_and_no_opcodes() {
        let features = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let graph = Graph::of_features(feature_graph(3, &features, &[[2, 0], [1, 0], [2, 0]]));
        assert_eq!(
            (graph.task(), graph.len(), graph.columns()),
            (Task::FeatureSet, 3, 2)
        );
        assert_eq!(graph.edges(), [[1, 0], [2, 0]], "ascending, each once");
        assert_eq!(
            (graph.opcodes(), graph.configurable()),
            (&[][..], &[0, 1, 2][..])
        );
        assert_eq!(graph.raw_row(1), [3.0, 4.0]);
    }

    #[test]
    fn features_of_an_instance_are_part_of_the_hash() {
        let hash = |features: &[(&str, f64)]| {
            let feature = |&(name, number): &(&str, f64)| hlorank_proto::v1::InstanceFeature {
                name: name.to_owned(),
                value: Some(hlorank_proto::v1::instance_feature::Value::Number(number)),
            };
            let features: Vec<_> = features.iter().map(feature).collect();
            let features = InstanceFeatures::of_message(&features).unwrap();
            let graph = feature_graph(1, &[], &[]).with_instance_features(features);
            let graph = Graph::of_features(graph.unwrap());
            (graph.hash(), graph.structure())
        };
        let [one, other] = [hash(&[("m", 0.0), ("n", 2.0)]), hash(&[("m", 2.0)])];
        assert_eq!(hash(&[("n", 2.0), ("m", -0.0)]), one, "in any order");
        assert_ne!(other.0, one.0);
        assert_eq!(other.1, one.1, "instances of a set are alike");
        assert_ne!(
            hash(&[]).1,
            one.1,
            "an instance without features teaches nothing of others"
        );
    }

    #[test]
    fn equal_graphs_have_one_hash() {
        let hash = |features: &[f32], edges: &[[u32; 2]]| {
            Graph::of_features(feature_graph(3, features, edges)).hash()
        };
        let one = hash(&[0.0, 1.0, 2.0], &[[1, 0], [2, 1]]);
        assert_eq!(hash(&[-0.0, 1.0, 2.0], &[[2, 1], [1, 0], [2, 1]]), one);
        assert_ne!(hash(&[0.0, 1.0, 2.0], &[[1, 0]]), one);
        assert_ne!(hash(&[0.0, 1.0, 3.0], &[[1, 0], [2, 1]]), one);
        let (name, features, edges) =
            ("sets".to_owned(), vec![0.0, 1.0, 2.0], vec![[1, 0], [2, 1]]);
        let other = FeatureGraph::new(name, 3, features, edges, &Limits::default());
        assert_ne!(Graph::of_features(other.unwrap()).hash(), one);
    }

    #[test]
    fn a_description_and_an_instance_tell_graphs_apart() {
        let space = || feature_graph(1, &[], &[]);
        let described = |columns: &[&str]| space().described(Vec::new(), names(columns)).unwrap();
        let of = |graph: FeatureGraph, instance: &str| {
            let graph = graph.of_instance(instance.to_owned()).unwrap();
            Graph::of_features(graph).hash()
        };
        let hashes = [
            of(space(), ""),
            of(space(), "1024"),
            of(described(&["block"]), ""),
            of(described(&["block"]), "1024"),
            of(described(&["block", "warps"]), "1024"),
        ];
        for (number, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..number].contains(hash), "graph {number}");
        }
        assert_eq!(of(described(&["block"]), "1024"), hashes[3]);
    }

    #[test]
    fn a_wrong_description_is_refused() {
        let space = || feature_graph(1, &[0.5], &[]);
        let described = |nodes: &[&str], configs: &[&str]| {
            space().described(names(nodes), names(configs)).map(|_| ())
        };
        assert_eq!(described(&["depth"], &["tile"]), Ok(()));
        let count = GraphError::ColumnNames {
            found: 0,
            expected: 1,
        };
        assert_eq!(described(&[], &["tile"]), Err(count));
        let refused = described(&["depth"], &[]);
        assert!(matches!(refused, Err(GraphError::SetDescription(_))));
        let long = space().of_instance("x".repeat(257)).unwrap_err();
        assert!(long.to_string().contains("257 bytes"), "{long}");
    }
}
