//! HTTP endpoints for operators: `/metrics` for Prometheus, `/healthz` (the process answers), `/readyz` (whether calls
//! would be answered, and otherwise why not), `/openapi.json` (the calls that take JSON), `/searches` (what clients reported
//! since the start), and `/`, a page that shows the metrics and the searches.

mod page;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{Method, StatusCode, Uri, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::json;
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{
    admission::Admission,
    engine::Engine,
    graphs::Graphs,
    handlers::CostModel,
    learning::Learning,
    leases::Leases,
    listening::{BoundAddress, ListenerHandle},
    metrics::Metrics,
    registry::Registry,
    searches::DecisionSummary,
    security::{AllowedHosts, ConnectionActivity, ConnectionGate, HostError},
    serve_connection::Http,
    start_error::StartError,
    stored_measurements::StoredMeasurements,
    translations::openapi,
};

/// The sources of the answers.
pub(crate) struct MonitoringSources {
    metrics: Arc<Metrics>,
    engine: Arc<Engine>,
    graphs: Arc<Graphs>,
    learning: Arc<Learning>,
    leases: Arc<Leases>,
    stored: Arc<StoredMeasurements>,
    admission: Arc<Admission>,
    readiness: Arc<Readiness>,
    /// Permits to render the metrics.
    rendering: Semaphore,
}

/// Decides whether calls would be answered.
pub(crate) struct Readiness {
    registry: Arc<Registry>,
    stopping: AtomicBool,
}

/// An HTTP listener, until it is dropped.
pub(crate) struct Monitoring(ListenerHandle);

/// Maximum number of connections. At the maximum, a new connection replaces the one whose last request is the longest
/// ago, so that probes are answered whoever else connects.
const MAX_CONNECTIONS: usize = 32;

/// Time that a client has to send the headers of its next request. It is longer than usual intervals of scrapes.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(75);

/// Maximum size of the headers of a request in bytes.
const MAX_HEADER_BYTES: usize = 16 << 10;

/// Maximum number of requests whose metrics are rendered at the same time. Others wait.
const MAX_RENDERING: usize = 1;

/// Content type of Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

impl MonitoringSources {
    pub(crate) fn new(
        metrics: &Arc<Metrics>,
        engine: &Arc<Engine>,
        cost_model: &CostModel,
        readiness: &Arc<Readiness>,
    ) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            engine: Arc::clone(engine),
            graphs: Arc::clone(&cost_model.graphs),
            learning: Arc::clone(&cost_model.learning),
            leases: Arc::clone(&cost_model.leases),
            stored: Arc::clone(&cost_model.stored),
            admission: Arc::clone(&cost_model.admission),
            readiness: Arc::clone(readiness),
            rendering: Semaphore::new(MAX_RENDERING),
        }
    }
}

impl Monitoring {
    /// Serves the endpoints on an address.
    pub(crate) fn start(
        address: BoundAddress,
        monitored: MonitoringSources,
        hosts: AllowedHosts,
    ) -> Result<Self, StartError> {
        let gate = ConnectionGate::new(MAX_CONNECTIONS, &monitored.metrics.security.metrics);
        let router = router(monitored, hosts);
        Ok(Self(ListenerHandle::start(address, gate, http(), router)?))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

fn router(monitored: MonitoringSources, hosts: AllowedHosts) -> Router {
    let page = page::page();
    let openapi = Bytes::from(openapi().to_string());
    Router::new()
        .route("/", get(async move || page.clone()))
        .route(
            "/openapi.json",
            get(async move || {
                (
                    [(header::CONTENT_TYPE, "application/json")],
                    openapi.clone(),
                )
            }),
        )
        .route("/metrics", get(metrics))
        .route("/searches", get(searches))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .fallback(no_page)
        .method_not_allowed_fallback(only_get)
        .layer(from_fn(note_request))
        // The last layer is the outermost: a request to another host is no activity of its
        // connection.
        .layer(from_fn_with_state(hosts, check_host))
        .with_state(Arc::new(monitored))
}

/// Speaks HTTP/1 and HTTP/2, with which `HAProxy` checks replicas.
fn http() -> Http {
    let mut http = Http::new(TokioExecutor::new());
    let settings = &mut http.http1();
    settings
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES);
    let header_bytes = u32::try_from(MAX_HEADER_BYTES).unwrap_or(u32::MAX);
    http.http2()
        .timer(TokioTimer::new())
        .max_header_list_size(header_bytes);
    http
}

/// Rejects requests that name a host which is not one of this server.
async fn check_host(State(hosts): State<AllowedHosts>, request: Request, next: Next) -> Response {
    match hosts.check(request.version(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error @ HostError::NotAllowed { .. }) => (
            StatusCode::MISDIRECTED_REQUEST,
            format!("HOST_NOT_ALLOWED: {error}\n"),
        )
            .into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("HOST_INVALID: {error}\n")).into_response(),
    }
}

