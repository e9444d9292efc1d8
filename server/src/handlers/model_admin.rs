use std::sync::Arc;

use hlorank_proto::v1::{
    self, PinRequest, PinResponse, ReloadRequest, ReloadResponse, RollbackRequest,
    RollbackResponse, SetCanaryRequest, SetCanaryResponse, UnpinRequest, UnpinResponse,
    model_admin_service_server::ModelAdminService,
};
use tonic::{Request, Response, Status};
use tracing::Instrument as _;

use super::{
    answer::Answer,
    models::{Models, check_name},
};
use crate::{
    errors::ServiceError,
    registry::{AdminError, CanarySplit, PolicyChange},
    telemetry::{AuditedChange, CallRecord},
};

/// Implements `hlorank.v1.ModelAdminService`: changes which of these models' versions serve.
pub(crate) struct ModelAdmin(pub(crate) Models);

impl ModelAdmin {
    /// Changes which versions of a model serve, and returns its versions as they are then.
    async fn apply(
        &self,
        record: CallRecord,
        name: String,
        change: PolicyChange,
    ) -> Result<Vec<v1::Model>, Status> {
        check_name(&name)?;
        let registry = Arc::clone(&self.0.registry);
        let model = name.clone();
        let made = record.clone();
        let apply = async move {
            registry.apply(&model, change).await?;
            let mut reports = registry.models().into_iter();
            let stable = reports.find(|report| report.stable && report.name == model);
            made.changes(|change| {
                change.version = change.version.or(stable.map(|report| report.version));
            });
            Ok(())
        };
        complete(record, apply).await?;
        let mut models = self.0.all();
        models.retain(|model| model.name == name);
        Ok(models)
    }
}

#[tonic::async_trait]
impl ModelAdminService for ModelAdmin {
    async fn reload(&self, request: Request<ReloadRequest>) -> Answer<ReloadResponse> {
        let (record, _) = opened(request, |_| AuditedChange::default());
        let registry = Arc::clone(&self.0.registry);
        complete(record, async move { registry.reload().await }).await?;
        let models = self.0.all();
        Ok(Response::new(ReloadResponse { models }))
    }

    async fn pin(&self, request: Request<PinRequest>) -> Answer<PinResponse> {
        let (record, PinRequest { name, version }) = opened(request, |asked| AuditedChange {
            version: Some(asked.version),
            ..AuditedChange::of_model(&asked.name)
        });
        check_version(version)?;
        let change = PolicyChange::Pin(version);
        let models = self.apply(record, name, change).await?;
        Ok(Response::new(PinResponse { models }))
    }

    async fn unpin(&self, request: Request<UnpinRequest>) -> Answer<UnpinResponse> {
        let (record, UnpinRequest { name }) =
            opened(request, |asked| AuditedChange::of_model(&asked.name));
        let models = self.apply(record, name, PolicyChange::Unpin).await?;
        Ok(Response::new(UnpinResponse { models }))
    }

    async fn rollback(&self, request: Request<RollbackRequest>) -> Answer<RollbackResponse> {
        let (record, RollbackRequest { name }) =
            opened(request, |asked| AuditedChange::of_model(&asked.name));
        let models = self.apply(record, name, PolicyChange::Rollback).await?;
        Ok(Response::new(RollbackResponse { models }))
    }

    async fn set_canary(&self, request: Request<SetCanaryRequest>) -> Answer<SetCanaryResponse> {
        let (record, request) = opened(request, |asked| AuditedChange {
            version: Some(asked.version).filter(|version| *version > 0),
            percent: Some(asked.percent),
            ..AuditedChange::of_model(&asked.name)
        });
        let change = canary_change(request.version, request.percent)?;
        let models = self.apply(record, request.name, change).await?;
        Ok(Response::new(SetCanaryResponse { models }))
    }
}

/// Returns the record of a call, which has the change that the call asks for, and its message.
fn opened<T>(request: Request<T>, change: impl FnOnce(&T) -> AuditedChange) -> (CallRecord, T) {
    let record = request.extensions().get::<CallRecord>().cloned();
    let record = record.unwrap_or_default();
    let message = request.into_inner();
    record.changes(|asked| *asked = change(&message));
    (record, message)
}

/// Completes a change even if its caller disconnects.
async fn complete(
    record: CallRecord,
    change: impl Future<Output = Result<(), AdminError>> + Send + 'static,
) -> Result<(), ServiceError> {
    // A handler is dropped with its connection, which must not leave a change half made. A second task, so that the audit log has a
    // change that panics, too.
    let change = async {
        tokio::spawn(change)
            .await
            .unwrap_or(Err(AdminError::Failed))
    };
    let changed = tokio::spawn(record.audited(change).in_current_span()).await;
    Ok(changed.unwrap_or(Err(AdminError::Failed))?)
}

/// Returns the change that `SetCanary` asks for. 0 percent ends the canary.
fn canary_change(version: u64, percent: u32) -> Result<PolicyChange, ServiceError> {
    match u8::try_from(percent) {
        Ok(0) => Ok(PolicyChange::EndCanary),
        Ok(percent @ 1..=100) => {
            check_version(version)?;
            Ok(PolicyChange::BeginCanary(CanarySplit { version, percent }))
        }
        _ => {
            let found = percent.to_string();
            Err(ServiceError::invalid("percent", found, "0 to 100"))
        }
    }
}

fn check_version(version: u64) -> Result<(), ServiceError> {
    if version == 0 {
        let hint = "give the version, from 1; ListModels lists them";
        return Err(ServiceError::missing("version", hint));
    }
    Ok(())
}
