//! `ReportMeasurements`, `ListMeasurements`, `GetMeasuredGraph` and `DeleteMeasurements`: the store of measurements over the wire.

use hlorank_graph::{ConfigurationError, Configurations, Digest, Limits};
use hlorank_proto::{
    methods::Scope,
    received::ReportMeasurementsRequest,
    v1::{
        self, ConfigBatch, DeleteMeasurementsRequest, DeleteMeasurementsResponse,
        GetMeasuredGraphRequest, GetMeasuredGraphResponse, GraphMeasurements,
        ListMeasurementsRequest, ListMeasurementsResponse, ReportMeasurementsResponse,
    },
};

use super::{
    ServiceError,
    adapt_request::{check_measurements, check_target},
    batch_request::read_batch,
    graph_request::{read_graph, read_hash},
};
use crate::{
    compute::Class,
    security::TokenError,
    session::{Call, Client, REPORT, SentMeasurements, SentTimes, SessionError, Sessions},
    store::{Chosen, Measurement, Page, Reporter, StoreError, Subject},
};

/// Number of measurements of a page: the default and the maximum.
const PAGE_SIZES: [u32; 2] = [1_000, 10_000];

/// Maximum number of bytes that a page takes: as it is stored, as configurations, and as a message.
const PAGE_BYTES: usize = 16 << 20;

/// Keeps measurements.
pub(super) async fn report(
    sessions: &Sessions,
    request: ReportMeasurementsRequest,
    call: &Call,
) -> Result<ReportMeasurementsResponse, ServiceError> {
    // Before the graph is read.
    sessions.store().map_err(SessionError::from)?;
    let ReportMeasurementsRequest {
        graph,
        target,
        batch,
        seconds,
        repeats,
        failures,
        ids,
        reporter,
    } = request;
    let reporter = reporter_of(&reporter, &call.client)?;
    let batch = read_batch(sessions, batch).await?;
    let task = batch.task();
    let times = SentTimes {
        seconds,
        repeats,
        failures,
        ids,
    };
    check_measurements(&REPORT, &target, &times)?;
    let sent = SentMeasurements::new(&REPORT, target, Some(batch), &times);
    let sent = sent.map_err(SessionError::from)?;
    let origin = read_graph(sessions, graph, Some(task)).await?;
    let found = sessions.find(origin, &call.record).await?;
    let kept = sessions.report(call, &found, sent, reporter).await?;
    Ok(ReportMeasurementsResponse {
        accepted: u32::try_from(kept.accepted).unwrap_or(u32::MAX),
        known: u32::try_from(kept.known).unwrap_or(u32::MAX),
        graph_hash: found.graph.hash.0.to_vec().into(),
        warnings: found.warnings.into_iter().map(v1::Warning::from).collect(),
    })
}

/// Lists a page of measurements.
pub(super) async fn list(
    sessions: &Sessions,
    request: ListMeasurementsRequest,
    call: &Call,
) -> Result<ListMeasurementsResponse, ServiceError> {
    let store = sessions.store().map_err(SessionError::from)?;
    let ListMeasurementsRequest {
        target,
        graph_hash,
        page_size,
        page_token,
    } = request;
    let graph = read_filter(&target, &graph_hash)?;
    let [usual, most] = PAGE_SIZES;
    let count = if page_size == 0 { usual } else { page_size };
    if count > most {
        let (found, expected) = (count.to_string(), format!("at most {most}"));
        return Err(ServiceError::Invalid {
            field: "page_size",
            found,
            expected,
        });
    }
    call.place.hold(PAGE_BYTES).map_err(SessionError::from)?;
    let chosen = Chosen {
        target: Some(target).filter(|target| !target.is_empty()),
        graph,
        reporter: None,
    };
    let after = Some(page_token.to_vec()).filter(|token| !token.is_empty());
    let page = store
        .list(&chosen, after, count as usize)
        .await
        .map_err(SessionError::from)?;
    let Page { measurements, next } = page;
    let client = call.client.clone();
    let write = move || {
        let same = |one: &Kept, other: &Kept| one.0 == other.0 && one.1.task == other.1.task;
        let parts = measurements
            .chunk_by(same)
            .map(|part| graph_measurements(part, &client));
        parts.collect::<Result<_, _>>()
    };
    let written = sessions
        .pool()
        .run(Class::Bulk, move |_| write())
        .await
        .map_err(SessionError::from)?
        .value;
    let written =
        written.map_err(|error: ConfigurationError| StoreError::Failed(error.to_string()));
    let graphs = written.map_err(SessionError::from)?;
    Ok(ListMeasurementsResponse {
        graphs,
        next_page_token: next.unwrap_or_default().into(),
    })
}

