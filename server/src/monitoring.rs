//! HTTP endpoints for operators: `/metrics` for Prometheus, `/healthz` (the process answers) and `/readyz` (whether calls
//! would be answered, and otherwise why not).

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
use tokio::{sync::oneshot, task::spawn_blocking};

use crate::{
    listening::BoundAddress, metrics::Metrics, registry::Registry, session::Sessions, start_error::StartError,
};

/// The sources of the answers.
pub(crate) struct Monitored {
    metrics: Arc<Metrics>,
    sessions: Sessions,
    readiness: Arc<Readiness>,
}

/// Decides whether calls would be answered.
pub(crate) struct Readiness {
    registry: Arc<Registry>,
    stopping: AtomicBool,
}

/// An HTTP listener, until it is dropped.
pub(crate) struct Monitoring {
    address: SocketAddr,
    _running: oneshot::Sender<()>,
}

/// Content type of Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Monitored {
    pub(crate) fn new(metrics: &Arc<Metrics>, sessions: &Sessions, readiness: &Arc<Readiness>) -> Self {
        let (metrics, readiness) = (Arc::clone(metrics), Arc::clone(readiness));
        Self { metrics, sessions: sessions.clone(), readiness }
    }
}

impl Monitoring {
    /// Serves the endpoints on an address.
    pub(crate) fn start(address: BoundAddress, monitored: Monitored) -> Result<Self, StartError> {
        let (address, listener) = address.listen()?;
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(ready))
            .with_state(Arc::new(monitored));
        let (running, stopped) = oneshot::channel::<()>();
        let until_stopped = async {
            // Dropping the sender is the signal.
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

    /// Reports from now on that the server is stopping.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Returns why a call that names no model would not be answered, or `None` if it would be.
    fn obstacle(&self) -> Option<String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Some("the server is stopping".to_owned());
        }
        self.registry.failing_default().map(|(_, error)| error.to_string())
    }
}

async fn metrics(State(monitored): State<Arc<Monitored>>) -> Result<impl IntoResponse, StatusCode> {
    monitored.sessions.sample().await;
    // Rendering takes some milliseconds, which would block an async thread.
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
