//! Versions that hang while they are loaded, or on some inputs after that, delay no other model for long. These tests are a
//! program of their own, because a run that cannot be stopped uses a processor until its process ends.

use hlorank_proto::v1::Model;
use hlorank_tests::{
    onnx::{add_above, loop_above, loop_of_head_above, stall_above, stall_session},
    prelude::*,
};

/// Another model.
const OTHER: &str = SMALL_TILE_MODEL;

/// Above the features of golden cases, below the product of [`HANGS`].
const LIMIT: f32 = 1e15;
const HANGS: [i64; 2] = [1 << 30, 1 << 30];

/// Steps of a loop that take days.
const STEPS: i64 = 1 << 40;

/// Time that a client allows, less than a run takes.
const ALLOWED: Duration = Duration::from_millis(500);

/// Time that a client allows if the server ends the run.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs of sound models take milliseconds, but may wait for a processor as long as runs that cannot be stopped use them.
const MAX_RUN: &str = "--max-run-seconds=5";

/// Starts a server with both tile models and these flags.
async fn start(flags: &[&str]) -> Subject {
    Subject::start_with(Artifacts::tiles(), flags).await
}

/// Publishes a version of the model whose encoder is spoiled.
fn publish(subject: &Subject, version: u64, spoil: impl FnOnce(&mut Vec<u8>)) {
    let artifacts = &subject.artifacts;
    artifacts.publish(MODEL, version, |folder| {
        artifacts.edit_file(folder, "encoder.onnx", spoil);
    });
}

/// Publishes the next version of the model, whose encoder is spoiled, and waits until it serves.
async fn publish_next(subject: &Subject, spoil: impl FnOnce(&mut Vec<u8>)) -> u64 {
    let version = subject.first + 1;
    publish(subject, version, spoil);
    let server = &subject.server;
    server.until(MODEL, version, ModelState::Serving).await;
    version
}

/// Publishes the next version of the other model, waits until it serves, and returns it.
async fn publish_other(subject: &Subject) -> u64 {
    let client = subject.server.client().await;
    let version = client.get_model(OTHER, None).await.unwrap().version + 1;
    subject.artifacts.publish(OTHER, version, |_| ());
    let server = &subject.server;
    server.until(OTHER, version, ModelState::Serving).await;
    version
}

/// Ranks a tile on which a spoiled encoder hangs.
async fn ask_what_hangs(subject: &Subject, allowed: Duration) -> Result<Ranking, ClientError> {
    let graph = GraphHandle::features(&kernel_of(12));
    let tiles = Configurations::Tile(tiles(&[[1, 2], HANGS]));
    let request = RankRequest::new(&graph, &tiles)
        .model(Some(MODEL.parse().unwrap()))
        .timeout(allowed);
    subject.server.client().await.rank(&request).await
}

/// Asserts that a call for what hangs fails in time, and says which setting allows more.
async fn assert_run_ends(subject: &Subject) {
    let failed = ask_what_hangs(subject, PATIENCE).await.unwrap_err();
    assert_reason(&failed, "MODEL_FAILED");
    says!(failed.to_string(), "--max-run-seconds");
}

/// Asserts that this version answers other calls.
async fn assert_answers(subject: &Subject, version: u64) {
    let model = subject.ask(MODEL, 12).await.model;
    assert_eq!(model.to_string(), format!("{MODEL}@{version}"));
}

/// Waits until a version is rejected, and asserts why.
async fn until_rejected(subject: &Subject, version: u64, reason: &str) -> Model {
    let server = &subject.server;
    let model = server.until(MODEL, version, ModelState::Rejected).await;
    let rejection = model.rejection.as_ref().unwrap();
    assert_eq!(rejection.reason, reason, "{}", rejection.message);
    model
}

/// Removes the folder of a version.
fn remove(subject: &Subject, version: u64) {
    let folder = subject.artifacts.folder().join(MODEL);
    fs::remove_dir_all(folder.join(version.to_string())).unwrap();
}

