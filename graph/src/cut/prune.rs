use crate::{Graph, Scope};

/// What pruning leaves of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunedGraph {
    /// Nodes kept, ascending.
    pub nodes: Vec<u32>,
    /// Edges kept, as positions in `nodes`, in the graph's order.
    pub edges: Vec<[u32; 2]>,
}

impl PrunedGraph {
    /// Keeps everything.
    pub fn whole(graph: &Graph) -> Self {
        Self {
            nodes: (0..).take(graph.len()).collect(),
            edges: graph.edges().to_vec(),
        }
    }
}

/// Prunes a graph by `TGraph`'s rule: edges with a configurable end stay, and so do the ends of those edges and every
/// configurable node. Other graphs stay whole.
///
/// `TGraph`'s own code fails on a configurable node without edges; here it stays as a node of its own.
pub fn prune(graph: &Graph) -> PrunedGraph {
    match graph.task().kind().scope {
        Scope::Kernel | Scope::Program | Scope::EveryNode => return PrunedGraph::whole(graph),
        Scope::Nodes => {}
    }
    let mut kept = vec![false; graph.len()];
    mark(graph.configurable(), &mut kept);
    // Edges are chosen while only configurable nodes are marked, or edges between two of their
    // neighbours would stay, too.
    let touches = |edge: &&[u32; 2]| edge.iter().any(|&node| kept[node as usize]);
    let edges: Vec<[u32; 2]> = graph.edges().iter().filter(touches).copied().collect();
    mark(edges.as_flattened(), &mut kept);
    let mut positions = vec![0; kept.len()];
    let mut nodes = Vec::new();
    for (node, _) in (0..).zip(kept).filter(|(_, kept)| *kept) {
        positions[node as usize] = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        nodes.push(node);
    }
    // Positions ascend with node numbers, so the edges stay sorted.
    let edges = edges
        .into_iter()
        .map(|edge| edge.map(|node| positions[node as usize]))
        .collect();
    PrunedGraph { nodes, edges }
}

fn mark(nodes: &[u32], marks: &mut [bool]) {
    for &node in nodes {
        marks[node as usize] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FEATURES, GraphArrays, Limits, Pad, Task};

    fn graph(nodes: usize, edges: &[[u32; 2]], configurable: &[u32]) -> Graph {
        let features = vec![0.0; nodes * FEATURES];
        let limits = Limits::default();
        let arrays = GraphArrays::from_features(
            vec![0; nodes],
            features,
            edges.to_vec(),
            Pad::Zero,
            &limits,
        );
        Graph::new(Task::Layout, arrays.unwrap(), configurable.to_vec()).unwrap()
    }

    #[test]
    fn neighbours_of_configurable_nodes_stay_without_edges_between_them() {
        let pruned = prune(&graph(6, &[[1, 0], [2, 0], [2, 1], [4, 3], [5, 2]], &[1]));
        assert_eq!(
            pruned,
            PrunedGraph {
                nodes: vec![0, 1, 2],
                edges: vec![[1, 0], [2, 1]]
            }
        );
    }

    #[test]
    fn a_configurable_node_without_edges_stays() {
        let pruned = prune(&graph(3, &[[1, 0]], &[2]));
        assert_eq!(
            pruned,
            PrunedGraph {
                nodes: vec![2],
                edges: vec![]
            }
        );
    }

    #[test]
    fn nothing_stays_without_configurable_nodes() {
        assert!(prune(&graph(3, &[[1, 0]], &[])).nodes.is_empty());
    }
}
