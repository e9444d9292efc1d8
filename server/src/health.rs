//! Statuses that the health service reports, of the gRPC services and of every model by its name.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
};
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::registry::Registry;

/// Reports statuses until it is stopped or the registry is dropped.
pub(crate) struct HealthReporting {
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

/// The last reported status of each name.
struct ReportedStatuses {
    reporter: HealthReporter,
    statuses: BTreeMap<String, ServingStatus>,
}

const SERVICES: [&str; 4] = [
    "",
    "hlorank.v1.CostModelService",
    "hlorank.v1.ModelAdminService",
    "hlorank.v1.ModelService",
];

impl HealthReporting {
    /// Reports services as serving, and each model for as long as one of its versions serves.
    pub(crate) async fn start(registry: &Arc<Registry>, reporter: HealthReporter) -> Self {
        let mut statuses = ReportedStatuses {
            reporter,
            statuses: BTreeMap::new(),
        };
        for service in SERVICES {
            statuses.set(service, ServingStatus::Serving).await;
        }
        // The receiver comes before the first look, so that no change is between the two.
        let changes = registry.changes();
        statuses.update_models(registry).await;
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(statuses.follow(Arc::downgrade(registry), changes, stopped));
        Self { stop, running }
    }

    /// Reports that nothing is served any more, and ends the streams of watching clients, which would otherwise stay
    /// in flight forever.
    pub(crate) async fn stop(self) {
        // An error means that reporting has ended already.
        let _ = self.stop.send(());
        let _ = self.running.await;
    }
}

impl ReportedStatuses {
    /// Reports every change of the models, until the registry is dropped or reporting is stopped.
    async fn follow(
        mut self,
        registry: Weak<Registry>,
        mut changes: watch::Receiver<()>,
        mut stopped: oneshot::Receiver<()>,
    ) {
        loop {
            tokio::select! {
                updated = changes.changed() => match registry.upgrade() {
                    Some(registry) if updated.is_ok() => self.update_models(&registry).await,
                    _ => return,
                },
                // Dropping the sender is a signal, too.
                _ = &mut stopped => return self.stop().await,
            }
        }
    }

    async fn set(&mut self, name: &str, status: ServingStatus) {
        // Watching clients get a message for every status that is set, the same one included.
        if self.statuses.insert(name.to_owned(), status) != Some(status) {
            self.reporter.set_service_status(name, status).await;
        }
    }

    async fn update_models(&mut self, registry: &Registry) {
        let serving: Vec<String> = registry.serving().names().cloned().collect();
        let removed: Vec<String> = self
            .statuses
            .keys()
            .filter(|name| !SERVICES.contains(&name.as_str()) && !serving.contains(name))
            .cloned()
            .collect();
        for name in removed {
            self.set(&name, ServingStatus::NotServing).await;
        }
        for name in serving {
            self.set(&name, ServingStatus::Serving).await;
        }
    }

    async fn stop(mut self) {
        let names: Vec<String> = self.statuses.keys().cloned().collect();
        for name in &names {
            self.set(name, ServingStatus::NotServing).await;
        }
        for name in &names {
            // Watching clients receive the last status before their streams end.
            self.reporter.clear_service_status(name).await;
        }
    }
}
