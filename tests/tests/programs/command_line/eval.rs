//! `hlorank eval`: rankings compared with measured run times.

use hlorank_client::quality::{Outcome, PairCounts, top_slowdown};
use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, measurements, rows, run_times};

/// Metrics, in the order of the table.
const METRICS: [&str; 8] = [
    "kendall_tau",
    "expected_tau",
    "ordered_pair_accuracy",
    "top_1_slowdown",
    "top_5_slowdown",
    "top_10_slowdown",
    "top_100_slowdown",
    "default_slowdown",
];

/// Tolerance of numbers.
const TOLERANCE: f64 = 1e-9;

fn assert_close(one: Option<f64>, other: Option<f64>, what: &str) {
    let is_close = match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= TOLERANCE,
        (one, other) => one == other,
    };
    assert!(is_close, "{what}: {one:?} and {other:?}");
}

fn evaluate(server: &TestServer, files: &[MeasuredFile]) -> (String, Value) {
    let files = files.iter().map(MeasuredFile::argument);
    let arguments: Vec<&str> = std::iter::once("eval").chain(files).collect();
    let command_line = CommandLine::new(server);
    (command_line.text(&arguments), command_line.json(&arguments))
}

/// Returns the measured run times of a graph with the scores that the library returns.
#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds stay far below 2^53"
)]
async fn outcomes(client: &Client, graph: &MeasuredGraph) -> Vec<Outcome> {
    let handle = GraphHandle::from_measured(graph);
    let request = RankRequest::new(&handle, &measurements(graph).configurations).with_scores();
    let scores = client.rank(&request).await.unwrap().scores;
    let outcome = |(config, time): (usize, i64)| Outcome {
        run_time: time as f64,
        score: scores[config].into(),
    };
    run_times(graph).into_iter().map(outcome).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_compares_the_scores_of_the_server_with_the_run_times_of_the_file() {
    let server = TestServer::start().await;
    let (files, client) = (MeasuredFile::both(), server.client().await);
    let (_, report) = evaluate(&server, &files);
    let graphs: Vec<&MeasuredGraph> = files.iter().flat_map(|file| &file.graphs).collect();
    assert_eq!(
        report["graphs"].as_array().map(Vec::len),
        Some(graphs.len())
    );
    for (graph, measured) in report["graphs"].as_array().unwrap().iter().zip(graphs) {
        let outcomes = outcomes(&client, measured).await;
        let pairs = PairCounts::new(&outcomes).unwrap();
        assert_eq!(graph["name"], measured.name);
        assert_eq!(graph["configurations"], outcomes.len());
        assert_close(
            graph["kendall_tau"].as_f64(),
            pairs.kendall_tau(),
            &measured.name,
        );
        let accuracy = graph["ordered_pair_accuracy"].as_f64();
        assert_close(accuracy, pairs.ordered_pair_accuracy(), &measured.name);
        for (metric, top) in [("top_1_slowdown", 1), ("top_10_slowdown", 10)] {
            assert_close(
                graph[metric].as_f64(),
                top_slowdown(&outcomes, top),
                &measured.name,
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mean_is_that_of_the_graphs() {
    let (_, report) = evaluate(&TestServer::start().await, &MeasuredFile::both());
    for metric in METRICS {
        let graphs = report["graphs"].as_array().unwrap().iter();
        let defined: Vec<f64> = graphs.filter_map(|graph| graph[metric].as_f64()).collect();
        let count = f64::from(u32::try_from(defined.len()).unwrap());
        let mean = (count > 0.0).then(|| defined.iter().sum::<f64>() / count);
        assert_close(report["mean"][metric].as_f64(), mean, metric);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_an_evaluation_agrees_with_the_json_document() {
    let (text, report) = evaluate(&TestServer::start().await, &MeasuredFile::both());
    let mut table = rows(&text, "graph");
    let mean = table.pop().unwrap();
    let graphs = report["graphs"].as_array().unwrap();
    assert_eq!(table.len(), graphs.len(), "{text}");
    for (cells, graph) in table.iter().zip(graphs) {
        assert_eq!(
            (&graph["name"], &graph["kind"]),
            (&cells[0].as_str().into(), &cells[1].as_str().into())
        );
        assert_eq!(cells[3..], metric_cells(graph), "{text}");
    }
    assert_eq!(
        (mean[0].as_str(), &mean[1..]),
        ("mean", &metric_cells(&report["mean"])[..]),
        "{text}"
    );
}

/// Formats tau and accuracy with three decimals, and slowdowns in percent with one.
fn metric_cells(quality: &Value) -> [String; 8] {
    METRICS.map(|metric| match quality[metric].as_f64() {
        None => "-".to_owned(),
        Some(slowdown) if metric.ends_with("slowdown") => format!("{:.1}", slowdown * 100.0),
        Some(share) => format!("{share:.3}"),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_without_run_times_are_left_out_and_counted() {
    let server = TestServer::start().await;
    let command_line = CommandLine::new(&server);
    let bare = fixture(HLO_FIXTURES).join("mlp_train.before_opt.hlo_module.pb");
    let (bare, file) = (bare.to_str().unwrap(), MeasuredFile::layout());
    let report = command_line.json(&["eval", file.argument(), bare]);
    assert_eq!(report["not_measured"], 1);
    assert_eq!(
        report["graphs"].as_array().map(Vec::len),
        Some(file.graphs.len())
    );
    let message = "error: none of the files contains measured run times\n";
    assert_eq!(
        command_line.failure(&["eval", bare]),
        (Some(2), message.to_owned())
    );
}
