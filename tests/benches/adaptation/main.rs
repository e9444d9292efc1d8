//! What measurements of a graph's configurations are worth: Kendall's tau on those that were not measured, regret of searches,
//! and what a call takes. `HLORANK_MEASURED` names further folders of measured files, separated by colons.

mod pools;
mod spaces;

use std::env;

use hlorank_tests::prelude::*;

const PARTS: [&str; 3] = ["pools", "graphs", "spaces"];

/// Numbers of measurements, of which a graph gets those that leave enough configurations to rank.
const COUNTS: [usize; 8] = [3, 5, 10, 20, 50, 100, 300, 1_000];
/// Configurations that must be left to rank.
const LEFT: usize = 4;
/// Draws of the measured configurations. Of six lists, the mean over ten draws would be known to 0.02 only.
const DRAWS: u64 = 100;
const CALLS: usize = 9;

/// Graphs that are judged together.
struct Subject {
    name: String,
    graphs: Vec<MeasuredGraph>,
    /// The number of measurements, and the least tau after them, that is expected.
    target: Option<(usize, f64)>,
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    for part in chosen_parts(&PARTS) {
        match part {
            "pools" => runtime.block_on(pools::judge()),
            "graphs" => runtime.block_on(judge_graphs()),
            _ => runtime.block_on(spaces::judge()),
        }
    }
}

async fn judge_graphs() {
    let server = TestServer::start().await;
    let client = server.client().await;
    println!("| graphs | number | measurements | tau before | tau after |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for subject in subjects() {
        for count in COUNTS {
            judge(&client, &subject, count).await;
        }
    }
    if let Some(path) = shared("data/tpu/alexnet_layout.npz") {
        let graph = distinct(read_graphs(&path).remove(0));
        time(&client, &graph).await;
    }
}

fn subjects() -> Vec<Subject> {
    let subject = |name: String, graphs: Vec<MeasuredGraph>, target| Subject {
        name,
        graphs: graphs.into_iter().map(distinct).collect(),
        target,
    };
    let mut all = Vec::new();
    let tpu = [
        ("alexnet_layout.npz", (100, 0.80)),
        ("alexnet_tile_kernels.pb", (10, 0.65)),
    ];
    for (file, target) in tpu {
        if let Some(path) = shared(&format!("data/tpu/{file}")) {
            all.push(subject(file.to_owned(), read_graphs(&path), Some(target)));
        }
    }
    let folders = env::var_os("HLORANK_MEASURED").unwrap_or_default();
    for folder in env::split_paths(&folders).filter(|folder| folder.is_dir()) {
        let name = folder.display().to_string();
        all.push(subject(name, read_graphs_in(&folder), None));
    }
    all
}

/// Keeps each distinct configuration once, with the mean of its times.
fn distinct(mut graph: MeasuredGraph) -> MeasuredGraph {
    let measured = graph.measurements.as_mut().expect("a measured graph");
    let distinct = measured.configurations.batch().distinct();
    let mut sums = vec![(0_i64, 0_i64); distinct.first.len()];
    for (&number, time) in distinct.of_config.iter().zip(&measured.run_times) {
        let (sum, count) = &mut sums[number as usize];
        *sum += time;
        *count += 1;
    }
    measured.configurations = measured.configurations.select(&distinct.first);
    measured.run_times = sums.iter().map(|(sum, count)| sum / count).collect();
    graph
}

/// Judges the graphs that have enough configurations for this number of measurements.
async fn judge(client: &Client, subject: &Subject, count: usize) {
    let enough = |graph: &&MeasuredGraph| configurations(graph).len() >= count + LEFT;
    let graphs: Vec<&MeasuredGraph> = subject.graphs.iter().filter(enough).collect();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for graph in &graphs {
        let zero_shot = rank_measured(client, graph, None).await.scores;
        for draw in 0..DRAWS {
            let chosen = drawn(graph, count, draw);
            let adapt = adapt("bench", graph, &chosen);
            let scores = rank_measured(client, graph, Some(adapt)).await.scores;
            before.extend(tau(graph, &zero_shot, &chosen));
            after.extend(tau(graph, &scores, &chosen));
        }
    }
    if after.is_empty() {
        return;
    }
    let (name, number) = (&subject.name, graphs.len());
    let (before, after) = (mean(&before), mean(&after));
    println!("| {name} | {number} | {count} | {before:.3} | {after:.3} |");
    if let Some((_, least)) = subject.target.filter(|(at, _)| *at == count) {
        let sizes = graphs.iter().map(|graph| configurations(graph).len());
        Figure {
            name: format!("adapted_{}", name.split('.').next().expect("a name")),
            value: after,
            unit: "tau",
            target: Target::AtLeast(least),
            how: format!(
                "{count} random measurements, {DRAWS} draws, {number} graphs of {} to {} configurations; {before:.2} without",
                sizes.clone().min().expect("a graph"),
                sizes.max().expect("a graph")
            ),
        }
        .write();
    }
}

/// Measures a call that adapts to 100 configurations and ranks all others.
async fn time(client: &Client, graph: &MeasuredGraph) {
    let all = configurations(graph);
    let handle = GraphHandle::from_measured(graph);
    let request = || RankRequest::new(&handle, all).top(10);
    let without = Times::of_rankings(CALLS, client, &request()).await.median();
    let adapt = adapt("bench", graph, &drawn(graph, 100, 0));
    let times = Times::of_rankings(CALLS, client, &request().adapt(Some(adapt))).await;
    let how = format!(
        "{} layouts of {} at the client with 100 measurements, {without:.1} without",
        all.len(),
        graph.name,
    );
    Figure::of_median("rank_layouts_adapted", &times, 60.0, &how).write();
}

fn drawn(graph: &MeasuredGraph, count: usize, draw: u64) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..configurations(graph).len()).collect();
    Rng::with_seed(draw).shuffle(&mut chosen);
    chosen.truncate(count);
    chosen
}

/// Kendall's tau of scores and times over what was not measured; `None` if all times are equal.
fn tau(graph: &MeasuredGraph, scores: &[f32], measured: &[usize]) -> Option<f64> {
    let seconds = seconds_of(graph);
    let left = (0..scores.len()).filter(|config| !measured.contains(config));
    let (scores, seconds): (Vec<f32>, Vec<f64>) =
        left.map(|config| (scores[config], seconds[config])).unzip();
    pairs(&scores, &seconds).kendall_tau()
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len() as f64
}
