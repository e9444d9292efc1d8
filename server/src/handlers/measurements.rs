//! `ReportMeasurements`, `ListMeasurements`, page by page, `GetMeasuredGraph` and `DeleteMeasurements`.

use hlorank_graph::{ConfigurationError, Configurations, Digest, Limits};
use hlorank_proto::{
    methods::Scope,
    received::{Adapt, ReportMeasurementsRequest},
    v1::{
        self, ConfigBatch, DeleteMeasurementsRequest, DeleteMeasurementsResponse,
        GetMeasuredGraphRequest, GetMeasuredGraphResponse, GraphMeasurements,
        ListMeasurementsRequest, ListMeasurementsResponse, ReportMeasurementsResponse,
    },
};

use super::{
    CostModel,
    answer::count,
    leases::{MAX_MACHINE_BYTES, lease_ids, search_key},
    request::{
        PAGE_BYTES, check_length, check_scope, check_target, page_size, read_chosen, read_hash,
    },
};
use crate::{
    call::{Call, Client, REPORT, SentMeasurements, reported_at},
    clock,
    compute::Class,
    errors::ServiceError,
    store::{Measurement, Reporter, StoreError, Subject},
    telemetry::AuditedChange,
};

/// A measurement, and what it is about.
type StoredMeasurement = (Subject, Measurement);

/// Maximum length of the name of a reporter.
const MAX_REPORTER_BYTES: usize = 256;

impl CostModel {
    pub(super) async fn report(
        &self,
        request: ReportMeasurementsRequest,
        call: &Call,
    ) -> Result<ReportMeasurementsResponse, ServiceError> {
        // A server without a store refuses a report before it reads the graph.
        self.stored.store()?;
        let reporter = reporter_of(&request.reporter, call)?;
        let batch = self.batch(request.batch).await?;
        let task = batch.task();
        check_target(REPORT.target, &request.target)?;
        check_length("machine", &request.machine, MAX_MACHINE_BYTES)?;
        let leases = lease_ids("leases", &request.leases)?;
        if !leases.is_empty() && leases.len() != batch.count() {
            let found = format!("{} long", leases.len());
            let expected = format!("one for each of the {} measurements", batch.count());
            return Err(ServiceError::invalid("leases", found, expected));
        }
        let sent = Adapt {
            target: request.target,
            seconds: request.seconds,
            repeats: request.repeats,
            failures: request.failures,
            // A lease is reported once, so that it tells the measurement from all others.
            ids: if request.ids.is_empty() {
                request.leases
            } else {
                request.ids
            },
            ..Adapt::default()
        };
        let imported = sent.target.clone();
        let sent = SentMeasurements::new(&REPORT, Some(batch), sent)?;
        // Clients choose no times of their own measurements: an operator deletes by them.
        if !request.reported_at.is_empty() {
            check_scope(&call.client, Scope::Admin)?;
        }
        let now = clock::seconds().unwrap_or_default();
        let times = reported_at(request.reported_at, sent.outcomes.len(), now)?;
        let found = self.find_graph(request.graph, Some(task), call).await?;
        let hash = found.graph.hash;
        let key = search_key(hash, "target", imported.clone(), "search", request.search)?;
        let is_import = reporter != call.client.reporter;
        let (kept, configs) = self
            .stored
            .report(call, &found, sent, reporter, times, request.machine)
            .await?;
        if !leases.is_empty() {
            self.end_leases(key, &leases, &configs).await;
        }
        if is_import {
            call.record.changes(|change| {
                change.target = Some(imported);
                change.graph = Some(found.graph.hash);
                change.measurements = Some(kept.accepted);
            });
        }
        Ok(ReportMeasurementsResponse {
            accepted: count(kept.accepted),
            known: count(kept.known),
            graph_hash: found.graph.hash.0.to_vec().into(),
            warnings: found.warnings.into_iter().map(v1::Warning::from).collect(),
        })
    }