async fn no_page(uri: Uri) -> impl IntoResponse {
    let text = format!(
        "there is no page {}; pages are / /metrics /searches /healthz /readyz /openapi.json\n",
        uri.path()
    );
    (StatusCode::NOT_FOUND, text)
}

async fn only_get(method: Method) -> impl IntoResponse {
    let text = format!("the method is {method}, but pages are read with GET or HEAD\n");
    (StatusCode::METHOD_NOT_ALLOWED, text)
}

/// Lets the connection of a request be idle from its arrival, so that a client which does not read its answer is idle,
/// too.
async fn note_request(request: Request, next: Next) -> Response {
    if let Some(activity) = request.extensions().get::<ConnectionActivity>() {
        // A call that ends at once leaves the time of its end, from which the connection is idle.
        drop(activity.begin());
    }
    next.run(request).await
}

impl Readiness {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            stopping: AtomicBool::new(false),
        }
    }

    /// Reports from now on that the server is stopping.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Returns why calls would not be answered, or `None` if they would be.
    fn obstacle(&self) -> Option<String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Some("the server is stopping".to_owned());
        }
        if let Some((_, error)) = self.registry.serving().failing_default() {
            return Some(error.to_string());
        }
        let lacks_models = self.registry.lacks_models();
        lacks_models.then(|| "no model serves".to_owned())
    }
}

async fn metrics(
    State(monitored): State<Arc<MonitoringSources>>,
    request: Request,
) -> Result<impl IntoResponse, StatusCode> {
    // An error would mean that the semaphore was closed, which it never is.
    let permit = monitored.rendering.acquire().await;
    // New connections do not replace the one whose metrics are rendered.
    let working = request
        .extensions()
        .get::<ConnectionActivity>()
        .map(ConnectionActivity::begin);
    // These gauges change too often to be set at every change, so they are set when somebody reads
    // them.
    monitored.graphs.sample().await;
    let Metrics {
        load, other_caches, ..
    } = &*monitored.metrics;
    monitored.engine.sample(load, &other_caches.segments);
    monitored.learning.sample(other_caches);
    monitored.leases.sample(&other_caches.leases);
    monitored.admission.sample(load);
    // Rendering takes some milliseconds, which would block an async thread.
    let rendered = Arc::clone(&monitored);
    let text = spawn_blocking(move || rendered.metrics.render()).await;
    drop((permit, working));
    let text = text.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(([(header::CONTENT_TYPE, TEXT_FORMAT)], text))
}

/// The searches as JSON, each with its decision.
async fn searches(State(monitored): State<Arc<MonitoringSources>>) -> impl IntoResponse {
    let mut searches = monitored.stored.searches.summaries();
    for search in &mut searches {
        let decided = monitored.leases.decision(&search.subject, None).await;
        search.decision = match decided {
            Ok(decision) => decision.map(DecisionSummary::from),
            // What cannot be read is not shown as if nothing were decided.
            Err(error) => Some(DecisionSummary::unreadable(&error)),
        };
    }
    let json = json!(searches).to_string();
    ([(header::CONTENT_TYPE, "application/json")], json)
}

async fn ready(State(monitored): State<Arc<MonitoringSources>>) -> impl IntoResponse {
    match monitored.readiness.obstacle() {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(reason) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {reason}\n"),
        ),
    }
}
