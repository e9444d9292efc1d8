//! Graphs of named feature sets are ranked by the model of their set.

mod answers;
mod instances;
mod measured;
mod selection;
mod spaces;
mod without_model;

use hlorank_tests::prelude::*;

/// A server with a model of the feature set `loops` beside those of the repository.
struct Subject {
    server: TestServer,
    client: Client,
    model: FeatureSetModel,
    models: Artifacts,
}

impl Subject {
    async fn new() -> Self {
        Self::with(FeatureSetModel::of_loops("loops-sum"), &[]).await
    }

    async fn with(model: FeatureSetModel, flags: &[&str]) -> Self {
        let models = Artifacts::copy();
        model.write(models.folder(), 1);
        let server = TestServer::start_with(&[&[models.flag().as_str()], flags].concat()).await;
        Self {
            client: server.client().await,
            server,
            model,
            models,
        }
    }

    async fn rank(&self, graph: &FeatureGraph, batch: &NodeFeatureBatch) -> Ranking {
        let (handle, configurations) = (
            GraphHandle::feature_graph(graph),
            Configurations::FeatureSet(batch.clone()),
        );
        self.client
            .rank(&RankRequest::new(&handle, &configurations).with_scores())
            .await
            .unwrap()
    }
}

/// Checks that scores equal those of the naive evaluation up to rounding.
fn assert_near(scores: &[f32], expected: &[f32]) {
    assert_eq!(scores.len(), expected.len());
    for (config, (score, expected)) in scores.iter().zip(expected).enumerate() {
        assert!(
            (score - expected).abs() <= 1e-5 * expected.abs().max(1.0),
            "{config}: {score}, not {expected}"
        );
    }
}
