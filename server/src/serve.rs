mod services;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;
use tonic_health::{pb::health_server::Health, server::health_reporter};

use self::services::Services;
use crate::{
    clock,
    health::HealthReporting,
    listening::{Addresses, ListenerHandle},
    metrics::SecuritySeries,
    monitoring::{Monitoring, MonitoringSources, Readiness},
    quality::RunningReplays,
    registry::Registry,
    routers::Routers,
    security::Credentials,
    settings::Settings,
    start_error::StartError,
    store::{MeasurementStore, RunningRetention},
    telemetry::{AuditedChange, Tracing, audit, outcome},
};

/// A server that serves calls until it is stopped.
pub struct RunningServer {
    registry: Arc<Registry>,
    credentials: Arc<Credentials>,
    listeners: Listeners,
    readiness: Arc<Readiness>,
    health: HealthReporting,
    tracing: Tracing,
    store: Option<Arc<MeasurementStore>>,
    replays: Option<RunningReplays>,
    retention: Option<RunningRetention>,
    drain: Duration,
}

struct Listeners {
    calls: ListenerHandle,
    admin: Option<ListenerHandle>,
    monitoring: Option<Monitoring>,
}

/// Maximum time to close the file of measurements. A file that was not closed is repaired when it is opened.
const MAX_CLOSE: Duration = Duration::from_secs(5);

/// Loads the models and starts to serve. Returns when calls are accepted.
pub async fn start(settings: Settings) -> Result<RunningServer, StartError> {
    clock::seconds()?;
    let addresses = Addresses::bind(&settings)?;
    let services = Services::open(&settings).await?;
    let registry = &services.registry;
    let (reporter, health_service) = health_reporter();
    let health = HealthReporting::start(registry, reporter).await;
    let readiness = Arc::new(Readiness::new(Arc::clone(registry)));
    let replays = services.start_replays(&settings);
    let retention = services.start_retention(&settings);
    let tracing = Tracing::start()?;
    let routers = services.routers(&settings, &tracing, health_service);
    let security = &services.metrics.security;
    let monitored = services.monitored(&readiness);
    let listeners = Listeners::start(addresses, &routers, security, monitored)?;
    let server = RunningServer {
        registry: services.registry,
        credentials: services.credentials,
        listeners,
        readiness,
        health,
        tracing,
        store: services.store,
        replays,
        retention,
        drain: settings.drain_seconds,
    };
    server.log_addresses();
    Ok(server)
}

impl Listeners {
    fn start<H: Health>(
        addresses: Addresses,
        routers: &Routers<'_, H>,
        security: &SecuritySeries,
        monitored: MonitoringSources,
    ) -> Result<Self, StartError> {
        let admin = |address| {
            let gate = routers.credentials.gate(&security.admin);
            ListenerHandle::start(address, gate, routers.http(), routers.admin()?)
        };
        let admin = addresses.admin.map(admin).transpose()?;
        // Calls come after everything that answers them, and before what says that the server is
        // ready for them.
        let gate = routers.credentials.gate(&security.calls);
        let calls = ListenerHandle::start(addresses.calls, gate, routers.http(), routers.calls()?)?;
        let hosts = routers.credentials.listed_hosts();
        let monitor = |address| Monitoring::start(address, monitored, hosts);
        let monitoring = addresses.metrics.map(monitor).transpose()?;
        Ok(Self {
            calls,
            admin,
            monitoring,
        })
    }
}

impl RunningServer {
    /// Returns the address of the gRPC listener, with the port that was chosen if the settings say 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listeners.calls.address()
    }

    /// Returns the address of the admin listener; `None` if it is disabled.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.listeners.admin.as_ref().map(ListenerHandle::address)
    }

    /// Returns the address of the metrics listener; `None` if it is disabled.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.listeners.monitoring.as_ref().map(Monitoring::address)
    }

    fn log_addresses(&self) {
        self.credentials.warn(self.address(), self.admin_address());
        let shown = |address: Option<SocketAddr>| address.map(tracing::field::display);
        tracing::info!(
            address = %self.address(),
            metrics = shown(self.metrics_address()),
            admin = shown(self.admin_address()),
            "serving"
        );
    }

    /// Starts to look for new model versions, certificates and tokens, and to try rejected versions again. Does not wait
    /// for the result.
    pub fn reload(&self) {
        // Each runs by itself, because loading models can take minutes.
        tokio::spawn(Arc::clone(&self.credentials).reload());
        let registry = Arc::clone(&self.registry);
        tokio::spawn(async move {
            let reloaded = registry.reload().await;
            audit(
                "Reload",
                None,
                &AuditedChange::default(),
                outcome(&reloaded),
            );
            if let Err(error) = reloaded {
                tracing::warn!(%error, "models were not reloaded");
            }
        });
    }

    /// Stops accepting calls, and waits for the calls in flight, at most for the drain time.
    pub async fn stop(self) {
        tracing::info!("stopping");
        // Load balancers hear that the server stops before it refuses calls.
        self.readiness.stop();
        self.registry.stop();
        self.health.stop().await;
        drop((self.replays, self.retention));
        let started = Instant::now();
        // The metrics listener stays open to the end, so that the drain can be watched.
        let drained = drain(self.listeners.calls, self.listeners.admin, self.drain).await;
        if let Some(store) = self.store {
            close(&store).await;
        }
        // Tracing comes last, because the spans of calls are complete when the calls have ended.
        let left = self.drain.saturating_sub(started.elapsed());
        self.tracing.stop(left).await;
        if drained {
            tracing::info!("stopped");
        } else {
            tracing::warn!("stopped with calls in flight: the drain time was over");
        }
    }
}

async fn close(store: &MeasurementStore) {
    if timeout(MAX_CLOSE, store.close()).await.is_err() {
        tracing::warn!("the file of measurements was not closed: the disk does not answer");
    }
}

/// Stops both listeners at the same time. Returns whether all calls in flight ended within the
/// drain time.
async fn drain(calls: ListenerHandle, admin: Option<ListenerHandle>, time: Duration) -> bool {
    let admin = async {
        match admin {
            Some(admin) => admin.stop(time).await,
            None => Ok(()),
        }
    };
    let (calls, admin) = tokio::join!(calls.stop(time), admin);
    calls.is_ok() && admin.is_ok()
}
