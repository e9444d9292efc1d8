//! Commands that fail say why, and their exit code says who can fix it.

use std::net::TcpListener;

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, NO_SERVER, SHORT};

#[test]
fn wrong_arguments_exit_with_two() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    for arguments in [
        &["graph", "features"][..],
        &["graph", "inspect", file.argument(), "another"],
        &["graph", "features", file.argument()],
        &["eval"],
        &["rank"],
        &["models", "--endpoint", "ftp://127.0.0.1:1"],
    ] {
        command_line.failure(2, arguments);
    }
}

#[test]
fn an_argument_that_cannot_be_read_says_what_is_expected() {
    let command_line = CommandLine::without_server();
    for (arguments, expected) in [
        (
            &["models", "--timeout", "0"][..],
            "expected more than 0 seconds",
        ),
        (
            &["models", "--timeout", "soon"],
            "expected a number of seconds, or a number with ms, s, m, min, h or d",
        ),
        (
            &["rank", "--graph", "g", "--top", "many"],
            "expected a whole number above 0, or `all`",
        ),
        (
            &["rank", "--graph", "g", "--top", "0"],
            "expected a whole number above 0, or `all`",
        ),
    ] {
        let value = format!("invalid value '{}' for ", arguments.last().unwrap());
        says!(command_line.failure(2, arguments), value, expected);
    }
}

#[test]
fn a_file_that_is_wrong_exits_with_two() {
    let command_line = CommandLine::without_server();
    command_line.write("other.txt", "of something else");
    command_line.write("cut.txt", "HloModule m\n\nENTRY e {\n  p = f32[2");
    for (file, place) in [
        ("missing.pb", ""),
        ("other.txt", ""),
        ("cut.txt", "module 0: HLO text, line 4, column 12: "),
    ] {
        let message = command_line.failure(2, &["graph", "inspect", file]);
        assert!(
            message.starts_with(&format!("error: {file}: {place}")),
            "{message}"
        );
        assert!(!message.contains("os error"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_loaded_is_reported_with_those_that_are() {
    let server = TestServer::start().await;
    let file = MeasuredFile::layout();
    let rank = ["rank", "--graph", file.argument(), "--model=other"];
    let message = CommandLine::new(&server).failure(3, &rank);
    says!(message, "error: ", "`other`", "layout-xla-cpu", "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_the_server_takes_exits_with_three() {
    let server = TestServer::start_with(&["--max-message-bytes=100"]).await;
    let file = MeasuredFile::layout();
    let rank = ["rank", "--graph", file.argument()];
    says!(
        CommandLine::new(&server).failure(3, &rank),
        "MESSAGE_TOO_LARGE"
    );
}

#[test]
fn no_server_is_reported_with_its_address() {
    let message = CommandLine::without_server().failure(4, &["models"]);
    assert!(
        message.starts_with(&format!("error: no connection to {NO_SERVER}: ")),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_not_that_of_grpc_is_named() {
    let server = TestServer::start().await;
    let metrics = format!("http://{}", server.metrics_address());
    let message = CommandLine::calling(&metrics, NO_SERVER).failure(2, &["models"]);
    assert!(
        message.starts_with(&format!("error: {metrics} does not speak gRPC: ")),
        "{message}"
    );
    says!(message, "--listen");
}

#[test]
fn a_connection_that_breaks_exits_with_four() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let hangs_up = thread::spawn(move || drop(listener.accept()));
    CommandLine::calling(&endpoint, NO_SERVER).failure(4, &["models", SHORT]);
    hangs_up.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_busy_exits_with_four() {
    let server = TestServer::start_with(&["--max-requests=1"]).await;
    let file = MeasuredFile::layout();
    let graph = GraphHandle::from_measured(&file.graphs[0]);
    let client = server.client().await;
    let _stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    let rank = ["rank", SHORT, "--graph", file.argument()];
    says!(
        CommandLine::new(&server).failure(4, &rank),
        "OVERLOADED, try again in"
    );
}

/// A server that says of a configuration that was never sent that it is the best.
#[tokio::test(flavor = "multi_thread")]
async fn an_impossible_answer_exits_with_one() {
    let file = MeasuredFile::tile();
    let configs = u32::try_from(configurations(&file.graphs[0]).len()).unwrap();
    let ranking = RankConfigsResponse {
        ranking: vec![configs],
        ranking_scores: vec![1.0],
        scored_configs: configs,
        ..valid_ranking()
    };
    let server = AnsweringServer::start(Answers {
        ranking,
        ..Answers::default()
    })
    .await;
    let endpoint = server.endpoint();
    let rank = ["rank", "--top=1", "--module=0", "--graph", file.argument()];
    let message = CommandLine::calling(endpoint, NO_SERVER).failure(1, &rank);
    says!(
        message,
        format!("invalid answer from the server at {endpoint}: the ranking contains ")
    );
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_exits_with_one() {
    let command_line = CommandLine::without_server();
    let mut command = command_line.command(&["graph", "features", "--digest"]);
    let output = command
        .stdout(File::create("/dev/full").unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: standard output: "), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_reported_as_json_where_that_is_asked_for() {
    let server = TestServer::start().await;
    let (command_line, file) = (CommandLine::new(&server), MeasuredFile::tile());
    let rank = ["rank", "--graph", file.argument(), "--model=layout-xla-cpu"];
    let text = command_line.failure(2, &rank);
    let document = command_line.failure(2, &[&rank[..], &["--json"]].concat());
    let error = json!({
        "message": text.trim_start_matches("error: ").trim_end(),
        "exit_code": 2,
        "code": 3,
        "reason": "MODEL_TASK_MISMATCH",
        "fields": ["model"],
        "retry_after_seconds": null,
    });
    assert_eq!(
        serde_json::from_str::<Value>(&document).unwrap(),
        json!({ "error": error })
    );
    says!(text, "INVALID_ARGUMENT, MODEL_TASK_MISMATCH");
}
