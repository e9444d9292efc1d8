use crate::{
    GraphArrays, GraphError, Limits,
    arrays::{check_acyclic, check_ends},
    features::is_set_name,
    hash::CanonicalForm,
};

/// A graph of `n` nodes with the columns of a named feature set, which the manifest of a model defines, and `m` edges. Edges
/// form no cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureGraph {
    /// Name of the feature set.
    set: String,
    nodes: usize,
    /// `[n, columns]` row-major features, all finite.
    features: Vec<f32>,
    /// `[m]` pairs (consumer, producer), sorted and without duplicates.
    edges: Vec<[u32; 2]>,
}

impl FeatureGraph {
    /// Checks a graph: `[nodes, columns]` features of any number of columns, and edges in any order.
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
        if features.is_empty() || !features.len().is_multiple_of(nodes) {
            return Err(GraphError::NodeFeatures {
                found: features.len(),
                nodes,
            });
        }
        let columns = features.len() / nodes;
        if let Some(at) = features.iter().position(|feature| !feature.is_finite()) {
            return Err(GraphError::FeatureNotFinite {
                node: at / columns,
                column: at % columns,
            });
        }
        check_ends(nodes, &edges)?;
        // −0 and 0 are the same number, so they must hash alike.
        for feature in &mut features {
            *feature += 0.0;
        }
        edges.sort_unstable();
        edges.dedup();
        check_acyclic(nodes, &edges)?;
        Ok(Self {
            set,
            nodes,
            features,
            edges,
        })
    }

    /// Returns the name of the feature set.
    #[must_use]
    pub fn set(&self) -> &str {
        &self.set
    }

    /// Returns the number of nodes, which is at least 1.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the number of columns of a node, which is at least 1.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.features.len() / self.nodes
    }

    /// Returns the `[n, columns]` features.
    #[must_use]
    pub fn features(&self) -> &[f32] {
        &self.features
    }

    /// Returns the `[m]` pairs (consumer, producer), sorted and without duplicates.
    #[must_use]
    pub fn edges(&self) -> &[[u32; 2]] {
        &self.edges
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
        form
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Graph, Task};

    fn graph(features: &[f32], edges: &[[u32; 2]]) -> Result<Graph, GraphError> {
        let (features, edges) = (features.to_vec(), edges.to_vec());
        FeatureGraph::new("set".to_owned(), 3, features, edges, &Limits::default())
            .map(Graph::of_features)
    }

    #[test]
    fn a_graph_of_a_feature_set_has_columns_and_no_opcodes() {
        let graph = graph(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[[2, 0], [1, 0], [2, 0]]).unwrap();
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
    fn equal_graphs_have_one_hash() {
        let hash = |features: &[f32], edges: &[[u32; 2]]| graph(features, edges).unwrap().hash();
        let one = hash(&[0.0, 1.0, 2.0], &[[1, 0], [2, 1]]);
        assert_eq!(hash(&[-0.0, 1.0, 2.0], &[[2, 1], [1, 0], [2, 1]]), one);
        assert_ne!(hash(&[0.0, 1.0, 2.0], &[[1, 0]]), one);
        assert_ne!(hash(&[0.0, 1.0, 3.0], &[[1, 0], [2, 1]]), one);
        let other = FeatureGraph::new(
            "sets".to_owned(),
            3,
            vec![0.0, 1.0, 2.0],
            vec![[1, 0], [2, 1]],
            &Limits::default(),
        );
        assert_ne!(Graph::of_features(other.unwrap()).hash(), one);
    }

    #[test]
    fn what_no_graph_has_is_refused() {
        assert_eq!(
            graph(&[1.0; 4], &[]),
            Err(GraphError::NodeFeatures { found: 4, nodes: 3 })
        );
        assert_eq!(
            graph(&[], &[]),
            Err(GraphError::NodeFeatures { found: 0, nodes: 3 })
        );
        let infinite = graph(&[1.0, 2.0, 3.0, 4.0, f32::INFINITY, 6.0], &[]);
        assert_eq!(
            infinite,
            Err(GraphError::FeatureNotFinite { node: 2, column: 0 })
        );
        let unknown = GraphError::UnknownEdgeNode {
            edge: 1,
            node: 3,
            nodes: 3,
        };
        assert_eq!(graph(&[1.0; 3], &[[1, 0], [3, 0]]), Err(unknown));
        assert!(matches!(
            graph(&[1.0; 3], &[[1, 2], [2, 1]]),
            Err(GraphError::Cycle { .. })
        ));
        let limits = Limits::default();
        for name in ["", "a\"b", "é"] {
            let refused = FeatureGraph::new(name.to_owned(), 1, vec![1.0], vec![], &limits);
            assert_eq!(refused, Err(GraphError::FeatureSetName));
        }
        let limits = Limits { nodes: 2, ..limits };
        let large = FeatureGraph::new("set".to_owned(), 3, vec![1.0; 3], vec![], &limits);
        assert!(matches!(
            large,
            Err(GraphError::TooMany { what: "nodes", .. })
        ));
    }
}
