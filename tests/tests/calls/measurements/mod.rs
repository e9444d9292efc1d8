//! A server keeps measured run times, learns from them in later calls, and judges its models by them.

mod comparison;
mod database;
mod exported;
mod exported_kinds;
mod listed;
mod live_quality;
mod pooled;
mod reporters;
mod searches;
mod secured_database;
mod stored;

use hlorank_client::{ReportDetails, ReportOutcome};
use hlorank_proto::v1::GraphMeasurements;
use hlorank_tests::prelude::*;

const TARGET: &str = "a board";

/// Learns from all that the server keeps of a graph.
fn stored() -> Adapt {
    Adapt::new(TARGET).use_stored()
}

/// The bits of every number that a ranking predicts.
fn all_bits(ranking: &Ranking) -> Vec<u32> {
    let numbers = [&ranking.scores, &ranking.predicted_seconds, &ranking.log_sd];
    numbers.into_iter().flat_map(|each| bits(each)).collect()
}

/// All pages of the measurements that a request chooses.
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

/// All measurements that a server keeps.
async fn kept(client: &Client) -> Vec<GraphMeasurements> {
    listed(client, ListMeasurementsRequest::default()).await
}

/// Who measured, and when.
fn reported(reporter: &str, reported_at: &[u64]) -> ReportDetails {
    ReportDetails {
        reporter: reporter.to_owned(),
        reported_at: reported_at.to_vec(),
        ..ReportDetails::default()
    }
}

/// A graph, and the measured run times of its distinct configurations.
struct MeasuredList {
    name: String,
    handle: GraphHandle,
    configurations: Configurations,
    seconds: Vec<f64>,
}

impl MeasuredList {
    fn of(graph: &MeasuredGraph) -> Self {
        let seconds = seconds_of(graph);
        let mut distinct = configurations(graph).batch().distinct().first;
        distinct.retain(|&config| seconds[config] > 0.0);
        Self {
            name: graph.name.clone(),
            handle: GraphHandle::from_measured(graph),
            seconds: distinct.iter().map(|&config| seconds[config]).collect(),
            configurations: part(configurations(graph), distinct),
        }
    }

    /// The measured kernels of the repository that have at least three distinct tiles.
    fn kernels() -> Vec<Self> {
        let kernels = measured_graphs_of(Task::Tile).map(|graph| Self::of(&graph));
        kernels.filter(|kernel| kernel.seconds.len() > 2).collect()
    }

    /// All measurements.
    fn measured(&self, target: &str) -> Adapt {
        let outcomes = run_times(self.seconds.iter().copied());
        Adapt::new(target).measured(&self.configurations, &outcomes)
    }

    /// Reports all measurements.
    async fn report(&self, client: &Client, target: &str) -> ReportOutcome {
        let measured = self.measured(target);
        let report = client.report_measurements(&self.handle, &measured);
        report.await.unwrap()
    }

    async fn rank(&self, client: &Client, adapt: Option<Adapt>) -> Ranking {
        let request = RankRequest::new(&self.handle, &self.configurations).with_scores();
        let ranking = client.rank(&request.adapt(adapt)).await;
        ranking.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The number of stored measurements that a call learns from.
    async fn learned(&self, client: &Client) -> usize {
        let ranking = self.rank(client, Some(stored())).await;
        ranking.adaptation.unwrap().stored_measurements as usize
    }

    /// The scores of a model.
    async fn scores(&self, client: &Client, model: &str) -> Vec<f32> {
        let request = RankRequest::new(&self.handle, &self.configurations).with_scores();
        let request = request.model(Some(model.parse().unwrap()));
        client.rank(&request).await.unwrap().scores
    }
}
