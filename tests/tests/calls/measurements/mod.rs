//! A server keeps measured run times, learns from them in later calls, and judges its models by them.

mod comparison;
mod database;
mod exchanged_pools;
mod exported;
mod exported_kinds;
mod listed;
mod live_quality;
mod pooled;
mod refused;
mod reporters;
mod searches;
mod secured_database;
mod stored;

use hlorank_client::{ReportDetails, quality::PairCounts};
use hlorank_proto::v1::GraphMeasurements;
use hlorank_tests::prelude::*;

const TARGET: &str = "a board";

async fn start(folder: &Path, flags: &[&str]) -> (TestServer, Client) {
    let measurements = store_flag(folder);
    let server = TestServer::start_with(&[&[&*measurements], flags].concat()).await;
    let client = server.client().await;
    (server, client)
}

/// The bits of every number that a ranking predicts.
fn all_bits(ranking: &Ranking) -> Vec<u32> {
    let numbers = [&ranking.scores, &ranking.predicted_seconds, &ranking.log_sd];
    numbers
        .into_iter()
        .flatten()
        .map(|number| number.to_bits())
        .collect()
}

/// All pages of the measurements that a server keeps.
async fn listed(client: &Client, mut of: ListMeasurementsRequest) -> Vec<GraphMeasurements> {
    let mut all = Vec::new();
    loop {
        let page = client.list_measurements(&of).await.unwrap();
        all.extend(page.graphs);
        of.page_token = page.next_page_token;
        if of.page_token.is_empty() {
            return all;
        }
    }
}

/// The measurements of a target.
fn of_target() -> ListMeasurementsRequest {
    ListMeasurementsRequest {
        target: TARGET.to_owned(),
        ..ListMeasurementsRequest::default()
    }
}

/// Who measured, and when.
fn reported(reporter: &str, reported_at: &[u64]) -> ReportDetails {
    ReportDetails {
        reporter: reporter.to_owned(),
        reported_at: reported_at.to_vec(),
        ..ReportDetails::default()
    }
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
        let kernels = measured_graphs_of(Task::Tile).map(|graph| Self::of(&graph));
        kernels.filter(|kernel| kernel.seconds.len() > 2).collect()
    }

    fn of(graph: &MeasuredGraph) -> Self {
        let distinct = configurations(graph).batch().distinct().first;
        let seconds = seconds_of(graph);
        Self {
            handle: GraphHandle::from_measured(graph),
            seconds: distinct.iter().map(|&config| seconds[config]).collect(),
            tiles: part(configurations(graph), distinct),
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
        pairs(&self.scores(client, model).await, &self.seconds)
    }

    async fn report(&self, client: &Client, target: &str) {
        let measured = run_times(self.seconds.iter().copied());
        let measurements = Adapt::new(target).measured(&self.tiles, &measured);
        client
            .report_measurements(&self.handle, &measurements)
            .await
            .unwrap();
    }
}
