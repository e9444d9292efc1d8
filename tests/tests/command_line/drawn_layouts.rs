//! `hlorank rank` on files without configurations: it draws layouts and says which.

use std::path::PathBuf;

use hlorank_tests::{HLO_FIXTURES, TestServer, fixture};
use serde_json::Value;

use crate::{command_line::CommandLine, measured_file::MeasuredFile};

fn hlo(name: &str) -> PathBuf {
    fixture(HLO_FIXTURES).join(name)
}

fn ranked(command_line: &CommandLine, name: &str, options: &[&str]) -> Value {
    let graph = hlo(name);
    let arguments = ["rank", "--graph", graph.to_str().unwrap(), "--top=0"];
    command_line.json(&[&arguments[..], options].concat())["graphs"][0].take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layouts_of_a_plain_file_are_drawn_and_ranked() {
    let server = TestServer::start().await;
    let command_line = CommandLine::of(&server);
    for file in [
        "mlp_train.before_opt.hlo.txt",
        "cnn_train.before_opt.hlo_module.pb",
    ] {
        let graph = ranked(&command_line, file, &[]);
        let drawn = &graph["drawn"];
        let deviations = drawn["single_deviations"].as_u64().unwrap();
        assert!(
            deviations > 0 && drawn["possible_single_deviations"] == deviations,
            "{drawn}"
        );
        assert_eq!((&drawn["random"], &drawn["seed"]), (&100.into(), &0.into()));
        assert_eq!(graph["configurations"], 1 + deviations + 100);
        let rows = graph["ranking"].as_array().unwrap();
        assert_eq!(rows.len() as u64, 1 + deviations + 100);
        for row in rows {
            let nodes = row["configuration"]["nodes"].as_array().unwrap().len();
            match row["number"].as_u64().unwrap() {
                0 => assert_eq!(nodes, 0, "{row}"),
                number if number <= deviations => assert_eq!(nodes, 1, "{row}"),
                _ => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_seed_decides_what_is_drawn_and_the_text_names_it() {
    let server = TestServer::start().await;
    let command_line = CommandLine::of(&server);
    let rank = |seed: &str| {
        ranked(
            &command_line,
            "mlp_train.before_opt.hlo.txt",
            &["--random=7", seed],
        )
    };
    let [one, same, other] =
        ["--seed=1", "--seed=1", "--seed=2"].map(|seed| rank(seed)["ranking"].to_string());
    assert!(one == same && one != other);
    let graph = hlo("mlp_train.before_opt.hlo.txt");
    let text = command_line.text(&[
        "rank",
        "--graph",
        graph.to_str().unwrap(),
        "--random=7",
        "--seed=1",
    ]);
    let line = text
        .lines()
        .find(|line| line.starts_with("Drawn: "))
        .unwrap();
    assert!(
        line.contains("(number 0)") && line.ends_with(" 7 random layouts (seed 1)."),
        "{line}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layouts_of_a_measured_file_are_drawn_only_on_request() {
    let server = TestServer::start().await;
    let (command_line, file) = (CommandLine::of(&server), MeasuredFile::layout());
    let arguments = ["rank", "--graph", file.argument(), "--module=0"];
    assert_eq!(
        command_line.json(&arguments)["graphs"][0]["drawn"],
        Value::Null
    );
    let graph = command_line.json(&[&arguments[..], &["--random=3"]].concat())["graphs"][0].take();
    assert_eq!(
        (&graph["drawn"]["random"], &graph["measured"]),
        (&3.into(), &Value::Null)
    );
}

#[test]
fn a_file_for_which_nothing_can_be_drawn_says_why() {
    let (command_line, tiles) = (CommandLine::without_server(), MeasuredFile::tile());
    let rank = |path: &str, options: &[&str]| {
        let (code, message) = command_line.failure(&[&["rank", "--graph", path], options].concat());
        assert_eq!(code, Some(2), "{message}");
        message
    };
    let [text, scalar, features] = [
        "mlp_train.before_opt.hlo.txt",
        "scalar_identity.before_opt.hlo.txt",
        "mlp_train.before_opt.features.npz",
    ]
    .map(hlo);
    for message in [
        rank(text.to_str().unwrap(), &["--task=tile"]),
        rank(tiles.argument(), &["--random=3"]),
    ] {
        assert!(
            message.contains("tiles cannot be drawn") && message.contains("--configs"),
            "{message}"
        );
    }
    assert!(rank(scalar.to_str().unwrap(), &[]).contains("no convolution, dot or reshape"));
    assert!(rank(features.to_str().unwrap(), &[]).contains("--configs"));
}
