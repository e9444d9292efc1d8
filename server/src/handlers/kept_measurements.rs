//! `ListMeasurements`, page by page, `GetMeasuredGraph` and `DeleteMeasurements`.

use hlorank_graph::{ConfigurationError, Configurations, Limits};
use hlorank_proto::v1::{
    ConfigBatch, DeleteMeasurementsRequest, DeleteMeasurementsResponse, GetMeasuredGraphRequest,
    GetMeasuredGraphResponse, GraphMeasurements, ListMeasurementsRequest, ListMeasurementsResponse,
};

use super::{
    CostModel,
    adapt_request::check_target,
    request::{read_chosen, read_hash},
};
use crate::{
    call::{Call, CallError, Client},
    compute::Class,
    errors::ServiceError,
    store::{Measurement, Reporter, StoreError, Subject},
};

/// Number of measurements of a page by default.
const PAGE_SIZE: u32 = 1_000;

/// Maximum number of measurements of a page.
const MAX_PAGE_SIZE: u32 = 10_000;

/// Maximum number of bytes that a page takes: as it is stored, as configurations, and as a message.
const PAGE_BYTES: usize = 16 << 20;

/// A measurement, and what it is about.
type StoredMeasurement = (Subject, Measurement);

impl CostModel {
    pub(super) async fn list(
        &self,
        request: ListMeasurementsRequest,
        call: &Call,
    ) -> Result<ListMeasurementsResponse, ServiceError> {
        let store = self.stored.store().map_err(CallError::from)?;
        let chosen = read_chosen(request.target, &request.graph_hash, None)?;
        let size = read_page_size(request.page_size)?;
        // A page is counted before it is read, so by the size that it may have.
        call.place.hold(PAGE_BYTES).map_err(CallError::from)?;
        let after = Some(request.page_token.to_vec()).filter(|token| !token.is_empty());
        let page = store.list(&chosen, after, size).await;
        let page = page.map_err(CallError::from)?;
        let graphs = self.write_page(page.measurements, call).await?;
        Ok(ListMeasurementsResponse {
            graphs,
            next_page_token: page.next.unwrap_or_default().into(),
        })
    }

    pub(super) async fn measured_graph(
        &self,
        request: GetMeasuredGraphRequest,
    ) -> Result<GetMeasuredGraphResponse, ServiceError> {
        check_target("target", &request.target)?;
        let graph = read_hash("graph_hash", &request.graph_hash)?;
        let subject = Subject {
            target: request.target,
            graph,
        };
        let kept = self.stored.kept_graph(subject).await?;
        Ok(GetMeasuredGraphResponse {
            graph: kept.map(|(graph, _)| graph),
        })
    }

    pub(super) async fn delete(
        &self,
        request: DeleteMeasurementsRequest,
    ) -> Result<DeleteMeasurementsResponse, ServiceError> {
        let store = self.stored.store().map_err(CallError::from)?;
        let reporter = Reporter::named(&request.reporter);
        // A request whose fields are not set must not delete everything: only the measurements of a
        // reporter are deleted on all targets.
        if reporter.is_none() || !request.target.is_empty() {
            check_target("target", &request.target)?;
        }
        let chosen = read_chosen(request.target, &request.graph_hash, reporter)?;
        let deleted = store.delete(&chosen).await.map_err(CallError::from)?;
        Ok(DeleteMeasurementsResponse { deleted })
    }

    async fn write_page(
        &self,
        measurements: Vec<StoredMeasurement>,
        call: &Call,
    ) -> Result<Vec<GraphMeasurements>, CallError> {
        let client = call.client.clone();
        let write = move |_| by_graph(&measurements, &client);
        let written = self.stored.pool().run(Class::Bulk, write).await?.value;
        Ok(written.map_err(|error| StoreError::Failed(error.to_string()))?)
    }
}

fn read_page_size(size: u32) -> Result<usize, ServiceError> {
    match size {
        0 => Ok(PAGE_SIZE as usize),
        1..=MAX_PAGE_SIZE => Ok(size as usize),
        _ => {
            let expected = format!("at most {MAX_PAGE_SIZE}");
            let found = size.to_string();
            Err(ServiceError::invalid("page_size", found, expected))
        }
    }
}

/// Writes measurements, those of one graph on one target together.
fn by_graph(
    measurements: &[StoredMeasurement],
    client: &Client,
) -> Result<Vec<GraphMeasurements>, ConfigurationError> {
    let same = |one: &StoredMeasurement, other: &StoredMeasurement| {
        one.0 == other.0 && one.1.task == other.1.task
    };
    // Pages are in the order of keys, which begin with target and graph, so that the measurements
    // of one graph are neighbours.
    let parts = measurements.chunk_by(same);
    parts.map(|part| graph_measurements(part, client)).collect()
}

/// Writes measurements of one graph on one target.
fn graph_measurements(
    stored: &[StoredMeasurement],
    client: &Client,
) -> Result<GraphMeasurements, ConfigurationError> {
    let (subject, _) = &stored[0];
    let measurements = || stored.iter().map(|(_, measurement)| measurement);
    // Only an admin may know the names of other reporters.
    let shown = |each: &Measurement| client.shown(&each.reporter).to_owned();
    Ok(GraphMeasurements {
        target: subject.target.clone(),
        graph_hash: subject.graph.0.to_vec().into(),
        batch: Some(write_batch(stored)?),
        seconds: measurements().map(|each| each.outcome.seconds).collect(),
        repeats: measurements().map(|each| each.outcome.repeats).collect(),
        failures: measurements().map(|each| each.outcome.failure).collect(),
        ids: measurements().map(|each| each.id.clone().into()).collect(),
        reporters: measurements().map(shown).collect(),
    })
}

/// Writes the configurations of measurements of one task.
fn write_batch(stored: &[StoredMeasurement]) -> Result<ConfigBatch, ConfigurationError> {
    let (_, Measurement { task, .. }) = &stored[0];
    let configs = stored.iter().map(|(_, each)| each.config.as_slice());
    let configurations = Configurations::from_canonical(*task, configs, &Limits::default())?;
    let configs = Some(configurations.to_smallest_form());
    Ok(ConfigBatch { configs })
}
