//! `hlorank rank`: rankings beside measured run times.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, measurements, rows, run_times};

fn ranking(graph: &Value) -> &[Value] {
    graph["ranking"].as_array().unwrap()
}

/// Asserts that a graph is ranked by score, beside the run times of the file.
fn assert_ranked(graph: &Value, measured: &MeasuredGraph, count: usize) {
    let times = &measurements(measured).run_times;
    let summary = &graph["measured"];
    let default = summary["default_ns"].as_f64();
    let (mut numbers, mut highest) = (BTreeSet::new(), f64::NEG_INFINITY);
    for (row, rank) in ranking(graph).iter().zip(1..) {
        assert_eq!(row["rank"], rank);
        let score = row["score"].as_f64().unwrap();
        assert!(highest <= score, "{graph}");
        highest = score;
        let number = usize::try_from(row["number"].as_u64().unwrap()).unwrap();
        numbers.insert(number);
        assert_eq!(
            row["run_time_ns"].as_i64().unwrap_or(0),
            times[number],
            "{row}"
        );
        if let (Some(time), Some(default)) = (row["run_time_ns"].as_f64(), default) {
            let over_default = row["over_default"].as_f64().unwrap();
            assert!((over_default - time / default).abs() <= 1e-9, "{row}");
        }
    }
    assert_eq!((ranking(graph).len(), numbers.len()), (count, count));
    let run_times = run_times(measured);
    let of_ranking = run_times
        .iter()
        .filter(|(number, _)| numbers.contains(number));
    let best_of_ranking = of_ranking.map(|(_, time)| *time).min();
    let (best_number, best) = run_times.iter().min_by_key(|(_, time)| *time).unwrap();
    assert_eq!(summary["configurations"], run_times.len());
    assert_eq!(summary["best_number"], *best_number);
    assert_eq!(summary["best_ns"], *best);
    assert_eq!(summary["best_of_ranking_ns"].as_i64(), best_of_ranking);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_graph_of_a_file_is_ranked_by_score_beside_what_was_measured() {
    let server = TestServer::start().await;
    for file in MeasuredFile::both() {
        for (options, most) in [(&[][..], 10), (&["--top=all"], usize::MAX)] {
            let rank = [&["rank", "--graph", file.argument()][..], options].concat();
            let report = CommandLine::new(&server).json(&rank);
            let graphs = report["graphs"].as_array().unwrap();
            assert_eq!(graphs.len(), file.graphs.len());
            for (graph, measured) in graphs.iter().zip(&file.graphs) {
                assert_eq!(graph["name"], measured.name);
                assert_eq!(graph["kind"], measured.graph.task().to_string());
                assert_eq!(graph["graph_hash"], measured.graph.hash().to_string());
                let all = measurements(measured).configurations.len();
                assert_ranked(graph, measured, all.min(most));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_expected_of_a_ranking_is_said_unless_another_compiler_is_named() {
    let models = format!("--models={}", repository("models/registry").display());
    let flags = [&models, "--default-models=tile=tile-iree-cpu"];
    let server = TestServer::start_with(&flags).await;
    let file = MeasuredFile::tile();
    let expected = |target: &[&str]| {
        let rank = ["rank", "--graph", file.argument(), "--module=0"];
        let report = CommandLine::new(&server).json(&[&rank[..], target].concat());
        report["graphs"][0]["confidence"]["expected_tau"].as_f64()
    };
    assert!(expected(&[]).is_some_and(|tau| tau > 0.3));
    assert_eq!(expected(&["--target=AMD EPYC, gcc 12.2"]), None);
}

#[test]
fn a_graph_without_configurations_says_how_to_pass_some() {
    let command_line = CommandLine::without_server();
    let graph = fixture("hlo/mlp_train.before_opt.hlo.txt");
    let graph = graph.to_str().unwrap();
    let program = "HloModule f\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  a = f32[8]{0} exponential(p)\n  \
                   ROOT b = f32[8]{0} negate(a)\n}\n";
    command_line.write("program.hlo.txt", program);
    for (arguments, expected) in [
        (&["rank", "--graph", graph][..], "--configs FILE"),
        (&["report", "--graph", graph], "--configs FILE"),
        (&["suggest", "--graph", graph], "--configs FILE"),
        (
            &["rank", "--task=fusion", "--graph", "program.hlo.txt"],
            "or let `hlorank-tune xla PROGRAM --fusion` choose",
        ),
    ] {
        let start = format!(
            "{}: module 0 comes without configurations",
            arguments.last().unwrap()
        );
        says!(command_line.failure(2, arguments), start, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_a_ranking_agrees_with_the_json_document() {
    let server = TestServer::start().await;
    for file in MeasuredFile::both() {
        let rank = ["rank", "--graph", file.argument(), "--module=0", "--top=5"];
        let command_line = CommandLine::new(&server);
        let (text, report) = (command_line.text(&rank), command_line.json(&rank));
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
        // The closing sentence names the best of the table.
        let measured = table.iter().zip(ranking(graph));
        let measured = measured.filter(|(_, row)| !row["run_time_ns"].is_null());
        let (best, _) = measured
            .min_by_key(|(_, row)| row["run_time_ns"].as_i64())
            .unwrap();
        let start = format!("The best of the top 5 runs in {}; ", best[3]);
        let end = format!("(number {}).", graph["measured"]["best_number"]);
        let sentence = text.lines().last().unwrap();
        assert!(
            sentence.starts_with(&start) && sentence.ends_with(&end),
            "{text}"
        );
    }
}
