use hlorank_graph::{ConfigurationError, Configurations, Limits, SegmentedGraph};

/// Reads stored configurations of a graph from their canonical bytes, and checks them against the graph.
pub(crate) fn read_canonical(
    graph: &SegmentedGraph,
    configs: &[&[u8]],
) -> Result<Configurations, ConfigurationError> {
    let configs = configs.iter().copied();
    let read = Configurations::from_canonical(graph.task, configs, &Limits::default())?;
    read.check(&graph.whole)?;
    Ok(read)
}
