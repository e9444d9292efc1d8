use std::sync::Arc;

use hlorank_proto::v1::{
    self, PinRequest, PinResponse, ReloadRequest, ReloadResponse, RollbackRequest,
    RollbackResponse, SetCanaryRequest, SetCanaryResponse, UnpinRequest, UnpinResponse,
    model_admin_service_server::ModelAdminService,
};
use tonic::{Request, Response, Status};

use super::{Models, ServiceError, model::check_name};
use crate::registry::{AdminError, CanarySplit, Registry};

/// Implements `hlorank.v1.ModelAdminService`.
pub struct ModelAdmin {
    models: Models,
}

impl ModelAdmin {
    /// Changes which of these models' versions serve.
    #[must_use]
    pub fn new(models: Models) -> Self {
        Self { models }
    }

    /// Completes a change even if its caller disconnects, and returns the models that it concerns as they are then.
    async fn change<F>(
        &self,
        name: &str,
        change: impl FnOnce(Arc<Registry>, String) -> F,
    ) -> Result<Vec<v1::Model>, Status>
    where
        F: Future<Output = Result<(), AdminError>> + Send + 'static,
    {
        let changing = tokio::spawn(change(Arc::clone(self.models.registry()), name.to_owned()));
        let changed = changing.await.unwrap_or(Err(AdminError::Failed));
        changed.map_err(ServiceError::from)?;
        let mut models = self.models.all();
        models.retain(|model| name.is_empty() || model.name == name);
        Ok(models)
    }
}

#[tonic::async_trait]
impl ModelAdminService for ModelAdmin {
    async fn reload(&self, _: Request<ReloadRequest>) -> Result<Response<ReloadResponse>, Status> {
        let models = self
            .change("", |registry, _| async move { registry.reload().await })
            .await?;
        Ok(Response::new(ReloadResponse { models }))
    }

    async fn pin(&self, request: Request<PinRequest>) -> Result<Response<PinResponse>, Status> {
        let PinRequest { name, version } = request.into_inner();
        check_name(&name)?;
        check_version(version)?;
        let pin = |registry: Arc<Registry>, name: String| async move {
            registry.pin(&name, version).await
        };
        Ok(Response::new(PinResponse {
            models: self.change(&name, pin).await?,
        }))
    }

    async fn unpin(
        &self,
        request: Request<UnpinRequest>,
    ) -> Result<Response<UnpinResponse>, Status> {
        let UnpinRequest { name } = request.into_inner();
        check_name(&name)?;
        let unpin =
            |registry: Arc<Registry>, name: String| async move { registry.unpin(&name).await };
        Ok(Response::new(UnpinResponse {
            models: self.change(&name, unpin).await?,
        }))
    }

    async fn rollback(
        &self,
        request: Request<RollbackRequest>,
    ) -> Result<Response<RollbackResponse>, Status> {
        let RollbackRequest { name } = request.into_inner();
        check_name(&name)?;
        let rollback =
            |registry: Arc<Registry>, name: String| async move { registry.rollback(&name).await };
        Ok(Response::new(RollbackResponse {
            models: self.change(&name, rollback).await?,
        }))
    }

    async fn set_canary(
        &self,
        request: Request<SetCanaryRequest>,
    ) -> Result<Response<SetCanaryResponse>, Status> {
        let SetCanaryRequest {
            name,
            version,
            percent,
            shadow,
        } = request.into_inner();
        check_name(&name)?;
        let split = canary_split(version, percent, shadow)?;
        let set = |registry: Arc<Registry>, name: String| async move {
            match split {
                Some(split) => registry.set_canary(&name, split).await,
                None => registry.end_canary(&name).await,
            }
        };
        Ok(Response::new(SetCanaryResponse {
            models: self.change(&name, set).await?,
        }))
    }
}

/// Checks the split of `SetCanary`. `None` ends the canary or the shadow.
fn canary_split(
    version: u64,
    percent: u32,
    shadow: bool,
) -> Result<Option<CanarySplit>, ServiceError> {
    match (u8::try_from(percent), shadow) {
        (Ok(0), false) => Ok(None),
        (Ok(percent @ 0), true) | (Ok(percent @ 1..=100), false) => {
            check_version(version)?;
            Ok(Some(CanarySplit { version, percent }))
        }
        _ => Err(ServiceError::Invalid {
            field: "percent",
            found: percent.to_string(),
            expected: if shadow { "0 for a shadow" } else { "0 to 100" }.to_owned(),
        }),
    }
}

fn check_version(version: u64) -> Result<(), ServiceError> {
    if version == 0 {
        let hint = "give the version, from 1; ListModels lists them";
        return Err(ServiceError::Missing {
            field: "version",
            hint,
        });
    }
    Ok(())
}
