use std::sync::Arc;

use hlorank_proto::v1::{
    self, GetModelRequest, GetModelResponse, ListModelsRequest, ListModelsResponse,
    model_service_server::ModelService,
};
use tonic::{Request, Response, Status};

use super::ServiceError;
use crate::registry::{Model, ModelKind, Registry};

/// `hlorank.v1.ModelService`.
pub struct Models {
    registry: Arc<Registry>,
}

impl Models {
    /// Tells about the models of a registry.
    #[must_use]
    pub fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }

    fn describe(&self, model: &Model) -> v1::Model {
        let manifest = model.manifest();
        let quality = manifest.measured_quality.iter();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        v1::Model {
            name: manifest.name.clone(),
            version: manifest.version,
            task: v1::Task::from(manifest.task()).into(),
            architecture: manifest.architecture.clone(),
            serving: self.registry.serves(model),
            default_for_task: self.registry.is_default(model),
            digest: model.digest().0.to_vec().into(),
            feature_digest: hlorank_graph::feature_digest().0.to_vec().into(),
            embedding_size: count(manifest.embedding_size),
            buckets: manifest.buckets.iter().map(|&nodes| count(nodes)).collect(),
            pad_value: if manifest.pad() == hlorank_graph::Pad::Zero { 0 } else { -1 },
            batch_dependent: manifest.batch_dependent,
            training_data_digest: manifest
                .training_data_digest()
                .map_or_else(Vec::new, |digest| digest.0.to_vec())
                .into(),
            measured_quality: quality
                .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
                .collect(),
            licence: manifest.licence.clone(),
            kind: manifest.kind().to_string(),
            chunk_configs: match manifest.kind() {
                ModelKind::Segment => 0,
                ModelKind::WholeGraph { chunk_configs } => count(chunk_configs),
            },
        }
    }
}

#[tonic::async_trait]
impl ModelService for Models {
    async fn list_models(
        &self,
        _: Request<ListModelsRequest>,
    ) -> Result<Response<ListModelsResponse>, Status> {
        let models = self.registry.models().map(|model| self.describe(model)).collect();
        Ok(Response::new(ListModelsResponse { models }))
    }

    async fn get_model(
        &self,
        request: Request<GetModelRequest>,
    ) -> Result<Response<GetModelResponse>, Status> {
        let GetModelRequest { name, version } = request.into_inner();
        if name.is_empty() {
            let hint = "give the name of a model; ListModels lists them";
            return Err(ServiceError::Missing { field: "name", hint }.into());
        }
        let model = self.registry.find(&name, version).map_err(ServiceError::from)?;
        Ok(Response::new(GetModelResponse { model: Some(self.describe(model)) }))
    }
}
