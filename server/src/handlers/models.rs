//! `hlorank.v1.ModelService`: `ListModels`, `GetModel`, and `CompareModels`, which says how two versions rank the same
//! measurements.

use std::sync::Arc;

use hlorank_graph::{NamedFeatureSet, Pad, Task};
use hlorank_proto::v1::{
    self, CompareModelsRequest, CompareModelsResponse, ComparedMean, GetModelRequest,
    GetModelResponse, ListModelsRequest, ListModelsResponse, ModelSelector,
    model_service_server::ModelService,
};
use tonic::{Request, Response};

use super::{
    answer::{Answer, count, score_unit, selector},
    request::wanted_version,
};
use crate::{
    errors::ServiceError,
    model::{Manifest, Model, ModelKind, ModelState, Rejection, Target},
    quality::{Comparison, LiveQuality, Verdict},
    ranking_quality::QualitySummary,
    registry::{ModelReport, Registry},
};

/// Implements `hlorank.v1.ModelService`.
pub(crate) struct Models {
    pub(crate) registry: Arc<Registry>,
    pub(crate) quality: Arc<LiveQuality>,
}

impl Models {
    /// Describes every version of every model, by name, then version.
    pub(super) fn all(&self) -> Vec<v1::Model> {
        let reports = self.registry.models().into_iter();
        reports.map(|report| self.describe(report)).collect()
    }

    fn describe(&self, report: ModelReport) -> v1::Model {
        let model = report.model.as_ref();
        let summaries = model.map(|model| self.quality.summaries(model.digest()));
        let summaries = summaries.into_iter().flatten().take(MAX_TARGETS);
        v1::Model {
            live_quality: summaries.map(live_quality).collect(),
            ..report.into()
        }
    }

    /// Finds a version of a model; 0 for the stable version.
    fn find(&self, name: &str, version: u64) -> Result<ModelReport, ServiceError> {
        let name = name.to_owned();
        let mut versions = self.registry.models();
        versions.retain(|report| report.name == name);
        if versions.is_empty() {
            return Err(ServiceError::UnknownModel { name });
        }
        let wanted = |report: &ModelReport| match version {
            // A canary is found by its number alone.
            0 => report.stable,
            version => report.version == version,
        };
        let found = versions.into_iter().find(wanted);
        found.ok_or(ServiceError::UnknownVersion { name, version })
    }
}

#[tonic::async_trait]
impl ModelService for Models {
    async fn list_models(&self, _: Request<ListModelsRequest>) -> Answer<ListModelsResponse> {
        Ok(Response::new(ListModelsResponse { models: self.all() }))
    }

    async fn get_model(&self, request: Request<GetModelRequest>) -> Answer<GetModelResponse> {
        let GetModelRequest { name, version } = request.into_inner();
        check_name(&name)?;
        let model = self.find(&name, version)?;
        Ok(Response::new(GetModelResponse {
            model: Some(self.describe(model)),
        }))
    }

    async fn compare_models(
        &self,
        request: Request<CompareModelsRequest>,
    ) -> Answer<CompareModelsResponse> {
        Ok(Response::new(self.compare(request.into_inner()).await?))
    }
}

/// Maximum number of targets whose quality an answer has, by name.
const MAX_TARGETS: usize = 100;

fn live_quality((target, summary): (String, QualitySummary)) -> v1::LiveQuality {
    v1::LiveQuality {
        target,
        graphs: count(summary.graphs),
        configs: count(summary.measured),
        kendall_tau: summary.tau,
        ordered_pairs: summary.ordered_pairs,
        top_pick_regret: summary.regret,
        predicted_time_ratio: summary.time_ratio,
        time_error_ratio: summary.time_error,
    }
}

/// Checks that a call about one model names it.
pub(super) fn check_name(name: &str) -> Result<(), ServiceError> {
    if name.is_empty() {
        let hint = "give the name of a model; ListModels lists them";
        return Err(ServiceError::missing("name", hint));
    }
    Ok(())
}

impl From<ModelReport> for v1::Model {
    fn from(report: ModelReport) -> Self {
        let described = report.model.as_deref().map(loaded).unwrap_or_default();
        Self {
            name: report.name,
            version: report.version,
            serving: report.stable,
            default_for_task: report.stable && report.default_for_task,
            state: v1::ModelState::from(report.state).into(),
            state_since: Some(report.since.into()),
            rejection: report.rejection.map(v1::ModelRejection::from),
            waits_for: report.waits_for.unwrap_or_default(),
            canary_percent: report.canary_percent.unwrap_or(0).into(),
            pinned: report.pinned,
            folder_gone: report.folder_gone,
            ..described
        }
    }
}

impl From<Rejection> for v1::ModelRejection {
    fn from(rejection: Rejection) -> Self {
        Self {
            reason: rejection.reason.to_owned(),
            message: rejection.message,
        }
    }
}

