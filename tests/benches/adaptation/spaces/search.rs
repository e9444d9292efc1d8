//! A search that measures what the server suggests, one configuration at a time.

use hlorank_proto::v1::Adapt;
use hlorank_tests::prelude::*;

use super::{
    site::{Sources, outcomes},
    space::Space,
};

pub(super) struct Search<'a> {
    space: &'a Space,
    seed: u64,
    sources: Sources,
    /// All configurations, in the order in which they are sent.
    order: Vec<usize>,
    configs: Configs,
    /// The numbers of the configurations that were measured, in order.
    pub(super) measured: Vec<usize>,
}

impl<'a> Search<'a> {
    /// Starts with nothing measured. The order of configurations depends on the seed, so that it cannot help every search.
    pub(super) fn new(space: &'a Space, seed: u64, sources: Sources) -> Self {
        let mut order: Vec<usize> = (0..space.len()).collect();
        Rng::with_seed(seed).shuffle(&mut order);
        Self {
            space,
            seed,
            sources,
            configs: space.configs(&order),
            order,
            measured: Vec::new(),
        }
    }

    /// Measures this number of configurations.
    pub(super) async fn run(
        &mut self,
        client: &mut CostModelServiceClient<Channel>,
        measurements: usize,
    ) {
        while self.measured.len() < measurements {
            let answer = client.suggest_configs(self.request()).await;
            let suggestions = answer.expect("a suggestion").into_inner().suggestions;
            let suggested = suggestions.first().unwrap_or_else(|| {
                let measured = self.measured.len();
                let Space { kernel, target, .. } = self.space;
                panic!("{kernel} on {target}: no suggestion after {measured} measurements")
            });
            let config = self.order[suggested.config as usize];
            assert!(!self.measured.contains(&config), "{config} was measured");
            self.measured.push(config);
        }
    }

    fn request(&self) -> SuggestConfigsRequest {
        SuggestConfigsRequest {
            graph: Some(self.space.graph()),
            batch: Some(config_batch(self.configs.clone())),
            adapt: Some(adapt(self.space, self.sources, &self.measured)),
            count: 1,
            seed: self.seed,
            ..SuggestConfigsRequest::default()
        }
    }
}

/// Returns all that was measured, and whether other targets help.
pub(super) fn adapt(space: &Space, sources: Sources, measured: &[usize]) -> Adapt {
    let batch = (!measured.is_empty()).then(|| config_batch(space.configs(measured)));
    Adapt {
        batch,
        all_other_targets: sources != Sources::None,
        ..outcomes(space, measured)
    }
}