    pub(super) async fn list(
        &self,
        request: ListMeasurementsRequest,
        call: &Call,
    ) -> Result<ListMeasurementsResponse, ServiceError> {
        let store = self.stored.store()?;
        let chosen = read_chosen(
            request.target,
            &request.graph_hash,
            None,
            request.reported_before,
        )?;
        let size = page_size(request.page_size)?;
        // A page is counted before it is read, so by the size that it may have.
        call.place.hold(PAGE_BYTES)?;
        let after = Some(request.page_token.to_vec()).filter(|token| !token.is_empty());
        let page = store.list(&chosen, after, size).await?;
        let next = page.next;
        let client = call.client.clone();
        let write = move |_| by_graph(&page.measurements, &client);
        let graphs = self.stored.pool().run(Class::Bulk, write).await?.value;
        let failed = |error: ConfigurationError| StoreError::Failed(error.to_string());
        Ok(ListMeasurementsResponse {
            graphs: graphs.map_err(failed)?,
            next_page_token: next.unwrap_or_default().into(),
        })
    }

    pub(super) async fn measured_graph(
        &self,
        request: GetMeasuredGraphRequest,
        call: &Call,
    ) -> Result<GetMeasuredGraphResponse, ServiceError> {
        check_target("target", &request.target)?;
        let graph = read_hash("graph_hash", &request.graph_hash)?;
        let subject = Subject {
            target: request.target,
            graph,
        };
        let graph = self.stored.kept_graph(subject, &call.place).await?;
        Ok(GetMeasuredGraphResponse { graph })
    }

    pub(super) async fn delete(
        &self,
        request: DeleteMeasurementsRequest,
        call: &Call,
    ) -> Result<DeleteMeasurementsResponse, ServiceError> {
        let named = |name: &String| Some(name.clone()).filter(|name| !name.is_empty());
        call.record.changes(|change| {
            change.target = named(&request.target);
            change.graph = request.graph_hash.as_ref().try_into().map(Digest).ok();
            change.reporter = named(&request.reporter);
            change.reported_before = Some(request.reported_before).filter(|time| *time > 0);
        });
        let store = self.stored.store()?;
        let reporter = Reporter::named(&request.reporter);
        // A request whose fields are not set must not delete everything: only the measurements of a
        // reporter or from before a time are deleted on all targets.
        let is_narrow = reporter.is_some() || request.reported_before > 0;
        if !is_narrow || !request.target.is_empty() {
            check_target("target", &request.target)?;
        }
        let chosen = read_chosen(
            request.target,
            &request.graph_hash,
            reporter,
            request.reported_before,
        )?;
        let deleted = store.delete(&chosen).await?;
        let set = |change: &mut AuditedChange| change.measurements = Some(deleted);
        call.record.changes(set);
        Ok(DeleteMeasurementsResponse { deleted })
    }
}

/// Returns the reporter that a request names, if its client may name another; the client if it names none.
fn reporter_of(name: &str, call: &Call) -> Result<Reporter, ServiceError> {
    let client = &call.client;
    let Some(named) = Reporter::named(name) else {
        return Ok(client.reporter.clone());
    };
    check_length("reporter", name, MAX_REPORTER_BYTES)?;
    // What a client measured itself comes before what others measured, so no client may report in
    // the name of another.
    if named != client.reporter {
        let name = Some(named.name().to_owned());
        call.record.changes(|change| change.reporter = name);
        check_scope(client, Scope::Admin)?;
    }
    Ok(named)
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
    let (subject, Measurement { task, .. }) = &stored[0];
    let configs = stored.iter().map(|(_, each)| each.config.as_slice());
    let configs = Configurations::from_canonical(*task, configs, &Limits::default())?;
    let measurements = || stored.iter().map(|(_, measurement)| measurement);
    // Only an admin may know the names of other reporters.
    let shown = |each: &Measurement| client.shown(&each.reporter).to_owned();
    Ok(GraphMeasurements {
        target: subject.target.clone(),
        graph_hash: subject.graph.0.to_vec().into(),
        batch: Some(ConfigBatch {
            configs: Some(configs.to_smallest_form()),
        }),
        seconds: measurements().map(|each| each.outcome.seconds).collect(),
        repeats: measurements().map(|each| each.outcome.repeats).collect(),
        failures: measurements().map(|each| each.outcome.failure).collect(),
        ids: measurements().map(|each| each.id.clone().into()).collect(),
        reporters: measurements().map(shown).collect(),
        reported_at: measurements().map(|each| each.reported_at).collect(),
        machines: measurements().map(|each| each.machine.clone()).collect(),
    })
}
