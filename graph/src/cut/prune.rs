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
    use crate::Task;

    #[test]
    fn configurable_nodes_and_their_neighbours_stay_without_edges_between_neighbours() {
        let edges = [[1, 0], [2, 0], [2, 1], [4, 3]];
        for (configurable, nodes, edges_kept) in [
            (&[1][..], vec![0, 1, 2], vec![[1, 0], [2, 1]]),
            (&[5], vec![5], vec![]),
            (&[], vec![], vec![]),
        ] {
            let graph = Graph::of_zeros(Task::Layout, &[0; 6], &edges, configurable).unwrap();
            let expected = PrunedGraph {
                nodes,
                edges: edges_kept,
            };
            assert_eq!(prune(&graph), expected, "{configurable:?}");
        }
    }
}
