//! `hlorank suggest`, and `hlorank rank --measured`.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile};

/// Measures what is suggested, as a user's script does: times are those of the file.
fn search(command_line: &CommandLine, file: &MeasuredFile, rounds: usize) -> Vec<Value> {
    let arguments = [
        "--graph",
        file.argument(),
        "--module=0",
        "--measured=measured.json",
        "--target=test",
    ];
    let ranked = command_line.json(&[
        "rank",
        "--graph",
        file.argument(),
        "--module=0",
        "--top=all",
    ]);
    let all = ranked["graphs"][0]["ranking"].as_array().unwrap();
    let seconds = |configuration: &Value| {
        let row = all
            .iter()
            .find(|row| &row["configuration"] == configuration)
            .unwrap();
        row["run_time_ns"].as_f64().unwrap() * 1e-9
    };
    let mut measured = Vec::new();
    for _ in 0..rounds {
        command_line.write("measured.json", &Value::from(measured.clone()).to_string());
        let report = command_line.json(&[&["suggest", "--count=2"], &arguments[..]].concat());
        for suggestion in report["suggestions"].as_array().unwrap() {
            let configuration = &suggestion["configuration"];
            assert!(
                measured
                    .iter()
                    .all(|before: &Value| &before["configuration"] != configuration)
            );
            measured
                .push(json!({"configuration": configuration, "seconds": seconds(configuration)}));
        }
    }
    command_line.write("measured.json", &Value::from(measured.clone()).to_string());
    let report = command_line.json(&[&["rank", "--top=3"], &arguments[..]].concat());
    let graph = &report["graphs"][0];
    assert_eq!(
        (&graph["learned"]["target"], &graph["learned"]["adapted"]),
        (&"test".into(), &true.into())
    );
    for row in graph["ranking"].as_array().unwrap() {
        let (score, seconds) = (
            row["score"].as_f64().unwrap(),
            row["predicted"]["seconds"].as_f64().unwrap(),
        );
        assert!((seconds.ln() - score).abs() < 1e-3, "{row}");
    }
    measured
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_by_suggestions_and_its_measurements() {
    let server = TestServer::start().await;
    for file in MeasuredFile::both() {
        let command_line = CommandLine::new(&server);
        assert_eq!(search(&command_line, &file, 3).len(), 6);
        let arguments = [
            "suggest",
            "--graph",
            file.argument(),
            "--module=0",
            "--measured=measured.json",
        ];
        let text = command_line.text(&arguments);
        says!(text, "Learned from 6 measured configurations of `local`");
        says!(text, "expected improvement", " to ");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn combinations_of_given_layouts_are_suggested_for_a_plain_file() {
    let server = TestServer::start().await;
    let command_line = CommandLine::new(&server);
    let graph = fixture(HLO_FIXTURES).join("mlp_train.before_opt.hlo.txt");
    let nodes = command_line.json(&["graph", "inspect", "--nodes", graph.to_str().unwrap()]);
    let dots = nodes["graphs"][0]["configurable_nodes"].as_array().unwrap();
    let dots = dots.iter().filter(|node| node["opcode"] == "dot");
    let layout = |node: &Value| {
        let tensors = [json!({ "minor_to_major": [0, 1] })];
        json!({ "nodes": [{ "node": node["node"], "tensors": tensors }] })
    };
    let layouts: Vec<Value> = dots.map(layout).collect();
    command_line.write("layouts.json", &json!(layouts).to_string());
    let graph = ["--graph", graph.to_str().unwrap(), "--configs=layouts.json"];
    let suggest = [&["suggest", "--count=1"][..], &graph].concat();
    let given = command_line.json(&suggest);
    let combined = command_line.json(&[&suggest[..], &["--source=nodes"]].concat());
    let best = |report: &Value| report["suggestions"][0]["score"].as_f64().unwrap();
    assert!(best(&combined) <= best(&given), "{combined} {given}");
    assert_eq!(combined["suggestions"][0]["number"], Value::Null);
}

#[test]
fn a_wrong_measurement_is_named() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::tile());
    let refused = |measured: &str| {
        command_line.write("measured.json", measured);
        let arguments = [
            "suggest",
            "--graph",
            file.argument(),
            "--module=0",
            "--measured=measured.json",
        ];
        let (code, error) = command_line.failure(&arguments);
        assert_eq!(code, Some(2), "{error}");
        error
    };
    for (measured, expected) in [
        (
            r#"[{"configuration": {}}]"#,
            "measurement 0 needs either `seconds` or `failure`",
        ),
        (
            r#"[{"configuration": {}, "seconds": 1, "failure": "crash"}]"#,
            "measurement 0 needs either",
        ),
        (
            r#"[{"configuration": {}, "failure": "fire"}]"#,
            "unknown variant `fire`, expected one of `compile`",
        ),
        (
            r#"[{"configuration": {"bounds": []}, "seconds": 1}]"#,
            "unknown field `bounds`",
        ),
        (
            r#"[{"configuration": {}, "second": 1}]"#,
            "unknown field `second`",
        ),
    ] {
        let error = refused(measured);
        assert!(
            error.contains("measured.json") && error.contains(expected),
            "{error}"
        );
    }
}
