use crate::{GraphError, pace};

/// Checks that every edge joins two nodes of the graph.
pub(crate) fn check_ends(nodes: usize, edges: &[[u32; 2]]) -> Result<(), GraphError> {
    for (edge, pair) in edges.iter().enumerate() {
        if let Some(&node) = pair.iter().find(|&&node| node as usize >= nodes) {
            return Err(GraphError::UnknownEdgeNode { edge, node, nodes });
        }
    }
    Ok(())
}

/// Returns the producers of a node. Edges are sorted by consumer, so those of a node are adjacent,
/// and found by bisection.
pub(crate) fn producers(edges: &[[u32; 2]], consumer: u32) -> impl Iterator<Item = u32> {
    let first = edges.partition_point(|[other, _]| *other < consumer);
    let own = edges[first..]
        .iter()
        .take_while(move |[other, _]| *other == consumer);
    own.map(|[_, producer]| *producer)
}

/// Checks that edges form no cycle.
pub(crate) fn check_acyclic(nodes: usize, edges: &[[u32; 2]]) -> Result<(), GraphError> {
    // XLA emits producers before consumers. Such a graph has no cycle.
    if edges.iter().all(|[consumer, producer]| consumer > producer) {
        return Ok(());
    }
    find_cycle(nodes, edges).map_or(Ok(()), |node| Err(GraphError::Cycle { node }))
}

/// Returns a node on a cycle, if there is one. Nodes without consumers are removed until no such node is left (Kahn);
/// the others lie on a cycle or are consumed by one, directly or through other nodes.
fn find_cycle(nodes: usize, edges: &[[u32; 2]]) -> Option<u32> {
    // The number of consumers of each node that are not removed yet.
    let mut consumers = vec![0_u32; nodes];
    for [_, producer] in edges {
        consumers[*producer as usize] += 1;
    }
    let counted = (0..).zip(&consumers).filter(|(_, count)| **count == 0);
    let mut ready: Vec<u32> = counted.map(|(node, _)| node).collect();
    while let Some(node) = ready.pop() {
        pace::pause();
        for producer in producers(edges, node) {
            let count = &mut consumers[producer as usize];
            *count -= 1;
            if *count == 0 {
                ready.push(producer);
            }
        }
    }
    let (left, _) = (0..).zip(&consumers).find(|(_, count)| **count > 0)?;
    // Every remaining node has a remaining consumer, so following the consumers from `left` ends on
    // a cycle.
    let mut consumer_of = vec![left; nodes];
    let is_left = |[consumer, _]: &&[u32; 2]| consumers[*consumer as usize] > 0;
    for [consumer, producer] in edges.iter().filter(is_left) {
        consumer_of[*producer as usize] = *consumer;
    }
    // After as many steps as there are nodes, the walk has passed some node twice, so it is on a
    // cycle.
    Some((0..nodes).fold(left, |node, _| consumer_of[node as usize]))
}