fn abandoned(scrape: &Scrape) -> f64 {
    scrape.value("hlorank_abandoned_runs_total", &[("model", MODEL)])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_hangs_ends_with_the_calls_that_need_it() {
    let subject = start(&["--workers=2", "--max-run-seconds=600"]).await;
    let hangs = publish_next(&subject, |encoder| loop_above(encoder, LIMIT, STEPS)).await;
    for _ in 0..3 {
        // More than there are workers.
        let calls = (0..4).map(|_| ask_what_hangs(&subject, ALLOWED));
        for late in futures::future::join_all(calls).await {
            assert_eq!(late.unwrap_err().code(), Some(Code::DeadlineExceeded));
        }
    }
    subject.server.until_idle().await;
    assert_answers(&subject, hangs).await;
    assert_eq!(abandoned(&subject.server.scrape().await), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_at_its_maximum_duration_whatever_its_calls_allow() {
    let subject = start(&["--workers=1", MAX_RUN]).await;
    let hangs = publish_next(&subject, |encoder| loop_above(encoder, LIMIT, STEPS)).await;
    assert_run_ends(&subject).await;
    assert_answers(&subject, hangs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_hangs_holds_no_thread_that_receives_calls() {
    let subject = start(&["--workers=1", MAX_RUN]).await;
    let (hangs, artifacts) = (subject.first + 1, &subject.artifacts);
    artifacts.publish(MODEL, hangs, |folder| {
        artifacts.edit_file(folder, "encoder.onnx", |encoder| {
            add_above(encoder, LIMIT, 1e20);
        });
        artifacts.edit_file(folder, "head.onnx", |head| {
            loop_of_head_above(head, LIMIT, STEPS);
        });
    });
    subject
        .server
        .until(MODEL, hangs, ModelState::Serving)
        .await;
    // From the second call on, all rows are cached, and a call as small as this does not leave the thread that received it.
    for _ in 0..2 {
        assert_run_ends(&subject).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_whose_run_cannot_be_stopped_is_taken_out_of_service() {
    let subject = start(&["--workers=1", MAX_RUN]).await;
    let hangs = publish_next(&subject, |encoder| stall_above(encoder, LIMIT)).await;
    let failed = ask_what_hangs(&subject, PATIENCE).await.unwrap_err();
    assert_reason(&failed, "WORKER_FAILED");

    until_rejected(&subject, hangs, "RUN_ABANDONED").await;
    // The only worker was replaced, and the version before serves.
    assert_answers(&subject, subject.first).await;
    assert_eq!(abandoned(&subject.server.scrape().await), 1.0);
    let (ready, text) = http_get(subject.server.metrics_address(), "/readyz").await;
    assert_eq!(ready, 200, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_whose_run_cannot_be_stopped_stays_out_of_service_until_an_operator_asks() {
    let flags = ["--workers=1", MAX_RUN, "--poll-seconds=0.1"];
    let subject = start(&flags).await;
    let (hangs, admin) = (subject.first + 1, subject.server.admin().await);
    admin.pin(MODEL, subject.first).await.unwrap();
    publish(&subject, hangs, |encoder| stall_above(encoder, LIMIT));
    // Loaded already when the second call needs it.
    admin.set_canary(MODEL, hangs, 1).await.unwrap();
    admin.set_canary(MODEL, hangs, 100).await.unwrap();
    let failed = ask_what_hangs(&subject, PATIENCE).await.unwrap_err();
    assert_reason(&failed, "WORKER_FAILED");
    let rejected = until_rejected(&subject, hangs, "RUN_ABANDONED").await;

    // The graphs of the canary go to the stable version, however often the folder and the policy are read.
    let loads = |scrape: &Scrape| {
        let loaded = [("model", MODEL), ("result", "loaded")];
        scrape.value("hlorank_model_loads_total", &loaded)
    };
    let before = loads(&subject.server.scrape().await);
    for _ in 0..3 {
        publish_other(&subject).await;
        assert_answers(&subject, subject.first).await;
    }
    let same = until_rejected(&subject, hangs, "RUN_ABANDONED").await;
    assert_eq!(same.state_since, rejected.state_since);
    let scrape = subject.server.scrape().await;
    assert_eq!((loads(&scrape), abandoned(&scrape)), (before, 1.0));

    admin.set_canary(MODEL, hangs, 1).await.unwrap();
    subject
        .server
        .until(MODEL, hangs, ModelState::Serving)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_version_delays_no_other_and_is_freed_with_its_folder() {
    let flags = ["--max-load-seconds=600", "--max-run-seconds=600"];
    let subject = start(&flags).await;
    let (endless, admin) = (subject.first + 1, subject.server.admin().await);
    publish(&subject, endless, |encoder| {
        loop_above(encoder, f32::MIN, STEPS);
    });
    subject
        .server
        .until(MODEL, endless, ModelState::Validating)
        .await;

    let other = publish_other(&subject).await;
    admin.pin(OTHER, other - 1).await.unwrap();
    admin.unpin(OTHER).await.unwrap();
    admin.reload().await.unwrap();
    assert_eq!(subject.states().await[1], (endless, ModelState::Validating));

    remove(&subject, endless);
    admin.reload().await.unwrap();
    assert_eq!(
        subject.states().await,
        [(subject.first, ModelState::Serving)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_a_version_ends_at_its_limit_also_inside_an_operator_and_at_a_start() {
    let flags = ["--max-load-seconds=3", "--max-run-seconds=600"];
    let subject = start(&flags).await;
    let (endless, stalls) = (subject.first + 1, subject.first + 2);
    publish(&subject, endless, |encoder| {
        loop_above(encoder, f32::MIN, STEPS);
    });
    until_rejected(&subject, endless, "LOAD_TIMEOUT").await;
    remove(&subject, endless);
    publish(&subject, stalls, stall_session);
    until_rejected(&subject, stalls, "LOAD_TIMEOUT").await;

    // A start does not wait longer, and serves what works.
    let Subject {
        artifacts,
        server,
        first,
    } = subject;
    server.stop().await;
    let subject = Subject::start_with(artifacts, &flags).await;
    assert_eq!(subject.first, first);
    until_rejected(&subject, stalls, "LOAD_TIMEOUT").await;
}
