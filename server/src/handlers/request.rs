//! Reads graph, model and batch of a request, and opens the session.

use bytes::Bytes;
use hlorank_graph::{Digest, EncodedBatch, Task};
use hlorank_proto::{
    received::Adapt,
    v1::{self, ModelSelector},
};

use super::{
    CostModel,
    adapt_request::{check_target, check_target_length},
};
use crate::{
    call::Call,
    errors::ServiceError,
    graphs::{FoundGraph, GraphContent, GraphOrigin, SentGraph},
    model::Target,
    registry::Wanted,
    session::{Query, SelectedModel, WantedModel},
    store::{Chosen, Reporter},
    telemetry::CallRecord,
};

const GRAPH_HINT: &str = "set graph_hash, hlo_module, hlo_text, features or feature_graph";

const TASK_HINT: &str = "TASK_TILE for a kernel, TASK_LAYOUT for a module whose layouts are tuned, TASK_FUSION for a program \
                         before fusion";

const CONFIGS_HINT: &str = "set layout_configs, packed_layout_configs, delta_layout_configs, tile_configs, \
                            packed_tile_configs, fusion_configs, packed_fusion_configs, delta_fusion_configs or \
                            node_feature_configs";

impl CostModel {
    /// Returns the configurations of a batch, which are still encoded.
    pub(super) async fn batch(&self, batch: Option<Bytes>) -> Result<EncodedBatch, ServiceError> {
        let batch = self
            .decoder
            .batch("batch", batch.unwrap_or_default())
            .await?;
        present_batch(batch)
    }

    /// Decodes a request's graph, and reads where it comes from. `task` is the task of the batch that comes with it.
    pub(super) async fn graph(
        &self,
        graph: Option<Bytes>,
        task: Option<Task>,
    ) -> Result<GraphOrigin, ServiceError> {
        let graph = self.decoder.graph(present_graph(graph)?).await?;
        origin(graph, task)
    }

    /// Finds the graph of a request. `task` is the task of the batch that comes with it.
    pub(super) async fn find_graph(
        &self,
        graph: Option<Bytes>,
        task: Option<Task>,
        record: &CallRecord,
    ) -> Result<FoundGraph, ServiceError> {
        let origin = self.graph(graph, task).await?;
        Ok(self.graphs.find(origin, record).await?)
    }

    /// Opens the session of a call with configurations of a task, and has it learn.
    pub(super) async fn open(
        &self,
        graph: Option<Bytes>,
        model: Option<ModelSelector>,
        adapt: Option<Adapt>,
        task: Task,
        call: Call,
    ) -> Result<(FoundGraph, Query), ServiceError> {
        let wanted = wanted_model(model, adapt.as_ref())?;
        let found = self.find(graph, &wanted, task, &call.record);
        let (found, model) = found.await?;
        let query = self.queries.open(call, model, &found)?;
        // What is learned comes before the scores, because they are adapted to it.
        Ok((found, self.adapt(query, adapt).await?))
    }

    /// Finds the graph of a call with configurations of a task, and selects its model. The feature set of a graph decides the
    /// model, so such a graph comes first; otherwise an unknown model is refused before the graph is read.
    async fn find(
        &self,
        graph: Option<Bytes>,
        wanted: &WantedModel,
        task: Task,
        record: &CallRecord,
    ) -> Result<(FoundGraph, SelectedModel), ServiceError> {
        if task == Task::FeatureSet {
            let found = self.find_graph(graph, Some(task), record).await?;
            let graph = &found.graph.whole;
            let model = self.models.select_for(wanted, graph, record)?;
            return Ok((found, model));
        }
        let model = self.models.select(wanted, task, record)?;
        let found = self.find_graph(graph, Some(task), record).await?;
        Ok((found, model))
    }
}

/// Requires that a request has a graph.
pub(super) fn present_graph<T>(graph: Option<T>) -> Result<T, ServiceError> {
    graph.ok_or(ServiceError::missing("graph", GRAPH_HINT))
}

