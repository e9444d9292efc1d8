//! `hlorank eval`: rankings compared with measured run times.

use hlorank_client::quality::{Outcome, PairCounts, top_slowdown};
use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, rows, run_times};

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

/// Evaluates one file of each task, and returns the table and the JSON document.
fn evaluate(server: &TestServer, files: &[MeasuredFile; 2]) -> (String, Value) {
    let arguments = ["eval", files[0].argument(), files[1].argument()];
    let command_line = CommandLine::new(server);
    (command_line.text(&arguments), command_line.json(&arguments))
}

fn assert_close(metric: &Value, expected: Option<f64>) {
    let is_close = match (metric.as_f64(), expected) {
        (Some(metric), Some(expected)) => (metric - expected).abs() <= 1e-9,
        (metric, expected) => metric == expected,
    };
    assert!(is_close, "{metric}: {expected:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_compares_the_scores_of_the_server_with_the_run_times_of_the_file() {
    let server = TestServer::start().await;
    let (files, client) = (MeasuredFile::both(), server.client().await);
    let (_, report) = evaluate(&server, &files);
    let evaluated = report["graphs"].as_array().unwrap();
    let graphs: Vec<&MeasuredGraph> = files.iter().flat_map(|file| &file.graphs).collect();
    assert_eq!(evaluated.len(), graphs.len());
    for (graph, measured) in evaluated.iter().zip(graphs) {
        let scores = rank_measured(&client, measured, None).await.scores;
        let outcome = |(config, time): (usize, i64)| Outcome {
            run_time: time as f64,
            score: scores[config].into(),
        };
        let outcomes: Vec<Outcome> = run_times(measured).into_iter().map(outcome).collect();
        let pairs = PairCounts::new(&outcomes).unwrap();
        assert_eq!(graph["name"], measured.name);
        assert_eq!(graph["configurations"], outcomes.len());
        assert_close(&graph["kendall_tau"], pairs.kendall_tau());
        assert_close(
            &graph["ordered_pair_accuracy"],
            pairs.ordered_pair_accuracy(),
        );
        assert_close(&graph["top_1_slowdown"], top_slowdown(&outcomes, 1));
        assert_close(&graph["top_10_slowdown"], top_slowdown(&outcomes, 10));
    }
    for metric in METRICS {
        let graphs = evaluated.iter();
        let defined: Vec<f64> = graphs.filter_map(|graph| graph[metric].as_f64()).collect();
        let count = f64::from(u32::try_from(defined.len()).unwrap());
        let mean = (count > 0.0).then(|| defined.iter().sum::<f64>() / count);
        assert_close(&report["mean"][metric], mean);
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
    assert_eq!(
        command_line.failure(2, &["eval", bare]),
        "error: none of the files contains measured run times\n"
    );
}