/// Returns the graph of measurements.
pub(super) async fn graph(
    sessions: &Sessions,
    request: GetMeasuredGraphRequest,
) -> Result<GetMeasuredGraphResponse, ServiceError> {
    let GetMeasuredGraphRequest { target, graph_hash } = request;
    check_target("target", &target)?;
    let graph = read_hash("graph_hash", &graph_hash)?;
    let kept = sessions.kept_graph(Subject { target, graph }).await?;
    Ok(GetMeasuredGraphResponse {
        graph: kept.map(|(graph, _)| graph),
    })
}

/// Deletes measurements.
pub(super) async fn delete(
    sessions: &Sessions,
    request: &DeleteMeasurementsRequest,
) -> Result<DeleteMeasurementsResponse, ServiceError> {
    let store = sessions.store().map_err(SessionError::from)?;
    let DeleteMeasurementsRequest {
        target,
        graph_hash,
        reporter,
    } = request;
    let reporter = Reporter::named(reporter);
    // All targets are never deleted by mistake.
    if reporter.is_none() || !target.is_empty() {
        check_target("target", target)?;
    }
    let graph = read_filter(target, graph_hash)?;
    let target = Some(target.clone()).filter(|target| !target.is_empty());
    let deleted = store
        .delete(&Chosen {
            target,
            graph,
            reporter,
        })
        .await
        .map_err(SessionError::from)?;
    Ok(DeleteMeasurementsResponse { deleted })
}

type Kept = (Subject, Measurement);

/// Maximum length of the name of a reporter.
const MAX_REPORTER_BYTES: usize = 256;

/// Returns the reporter that a request names, if its client may name another; the client if it names none.
fn reporter_of(name: &str, client: &Client) -> Result<Reporter, ServiceError> {
    let Some(named) = Reporter::named(name) else {
        return Ok(client.reporter.clone());
    };
    if name.len() > MAX_REPORTER_BYTES {
        return Err(ServiceError::Invalid {
            field: "reporter",
            found: format!("{} bytes long", name.len()),
            expected: format!("at most {MAX_REPORTER_BYTES} bytes"),
        });
    }
    if named != client.reporter && !client.is_admin {
        let name = client.reporter.name().to_owned();
        let scope = Scope::Admin;
        return Err(TokenError::ScopeMissing { name, scope }.into());
    }
    Ok(named)
}

/// Returns the graph that a request is about; `None` for all.
fn read_filter(target: &str, graph_hash: &[u8]) -> Result<Option<Digest>, ServiceError> {
    if graph_hash.is_empty() {
        return Ok(None);
    }
    check_target("target", target)?;
    read_hash("graph_hash", graph_hash).map(Some)
}

/// Writes measurements of one graph on one target.
fn graph_measurements(
    kept: &[Kept],
    client: &Client,
) -> Result<GraphMeasurements, ConfigurationError> {
    let (Subject { target, graph }, Measurement { task, .. }) = &kept[0];
    let configs = kept
        .iter()
        .map(|(_, measurement)| measurement.config.as_slice());
    let configurations = Configurations::from_canonical(*task, configs, &Limits::default())?;
    let outcomes = || kept.iter().map(|(_, measurement)| measurement.outcome);
    Ok(GraphMeasurements {
        target: target.clone(),
        graph_hash: graph.0.to_vec().into(),
        batch: Some(ConfigBatch {
            configs: Some(configurations.to_smallest_form()),
        }),
        seconds: outcomes().map(|outcome| outcome.seconds).collect(),
        repeats: outcomes().map(|outcome| outcome.repeats).collect(),
        failures: outcomes().map(|outcome| outcome.failure).collect(),
        ids: kept
            .iter()
            .map(|(_, measurement)| measurement.id.clone().into())
            .collect(),
        reporters: kept
            .iter()
            .map(|(_, each)| client.shown(each.reporter.as_ref()).to_owned())
            .collect(),
    })
}
