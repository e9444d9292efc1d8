//! `hlorank rank --configs`: configurations of a JSON file.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile};

/// Relative tolerance of scores.
const TOLERANCE: f64 = 1e-5;

fn assert_same_score(one: &Value, other: &Value) {
    let [one, other] = [one, other].map(|row| row["score"].as_f64().unwrap());
    assert!(
        (one - other).abs() <= TOLERANCE * one.abs().max(1.0),
        "{one} and {other}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configurations_of_a_report_can_be_ranked_again() {
    let server = TestServer::start().await;
    for file in MeasuredFile::both() {
        let command_line = CommandLine::new(&server);
        let arguments = ["rank", "--graph", file.argument(), "--module", "0"];
        let report = command_line.json(&[&arguments[..], &["--top", "3"]].concat());
        let before = report["graphs"][0]["ranking"].as_array().unwrap();
        let configurations: Vec<&Value> = before.iter().map(|row| &row["configuration"]).collect();
        command_line.write(
            "configs.json",
            &serde_json::to_string(&configurations).unwrap(),
        );
        let report = command_line.json(&[&arguments[..], &["--configs", "configs.json"]].concat());
        let graph = &report["graphs"][0];
        let after = graph["ranking"].as_array().unwrap();
        assert_eq!(
            (after.len(), &graph["measured"]),
            (before.len(), &Value::Null)
        );
        for row in after {
            let same = &before[usize::try_from(row["number"].as_u64().unwrap()).unwrap()];
            assert_eq!(row["configuration"], same["configuration"]);
            assert_same_score(row, same);
            assert_eq!(row["run_time_ns"], Value::Null);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_ranked_as_its_module() {
    let server = TestServer::start().await;
    let command_line = CommandLine::new(&server);
    // Node 49 is a dot of two matrices.
    command_line.write(
        "configs.json",
        r#"[{"nodes": []}, {"nodes": [{"node": 49, "tensors": [{"minor_to_major": [0, 1]}]}]}]"#,
    );
    let [text, module] = ["hlo.txt", "hlo_module.pb"].map(|ending| {
        let graph = fixture(HLO_FIXTURES).join(format!("mlp_train.before_opt.{ending}"));
        let arguments = [
            "rank",
            "--graph",
            graph.to_str().unwrap(),
            "--configs",
            "configs.json",
        ];
        command_line.json(&arguments)["graphs"][0]["ranking"].take()
    });
    assert_eq!(text.as_array().map(Vec::len), Some(2));
    assert_eq!(text, module);
}

#[test]
fn configurations_of_another_kind_are_refused_with_their_place() {
    let command_line = CommandLine::without_server();
    command_line.write("configs.json", r#"[{"output_bounds": [8]}]"#);
    let file = MeasuredFile::layout();
    let failure = command_line.failure(&[
        "rank",
        "--graph",
        file.argument(),
        "--configs",
        "configs.json",
    ]);
    let message = "error: configs.json: unknown field `output_bounds`, expected `nodes` at line 1 column 17\n";
    assert_eq!(failure, (Some(2), message.to_owned()));
}
