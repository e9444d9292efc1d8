//! A server keeps measured run times, learns from them in later calls, and judges its models by them.

mod comparison;
mod database;
mod exchanged_pools;
mod exported;
mod listed;
mod live_quality;
mod pooled;
mod refused;
mod reporters;
mod secured_database;
mod stored;

use hlorank_client::quality::{Outcome, PairCounts};
use hlorank_tests::prelude::*;

const TARGET: &str = "a board";

async fn start(folder: &Path, flags: &[&str]) -> (TestServer, Client) {
    let measurements = format!("--measurements={}", folder.join("measurements").display());
    let server = TestServer::start_with(&[&[&*measurements], flags].concat()).await;
    let client = server.client().await;
    (server, client)
}

/// The bits of every number that a ranking predicts.
fn bits(ranking: &Ranking) -> Vec<u32> {
    let numbers = [&ranking.scores, &ranking.predicted_seconds, &ranking.log_sd];
    numbers
        .into_iter()
        .flatten()
        .map(|number| number.to_bits())
        .collect()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A measured kernel with distinct tiles.
struct Kernel {
    handle: GraphHandle,
    tiles: Configurations,
    seconds: Vec<f64>,
}

impl Kernel {
    /// The measured kernels of the repository that have at least three distinct tiles.
    fn all() -> Vec<Self> {
        let kernels = measured_graphs()
            .into_iter()
            .filter(|graph| graph.graph.task() == Task::Tile);
        kernels
            .map(|graph| Self::of(&graph))
            .filter(|kernel| kernel.seconds.len() > 2)
            .collect()
    }

    fn of(graph: &MeasuredGraph) -> Self {
        let distinct = configurations(graph).batch().distinct().first;
        let times = &graph.measurements.as_ref().unwrap().run_times;
        Self {
            handle: GraphHandle::of(graph),
            tiles: part(configurations(graph), distinct.clone()),
            seconds: distinct
                .iter()
                .map(|&config| times[config] as f64 * 1e-9)
                .collect(),
        }
    }

    async fn scores(&self, client: &Client, model: &str) -> Vec<f32> {
        let request = RankRequest::new(&self.handle, &self.tiles).with_scores();
        let model = model.parse().unwrap();
        client
            .rank(&request.model(Some(model)))
            .await
            .unwrap()
            .scores
    }

    /// The agreement of a model's scores with the run times.
    async fn pairs(&self, client: &Client, model: &str) -> PairCounts {
        let scores = self.scores(client, model).await;
        let outcome = |(&run_time, score): (&f64, f32)| Outcome {
            run_time,
            score: score.into(),
        };
        PairCounts::of(
            &self
                .seconds
                .iter()
                .zip(scores)
                .map(outcome)
                .collect::<Vec<_>>(),
        )
        .unwrap()
    }

    async fn report(&self, client: &Client, target: &str) {
        let time = |&seconds: &f64| Measured::Time {
            seconds,
            repeats: 1,
        };
        let measured: Vec<Measured> = self.seconds.iter().map(time).collect();
        let measurements = Adapt::new(target).measured(&self.tiles, &measured);
        client
            .report_measurements(&self.handle, &measurements)
            .await
            .unwrap();
    }
}
