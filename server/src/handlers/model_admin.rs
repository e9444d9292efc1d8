use std::sync::Arc;

use hlorank_proto::v1::{
    self, PinRequest, PinResponse, ReloadRequest, ReloadResponse, RollbackRequest,
    RollbackResponse, SetCanaryRequest, SetCanaryResponse, UnpinRequest, UnpinResponse,
    model_admin_service_server::ModelAdminService,
};
use tonic::{Request, Response, Status};

use super::{Models, models::check_name};
use crate::{
    errors::ServiceError,
    registry::{AdminError, CanarySplit, PolicyChange},
};

/// Implements `hlorank.v1.ModelAdminService`: changes which of these models' versions serve.
pub(crate) struct ModelAdmin(pub(crate) Models);

impl ModelAdmin {
    /// Changes which versions of a model serve, and returns its versions as they are then.
    async fn apply(&self, name: String, change: PolicyChange) -> Result<Vec<v1::Model>, Status> {
        check_name(&name)?;
        let registry = Arc::clone(&self.0.registry);
        let model = name.clone();
        complete(async move { registry.apply(&model, change).await }).await?;
        let mut models = self.0.all();
        models.retain(|model| model.name == name);
        Ok(models)
    }
}

#[tonic::async_trait]
impl ModelAdminService for ModelAdmin {
    async fn reload(&self, _: Request<ReloadRequest>) -> Result<Response<ReloadResponse>, Status> {
        let registry = Arc::clone(&self.0.registry);
        complete(async move { registry.reload().await }).await?;
        let models = self.0.all();
        Ok(Response::new(ReloadResponse { models }))
    }

    async fn pin(&self, request: Request<PinRequest>) -> Result<Response<PinResponse>, Status> {
        let PinRequest { name, version } = request.into_inner();
        check_version(version)?;
        let models = self.apply(name, PolicyChange::Pin(version)).await?;
        Ok(Response::new(PinResponse { models }))
    }

    async fn unpin(
        &self,
        request: Request<UnpinRequest>,
    ) -> Result<Response<UnpinResponse>, Status> {
        let UnpinRequest { name } = request.into_inner();
        let models = self.apply(name, PolicyChange::Unpin).await?;
        Ok(Response::new(UnpinResponse { models }))
    }

    async fn rollback(
        &self,
        request: Request<RollbackRequest>,
    ) -> Result<Response<RollbackResponse>, Status> {
        let RollbackRequest { name } = request.into_inner();
        let models = self.apply(name, PolicyChange::Rollback).await?;
        Ok(Response::new(RollbackResponse { models }))
    }

    async fn set_canary(
        &self,
        request: Request<SetCanaryRequest>,
    ) -> Result<Response<SetCanaryResponse>, Status> {
        let request = request.into_inner();
        let change = canary_change(request.version, request.percent)?;
        let models = self.apply(request.name, change).await?;
        Ok(Response::new(SetCanaryResponse { models }))
    }
}

/// Completes a change even if its caller disconnects.
async fn complete(
    change: impl Future<Output = Result<(), AdminError>> + Send + 'static,
) -> Result<(), ServiceError> {
    // A handler is dropped with its connection, which must not leave a change half made.
    let changed = tokio::spawn(change).await;
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
