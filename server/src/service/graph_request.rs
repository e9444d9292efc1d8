//! Reads the graph of a request, and selects the model.

use bytes::Bytes;
use hlorank_graph::{Digest, Task};
use hlorank_proto::v1;

use super::{CostModel, ServiceError, adapt_request::check_target};
use crate::{
    graphs::{FoundGraph, GraphContent, GraphOrigin, SentGraph},
    session::{SelectedModel, WantedModel},
    telemetry::CallRecord,
};

const GRAPH_HINT: &str = "set graph_hash, hlo_module, hlo_text, features or feature_graph";

impl CostModel {
    /// Decodes a request's graph, and reads where it comes from. `task` is the task of the batch that comes with it.
    pub(super) async fn graph(
        &self,
        graph: Option<Bytes>,
        task: Option<Task>,
    ) -> Result<GraphOrigin, ServiceError> {
        let graph = self.decoder.graph(present(graph)?).await?;
        origin(graph, task)
    }

    /// Finds the graph of a call with configurations of a task, and selects its model. The feature set of a graph decides the
    /// model, so such a graph comes first; otherwise an unknown model is refused before the graph is read.
    pub(super) async fn find(
        &self,
        graph: Option<Bytes>,
        wanted: &WantedModel,
        task: Task,
        record: &CallRecord,
    ) -> Result<(FoundGraph, SelectedModel), ServiceError> {
        if task == Task::FeatureSet {
            let origin = self.graph(graph, Some(task)).await?;
            let found = self.graphs.find(origin, record).await?;
            let graph = &found.graph.whole;
            let model = self.models.select_for(wanted, graph, record)?;
            return Ok((found, model));
        }
        let model = self.models.select(wanted, task, record)?;
        let origin = self.graph(graph, Some(task)).await?;
        let found = self.graphs.find(origin, record).await?;
        Ok((found, model))
    }
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

/// Returns the graph that a request is about; `None` for all.
pub(super) fn read_filter(target: &str, graph_hash: &[u8]) -> Result<Option<Digest>, ServiceError> {
    if graph_hash.is_empty() {
        return Ok(None);
    }
    check_target("target", target)?;
    read_hash("graph_hash", graph_hash).map(Some)
}
