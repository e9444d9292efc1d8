//! `CompareModels`: how two model versions rank the same measurements.

use std::sync::Arc;

use hlorank_proto::v1::{
    self, CompareModelsRequest, CompareModelsResponse, ComparedMean, ModelSelector,
};

use super::{
    Models, ServiceError,
    answer::{count, selector},
    model_selector::wanted,
};
use crate::{
    call::CallError,
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
        let selector = selector.ok_or(ServiceError::Missing { field, hint })?;
        let found = self.registry.version(&selector.name, &wanted(&selector)?);
        Ok(found.map_err(CallError::from)?)
    }
}

/// Checks that two models rank configurations of the same graphs.
fn check_tasks(first: &Model, second: &Model) -> Result<(), ServiceError> {
    let of = |model: &Model| {
        (
            model.manifest().task(),
            model
                .manifest()
                .features()
                .named()
                .map(|set| set.name().to_owned()),
        )
    };
    if of(first) == of(second) {
        return Ok(());
    }
    let [found, expected] = [second, first].map(|model| {
        let name = &model.manifest().name;
        let (task, set) = of(model);
        let set = set
            .map(|set| format!(" of the feature set `{set}`"))
            .unwrap_or_default();
        format!("`{name}`, a model of {task} configurations{set}")
    });
    Err(ServiceError::Invalid {
        field: "second",
        found,
        expected: format!("a model like {expected}"),
    })
}

/// Writes a comparison.
fn comparison([first, second]: [&Model; 2], compared: &Comparison) -> CompareModelsResponse {
    let [one, other] = &compared.versions;
    let mean = |first, second, [difference_low, difference_high]: [f64; 2]| {
        Some(ComparedMean {
            first,
            second,
            difference_low,
            difference_high,
        })
    };
    CompareModelsResponse {
        first: Some(selector(first)),
        second: Some(selector(second)),
        graphs: count(one.graphs),
        configs: count(one.measured),
        kendall_tau: mean(one.tau, other.tau, compared.tau),
        ordered_pairs: mean(
            one.ordered_pairs,
            other.ordered_pairs,
            compared.ordered_pairs,
        ),
        top_pick_regret: mean(one.regret, other.regret, compared.regret),
        verdict: v1::Verdict::from(compared.verdict).into(),
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
