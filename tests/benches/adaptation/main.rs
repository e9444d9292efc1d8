//! What measurements of a graph's configurations are worth: Kendall's tau on those that were not measured, regret of searches,
//! and what a call takes. `HLORANK_MEASURED` names further folders of measured files, separated by colons. Arguments choose
//! parts: `pools`, `graphs`, `spaces`.

mod pools;
mod spaces;

use std::env;

use hlorank_client::{
    SuggestionSource,
    quality::{Outcome, PairCounts},
};
use hlorank_tests::prelude::*;

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

/// Parts, of which arguments select some by name.
const PARTS: [&str; 3] = ["pools", "graphs", "spaces"];

fn main() {
    // Cargo adds `--bench`.
    let named: Vec<String> = env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let chosen = |part: &&str| named.is_empty() || named.iter().any(|name| name == part);
    let runtime = Runtime::new().expect("a runtime");
    for part in PARTS.into_iter().filter(chosen) {
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
        judge(&client, &subject).await;
    }
    if let Some(path) = shared("data/tpu/alexnet_layout.npz") {
        let graph = distinct(read_graphs(&path).remove(0));
        time(&client, &graph).await;
        time_combinations(&client, &graph).await;
    }
}

fn subjects() -> Vec<Subject> {
    let of_files = |name: &str, files: &[PathBuf], target| {
        let graphs = files
            .iter()
            .flat_map(|file| read_graphs(file))
            .map(distinct)
            .collect();
        Subject {
            name: name.to_owned(),
            graphs,
            target,
        }
    };
    let layouts = ["nchw_train", "reversed"]
        .map(|name| fixture(&format!("measured/layout_random_window_{name}.pb")));
    let mut all = vec![
        of_files("layouts of the fixtures", &layouts, None),
        of_files(
            "tiles of the fixtures",
            &[fixture("measured/tile_kernels.pb")],
            None,
        ),
    ];
    let tpu = [
        ("alexnet_layout.npz", (100, 0.80)),
        ("alexnet_tile_kernels.pb", (10, 0.65)),
    ];
    for (file, target) in tpu {
        let found = shared(&format!("data/tpu/{file}"));
        all.extend(found.map(|path| of_files(file, &[path], Some(target))));
    }
    let folders = env::var_os("HLORANK_MEASURED").unwrap_or_default();
    for folder in env::split_paths(&folders).filter(|folder| folder.is_dir()) {
        all.push(of_files(
            &folder.display().to_string(),
            &measured_files(&folder),
            None,
        ));
    }
    all
}

/// Keeps each distinct configuration once, with the mean of its times.
fn distinct(mut graph: MeasuredGraph) -> MeasuredGraph {
    let measured = graph.measurements.as_mut().expect("a measured graph");
    let distinct = measured.configurations.batch().distinct();
    let mut sums = vec![(0, 0); distinct.first.len()];
    for (&number, time) in distinct.of_config.iter().zip(&measured.run_times) {
        let (sum, count) = &mut sums[number as usize];
        (*sum, *count) = (*sum + time, *count + 1);
    }
    measured.configurations = measured.configurations.select(&distinct.first);
    measured.run_times = sums.iter().map(|(sum, count)| sum / count).collect();
    graph
}

fn measured_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "pb"));
    files.sort();
    files
}

async fn judge(client: &Client, subject: &Subject) {
    for count in COUNTS {
        let enough = |graph: &&MeasuredGraph| configurations(graph).len() >= count + LEFT;
        let (mut number, mut before, mut after) = (0, Vec::new(), Vec::new());
        for graph in subject.graphs.iter().filter(enough) {
            number += 1;
            let zero_shot = rank(client, graph, None).await.scores;
            for draw in 0..DRAWS {
                let chosen = drawn(graph, count, draw);
                let scores = rank(client, graph, Some(adapt(graph, &chosen)))
                    .await
                    .scores;
                before.extend(tau(graph, &zero_shot, &chosen));
                after.extend(tau(graph, &scores, &chosen));
            }
        }
        if after.is_empty() {
            break;
        }
        let (before, after) = (mean(&before), mean(&after));
        println!(
            "| {} | {number} | {count} | {before:.3} | {after:.3} |",
            subject.name
        );
        if let Some((_, least)) = subject.target.filter(|(at, _)| *at == count) {
            let name = subject.name.split('.').next().expect("a name");
            let sizes = || {
                subject
                    .graphs
                    .iter()
                    .filter(enough)
                    .map(|graph| configurations(graph).len())
            };
            Figure {
                name: format!("adapted_{name}"),
                value: after,
                unit: "tau",
                target: Target::AtLeast(least),
                how: format!(
                    "{count} random measurements, {DRAWS} draws, {number} graphs of {} to {} configurations; \
                     {before:.2} without",
                    sizes().min().expect("a graph"),
                    sizes().max().expect("a graph")
                ),
            }
            .write();
        }
    }
}

