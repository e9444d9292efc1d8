//! The health service: the server's services, and every model by its name.

use std::{collections::BTreeSet, sync::Arc};

use tonic_health::{ServingStatus, server::HealthReporter};

use crate::registry::Registry;

const SERVICES: [&str; 4] =
    ["", "hlorank.v1.CostModelService", "hlorank.v1.ModelAdminService", "hlorank.v1.ModelService"];

/// Reports services as serving, and each model for as long as one of its versions serves, until the registry is gone.
pub(crate) async fn report_health(registry: &Arc<Registry>, health: HealthReporter) {
    for service in SERVICES {
        health.set_service_status(service, ServingStatus::Serving).await;
    }
    let mut changes = registry.changes();
    let mut reported = report_models(registry, &health, BTreeSet::new()).await;
    let registry = Arc::downgrade(registry);
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            let Some(registry) = registry.upgrade() else { return };
            reported = report_models(&registry, &health, reported).await;
        }
    });
}

async fn report_models(
    registry: &Registry,
    health: &HealthReporter,
    reported: BTreeSet<String>,
) -> BTreeSet<String> {
    let serving: BTreeSet<String> = registry.serving_names().into_iter().collect();
    for name in serving.difference(&reported) {
        health.set_service_status(name, ServingStatus::Serving).await;
    }
    for name in reported.difference(&serving) {
        health.set_service_status(name, ServingStatus::NotServing).await;
    }
    serving
}
