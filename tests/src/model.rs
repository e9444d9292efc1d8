//! Models of the tests, and how to load them without a server.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

use hlorank_client::{Client, ClientError, GraphHandle, RankRequest, Ranking};
use hlorank_graph::{Configurations, SegmentedGraph, Task};
use hlorank_server::{
    compute::ComputePool,
    engine::{Engine, EngineError, Terms},
    model::{Model, Rejection},
    runtime::Runtime,
};

use crate::{data::entries, fixture, onnxruntime};

/// The tile model of most tests. It ranks tiles of one's own loops on XLA:CPU, which no compiler takes, so it does not ship.
pub const TILE_MODEL: &str = "tile-xla-cpu";

/// A smaller model of the same tiles, without a Transformer layer.
pub const SMALL_TILE_MODEL: &str = "tile-xla-cpu-sage";

/// Returns the folder of the models that servers of tests serve: the layouts' that ships, as a link, and both tile models.
pub fn models() -> PathBuf {
    fixture("models")
}

/// Returns the folder of [`models`] and all that ship, as links, which take four times as long to load.
pub fn all_models() -> PathBuf {
    fixture("all-models")
}

/// Returns the server flag that selects [`all_models`].
pub fn all_models_flag() -> String {
    format!("--models={}", all_models().display())
}

/// Returns the folder of the newest version of a model.
pub(crate) fn newest_version(model: &Path) -> PathBuf {
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u64>().ok();
    let newest = entries(model).max_by_key(number);
    newest.expect("the model has a version")
}

/// Loads the newest version of the default model of a task, with sessions for this number of workers.
pub fn load_model(task: Task, workers: usize) -> Arc<Model> {
    let newest = newest_version(&all_models().join(format!("{task}-xla-cpu")));
    Arc::new(load(&newest, workers).unwrap_or_else(|error| panic!("{error}")))
}

/// Loads a version of a model with sessions for one worker, without a check of its golden cases.
pub fn load_version(folder: &Path) -> Result<Model, Rejection> {
    load(folder, 1)
}

fn load(folder: &Path, workers: usize) -> Result<Model, Rejection> {
    let runtime = Runtime::load(&onnxruntime()).unwrap_or_else(|error| panic!("{error}"));
    Model::load(folder, &runtime, workers)
}

/// Scores configurations on one worker, without a cache.
pub async fn score_alone(
    model: &Model,
    graph: SegmentedGraph,
    configurations: Configurations,
) -> Result<Vec<f32>, EngineError> {
    let pool = ComputePool::new(NonZeroUsize::MIN).expect("a thread can be started");
    let (engine, graph) = (Engine::without_cache(Arc::new(pool)), Arc::new(graph));
    let evaluation = engine.score(model, &graph, configurations, Terms::default());
    Ok(evaluation.await?.scores)
}

/// Ranks configurations by a model of this name, with scores.
pub async fn rank_by(
    client: &Client,
    model: &str,
    graph: &GraphHandle,
    configurations: &Configurations,
) -> Result<Ranking, ClientError> {
    let model = model.parse().expect("the name of a model");
    let request = RankRequest::new(graph, configurations).model(Some(model));
    client.rank(&request.with_scores()).await
}
