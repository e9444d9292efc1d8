use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::{Configurations, Limits, SegmentedGraph, Task, form};
use hlorank_proto::v1::{
    self, ModelSelector, PutGraphRequest, PutGraphResponse, RankConfigsRequest, RankConfigsResponse,
    RankConfigsStreamRequest, config_batch::Configs, cost_model_service_server::CostModelService,
};
use tonic::{Extensions, Request, Response, Status, Streaming};

use super::{
    ServiceError,
    admission::{Admission, Caller},
    admit_calls::AdmittedCall,
    answer::{answer_bytes, configurable_node, reuse_counts, selector, summary, timings as stage_timings},
    configs_request::{batch_bytes, check_count, class_of, present, read_configs},
    deadline::Deadline,
    graph_request::{GraphOrigin, GraphRequest},
    model::wanted,
    rank_stream::{Answers, RankStream},
};
use crate::{
    compute::{Class, ComputePool, Computed},
    engine::{Engine, Terms, rank},
    graphs::{GraphCache, Source, Warning},
    metrics::{Metrics, ModelSeries, set},
    outcome::{Evaluation, Timings},
    registry::{Registry, Selection},
    telemetry::CallRecord,
};

/// `hlorank.v1.CostModelService`. Clones share everything.
#[derive(Clone)]
pub struct CostModel {
    registry: Arc<Registry>,
    graphs: Arc<GraphCache>,
    pub(super) pool: Arc<ComputePool>,
    pub(super) engine: Arc<Engine>,
    admission: Admission,
    pub(super) bounds: Bounds,
    pub(super) metrics: Arc<Metrics>,
}

/// What is accepted.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Counts of a graph and a batch.
    pub limits: Limits,
    /// Bytes of one serialized module.
    pub graph_bytes: usize,
    /// Requests in progress or waiting; a stream is one.
    pub requests: u32,
    /// Of them, those of one client.
    pub client_requests: u32,
    /// Configurations of one stream.
    pub stream_configs: u32,
}

/// A graph for a request, and what reading it brought up.
pub(super) struct FoundGraph {
    pub(super) graph: Arc<SegmentedGraph>,
    pub(super) warnings: Vec<Warning>,
    /// Zero where it was cached.
    pub(super) featurize: Duration,
}

/// Scores, and which are the best of them.
pub(super) struct Ranked {
    pub(super) ranking: Vec<u32>,
    pub(super) ranking_scores: Vec<f32>,
    scores: Vec<f32>,
}

