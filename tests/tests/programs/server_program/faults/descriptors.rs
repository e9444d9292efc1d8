//! The server runs out of file descriptors for connections and files.

use std::net::TcpStream;

use hlorank_tests::prelude::*;
use rustix::process::Resource;

use super::calls::{MODEL, Question, admin, ask, cost_model, limit, start, until_serving};

const QUESTION: Question = Question {
    nodes: 5,
    tiles: 20,
};

/// Number of descriptors left for connections.
const SPARE: u64 = 4;

fn open_descriptors(server: &ServerProcess) -> u64 {
    fs::read_dir(format!("/proc/{}/fd", server.id()))
        .unwrap()
        .count() as u64
}

fn shortages(log: &[serde_json::Value]) -> usize {
    log.iter().filter(|line| is_shortage(line)).count()
}

fn is_shortage(line: &serde_json::Value) -> bool {
    line["fields"]["message"]
        .as_str()
        .is_some_and(|message| message.starts_with("cannot take connections"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_connections_go_on_without_descriptors_and_others_once_there_are_some() {
    let artifacts = Artifacts::copy();
    let server = start(&[
        &artifacts.flag(),
        "--admin-listen=127.0.0.1:0",
        "--poll-seconds=0.3",
    ]);
    let mut client = cost_model(&server).await;
    let models = Client::connect(&server.endpoint, Connection::default())
        .await
        .unwrap();
    let version = models.get_model(MODEL, None).await.unwrap().version;
    let mut admin = admin(&server).await;
    admin.reload(ReloadRequest {}).await.unwrap();
    let before = ask(&mut client, QUESTION).await.unwrap();

    let most = limit(
        &server,
        Resource::Nofile,
        Some(open_descriptors(&server) + SPARE),
    );
    let address = server.endpoint.trim_start_matches("http://");
    let crowd: Vec<TcpStream> = (0..20)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let log = server.lines(1, is_shortage).await;
    assert!(
        log[0]["fields"]["error"]
            .as_str()
            .unwrap()
            .contains("Too many open files"),
        "{log:?}"
    );

    let newcomer = tokio::spawn({
        let endpoint = server.endpoint.clone();
        async move {
            let client = Client::connect(&endpoint, Connection::default())
                .await
                .unwrap();
            client.get_model(MODEL, None).await.unwrap();
        }
    });
    artifacts.publish(MODEL, version + 1, |_| ());
    for _ in 0..50 {
        assert_eq!(ask(&mut client, QUESTION).await.unwrap(), before);
    }
    let refused = admin.reload(ReloadRequest {}).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
    assert_eq!(
        refused.get_details_error_info().unwrap().reason,
        "MODELS_UNREADABLE"
    );
    assert!(
        refused.message().contains("Too many open files"),
        "{refused:?}"
    );
    assert_eq!(
        models.get_model(MODEL, None).await.unwrap().version,
        version
    );
    assert!(!newcomer.is_finished());

    drop(crowd);
    newcomer.await.unwrap();
    // The server finds the version by polling.
    until_serving(&models, version + 1).await;
    assert_eq!(ask(&mut client, QUESTION).await.unwrap(), before);
    limit(&server, Resource::Nofile, most);
    let stopped = server.stop().await;
    assert_eq!(stopped.status.code(), Some(0), "{}", stopped.log);
    assert_eq!(shortages(&stopped.lines()), 1, "{}", stopped.log);
    assert!(!stopped.log.contains("panic"), "{}", stopped.log);
}
