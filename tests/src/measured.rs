//! The measured graphs of the repository, and parts and wire forms of their configurations.

use std::path::Path;

use hlorank_client::{
    Adapt, Client, GraphHandle, MeasuredOutcome, RankRequest, Ranking,
    quality::{Outcome, PairCounts},
};
use hlorank_graph::{Configurations, GraphFile, Limits, MeasuredGraph, Task};

use crate::{data::entries, fixture};

/// Reads the graphs of a file.
pub fn read_graphs(path: &Path) -> Vec<MeasuredGraph> {
    GraphFile::read(path, Task::Layout, &Limits::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .graphs
}

/// Reads the graphs of all files of a folder.
pub fn read_graphs_in(folder: &Path) -> Vec<MeasuredGraph> {
    entries(folder)
        .filter(|path| path.extension().is_some_and(|extension| extension == "pb"))
        .flat_map(|path| read_graphs(&path))
        .collect()
}

/// Reads all measured graphs of the repository, some of each task.
pub fn measured_graphs() -> Vec<MeasuredGraph> {
    let graphs = read_graphs_in(&fixture("measured"));
    for task in [Task::Layout, Task::Tile] {
        assert!(graphs.iter().any(|graph| graph.graph.task() == task));
    }
    graphs
}

/// Returns the measured configurations of a graph.
pub fn configurations(graph: &MeasuredGraph) -> &Configurations {
    &graph
        .measurements
        .as_ref()
        .unwrap_or_else(|| panic!("{} was not measured", graph.name))
        .configurations
}

/// Returns a batch of the chosen configurations.
pub fn part(
    configurations: &Configurations,
    chosen: impl IntoIterator<Item = usize>,
) -> Configurations {
    configurations.select(&chosen.into_iter().collect::<Vec<_>>())
}

/// Reads the measured graphs of a task.
pub fn measured_graphs_of(task: Task) -> impl Iterator<Item = MeasuredGraph> {
    measured_graphs()
        .into_iter()
        .filter(move |graph| graph.graph.task() == task)
}

/// Reads a measured graph of a task.
pub fn measured_graph_of(task: Task) -> MeasuredGraph {
    measured_graphs_of(task).next().expect("a measured graph")
}

/// Returns the run times of the configurations of a graph in seconds.
pub fn seconds_of(graph: &MeasuredGraph) -> Vec<f64> {
    let measurements = graph.measurements.as_ref();
    let times = &measurements.expect("a measured graph").run_times;
    times.iter().map(|&time| time as f64 * 1e-9).collect()
}

/// Returns every third of the first configurations of a graph.
pub fn some_of(graph: &MeasuredGraph) -> Vec<usize> {
    let all = 0..configurations(graph).len();
    all.step_by(3).take(10).collect()
}

/// Returns times that were each measured once.
pub fn run_times(seconds: impl IntoIterator<Item = f64>) -> Vec<MeasuredOutcome> {
    let time = |seconds| MeasuredOutcome::Time {
        seconds,
        repeats: 1,
    };
    seconds.into_iter().map(time).collect()
}

/// Returns the run times of the chosen configurations of a graph.
pub fn outcomes(graph: &MeasuredGraph, chosen: &[usize]) -> Vec<MeasuredOutcome> {
    let seconds = seconds_of(graph);
    run_times(chosen.iter().map(|&config| seconds[config]))
}

/// Returns a request to learn from the chosen configurations of a graph.
pub fn adapt(target: &str, graph: &MeasuredGraph, chosen: &[usize]) -> Adapt {
    let measured = part(configurations(graph), chosen.to_vec());
    Adapt::new(target).measured(&measured, &outcomes(graph, chosen))
}

/// Ranks the measured configurations of a graph, with scores.
pub async fn rank_measured(
    client: &Client,
    graph: &MeasuredGraph,
    adapt: Option<Adapt>,
) -> Ranking {
    let handle = GraphHandle::from_measured(graph);
    let request = RankRequest::new(&handle, configurations(graph));
    let ranking = client.rank(&request.with_scores().adapt(adapt)).await;
    ranking.unwrap_or_else(|error| panic!("{}: {error}", graph.name))
}

/// Returns the agreement of scores with run times.
pub fn pairs(scores: &[f32], seconds: &[f64]) -> PairCounts {
    let outcome = |(&run_time, &score): (&f64, &f32)| Outcome {
        run_time,
        score: score.into(),
    };
    let outcomes: Vec<Outcome> = seconds.iter().zip(scores).map(outcome).collect();
    PairCounts::new(&outcomes).expect("finite scores")
}

/// Returns the reasons of the warnings of a ranking.
pub fn reasons(ranking: &Ranking) -> Vec<&str> {
    let warnings = ranking.warnings.iter();
    warnings.map(|warning| warning.reason.as_str()).collect()
}