impl CostModel {
    /// Serves the models of a registry, evaluated by an engine on its pool.
    #[must_use]
    pub fn new(
        registry: Arc<Registry>,
        engine: Arc<Engine>,
        pool: Arc<ComputePool>,
        graphs: GraphCache,
        bounds: Bounds,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            registry,
            graphs: Arc::new(graphs),
            engine,
            pool,
            admission: Admission::new(bounds.requests, bounds.client_requests),
            bounds,
            metrics,
        }
    }

    /// Sets the gauges of what there is now.
    pub async fn sample(&self) {
        self.graphs.sample().await;
        let load = &self.metrics.load;
        self.engine.sample(load);
        set(&load.requests, self.admission.requests().into());
        set(&load.max_requests, self.bounds.requests.into());
        set(&load.queued_tasks, self.pool.queued() as u64);
        set(&load.threads, self.pool.workers() as u64);
        load.worker_panics.absolute(self.pool.panics());
    }

    /// The series of the model that a call selected.
    pub(super) fn count_selected(&self, selection: &Selection, record: &CallRecord) -> Arc<ModelSeries> {
        let series = self.metrics.model(selection.name());
        record.selected(&series);
        series
    }

    /// Takes a call, or refuses it at once.
    pub(super) fn admit(&self, caller: Caller) -> Result<AdmittedCall, ServiceError> {
        let admitted = self.admission.admit(caller).map_err(|error| match error {
            ServiceError::Overloaded { limit, .. } => {
                ServiceError::Overloaded { limit, half_done_in: self.engine.half_done_in() }
            }
            error => error,
        })?;
        Ok(AdmittedCall::new(admitted, self.engine.memory().hold_nothing()))
    }

    /// The call that a request belongs to.
    fn call(&self, extensions: &Extensions) -> Result<AdmittedCall, ServiceError> {
        let admitted = AdmittedCall::of_request(extensions);
        admitted.map_or_else(|| self.admit(Caller::of_call(extensions)), Ok)
    }

    async fn rank(
        &self,
        request: RankConfigsRequest,
        call: &AdmittedCall,
        record: &CallRecord,
        deadline: Option<Deadline>,
    ) -> Result<RankConfigsResponse, ServiceError> {
        let started = Instant::now();
        let configs = present(request.batch)?;
        check_count(&configs, &self.bounds.limits)?;
        let task = form(&configs).task();
        let selection = self.select(&request.model.unwrap_or_default(), task)?;
        let counted = self.count_selected(&selection, record);
        let origin = GraphOrigin::read(request.graph, Some(task))?;

        let FoundGraph { graph, warnings, featurize } = self.find(origin, record).await?;
        let found = Instant::now();
        let model = selection.of_graph(graph.hash);
        record.answered_by(&model);
        call.hold(batch_bytes(&configs, &graph, &self.bounds.limits))?;
        let sent = form(&configs).count();
        let class = class_of(sent);
        let read = self.reader(configs, &graph);
        let evaluation = match deadline {
            Some(deadline) if request.allow_partial => {
                self.score_in_time(&model, &graph, read, deadline, class).await?
            }
            _ => {
                let terms = Terms { deadline: deadline.map(Deadline::instant), class, goes_on: false };
                self.engine.score(&model, &graph, read, terms).await?
            }
        };
        let Evaluation { scores, reuse, stages } = evaluation;
        counted.scored(reuse);
        if scores.len() < sent {
            counted.ranked_in_part();
        }
        record.scored(reuse, found, &stages);
        let scored_configs = u32::try_from(scores.len()).unwrap_or(u32::MAX);
        let Ranked { ranking, ranking_scores, scores } = self.ranked(scores, request.top_k).await?.value;
        record.ranked(stages.scored);
        let timings = Timings { featurize, total: started.elapsed(), ..stages.timings(found) };
        self.metrics.stages.scored(&timings);
        self.metrics.stages.ranked(&timings);
        let scores = if request.include_scores { scores } else { Vec::new() };
        call.hold_only(answer_bytes(ranking.len(), scores.len()));
        Ok(RankConfigsResponse {
            ranking,
            ranking_scores,
            scores,
            model: Some(selector(&model)),
            graph_hash: graph.hash.0.to_vec().into(),
            timings: Some(stage_timings(timings)),
            reuse: Some(reuse_counts(reuse)),
            warnings: warnings.into_iter().map(v1::Warning::from).collect(),
            scored_configs,
        })
    }

    /// The versions that may answer.
    pub(super) fn select(&self, selector: &ModelSelector, task: Task) -> Result<Selection, ServiceError> {
        Ok(self.registry.select(&selector.name, &wanted(selector)?, task)?)
    }

    async fn put(
        &self,
        request: PutGraphRequest,
        record: &CallRecord,
    ) -> Result<PutGraphResponse, ServiceError> {
        let GraphOrigin::Sent(graph) = GraphOrigin::read(request.graph, None)? else {
            let hint = "PutGraph takes the graph itself: set hlo_module, hlo_text or features";
            return Err(ServiceError::Missing { field: "graph.source", hint });
        };
        let (source, featurize) = self.read(graph).await?;
        let Source { graph, nodes, warnings } = source.as_ref();
        record.found(graph, featurize);
        Ok(PutGraphResponse {
            graph_hash: graph.hash.0.to_vec().into(),
            summary: Some(summary(graph)),
            configurable_nodes: nodes.iter().map(configurable_node).collect(),
            warnings: warnings.iter().cloned().map(v1::Warning::from).collect(),
        })
    }

    /// The `top_k` (0: all) of some scores.
    pub(super) async fn ranked(
        &self,
        scores: Vec<f32>,
        top_k: u32,
    ) -> Result<Computed<Ranked>, ServiceError> {
        let class = class_of(scores.len());
        let rank = move || {
            let ranking = rank(&scores, top_k as usize);
            let ranking_scores = ranking.iter().map(|&config| scores[config as usize]).collect();
            Ranked { ranking, ranking_scores, scores }
        };
        match class {
            // Too little to hand to a worker.
            Class::Interactive => Ok(Computed { value: rank(), waited: Duration::ZERO }),
            Class::Bulk => Ok(self.pool.run(Class::Bulk, move |_| rank()).await?),
        }
    }

    /// The graph from the cache or the request.
    pub(super) async fn find(
        &self,
        origin: GraphOrigin,
        record: &CallRecord,
    ) -> Result<FoundGraph, ServiceError> {
        let found = match origin {
            GraphOrigin::Hash(hash) => {
                let graph = self.graphs.get(hash).await.ok_or(ServiceError::GraphNotCached { hash })?;
                FoundGraph { graph, warnings: Vec::new(), featurize: Duration::ZERO }
            }
            GraphOrigin::Sent(graph) => {
                let (source, featurize) = self.read(graph).await?;
                let (graph, warnings) = (Arc::clone(&source.graph), source.warnings.clone());
                FoundGraph { graph, warnings, featurize }
            }
        };
        record.found(&found.graph, found.featurize);
        Ok(found)
    }

    /// The source in the cache, or read now, and how long reading took.
    async fn read(&self, graph: GraphRequest) -> Result<(Arc<Source>, Duration), ServiceError> {
        let limits = self.bounds.limits;
        graph.check(self.bounds.graph_bytes, &limits)?;
        let class = graph.class();
        let digested = self.pool.run(class, move |_| (graph.digest(), graph)).await?;
        let (digest, graph) = digested.value;
        let mut featurize = Duration::ZERO;
        let read = async {
            let read = self.pool.run(class, move |_| {
                let started = Instant::now();
                (graph.segmented(&limits), started.elapsed())
            });
            let (source, spent) = read.await?.value;
            self.metrics.stages.featurized(spent);
            featurize = spent;
            source.map_err(ServiceError::Graph)
        };
        let source = self.graphs.get_or_read(digest, read).await;
        Ok((source.map_err(|error| error.as_ref().clone())?, featurize))
    }

    /// Reads configurations against their graph once it is called.
    pub(super) fn reader(
        &self,
        configs: Configs,
        graph: &Arc<SegmentedGraph>,
    ) -> impl FnOnce() -> Result<Configurations, ServiceError> + Send + 'static {
        let (graph, limits) = (Arc::clone(graph), self.bounds.limits);
        move || read_configs(&configs, &graph, &limits)
    }
}

