//! Reads the graph of a request.

use bytes::Bytes;
use hlorank_graph::{Digest, Task};
use hlorank_proto::v1;

use super::ServiceError;
use crate::session::{GraphContent, GraphOrigin, SentGraph, Sessions};

const GRAPH_HINT: &str = "set graph_hash, hlo_module, hlo_text, features or feature_graph";

/// Decodes a request's graph, and reads where it comes from. `task` is the task of the batch that comes with it.
pub(super) async fn read_graph(
    sessions: &Sessions,
    graph: Option<Bytes>,
    task: Option<Task>,
) -> Result<GraphOrigin, ServiceError> {
    origin(sessions.graph(present(graph)?).await?, task)
}

/// Requires that a request has a graph.
pub(super) fn present<T>(graph: Option<T>) -> Result<T, ServiceError> {
    graph.ok_or(ServiceError::Missing {
        field: "graph",
        hint: GRAPH_HINT,
    })
}

/// Returns where a graph comes from.
pub(super) fn origin(graph: v1::Graph, task: Option<Task>) -> Result<GraphOrigin, ServiceError> {
    let named = read_task(graph.task)?;
    let source = graph.source.ok_or(ServiceError::Missing {
        field: "graph.source",
        hint: GRAPH_HINT,
    })?;
    let content = match GraphContent::of(source) {
        Ok(content) => content,
        Err(hash) => return read_hash("graph.graph_hash", &hash).map(GraphOrigin::Hash),
    };
    let implied = matches!(content, GraphContent::FeatureGraph(_)).then_some(Task::FeatureSet);
    let task = named.or(task).or(implied).ok_or(ServiceError::Missing {
        field: "graph.task",
        hint: "TASK_TILE for a kernel, TASK_LAYOUT for a module whose layouts are tuned, TASK_FUSION for a program \
               before fusion",
    })?;
    Ok(GraphOrigin::Sent(SentGraph {
        content,
        task,
        configurable: graph.configurable_nodes,
    }))
}

fn read_task(task: i32) -> Result<Option<Task>, ServiceError> {
    let wire = v1::Task::try_from(task).ok();
    if wire == Some(v1::Task::Unspecified) {
        return Ok(None);
    }
    let known = wire.and_then(Task::from_wire);
    let known = known.ok_or_else(|| ServiceError::Invalid {
        field: "graph.task",
        found: task.to_string(),
        expected: Task::ALL
            .map(|task| {
                format!(
                    "{} ({})",
                    task.kind().wire.as_str_name(),
                    task.kind().number()
                )
            })
            .join(" or "),
    })?;
    Ok(Some(known))
}

/// Reads a graph hash.
pub(super) fn read_hash(field: &'static str, hash: &[u8]) -> Result<Digest, ServiceError> {
    let digest = <[u8; 32]>::try_from(hash).map(Digest);
    digest.map_err(|_| ServiceError::Invalid {
        field,
        found: format!("{} bytes long", hash.len()),
        expected: "32 bytes".to_owned(),
    })
}
