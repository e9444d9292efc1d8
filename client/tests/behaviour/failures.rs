//! Commands that fail say why.

use hlorank_tests::TestServer;

use crate::{
    command_line::{CommandLine, NO_SERVER},
    measured_file::MeasuredFile,
};

#[test]
fn wrong_arguments_exit_with_two() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    for arguments in
        [&["graph", "features"][..], &["graph", "features", file.argument()], &["eval"], &["rank"]]
    {
        assert_eq!(command_line.failure(arguments).0, Some(2), "{arguments:?}");
    }
}

#[test]
fn no_server_is_told_with_its_address() {
    let (code, message) = CommandLine::without_server().failure(&["models"]);
    assert_eq!(code, Some(1));
    assert!(message.starts_with(&format!("error: no connection to {NO_SERVER}: ")), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_is_not_loaded_is_told_with_those_that_are() {
    let server = TestServer::start().await;
    let file = MeasuredFile::layout();
    let (code, message) =
        CommandLine::of(&server).failure(&["rank", "--graph", file.argument(), "--model", "other"]);
    assert_eq!(code, Some(1));
    for words in ["error: ", "`other`", "layout-xla-cpu", "NOT_FOUND"] {
        assert!(message.contains(words), "{message}");
    }
}