/// Describes a loaded model by its manifest.
fn loaded(model: &Model) -> v1::Model {
    let manifest: &Manifest = model.manifest();
    // The manifest may say more about the quality than numbers. Clients get the numbers.
    let quality = manifest.measured_quality.iter();
    let quality = quality.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
    v1::Model {
        task: v1::Task::from(manifest.task).into(),
        architecture: manifest.architecture.clone(),
        digest: model.digest().0.to_vec().into(),
        feature_digest: manifest.features.digest().0.to_vec().into(),
        feature_set: manifest.features.named().map(feature_set),
        pad_value: pad_value(manifest.pad),
        training_data_digest: manifest.training_data_digest.0.to_vec().into(),
        measured_quality: quality.collect(),
        licence: manifest.licence.clone(),
        targets: manifest.targets.iter().map(Target::to_string).collect(),
        kind: manifest.kind.to_string(),
        unit: score_unit(manifest.unit).into(),
        ..settings(&manifest.kind)
    }
}

fn pad_value(pad: Pad) -> i32 {
    match pad {
        Pad::Zero => 0,
        Pad::MinusOne => -1,
    }
}

fn feature_set(set: &NamedFeatureSet) -> v1::FeatureSet {
    v1::FeatureSet {
        name: set.name().to_owned(),
        node_features: set.node_features().to_vec(),
        config_features: set.config_features().to_vec(),
    }
}

/// Describes what a model of this kind has.
fn settings(kind: &ModelKind) -> v1::Model {
    match kind {
        ModelKind::Segment(settings) => v1::Model {
            embedding_size: count(settings.embedding_size),
            buckets: settings.buckets.iter().copied().map(count).collect(),
            ..v1::Model::default()
        },
        ModelKind::WholeGraph(settings) => v1::Model {
            chunk_configs: count(settings.chunk_configs),
            batch_dependent: settings.batch_dependent,
            ..v1::Model::default()
        },
        ModelKind::Absent => v1::Model::default(),
    }
}

impl From<ModelState> for v1::ModelState {
    fn from(state: ModelState) -> Self {
        match state {
            ModelState::Discovered => Self::Discovered,
            ModelState::Validating => Self::Validating,
            ModelState::Warming => Self::Warming,
            ModelState::Serving => Self::Serving,
            ModelState::Retained => Self::Retained,
            ModelState::Rejected => Self::Rejected,
            ModelState::Unloaded => Self::Unloaded,
        }
    }
}

impl Models {
    pub(super) async fn compare(
        &self,
        request: CompareModelsRequest,
    ) -> Result<CompareModelsResponse, ServiceError> {
        let first = self.loaded("first", request.first)?;
        let second = self.loaded("second", request.second)?;
        check_tasks(&first, &second)?;
        let target = Some(request.target.as_str()).filter(|target| !target.is_empty());
        let compared = self.quality.compare([&first, &second], target).await?;
        Ok(comparison([&first, &second], &compared))
    }

    /// Returns a version that a request names.
    fn loaded(
        &self,
        field: &'static str,
        selector: Option<ModelSelector>,
    ) -> Result<Arc<Model>, ServiceError> {
        let hint = "give the name of a model; ListModels lists them";
        let selector = selector.filter(|selector| !selector.name.is_empty());
        let selector = selector.ok_or(ServiceError::missing(field, hint))?;
        Ok(self
            .registry
            .serving()
            .version(&selector.name, &wanted_version(&selector)?)?)
    }
}

/// Checks that two models rank configurations of the same graphs.
fn check_tasks(first: &Model, second: &Model) -> Result<(), ServiceError> {
    if subject(first) == subject(second) {
        return Ok(());
    }
    let expected = format!("a model like {}", described(first));
    Err(ServiceError::invalid("second", described(second), expected))
}

/// Returns the task of a model, and the name of its feature set.
fn subject(model: &Model) -> (Task, Option<&str>) {
    let manifest = model.manifest();
    let set = manifest.features.named();
    (manifest.task, set.map(NamedFeatureSet::name))
}

fn described(model: &Model) -> String {
    let name = &model.manifest().name;
    let (task, set) = subject(model);
    let set = set.map(|set| format!(" of the feature set `{set}`"));
    let set = set.unwrap_or_default();
    format!("`{name}`, a model of {task} configurations{set}")
}

/// Writes a comparison.
fn comparison([first, second]: [&Model; 2], compared: &Comparison) -> CompareModelsResponse {
    let [one, other] = &compared.versions;
    let pairs = [one.ordered_pairs, other.ordered_pairs];
    CompareModelsResponse {
        first: Some(selector(first)),
        second: Some(selector(second)),
        // The versions are compared on the graphs that both rank, so the counts are those of both.
        graphs: count(one.graphs),
        configs: count(one.measured),
        kendall_tau: Some(mean([one.tau, other.tau], compared.tau)),
        ordered_pairs: Some(mean(pairs, compared.ordered_pairs)),
        top_pick_regret: Some(mean([one.regret, other.regret], compared.regret)),
        verdict: v1::Verdict::from(compared.verdict).into(),
    }
}

/// Writes the means of a measure for two versions, and the interval of their difference.
fn mean([first, second]: [f64; 2], difference: [f64; 2]) -> ComparedMean {
    let [difference_low, difference_high] = difference;
    ComparedMean {
        first,
        second,
        difference_low,
        difference_high,
    }
}

impl From<Verdict> for v1::Verdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Undecided => Self::Undecided,
            Verdict::First => Self::First,
            Verdict::Second => Self::Second,
        }
    }
}
