//! `hlorank suggest`, and `hlorank rank --measured`.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile};

/// What is suggested is measured as a user's script does; times are those of the file.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_by_suggestions_and_its_measurements() {
    let server = TestServer::start().await;
    for file in MeasuredFile::both() {
        let command_line = CommandLine::new(&server);
        let subject = [
            "--graph",
            file.argument(),
            "--module=0",
            "--measured=measured.json",
        ];
        let of_target = [&subject[..], &["--target=test"]].concat();
        let seconds = seconds_of(&file.graphs[0]);
        let mut numbers = BTreeSet::new();
        let mut measured: Vec<Value> = Vec::new();
        command_line.write("measured.json", "[]");
        for _ in 0..3 {
            let report = command_line.json(&[&["suggest", "--count=2"], &of_target[..]].concat());
            for suggestion in report["suggestions"].as_array().unwrap() {
                let number = usize::try_from(suggestion["number"].as_u64().unwrap()).unwrap();
                assert!(numbers.insert(number), "{number} is suggested once");
                let configuration = &suggestion["configuration"];
                measured.push(json!({"configuration": configuration, "seconds": seconds[number]}));
            }
            command_line.write("measured.json", &json!(measured).to_string());
        }
        assert_eq!(numbers.len(), 6);
        let report = command_line.json(&[&["rank", "--top=3"], &of_target[..]].concat());
        let graph = &report["graphs"][0];
        assert_eq!(graph["learned"]["target"], "test");
        assert_eq!(graph["learned"]["adapted"], true);
        for row in graph["ranking"].as_array().unwrap() {
            let score = row["score"].as_f64().unwrap();
            let seconds = row["predicted"]["seconds"].as_f64().unwrap();
            assert!((seconds.ln() - score).abs() < 1e-3, "{row}");
        }
        let text = command_line.text(&[&["suggest"], &subject[..]].concat());
        says!(
            text,
            "Learned from 6 measured configurations of `local`",
            "expected improvement",
            " to "
        );
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
    let layouts = dots.map(layout).collect::<Value>();
    command_line.write("layouts.json", &layouts.to_string());
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
    let suggest = ["suggest", "--graph", file.argument(), "--module=0"];
    let suggest = [&suggest[..], &["--measured=measured.json"]].concat();
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
        command_line.write("measured.json", measured);
        says!(command_line.failure(2, &suggest), "measured.json", expected);
    }
}
