//! Commands that fail say why, and their exit code says who can fix it.

use std::net::TcpListener;

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, NO_SERVER, SHORT, measurements};

#[test]
fn wrong_arguments_exit_with_two() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    for arguments in [
        &["graph", "features"][..],
        &["graph", "inspect", file.argument(), "another"],
        &["graph", "features", file.argument()],
        &["eval"],
        &["rank"],
        &["models", "--endpoint", "no address"],
        &["models", "--endpoint", "ftp://127.0.0.1:1"],
    ] {
        assert_eq!(command_line.failure(arguments).0, Some(2), "{arguments:?}");
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
        let (code, message) = command_line.failure(arguments);
        assert!(
            code == Some(2) && message.contains(expected),
            "{arguments:?}: {message}"
        );
        let value = arguments.last().unwrap();
        says!(message, format!("invalid value '{value}' for "));
    }
}

#[test]
fn a_file_that_is_wrong_exits_with_two() {
    let command_line = CommandLine::without_server();
    command_line.write("other.txt", "of something else");
    for file in ["missing.pb", "other.txt"] {
        let (code, message) = command_line.failure(&["graph", "inspect", file]);
        assert!(
            code == Some(2) && message.starts_with(&format!("error: {file}: ")),
            "{message}"
        );
        assert!(!message.contains("os error"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_wrong_exits_with_two() {
    let server = TestServer::start().await;
    let file = MeasuredFile::tile();
    let arguments = [
        "rank",
        "--graph",
        file.argument(),
        "--model",
        "layout-xla-cpu",
    ];
    let (code, message) = CommandLine::new(&server).failure(&arguments);
    assert!(
        code == Some(2) && message.contains("INVALID_ARGUMENT, MODEL_TASK_MISMATCH"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_loaded_is_reported_with_those_that_are() {
    let server = TestServer::start().await;
    let file = MeasuredFile::layout();
    let (code, message) = CommandLine::new(&server).failure(&[
        "rank",
        "--graph",
        file.argument(),
        "--model",
        "other",
    ]);
    assert_eq!(code, Some(3));
    says!(message, "error: ", "`other`", "layout-xla-cpu", "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_the_server_takes_exits_with_three() {
    let server = TestServer::start_with(&["--max-message-bytes=100"]).await;
    let file = MeasuredFile::layout();
    let (code, message) = CommandLine::new(&server).failure(&["rank", "--graph", file.argument()]);
    assert!(
        code == Some(3) && message.contains("MESSAGE_TOO_LARGE"),
        "{message}"
    );
}

#[test]
fn no_server_is_reported_with_its_address() {
    let (code, message) = CommandLine::without_server().failure(&["models"]);
    assert_eq!(code, Some(4));
    assert!(
        message.starts_with(&format!("error: no connection to {NO_SERVER}: ")),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_not_that_of_grpc_is_named() {
    let server = TestServer::start().await;
    let metrics = format!("http://{}", server.metrics_address());
    let (code, message) = CommandLine::calling(&metrics, NO_SERVER).failure(&["models"]);
    assert_eq!(code, Some(2), "{message}");
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
    let command_line = CommandLine::calling(&endpoint, NO_SERVER);
    let (code, message) = command_line.failure(&["models", SHORT]);
    assert_eq!(code, Some(4), "{message}");
    hangs_up.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_busy_exits_with_four() {
    let server = TestServer::start_with(&["--max-requests=1"]).await;
    let file = MeasuredFile::layout();
    let (client, graph) = (
        server.client().await,
        GraphHandle::from_measured(&file.graphs[0]),
    );
    let _stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    let rank = ["rank", SHORT, "--graph", file.argument()];
    let (code, message) = CommandLine::new(&server).failure(&rank);
    assert!(
        code == Some(4) && message.contains("OVERLOADED, try again in"),
        "{message}"
    );
}

/// A server that says of a configuration that was never sent that it is the best.
#[tokio::test(flavor = "multi_thread")]
async fn an_impossible_answer_exits_with_one() {
    let file = MeasuredFile::tile();
    let configs = measurements(&file.graphs[0]).configurations.len();
    let best = RankConfigsResponse {
        ranking: vec![u32::try_from(configs).unwrap()],
        ranking_scores: vec![1.0],
        scored_configs: u32::try_from(configs).unwrap(),
        ..valid_ranking()
    };
    let with_scores = RankConfigsResponse {
        scores: vec![1.0; configs],
        ..best.clone()
    };
    let rank = &["rank", "--top=1", "--module=0", "--graph", file.argument()][..];
    for (arguments, ranking) in [
        (rank, best),
        (&["eval", "--module=0", file.argument()], with_scores),
    ] {
        let server = AnsweringServer::start(Answers {
            ranking,
            ..Answers::default()
        })
        .await;
        let (code, message) = CommandLine::calling(server.endpoint(), NO_SERVER).failure(arguments);
        let words = format!(
            "invalid answer from the server at {}: the ranking contains ",
            server.endpoint()
        );
        assert!(
            code == Some(1) && message.contains(&words),
            "{code:?}: {message}"
        );
    }
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
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .starts_with("error: standard output: ")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_reported_as_json_where_that_is_asked_for() {
    let server = TestServer::start().await;
    let file = MeasuredFile::tile();
    let arguments = [
        "rank",
        "--graph",
        file.argument(),
        "--model",
        "layout-xla-cpu",
    ];
    let command_line = CommandLine::new(&server);
    let (_, text) = command_line.failure(&arguments);
    let (code, document) = command_line.failure(&[&arguments[..], &["--json"]].concat());
    let error = json!({
        "message": text.trim_start_matches("error: ").trim_end(),
        "exit_code": code,
        "code": 3,
        "reason": "MODEL_TASK_MISMATCH",
        "fields": ["model"],
        "retry_after_seconds": null,
    });
    assert_eq!(
        serde_json::from_str::<Value>(&document).unwrap(),
        json!({ "error": error })
    );
}
