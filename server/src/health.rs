//! The health service: the server's services, and every model by its name.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{sync::oneshot, task::JoinHandle};
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::registry::Registry;

/// Reports until it is stopped, or the registry is gone.
pub(crate) struct Reporting {
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

/// What was told of each name.
struct Told {
    reporter: HealthReporter,
    statuses: BTreeMap<String, ServingStatus>,
}

const SERVICES: [&str; 4] =
    ["", "hlorank.v1.CostModelService", "hlorank.v1.ModelAdminService", "hlorank.v1.ModelService"];

impl Reporting {
    /// Reports services as serving, and each model for as long as one of its versions serves.
    pub(crate) async fn start(registry: &Arc<Registry>, reporter: HealthReporter) -> Self {
        let mut told = Told { reporter, statuses: BTreeMap::new() };
        for service in SERVICES {
            told.set(service, ServingStatus::Serving).await;
        }
        let mut changes = registry.changes();
        told.models(registry).await;
        let registry = Arc::downgrade(registry);
        let (stop, mut stopped) = oneshot::channel();
        let running = tokio::spawn(async move {
            loop {
                tokio::select! {
                    is_there = changes.changed() => match registry.upgrade() {
                        Some(registry) if is_there.is_ok() => told.models(&registry).await,
                        _ => return,
                    },
                    // A dropped server stops like a stopped one.
                    _ = &mut stopped => return told.stop().await,
                }
            }
        });
        Self { stop, running }
    }

    /// Reports that nothing is served any more, and ends the streams of those who watch: they would be calls in
    /// progress for ever.
    pub(crate) async fn stop(self) {
        // An error means that it has ended already.
        let _ = self.stop.send(());
        let _ = self.running.await;
    }
}

impl Told {
    async fn set(&mut self, name: &str, status: ServingStatus) {
        if self.statuses.insert(name.to_owned(), status) != Some(status) {
            self.reporter.set_service_status(name, status).await;
        }
    }

    async fn models(&mut self, registry: &Registry) {
        let serving = registry.serving_names();
        let gone: Vec<String> = self
            .statuses
            .keys()
            .filter(|name| !SERVICES.contains(&name.as_str()) && !serving.contains(name))
            .cloned()
            .collect();
        for name in gone {
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
            // Those who watch are told what was set last, then that it was all.
            self.reporter.clear_service_status(name).await;
        }
    }
}
