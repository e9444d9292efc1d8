//! Writes how two model versions rank the same measurements.

use hlorank_proto::v1::{self, CompareModelsResponse, ComparedMean};

use super::{
    ServiceError,
    answer::{count, selector},
};
use crate::{
    model::Model,
    quality::{Comparison, Verdict},
};

/// Checks that two models rank configurations of the same graphs.
pub(super) fn check_tasks(first: &Model, second: &Model) -> Result<(), ServiceError> {
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
        let (name, (task, set)) = (&model.manifest().name, of(model));
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
pub(super) fn comparison(
    [first, second]: [&Model; 2],
    compared: &Comparison,
) -> CompareModelsResponse {
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