/// Measures a call that adapts to 100 configurations and ranks all others.
async fn time(client: &Client, graph: &MeasuredGraph) {
    let adapt = adapt(graph, &drawn(graph, 100, 0));
    let (handle, all) = (GraphHandle::from_measured(graph), configurations(graph));
    let request = RankRequest::new(&handle, all).top(10).adapt(Some(adapt));
    let plain = RankRequest::new(&handle, all).top(10);
    let call =
        async |request: &RankRequest<'_>| drop(client.rank(request).await.expect("a ranking"));
    let without = call_times(CALLS, async || call(&plain).await).await[CALLS / 2];
    let times = call_times(CALLS, async || call(&request).await).await;
    Figure {
        name: "rank_layouts_adapted".to_owned(),
        value: times[CALLS / 2],
        unit: "ms",
        target: Target::AtMost(60.0),
        how: format!(
            "{} layouts of {} at the client with 100 measurements; median of {CALLS}, fastest {:.1}; {without:.1} without",
            all.len(),
            graph.name,
            times[0]
        ),
    }
    .write();
}

/// Measures a call that searches the combinations of what the segments have in 1,000 layouts, after 100 measurements.
async fn time_combinations(client: &Client, graph: &MeasuredGraph) {
    let adapt = adapt(graph, &drawn(graph, 100, 0));
    let (handle, some) = (
        GraphHandle::from_measured(graph),
        part(configurations(graph), drawn(graph, 1_000, 0)),
    );
    for (source, name) in [
        (SuggestionSource::Segments, "segments"),
        (SuggestionSource::Nodes, "nodes"),
    ] {
        for (adapt, after) in [
            (None, "without measurements"),
            (Some(&adapt), "after 100 measurements"),
        ] {
            let request = SuggestRequest::new(&handle, &some)
                .source(source)
                .adapt(adapt)
                .count(8);
            let suggested = client.suggest(&request).await.expect("suggestions");
            let suggest = async || drop(client.suggest(&request).await.expect("suggestions"));
            let times = call_times(CALLS, suggest).await;
            println!(
                "combinations of {name} {after}: {} scored, {} rows evaluated at first, lowest {}",
                suggested.reuse.configs,
                suggested.reuse.rows_evaluated,
                suggested.suggestions[0].score
            );
            if adapt.is_some() {
                Figure {
                    name: format!("suggest_combinations_of_{name}"),
                    value: times[CALLS / 2],
                    unit: "ms",
                    target: Target::AtMost(20.0),
                    how: format!(
                        "8 of the combinations of what {name} of {} have in 1,000 layouts, at the client {after}; \
                         median of {CALLS}, fastest {:.1}",
                        graph.name, times[0]
                    ),
                }
                .write();
            }
        }
    }
}

fn drawn(graph: &MeasuredGraph, count: usize, draw: u64) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..configurations(graph).len()).collect();
    Rng::with_seed(draw).shuffle(&mut chosen);
    chosen.truncate(count);
    chosen
}

fn adapt(graph: &MeasuredGraph, chosen: &[usize]) -> Adapt {
    adapt_on("bench", graph, chosen)
}

fn adapt_on(target: &str, graph: &MeasuredGraph, chosen: &[usize]) -> Adapt {
    let time = |&config: &usize| MeasuredOutcome::Time {
        seconds: run_time(graph, config) * 1e-9,
        repeats: 1,
    };
    let outcomes: Vec<MeasuredOutcome> = chosen.iter().map(time).collect();
    Adapt::new(target).measured(&part(configurations(graph), chosen.to_vec()), &outcomes)
}

/// Nanoseconds.
fn run_time(graph: &MeasuredGraph, config: usize) -> f64 {
    graph
        .measurements
        .as_ref()
        .expect("a measured graph")
        .run_times[config] as f64
}

async fn rank(client: &Client, graph: &MeasuredGraph, adapt: Option<Adapt>) -> Ranking {
    let handle = GraphHandle::from_measured(graph);
    let request = RankRequest::new(&handle, configurations(graph))
        .top(1)
        .with_scores()
        .adapt(adapt);
    client.rank(&request).await.expect("a ranking")
}

/// Kendall's tau of scores and times over what was not measured; `None` if all times are equal.
fn tau(graph: &MeasuredGraph, scores: &[f32], measured: &[usize]) -> Option<f64> {
    let mut is_measured = vec![false; scores.len()];
    for &config in measured {
        is_measured[config] = true;
    }
    let left = (0..scores.len()).filter(|&config| !is_measured[config]);
    let outcome = |config| Outcome {
        score: f64::from(scores[config]),
        run_time: run_time(graph, config),
    };
    PairCounts::new(&left.map(outcome).collect::<Vec<_>>())?.kendall_tau()
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len() as f64
}
