//! `hlorank.v1.CostModelService`: reads messages, and writes the answers of a scoring session.

use std::{sync::Arc, time::Instant};

use hlorank_graph::LayoutBatch;
use hlorank_proto::{
    received::{
        PutGraphRequest, RankConfigsRequest, RankConfigsStreamRequest, ReportMeasurementsRequest,
        SuggestConfigsRequest, cost_model_service_server::CostModelService,
    },
    v1::{
        self, DeleteMeasurementsRequest, DeleteMeasurementsResponse, GetMeasuredGraphRequest,
        GetMeasuredGraphResponse, ListMeasurementsRequest, ListMeasurementsResponse,
        PutGraphResponse, RankConfigsResponse, ReportMeasurementsResponse, SuggestConfigsResponse,
    },
};
use tonic::{Extensions, Request, Response, Status, Streaming};

use super::{
    ServiceError,
    adapt_request::{adapt, adaptation, confidence},
    admit_calls::{caller, client},
    answer::{
        config_kernels, configurable_node, reuse_counts, selector, stage_timings, summary, unit_of,
    },
    batch_request::read_batch,
    deadline,
    graph_request::read_graph,
    measurements_request::{self, delete, list, report},
    model::find,
    rank_stream::{Answers, RankStream},
    suggest_request::{read_source, read_wanted, suggestion},
};
use crate::{
    admission::{Admission, Place},
    graphs::{Source, Warning},
    outcome::Timings,
    session::{Call, GraphOrigin, Ranked, Session, SessionError, Sessions, answer_bytes},
    telemetry::CallRecord,
};

/// `hlorank.v1.CostModelService`. Clones share everything.
#[derive(Clone)]
pub(crate) struct CostModel {
    sessions: Sessions,
    admission: Arc<Admission>,
}

impl CostModel {
    /// Serves these sessions.
    #[must_use]
    pub(crate) fn new(sessions: Sessions, admission: Arc<Admission>) -> Self {
        Self {
            sessions,
            admission,
        }
    }

    /// Returns the call that a request belongs to, and opens it if no layer did.
    fn call(&self, extensions: &Extensions) -> Result<Call, ServiceError> {
        let open = || {
            let opened = self.admission.open(&caller(extensions), 0);
            opened.map_err(SessionError::from)
        };
        let place = extensions.get::<Place>().cloned().map_or_else(open, Ok)?;
        // Calls that are not observed leave their record unread.
        let record = extensions.get::<CallRecord>().cloned().unwrap_or_default();
        let deadline = deadline::of_call(extensions);
        Ok(Call {
            place,
            record,
            deadline,
            client: client(extensions),
        })
    }

    async fn rank(
        &self,
        request: RankConfigsRequest,
        call: Call,
    ) -> Result<RankConfigsResponse, ServiceError> {
        let started = Instant::now();
        let batch = read_batch(&self.sessions, request.batch).await?;
        let asked = (request.graph, request.model);
        let (found, model) = find(&self.sessions, asked, batch.task(), &call.record).await?;
        let session = Session::open(&self.sessions, call, model, &found)?;
        let mut session = session.ranking(request.top_k);
        adapt(&mut session, request.adapt).await?;
        let explained = read_explain_top(request.explain_top)?;
        let is_explained = explained > 0;
        if is_explained || request.assess_confidence {
            session.keep_batch();
        }
        let outcome = if request.allow_partial {
            session.score_in_time(batch).await?
        } else {
            session.score(batch).await?
        };
        let Ranked {
            ranking,
            ranking_scores,
            scores,
            predicted_seconds,
            log_sd,
            ..
        } = session.rank().await?;
        let kernels = if is_explained {
            let best = &ranking[..explained.min(ranking.len())];
            session.explain(best).await?
        } else {
            Vec::new()
        };
        let assessment = if request.assess_confidence {
            Some(session.assess().await?)
        } else {
            None
        };
        let timings = Timings {
            featurize: found.featurize,
            total: started.elapsed(),
            ..outcome.timings()
        };
        session.record_scored(&timings);
        session.record_ranked(&timings);
        let scores = if request.include_scores {
            scores
        } else {
            Vec::new()
        };
        session
            .call()
            .place
            .hold_only(answer_bytes(ranking.len() + log_sd.len(), scores.len()));
        Ok(RankConfigsResponse {
            ranking,
            ranking_scores,
            scores,
            model: Some(selector(session.model())),
            graph_hash: found.graph.hash.0.to_vec().into(),
            timings: Some(stage_timings(timings)),
            reuse: Some(reuse_counts(outcome.reuse)),
            warnings: warnings(found.warnings, &mut session),
            scored_configs: u32::try_from(outcome.configs).unwrap_or(u32::MAX),
            predicted_seconds,
            log_sd,
            adaptation: session.adaptation().map(adaptation),
            unit: unit_of(&session).into(),
            kernels: kernels.into_iter().map(config_kernels).collect(),
            confidence: assessment.map(confidence),
        })
    }

