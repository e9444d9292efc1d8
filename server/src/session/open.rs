use std::sync::Arc;

use hlorank_graph::{FeatureGraph, GraphError, Limits, NamedFeatureSet, SegmentedGraph};

use super::{Query, SelectedModel};
use crate::{
    call::{BatchReader, Call, CallError},
    engine::Engine,
    graphs::FoundGraph,
    metrics::Metrics,
    model::Manifest,
};

/// Opens the queries of calls.
pub(crate) struct Queries {
    engine: Arc<Engine>,
    limits: Limits,
    metrics: Arc<Metrics>,
}

impl Queries {
    /// Queries are scored on an engine what is within the limits.
    pub(crate) fn new(engine: Arc<Engine>, limits: Limits, metrics: Arc<Metrics>) -> Self {
        Self {
            engine,
            limits,
            metrics,
        }
    }

    /// Opens the query of a call for a model and a graph. Fails if the nodes of the graph have other columns than the model
    /// takes.
    pub(crate) fn open(
        &self,
        call: Call,
        model: SelectedModel,
        found: &FoundGraph,
    ) -> Result<Query, CallError> {
        let graph = Arc::clone(&found.graph);
        let choice = model.choice;
        let model = model.selection.of_graph(graph.hash);
        // A call that is refused is recorded with the version that refuses it.
        call.record.answered_by(&model);
        check_columns(model.manifest(), &graph)?;
        let place = call.place.clone();
        Ok(Query {
            reader: BatchReader::new(&model, Arc::clone(&graph), self.limits, place),
            engine: Arc::clone(&self.engine),
            metrics: Arc::clone(&self.metrics),
            lesson: None,
            call,
            model,
            choice,
            graph,
        })
    }
}

/// Checks that the nodes of a graph of a feature set have the columns that the model takes.
fn check_columns(manifest: &Manifest, graph: &SegmentedGraph) -> Result<(), CallError> {
    let (Some(set), Some(graph)) = (manifest.features().named(), graph.whole.feature_graph())
    else {
        return Ok(());
    };
    check_description(set, graph, &manifest.name)?;
    let found = graph.columns();
    let expected = set.node_features().len();
    if found == expected {
        return Ok(());
    }
    Err(CallError::Graph(GraphError::WrongColumns {
        found,
        set: set.name().to_owned(),
        model: manifest.name.clone(),
        expected,
    }))
}

/// Checks that a graph that describes its feature set describes that of the model.
fn check_description(
    set: &NamedFeatureSet,
    graph: &FeatureGraph,
    model: &str,
) -> Result<(), CallError> {
    // Names and numbers of columns may be equal although the columns are others.
    if graph
        .description()
        .is_none_or(|described| **described == *set)
    {
        return Ok(());
    }
    let nodes = set.node_features().join(", ");
    let configs = set.config_features().join(", ");
    Err(CallError::Graph(GraphError::SetDiffers {
        model: model.to_owned(),
        columns: format!("the node columns {nodes} and the configuration columns {configs}"),
    }))
}
