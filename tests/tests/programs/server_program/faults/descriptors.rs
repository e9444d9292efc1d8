//! The server runs out of file descriptors for connections and files.

use std::net::TcpStream;

use hlorank_tests::prelude::*;
use rustix::process::Resource;

use super::calls::{MODEL, Question, ask, ended_well, limit, start};

const QUESTION: Question = Question::new(5, 20);

/// Number of descriptors left for connections.
const SPARE: u64 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn open_connections_go_on_without_descriptors_and_others_once_there_are_some() {
    let artifacts = Artifacts::all();
    let server = start(&[
        &artifacts.flag(),
        "--admin-listen=127.0.0.1:0",
        "--poll-seconds=0.3",
    ]);
    let mut client = server.cost_model().await;
    let models = server.client().await;
    let version = models.get_model(MODEL, None).await.unwrap().version;
    let mut admin = server.admin_calls().await;
    admin.reload(ReloadRequest {}).await.unwrap();
    let before = ask(&mut client, QUESTION).await.unwrap();

    let open = fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap();
    let spare = Some(open.count() as u64 + SPARE);
    let most = limit(server.id(), Resource::Nofile, spare);
    let address = server.address();
    let crowd: Vec<TcpStream> = (0..20)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let shortage = with_message("cannot take connections");
    let log = server.lines(1, &shortage).await;
    says!(
        log[0]["fields"]["error"].as_str().unwrap(),
        "Too many open files"
    );

    let newcomer = tokio::spawn({
        let endpoint = server.endpoint().to_owned();
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
    assert_eq!(reason(&refused), "MODELS_UNREADABLE");
    says!(refused.message(), "Too many open files");
    let model = models.get_model(MODEL, None).await.unwrap();
    assert_eq!(model.version, version);
    assert!(!newcomer.is_finished());

    drop(crowd);
    newcomer.await.unwrap();
    // The server finds the version by polling.
    server.until(MODEL, version + 1, ModelState::Serving).await;
    assert_eq!(ask(&mut client, QUESTION).await.unwrap(), before);
    limit(server.id(), Resource::Nofile, most);
    let stopped = ended_well(server).await;
    let logged = stopped.lines().into_iter().filter(shortage).count();
    assert_eq!(logged, 1, "{}", stopped.log);
}
