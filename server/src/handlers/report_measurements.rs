//! `ReportMeasurements`: keeps measurements for later calls.

use hlorank_graph::EncodedBatch;
use hlorank_proto::{
    methods::Scope,
    received::ReportMeasurementsRequest,
    v1::{self, ReportMeasurementsResponse},
};

use super::{CostModel, adapt_request::check_measurements};
use crate::{
    call::{Call, CallError, Client, REPORT, SentMeasurements, SentTimes},
    errors::ServiceError,
    security::TokenError,
    store::Reporter,
};

/// Maximum length of the name of a reporter.
const MAX_REPORTER_BYTES: usize = 256;

impl CostModel {
    pub(super) async fn report(
        &self,
        request: ReportMeasurementsRequest,
        call: &Call,
    ) -> Result<ReportMeasurementsResponse, ServiceError> {
        // A server without a store refuses a report before it reads the graph.
        self.stored.store().map_err(CallError::from)?;
        let reporter = reporter_of(&request.reporter, &call.client)?;
        let batch = self.batch(request.batch).await?;
        let task = batch.task();
        let times = SentTimes {
            seconds: request.seconds,
            repeats: request.repeats,
            failures: request.failures,
            ids: request.ids,
        };
        let sent = measurements(request.target, batch, &times)?;
        let found = self.find_graph(request.graph, Some(task), &call.record);
        let found = found.await?;
        let kept = self.stored.report(call, &found, sent, reporter).await?;
        Ok(ReportMeasurementsResponse {
            accepted: u32::try_from(kept.accepted).unwrap_or(u32::MAX),
            known: u32::try_from(kept.known).unwrap_or(u32::MAX),
            graph_hash: found.graph.hash.0.to_vec().into(),
            warnings: found.warnings.into_iter().map(v1::Warning::from).collect(),
        })
    }
}

/// Checks the measurements of a report.
fn measurements(
    target: String,
    batch: EncodedBatch,
    times: &SentTimes,
) -> Result<SentMeasurements, ServiceError> {
    check_measurements(&REPORT, &target, times)?;
    let sent = SentMeasurements::new(&REPORT, target, Some(batch), times);
    Ok(sent.map_err(CallError::from)?)
}

/// Returns the reporter that a request names, if its client may name another; the client if it names none.
fn reporter_of(name: &str, client: &Client) -> Result<Reporter, ServiceError> {
    let Some(named) = Reporter::named(name) else {
        return Ok(client.reporter.clone());
    };
    let bytes = name.len();
    if bytes > MAX_REPORTER_BYTES {
        return Err(ServiceError::too_long(
            "reporter",
            bytes,
            MAX_REPORTER_BYTES,
        ));
    }
    // What a client measured itself comes before what others measured, so no client may report in
    // the name of another.
    if named != client.reporter && !client.is_admin {
        let name = client.reporter.name().to_owned();
        let scope = Scope::Admin;
        return Err(TokenError::ScopeMissing { name, scope }.into());
    }
    Ok(named)
}
