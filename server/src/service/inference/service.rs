//! The methods of `inference.GRPCInferenceService`.

use hlorank_proto::inference::{
    ModelInferResponse, ModelMetadataRequest, ModelMetadataResponse, ModelReadyRequest,
    ModelReadyResponse, ServerLiveRequest, ServerLiveResponse, ServerMetadataRequest,
    ServerMetadataResponse, ServerReadyRequest, ServerReadyResponse,
    received::{ModelInferRequest, grpc_inference_service_server::GrpcInferenceService},
};
use tonic::{Request, Response, Status};

use super::inputs::metadata;
use crate::service::{CostModel, Models, ServiceError};

/// Implements `inference.GRPCInferenceService`.
pub(crate) struct Inference {
    pub(crate) cost_model: CostModel,
    pub(crate) models: Models,
}

#[tonic::async_trait]
impl GrpcInferenceService for Inference {
    async fn server_live(
        &self,
        _: Request<ServerLiveRequest>,
    ) -> Result<Response<ServerLiveResponse>, Status> {
        Ok(Response::new(ServerLiveResponse { live: true }))
    }

    async fn server_ready(
        &self,
        _: Request<ServerReadyRequest>,
    ) -> Result<Response<ServerReadyResponse>, Status> {
        let registry = self.models.registry();
        let ready = registry.failing_default().is_none() && !registry.serves_nothing();
        Ok(Response::new(ServerReadyResponse { ready }))
    }

    async fn model_ready(
        &self,
        request: Request<ModelReadyRequest>,
    ) -> Result<Response<ModelReadyResponse>, Status> {
        let ModelReadyRequest { name, version } = request.into_inner();
        let found = self.models.find(&name, read_version(&version)?);
        let ready = found.is_ok_and(|report| report.model.is_some());
        Ok(Response::new(ModelReadyResponse { ready }))
    }

    async fn server_metadata(
        &self,
        _: Request<ServerMetadataRequest>,
    ) -> Result<Response<ServerMetadataResponse>, Status> {
        Ok(Response::new(ServerMetadataResponse {
            name: "hlorank".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }))
    }

    async fn model_metadata(
        &self,
        request: Request<ModelMetadataRequest>,
    ) -> Result<Response<ModelMetadataResponse>, Status> {
        let ModelMetadataRequest { name, version } = request.into_inner();
        let version = read_version(&version)?;
        let report = self.models.find(&name, version)?;
        let unloaded = || ServiceError::UnknownVersion { name, version };
        let model = report.model.ok_or_else(unloaded)?;
        Ok(Response::new(metadata(model.manifest())))
    }

    async fn model_infer(
        &self,
        request: Request<ModelInferRequest>,
    ) -> Result<Response<ModelInferResponse>, Status> {
        let call = self.cost_model.call(request.extensions())?;
        let answer = self.infer(request.into_inner(), call).await?;
        Ok(Response::new(answer))
    }
}

/// Reads a version; 0 for the one that serves.
pub(super) fn read_version(text: &str) -> Result<u64, ServiceError> {
    if text.is_empty() {
        return Ok(0);
    }
    let version = text.parse().ok().filter(|version| *version > 0);
    version.ok_or_else(|| {
        // The text is not quoted because it may be megabytes long.
        let expected = "a number from 1, or nothing for the version that serves";
        ServiceError::invalid("model_version", "no version", expected)
    })
}
