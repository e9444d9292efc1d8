//! Graphs of named feature sets are ranked by the model of their set, and spaces of parameters by what was measured.

mod answers;
mod instances;
mod measured;
mod selection;
mod spaces;
mod without_model;

use hlorank_proto::v1;
use hlorank_tests::prelude::*;

/// What run times were measured on.
const TARGET: &str = "a board";

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
        let handle = GraphHandle::feature_graph(graph);
        let configurations = Configurations::FeatureSet(batch.clone());
        let request = RankRequest::new(&handle, &configurations).with_scores();
        self.client.rank(&request).await.unwrap()
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

/// A server without models, which keeps measurements, and a client of it.
struct WithoutModels {
    server: TestServer,
    client: Client,
    _folder: TempDir,
}

impl WithoutModels {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let models = format!("--models={}", folder.path().display());
        let store = store_flag(folder.path());
        let server = TestServer::start_with(&[&models, "--default-models=none", &store]).await;
        Self {
            client: server.client().await,
            server,
            _folder: folder,
        }
    }
}

/// Returns a graph of a space of parameters, which has these columns of configurations.
fn space(columns: &[&str], space: v1::FeatureGraph) -> GraphHandle {
    let space = v1::FeatureGraph {
        feature_set: "gemm".to_owned(),
        config_columns: columns.iter().map(|&name| name.to_owned()).collect(),
        ..space
    };
    GraphHandle::of_message(graph_of(Source::FeatureGraph(space))).unwrap()
}

/// Returns configurations of a space.
fn parameters<const COLUMNS: usize>(rows: &[[f32; COLUMNS]]) -> Configurations {
    let (shape, limits) = ([1, COLUMNS], Limits::default());
    let batch = NodeFeatureBatch::from_values(shape, rows.as_flattened(), &limits);
    Configurations::FeatureSet(batch.unwrap())
}
