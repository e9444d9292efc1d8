//! A search that measures what the server suggests, one configuration at a time.

use hlorank_proto::v1::Adapt;
use hlorank_tests::prelude::*;

use super::{site::Sources, space::Space};

/// Measures this number of configurations, and returns their numbers in order.
pub(super) async fn search(
    client: &mut CostModelServiceClient<Channel>,
    space: &Space,
    sources: Sources,
    seed: u64,
    measurements: usize,
) -> Vec<usize> {
    // The order in which configurations are sent depends on the seed, so that it cannot help every search.
    let mut order: Vec<usize> = (0..space.len()).collect();
    Rng::with_seed(seed).shuffle(&mut order);
    let configs = space.configs(&order);
    let mut measured = Vec::new();
    while measured.len() < measurements {
        let request = SuggestConfigsRequest {
            seed,
            ..suggest_request(space, configs.clone(), sources, &measured)
        };
        let answer = client.suggest_configs(request).await;
        let suggestions = answer.expect("a suggestion").into_inner().suggestions;
        let suggested = suggestions.first().unwrap_or_else(|| {
            let Space { kernel, target, .. } = space;
            panic!(
                "{kernel} on {target}: none after {} measurements",
                measured.len()
            )
        });
        let config = order[suggested.config as usize];
        assert!(!measured.contains(&config), "{config} was measured");
        measured.push(config);
    }
    measured
}

/// Returns a request for one of some configurations, which has all that was measured.
pub(super) fn suggest_request(
    space: &Space,
    configs: Configs,
    sources: Sources,
    measured: &[usize],
) -> SuggestConfigsRequest {
    let batch = (!measured.is_empty()).then(|| config_batch(space.configs(measured)));
    let adapt = Adapt {
        batch,
        all_other_targets: sources == Sources::OtherTargets,
        ..space.outcomes(measured)
    };
    SuggestConfigsRequest {
        graph: Some(space.graph()),
        batch: Some(config_batch(configs)),
        adapt: Some(adapt),
        count: 1,
        ..SuggestConfigsRequest::default()
    }
}
