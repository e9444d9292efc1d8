//! `CompareModels`: how two model versions rank the same measurements.

use std::sync::Arc;

use hlorank_graph::{NamedFeatureSet, Task};
use hlorank_proto::v1::{
    self, CompareModelsRequest, CompareModelsResponse, ComparedMean, ModelSelector,
};

use super::{
    Models,
    answer::{count, selector},
    request::wanted,
};
use crate::{
    call::CallError,
    errors::ServiceError,
    model::Model,
    quality::{Comparison, Verdict},
};

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
        let found = self.registry.version(&selector.name, &wanted(&selector)?);
        Ok(found.map_err(CallError::from)?)
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
    let set = manifest.features().named();
    (manifest.task(), set.map(NamedFeatureSet::name))
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