#[tonic::async_trait]
impl CostModelService for CostModel {
    async fn rank_configs(
        &self,
        request: Request<RankConfigsRequest>,
    ) -> Result<Response<RankConfigsResponse>, Status> {
        let call = self.call(request.extensions())?;
        let record = record_of(request.extensions());
        let deadline = Deadline::of_call(request.extensions());
        Ok(Response::new(self.rank(request.into_inner(), &call, &record, deadline).await?))
    }

    type RankConfigsStreamStream = Answers;

    async fn rank_configs_stream(
        &self,
        request: Request<Streaming<RankConfigsStreamRequest>>,
    ) -> Result<Response<Answers>, Status> {
        let call = self.call(request.extensions())?;
        let deadline = Deadline::of_call(request.extensions());
        let record = record_of(request.extensions());
        let stream = RankStream::new(self.clone(), request.into_inner(), call, record, deadline);
        Ok(Response::new(stream.answers()))
    }

    async fn put_graph(
        &self,
        request: Request<PutGraphRequest>,
    ) -> Result<Response<PutGraphResponse>, Status> {
        let _call = self.call(request.extensions())?;
        let record = record_of(request.extensions());
        Ok(Response::new(self.put(request.into_inner(), &record).await?))
    }
}

/// Where a call leaves what it is about; nobody reads it where calls are not observed.
fn record_of(extensions: &Extensions) -> CallRecord {
    extensions.get::<CallRecord>().cloned().unwrap_or_default()
}