    async fn suggest(
        &self,
        request: SuggestConfigsRequest,
        call: Call,
    ) -> Result<SuggestConfigsResponse, ServiceError> {
        let started = Instant::now();
        let batch = read_batch(&self.sessions, request.batch).await?;
        let numbers = [request.count, request.since_improvement];
        let wanted = read_wanted(numbers, &request.pending, request.seed, batch.count())?;
        let source = read_source(request.source)?;
        let asked = (request.graph, request.model);
        let (found, model) = find(&self.sessions, asked, batch.task(), &call.record).await?;
        let mut session = Session::open(&self.sessions, call, model, &found)?;
        adapt(&mut session, request.adapt).await?;
        let (scored, suggested, combined) = session.suggest(batch, wanted, source).await?;
        let timings = Timings {
            featurize: found.featurize,
            total: started.elapsed(),
            ..scored.timings()
        };
        session.record_scored(&timings);
        Ok(SuggestConfigsResponse {
            suggestions: suggested.iter().map(suggestion).collect(),
            model: Some(selector(session.model())),
            graph_hash: found.graph.hash.0.to_vec().into(),
            timings: Some(stage_timings(timings)),
            reuse: Some(reuse_counts(scored.reuse)),
            warnings: warnings(found.warnings, &mut session),
            adaptation: session.adaptation().map(adaptation),
            combinations: combined.as_ref().map(LayoutBatch::to_packed),
        })
    }

    async fn put(
        &self,
        request: PutGraphRequest,
        record: &CallRecord,
    ) -> Result<PutGraphResponse, ServiceError> {
        let GraphOrigin::Sent(graph) = read_graph(&self.sessions, request.graph, None).await?
        else {
            let hint = "PutGraph takes the graph itself: set hlo_module, hlo_text, features or feature_graph";
            return Err(ServiceError::Missing {
                field: "graph.source",
                hint,
            });
        };
        let (source, featurize) = self.sessions.read(graph).await?;
        let Source {
            graph,
            nodes,
            warnings,
            ..
        } = source.as_ref();
        record.found(graph, featurize);
        Ok(PutGraphResponse {
            graph_hash: graph.hash.0.to_vec().into(),
            summary: Some(summary(graph)),
            configurable_nodes: nodes.iter().map(configurable_node).collect(),
            warnings: warnings.iter().cloned().map(v1::Warning::from).collect(),
        })
    }
}

/// Maximum number of configurations whose kernels an answer has.
const MAX_EXPLAINED: u32 = 16;

fn read_explain_top(configs: u32) -> Result<usize, ServiceError> {
    if configs > MAX_EXPLAINED {
        let (found, expected) = (configs.to_string(), format!("at most {MAX_EXPLAINED}"));
        return Err(ServiceError::Invalid {
            field: "explain_top",
            found,
            expected,
        });
    }
    Ok(configs as usize)
}

/// What was unusual about a graph and about what predictions rest on.
fn warnings(of_graph: Vec<Warning>, session: &mut Session) -> Vec<v1::Warning> {
    of_graph
        .into_iter()
        .chain(session.take_warnings())
        .map(v1::Warning::from)
        .collect()
}

#[tonic::async_trait]
impl CostModelService for CostModel {
    async fn rank_configs(
        &self,
        request: Request<RankConfigsRequest>,
    ) -> Result<Response<RankConfigsResponse>, Status> {
        let call = self.call(request.extensions())?;
        Ok(Response::new(self.rank(request.into_inner(), call).await?))
    }

    async fn suggest_configs(
        &self,
        request: Request<SuggestConfigsRequest>,
    ) -> Result<Response<SuggestConfigsResponse>, Status> {
        let call = self.call(request.extensions())?;
        Ok(Response::new(
            self.suggest(request.into_inner(), call).await?,
        ))
    }

    type RankConfigsStreamStream = Answers;

    async fn rank_configs_stream(
        &self,
        request: Request<Streaming<RankConfigsStreamRequest>>,
    ) -> Result<Response<Answers>, Status> {
        let call = self.call(request.extensions())?;
        let stream = RankStream::new(self.sessions.clone(), request.into_inner(), call);
        Ok(Response::new(stream.answers()))
    }

    async fn put_graph(
        &self,
        request: Request<PutGraphRequest>,
    ) -> Result<Response<PutGraphResponse>, Status> {
        let call = self.call(request.extensions())?;
        Ok(Response::new(
            self.put(request.into_inner(), &call.record).await?,
        ))
    }

    async fn report_measurements(
        &self,
        request: Request<ReportMeasurementsRequest>,
    ) -> Result<Response<ReportMeasurementsResponse>, Status> {
        let call = self.call(request.extensions())?;
        Ok(Response::new(
            report(&self.sessions, request.into_inner(), &call).await?,
        ))
    }

    async fn list_measurements(
        &self,
        request: Request<ListMeasurementsRequest>,
    ) -> Result<Response<ListMeasurementsResponse>, Status> {
        let call = self.call(request.extensions())?;
        Ok(Response::new(
            list(&self.sessions, request.into_inner(), &call).await?,
        ))
    }

    async fn get_measured_graph(
        &self,
        request: Request<GetMeasuredGraphRequest>,
    ) -> Result<Response<GetMeasuredGraphResponse>, Status> {
        Ok(Response::new(
            measurements_request::graph(&self.sessions, request.into_inner()).await?,
        ))
    }

    async fn delete_measurements(
        &self,
        request: Request<DeleteMeasurementsRequest>,
    ) -> Result<Response<DeleteMeasurementsResponse>, Status> {
        Ok(Response::new(
            delete(&self.sessions, &request.into_inner()).await?,
        ))
    }
}
