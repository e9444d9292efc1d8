//! What operators ask over HTTP: `/metrics` for Prometheus, `/healthz` (the process answers) and `/readyz` (calls
//! would be answered, or why not).

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use hlorank_graph::Task;
use tokio::{sync::oneshot, task::spawn_blocking};

use crate::{
    listening::HeldAddress,
    metrics::Metrics,
    registry::{Registry, Wanted},
    serve::StartError,
    service::CostModel,
};

/// What there is to tell.
pub(crate) struct Monitored {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) cost_model: CostModel,
    pub(crate) readiness: Arc<Readiness>,
}

/// Whether calls would be answered.
pub(crate) struct Readiness {
    registry: Arc<Registry>,
    stopping: AtomicBool,
}

/// A listener that answers operators until this is dropped.
pub(crate) struct Monitoring {
    address: SocketAddr,
    _running: oneshot::Sender<()>,
}

/// Of Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Monitoring {
    /// Answers on an address from now on.
    pub(crate) fn start(address: HeldAddress, monitored: Monitored) -> Result<Self, StartError> {
        let (address, listener) = address.listen()?;
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(ready))
            .with_state(Arc::new(monitored));
        let (running, stopped) = oneshot::channel::<()>();
        let until_stopped = async {
            // It only ever is dropped.
            let _ = stopped.await;
        };
        let serving = axum::serve(listener, router).with_graceful_shutdown(until_stopped);
        tokio::spawn(serving.into_future());
        Ok(Self { address, _running: running })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Readiness {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self { registry, stopping: AtomicBool::new(false) }
    }

    /// From now on no new call should come.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Why a call that names no model would not be answered.
    fn obstacle(&self) -> Option<String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Some("the server is stopping".to_owned());
        }
        let selected =
            [Task::Layout, Task::Tile].map(|task| self.registry.select("", &Wanted::Any, task).err());
        selected.into_iter().flatten().next().map(|error| error.to_string())
    }
}

async fn metrics(State(monitored): State<Arc<Monitored>>) -> Result<impl IntoResponse, StatusCode> {
    monitored.cost_model.sample().await;
    // Some milliseconds of work, which those who wait for calls are not to do.
    let text = spawn_blocking(move || monitored.metrics.render()).await;
    let text = text.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(([(header::CONTENT_TYPE, TEXT_FORMAT)], text))
}

async fn ready(State(monitored): State<Arc<Monitored>>) -> impl IntoResponse {
    match monitored.readiness.obstacle() {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
    }
}
