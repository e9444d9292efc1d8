//! `hlorank rank`: rankings beside measured run times.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, measurements, rows, run_times};

fn ranking(graph: &Value) -> &[Value] {
    graph["ranking"].as_array().unwrap()
}

fn numbers(graph: &Value) -> Vec<usize> {
    ranking(graph)
        .iter()
        .map(|row| usize::try_from(row["number"].as_u64().unwrap()).unwrap())
        .collect()
}

fn assert_sorted_by_score(graph: &Value) {
    let (score, rank) = (
        |row: &Value| row["score"].as_f64().unwrap(),
        |row: &Value| row["rank"].as_u64(),
    );
    assert!(
        ranking(graph).is_sorted_by(|one, other| score(one) <= score(other)),
        "{graph}"
    );
    assert!(
        ranking(graph)
            .iter()
            .map(rank)
            .eq((1..=ranking(graph).len() as u64).map(Some)),
        "{graph}"
    );
}

/// Asserts that the rows have the run times of the file.
fn assert_rows_measured(graph: &Value, times: &[i64]) {
    let default = graph["measured"]["default_ns"].as_f64();
    for (row, number) in ranking(graph).iter().zip(numbers(graph)) {
        assert_eq!(
            row["run_time_ns"].as_i64().unwrap_or(0),
            times[number],
            "{row}"
        );
        if let (Some(time), Some(default)) = (row["run_time_ns"].as_f64(), default) {
            assert!(
                (row["over_default"].as_f64().unwrap() - time / default).abs() <= 1e-9,
                "{row}"
            );
        }
    }
}

/// Asserts that the summary has the run times of the file.
fn assert_summary(graph: &Value, measured: &MeasuredGraph) {
    let (summary, ranked) = (&graph["measured"], numbers(graph));
    let of_ranking = run_times(measured)
        .into_iter()
        .filter(|(number, _)| ranked.contains(number));
    let best_of_ranking = of_ranking.map(|(_, time)| time).min();
    let (best_number, best) = run_times(measured)
        .into_iter()
        .min_by_key(|(_, time)| *time)
        .unwrap();
    assert_eq!(summary["configurations"], run_times(measured).len());
    assert_eq!(
        (&summary["best_number"], &summary["best_ns"]),
        (&best_number.into(), &best.into())
    );
    assert_eq!(summary["best_of_ranking_ns"].as_i64(), best_of_ranking);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_graph_of_a_file_is_ranked_by_score_beside_what_was_measured() {
    let server = TestServer::start().await;
    for file in MeasuredFile::both() {
        let report = CommandLine::new(&server).json(&["rank", "--graph", file.argument()]);
        let graphs = report["graphs"].as_array().unwrap();
        assert_eq!(graphs.len(), file.graphs.len());
        for (graph, measured) in graphs.iter().zip(&file.graphs) {
            assert_eq!(graph["name"], measured.name);
            assert_eq!(graph["kind"], measured.graph.task().to_string());
            assert_eq!(graph["graph_hash"], measured.graph.hash().to_string());
            assert_eq!(
                ranking(graph).len(),
                measurements(measured).configurations.len().min(10)
            );
            assert_sorted_by_score(graph);
            assert_rows_measured(graph, &measurements(measured).run_times);
            assert_summary(graph, measured);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_expected_of_a_ranking_is_said_unless_another_compiler_is_named() {
    let models = format!("--models={}", repository("models/registry").display());
    let flags = [&models, "--default-models=tile=tile-iree-cpu"];
    let server = TestServer::start_with(&flags).await;
    let graph = format!(
        "--graph={}",
        fixture("measured/tile_dispatches.pb").display()
    );
    let expected = |target: &[&str]| {
        let arguments = [&["rank", &graph, "--module=0"], target].concat();
        let report = CommandLine::new(&server).json(&arguments);
        report["graphs"][0]["confidence"]["expected_tau"].as_f64()
    };
    assert!(expected(&[]).is_some_and(|tau| tau > 0.3));
    assert_eq!(expected(&["--target=AMD EPYC, gcc 12.2"]), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_shows_every_configuration() {
    let server = TestServer::start().await;
    let file = MeasuredFile::layout();
    let report =
        CommandLine::new(&server).json(&["rank", "--graph", file.argument(), "--top", "all"]);
    let graph = &report["graphs"][0];
    let mut all = numbers(graph);
    all.sort_unstable();
    assert!(
        all.into_iter()
            .eq(0..measurements(&file.graphs[0]).run_times.len())
    );
    assert_sorted_by_score(graph);
    assert_eq!(
        graph["measured"]["best_of_ranking_ns"],
        graph["measured"]["best_ns"]
    );
}

#[test]
fn a_graph_without_configurations_says_how_to_pass_some() {
    let command_line = CommandLine::without_server();
    let graph = fixture("hlo/mlp_train.before_opt.hlo.txt");
    for command in ["rank", "report", "suggest"] {
        let (code, message) = command_line.failure(&[command, "--graph", graph.to_str().unwrap()]);
        let start = format!(
            "error: {}: module 0 comes without configurations",
            graph.display()
        );
        assert!(
            code == Some(2) && message.starts_with(&start) && message.contains("--configs"),
            "{message}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_a_ranking_agrees_with_the_json_document() {
    let server = TestServer::start().await;
    for file in MeasuredFile::both() {
        let arguments = [
            "rank",
            "--graph",
            file.argument(),
            "--module",
            "0",
            "--top",
            "5",
        ];
        let command_line = CommandLine::new(&server);
        let (text, report) = (command_line.text(&arguments), command_line.json(&arguments));
        let graph = &report["graphs"][0];
        let heading = format!("{}: {}, ", file.graphs[0].name, file.graphs[0].graph.task());
        assert!(text.starts_with(&heading), "{text}");
        let table = rows(&text, "rank");
        assert_eq!(table.len(), ranking(graph).len(), "{text}");
        for (cells, row) in table.iter().zip(ranking(graph)) {
            let score: f32 = row["score"].to_string().parse().unwrap();
            let expected = [
                row["rank"].to_string(),
                row["number"].to_string(),
                format!("{score:.4}"),
            ];
            assert_eq!(cells[..3], expected, "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_closing_sentence_names_the_best_of_the_table() {
    let server = TestServer::start().await;
    for file in MeasuredFile::both() {
        let arguments = [
            "rank",
            "--graph",
            file.argument(),
            "--module",
            "0",
            "--top",
            "5",
        ];
        let command_line = CommandLine::new(&server);
        let (text, report) = (command_line.text(&arguments), command_line.json(&arguments));
        let rows_of_table = rows(&text, "rank");
        let measured = rows_of_table.iter().zip(ranking(&report["graphs"][0]));
        let measured = measured.filter(|(_, row)| !row["run_time_ns"].is_null());
        let (best, _) = measured
            .min_by_key(|(_, row)| row["run_time_ns"].as_i64())
            .unwrap();
        let summary = &report["graphs"][0]["measured"];
        let start = format!("The best of the top 5 runs in {}; ", best[3]);
        let end = format!("(number {}).", summary["best_number"]);
        let sentence = text.lines().last().unwrap();
        assert!(
            sentence.starts_with(&start) && sentence.ends_with(&end),
            "{text}"
        );
    }
}
