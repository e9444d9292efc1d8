//! `ReportMeasurements`: keeps measurements for later calls.

use hlorank_proto::{
    methods::Scope,
    received::ReportMeasurementsRequest,
    v1::{self, ReportMeasurementsResponse},
};

use super::{CostModel, ServiceError, adapt_request::check_measurements};
use crate::{
    call::{Call, CallError, Client, REPORT, SentMeasurements, SentTimes},
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
        check_measurements(&REPORT, &request.target, &times)?;
        let sent = SentMeasurements::new(&REPORT, request.target, Some(batch), &times);
        let sent = sent.map_err(CallError::from)?;
        let origin = self.graph(request.graph, Some(task)).await?;
        let found = self.graphs.find(origin, &call.record).await?;
        let kept = self.stored.report(call, &found, sent, reporter).await?;
        Ok(ReportMeasurementsResponse {
            accepted: u32::try_from(kept.accepted).unwrap_or(u32::MAX),
            known: u32::try_from(kept.known).unwrap_or(u32::MAX),
            graph_hash: found.graph.hash.0.to_vec().into(),
            warnings: found.warnings.into_iter().map(v1::Warning::from).collect(),
        })
    }
}

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
