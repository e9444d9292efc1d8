//! Calls and the server continue if standard error cannot be written.

use std::io::BufRead as _;

use hlorank_tests::prelude::*;
use rustix::process::{Resource, Signal, kill_process};

use super::calls::{PATIENCE, Question, ask, limit, pid};
use crate::server_program::log_file::start_logging_to;

const QUESTION: Question = Question::new(5, 20);
const CALLS: u64 = 20;

fn program() -> Command {
    let mut program = server_program();
    program.arg("--log-format=json");
    program
}

/// Makes calls of the server whose log has this line.
async fn call(serving: &str) {
    let line: Value = serde_json::from_str(serving).unwrap();
    let endpoint = format!("http://{}", line["fields"]["address"].as_str().unwrap());
    let mut client = CostModelServiceClient::connect(endpoint).await.unwrap();
    for _ in 0..CALLS {
        ask(&mut client, QUESTION).await.unwrap();
    }
}

/// Asserts that a server ends well.
async fn stop(mut server: Child) {
    kill_process(pid(server.id()), Signal::TERM).unwrap();
    let ended = async {
        loop {
            if let Some(status) = server.try_wait().unwrap() {
                break status;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let status = timeout(PATIENCE, ended).await.unwrap();
    assert_eq!(status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_the_log_any_more() {
    let mut server = program().stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let serving = lines
        .map(Result::unwrap)
        .find(|line| line.contains(r#""message":"serving""#));
    call(&serving.unwrap()).await;
    stop(server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_of_the_log_is_full_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = || fs::read_to_string(&path).unwrap();
    let (server, serving) = start_logging_to(&path, &mut program());

    let limit = |most| limit(server.id(), Resource::Fsize, most);
    limit(Some(0));
    let full = log();
    call(&serving).await;
    assert_eq!(log(), full);
    limit(None);
    call(&serving).await;
    let written = async {
        while !log().contains("call ended") {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, written).await.unwrap();
    stop(server).await;
    let log = log();
    let lost = log
        .lines()
        .rfind(|line| line.contains("log lines were lost"));
    let lost: Value = serde_json::from_str(lost.unwrap()).unwrap();
    let lost = lost["fields"]["lines"].as_u64().unwrap();
    let written = log.matches("call ended").count() as u64;
    assert!(
        lost > 0 && written + lost >= 2 * CALLS,
        "{CALLS} calls, twice: {log}"
    );
}

#[test]
fn why_the_server_does_not_start_cannot_be_written() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let status = server_program()
        .args(["--models", "no/such/folder"])
        .stderr(full)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1), "not a panic");
}
