//! `hlorank rank --configs`: configurations of a JSON file.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile};

/// Relative tolerance of scores.
const TOLERANCE: f64 = 1e-5;

#[tokio::test(flavor = "multi_thread")]
async fn the_configurations_of_a_report_can_be_ranked_again() {
    let server = TestServer::start().await;
    for file in MeasuredFile::both() {
        let command_line = CommandLine::new(&server);
        let arguments = ["rank", "--graph", file.argument(), "--module=0"];
        let report = command_line.json(&[&arguments[..], &["--top=3"]].concat());
        let before = report["graphs"][0]["ranking"].as_array().unwrap();
        let configurations = before.iter().map(|row| row["configuration"].clone());
        let configurations = configurations.collect::<Value>();
        command_line.write("configs.json", &configurations.to_string());
        let report = command_line.json(&[&arguments[..], &["--configs=configs.json"]].concat());
        let graph = &report["graphs"][0];
        let after = graph["ranking"].as_array().unwrap();
        assert_eq!(
            (after.len(), &graph["measured"]),
            (before.len(), &Value::Null)
        );
        for row in after {
            let same = &before[usize::try_from(row["number"].as_u64().unwrap()).unwrap()];
            assert_eq!(row["configuration"], same["configuration"]);
            let [score, expected] = [row, same].map(|row| row["score"].as_f64().unwrap());
            assert!(
                (score - expected).abs() <= TOLERANCE * expected.abs().max(1.0),
                "{score} and {expected}"
            );
            assert_eq!(row["run_time_ns"], Value::Null);
        }
    }
}

#[test]
fn an_unknown_key_is_named_with_its_place() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    for (configurations, expected) in [
        (
            r#"[{"output_bounds": [8]}]"#,
            "unknown field `output_bounds`, expected `nodes` at line 1 column 17",
        ),
        (
            "[\n{\"nodes\":[{\"node\":1,\"tensor\":[]}]}]",
            "unknown field `tensor`, expected `node` or `tensors` at line 2 column 28",
        ),
    ] {
        command_line.write("configs.json", configurations);
        let rank = ["rank", "--graph", file.argument(), "--configs=configs.json"];
        assert_eq!(
            command_line.failure(2, &rank),
            format!("error: configs.json: {expected}\n")
        );
    }
}