/// Returns where a graph comes from.
pub(super) fn origin(graph: v1::Graph, task: Option<Task>) -> Result<GraphOrigin, ServiceError> {
    let named = read_task(graph.task)?;
    let no_source = ServiceError::missing("graph.source", GRAPH_HINT);
    let content = match GraphContent::of(graph.source.ok_or(no_source)?) {
        Ok(content) => content,
        Err(hash) => return read_hash("graph.graph_hash", &hash).map(GraphOrigin::Hash),
    };
    let implied = matches!(content, GraphContent::FeatureGraph(_)).then_some(Task::FeatureSet);
    // What the request says explicitly comes first. Whether it suits the batch and the content is
    // checked where these are read.
    let task = named.or(task).or(implied);
    Ok(GraphOrigin::Sent(SentGraph {
        content,
        task: task.ok_or(ServiceError::missing("graph.task", TASK_HINT))?,
        configurable: graph.configurable_nodes,
    }))
}

fn read_task(task: i32) -> Result<Option<Task>, ServiceError> {
    let wire = v1::Task::try_from(task).ok();
    if wire == Some(v1::Task::Unspecified) {
        return Ok(None);
    }
    let known = wire.and_then(Task::from_wire);
    let known = known.ok_or_else(|| {
        let described = Task::ALL.map(|known| {
            let kind = known.kind();
            format!("{} ({})", kind.wire.as_str_name(), kind.number())
        });
        ServiceError::invalid("graph.task", task.to_string(), described.join(" or "))
    })?;
    Ok(Some(known))
}

/// Reads a graph hash.
pub(super) fn read_hash(field: &'static str, hash: &[u8]) -> Result<Digest, ServiceError> {
    let digest = <[u8; 32]>::try_from(hash).map(Digest);
    digest.map_err(|_| {
        let found = format!("{} bytes long", hash.len());
        ServiceError::invalid(field, found, "32 bytes")
    })
}

/// Returns which measurements a request is about, given the graph and the target that it may name.
pub(super) fn read_chosen(
    target: String,
    graph_hash: &[u8],
    reporter: Option<Reporter>,
) -> Result<Chosen, ServiceError> {
    let mut graph = None;
    if !graph_hash.is_empty() {
        // The store has the measurements of a target together, and finds a graph among those.
        check_target("target", &target)?;
        graph = Some(read_hash("graph_hash", graph_hash)?);
    }
    let target = Some(target).filter(|target| !target.is_empty());
    Ok(Chosen {
        target,
        graph,
        reporter,
    })
}

/// Requires that a batch has configurations.
pub(super) fn present_batch(batch: Option<EncodedBatch>) -> Result<EncodedBatch, ServiceError> {
    batch.ok_or(ServiceError::Missing {
        field: "configs",
        hint: CONFIGS_HINT,
    })
}

/// Returns the model that a call asks for. Its target is that of its measurements if the selector names none.
pub(super) fn wanted_model(
    selector: Option<ModelSelector>,
    adapt: Option<&Adapt>,
) -> Result<WantedModel, ServiceError> {
    let selector = selector.unwrap_or_default();
    let version = wanted(&selector)?;
    check_target_length("model.target", &selector.target)?;
    let measured = adapt.map_or("", |adapt| adapt.target.as_str());
    // The measurements of a call are of the target that its configurations are chosen for, so a
    // client need not name it twice.
    let target = match selector.target.as_str() {
        "" => measured,
        target => target,
    };
    Ok(WantedModel {
        name: selector.name,
        version,
        target: Target::parse(target),
        names_target: !target.is_empty(),
    })
}

/// Returns the version of a model that a request asks for.
pub(super) fn wanted(selector: &ModelSelector) -> Result<Wanted, ServiceError> {
    match (selector.version, selector.label.as_str()) {
        (0, "") => Ok(Wanted::Any),
        (0, label) => labelled(label),
        (version, "") => Ok(Wanted::Version(version)),
        (version, _) => {
            let found = version.to_string();
            let expected = "0 together with a label";
            Err(ServiceError::invalid("model.version", found, expected))
        }
    }
}

fn labelled(label: &str) -> Result<Wanted, ServiceError> {
    match label {
        "stable" => Ok(Wanted::Stable),
        "canary" => Ok(Wanted::Canary),
        // The label is not quoted because it may be megabytes long.
        _ => {
            let found = "an unknown label";
            let expected = "stable, canary or nothing";
            Err(ServiceError::invalid("model.label", found, expected))
        }
    }
}
