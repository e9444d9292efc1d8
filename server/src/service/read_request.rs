//! Reads a request without a server around it.

use hlorank_graph::{Configurations, EncodedBatch, decode_graph};
use hlorank_proto::received::{Adapt, RankConfigsRequest};

use super::{
    ServiceError, adapt_request::check_measurements, batch_request, graph_request,
    model_selector::wanted,
};
use crate::{
    call::{ADAPT, Bounds, CallError, SentMeasurements, SentTimes},
    graphs::{GraphOrigin, Source},
};

/// What a request holds.
pub struct ReadRequest {
    /// The graph.
    pub source: Source,
    /// Its configurations.
    pub configurations: Configurations,
}

/// Reads and checks a request with the steps of `RankConfigs` up to scoring, for tests of these steps on arbitrary bytes.
/// Nothing is cached, so the hash of a graph is always unknown.
pub fn read_request(
    request: RankConfigsRequest,
    bounds: &Bounds,
) -> Result<ReadRequest, ServiceError> {
    let batch = EncodedBatch::of(&request.batch.unwrap_or_default());
    let batch = batch.map_err(|source| CallError::Configuration {
        field: "batch",
        source,
    })?;
    let batch = batch_request::present(batch)?;
    wanted(&request.model.unwrap_or_default())?;
    let graph = decode_graph(graph_request::present(request.graph)?, &bounds.limits);
    let graph = match graph_request::origin(graph.map_err(CallError::Graph)?, Some(batch.task()))? {
        GraphOrigin::Hash(hash) => return Err(CallError::GraphNotCached { hash }.into()),
        GraphOrigin::Sent(graph) => graph,
    };
    graph.check(bounds)?;
    let source = graph.read(&bounds.limits).map_err(CallError::Graph)?;
    let read = batch.read(
        source.graph.task,
        &source.graph.configurable,
        &bounds.limits,
    );
    let configurations = read.map_err(|source| CallError::Configuration {
        field: batch.field(),
        source,
    })?;
    if let Some(adapt) = request.adapt {
        read_adapt(adapt, &source, bounds)?;
    }
    Ok(ReadRequest {
        source,
        configurations,
    })
}

/// Reads and checks measurements up to learning.
fn read_adapt(adapt: Adapt, source: &Source, bounds: &Bounds) -> Result<(), ServiceError> {
    let Adapt {
        target,
        batch,
        seconds,
        repeats,
        failures,
        ids,
        use_stored: _,
        own_only: _,
        other_targets: _,
        all_other_targets: _,
    } = adapt;
    let times = SentTimes {
        seconds,
        repeats,
        failures,
        ids,
    };
    check_measurements(&ADAPT, &target, &times)?;
    let of_batch = |source| CallError::Configuration {
        field: ADAPT.batch,
        source,
    };
    let batch = batch
        .map_or(Ok(None), |batch| EncodedBatch::of(&batch))
        .map_err(of_batch)?;
    SentMeasurements::new(&ADAPT, target, batch.clone(), &times).map_err(CallError::from)?;
    if let Some(batch) = batch {
        let read = batch.read(
            source.graph.task,
            &source.graph.configurable,
            &bounds.limits,
        );
        read.and_then(|read| read.check(&source.graph.whole))
            .map_err(of_batch)?;
    }
    Ok(())
}
