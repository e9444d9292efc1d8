//! Calls and the server continue if standard error cannot be written.

use std::io::BufRead as _;

use hlorank_tests::prelude::*;
use rustix::process::{Resource, Signal, kill_process};

use super::calls::{PATIENCE, Question, ask, limit, pid, until};

const QUESTION: Question = Question::new(5, 20);
const CALLS: u64 = 20;

fn spawn(errors: impl Into<Stdio>) -> Child {
    let mut program = server_program();
    program.args([
        "--listen=127.0.0.1:0",
        "--metrics-listen=off",
        "--log-format=json",
    ]);
    program.stderr(errors).spawn().unwrap()
}

fn endpoint(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).unwrap();
    let fields = &line["fields"];
    (fields["message"] == "serving")
        .then(|| format!("http://{}", fields["address"].as_str().unwrap()))
}

async fn call(endpoint: &str) {
    let mut client = CostModelServiceClient::connect(endpoint.to_owned())
        .await
        .unwrap();
    for _ in 0..CALLS {
        ask(&mut client, QUESTION).await.unwrap();
    }
}

async fn stop(mut server: Child) -> Option<i32> {
    kill_process(pid(server.id()), Signal::TERM).unwrap();
    let ended = async {
        loop {
            match server.try_wait().unwrap() {
                Some(status) => return status.code(),
                None => sleep(std::time::Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_the_log_any_more() {
    let mut server = spawn(Stdio::piped());
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let endpoint = lines.find_map(|line| endpoint(&line.unwrap())).unwrap();
    drop(lines);
    call(&endpoint).await;
    assert_eq!(stop(server).await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_of_the_log_is_full_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = || fs::read_to_string(&path).unwrap();
    let server = spawn(
        File::options()
            .create_new(true)
            .append(true)
            .open(&path)
            .unwrap(),
    );
    until("the server", async || log().contains("\"serving\"")).await;
    let endpoint = log().lines().find_map(endpoint).unwrap();

    let limit = |most| limit(server.id(), Resource::Fsize, most);
    limit(Some(0));
    let full = log();
    call(&endpoint).await;
    assert_eq!(log(), full);
    limit(None);
    call(&endpoint).await;
    until("the log", async || log().contains("call ended")).await;
    assert_eq!(stop(server).await, Some(0));
    let log = log();
    let line = log
        .lines()
        .rfind(|line| line.contains("log lines were lost"))
        .unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let lost = line["fields"]["lines"].as_u64().unwrap();
    let written = log
        .lines()
        .filter(|line| line.contains("call ended"))
        .count() as u64;
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
