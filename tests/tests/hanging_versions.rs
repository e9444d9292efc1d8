//! Versions that hang while they are loaded, or on some inputs after that, delay no other model for long. These tests are a
//! program of their own, because a run that cannot be stopped uses a processor until its process ends.

use hlorank_tests::onnx::{add_above, loop_above, loop_of_head_above, stall_above, stall_session};
use hlorank_tests::prelude::*;

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

fn edit_encoder(artifacts: &Artifacts, name: &str, version: u64, edit: impl FnOnce(&mut Vec<u8>)) {
    artifacts.publish(name, version, |folder| {
        artifacts.edit_file(folder, "encoder.onnx", edit);
    });
}

/// Ranks a tile on which a spoiled encoder hangs.
async fn ask_what_hangs(subject: &Subject, allowed: Duration) -> Result<Ranking, ClientError> {
    let (graph, tiles) = (
        GraphHandle::features(&kernel_of(12)),
        Configurations::Tile(tiles(&[[1, 2], HANGS])),
    );
    let request = RankRequest::new(&graph, &tiles)
        .model(Some(MODEL.parse().unwrap()))
        .timeout(allowed);
    subject.server.client().await.rank(&request).await
}

fn abandoned(scrape: &Scrape) -> f64 {
    scrape.value("hlorank_abandoned_runs_total", &[("model", MODEL)])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_hangs_ends_with_the_calls_that_need_it() {
    let subject = Subject::start_with(
        Artifacts::tiles(),
        &["--workers=2", "--max-run-seconds=600"],
    )
    .await;
    let hangs = subject.first + 1;
    edit_encoder(&subject.artifacts, MODEL, hangs, |encoder| {
        loop_above(encoder, LIMIT, STEPS);
    });
    subject
        .server
        .until(MODEL, hangs, ModelState::Serving)
        .await;
    for _ in 0..3 {
        // More than there are workers.
        let calls = (0..4).map(|_| ask_what_hangs(&subject, ALLOWED));
        for late in futures::future::join_all(calls).await {
            assert_eq!(late.unwrap_err().code(), Some(Code::DeadlineExceeded));
        }
    }
    subject.server.until_idle().await;
    assert_eq!(
        subject.ask(MODEL, 12).await.model.to_string(),
        format!("{MODEL}@{hangs}")
    );
    assert_eq!(abandoned(&subject.server.scrape().await), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_at_its_maximum_duration_whatever_its_calls_allow() {
    let subject = Subject::start_with(Artifacts::tiles(), &["--workers=1", MAX_RUN]).await;
    let hangs = subject.first + 1;
    edit_encoder(&subject.artifacts, MODEL, hangs, |encoder| {
        loop_above(encoder, LIMIT, STEPS);
    });
    subject
        .server
        .until(MODEL, hangs, ModelState::Serving)
        .await;
    let failed = ask_what_hangs(&subject, PATIENCE).await.unwrap_err();
    assert_reason(&failed, "MODEL_FAILED");
    says!(failed.to_string(), "--max-run-seconds");
    assert_eq!(
        subject.ask(MODEL, 12).await.model.to_string(),
        format!("{MODEL}@{hangs}")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_hangs_holds_no_thread_that_receives_calls() {
    let subject = Subject::start_with(Artifacts::tiles(), &["--workers=1", MAX_RUN]).await;
    let hangs = subject.first + 1;
    subject.artifacts.publish(MODEL, hangs, |folder| {
        let artifacts = &subject.artifacts;
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
        let failed = ask_what_hangs(&subject, PATIENCE).await.unwrap_err();
        assert_reason(&failed, "MODEL_FAILED");
        says!(failed.to_string(), "--max-run-seconds");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_whose_run_cannot_be_stopped_is_taken_out_of_service() {
    let subject = Subject::start_with(Artifacts::tiles(), &["--workers=1", MAX_RUN]).await;
    let before = subject.ask(MODEL, 12).await;
    let hangs = subject.first + 1;
    edit_encoder(&subject.artifacts, MODEL, hangs, |encoder| {
        stall_above(encoder, LIMIT);
    });
    subject
        .server
        .until(MODEL, hangs, ModelState::Serving)
        .await;
    let failed = ask_what_hangs(&subject, PATIENCE).await.unwrap_err();
    assert_reason(&failed, "WORKER_FAILED");

    let rejected = subject
        .server
        .until(MODEL, hangs, ModelState::Rejected)
        .await
        .rejection
        .unwrap();
    assert_eq!(rejected.reason, "RUN_ABANDONED", "{}", rejected.message);
    // The only worker was replaced, and the version before serves.
    let after = subject.ask(MODEL, 40).await;
    assert_eq!(after.model, before.model);
    assert_eq!(abandoned(&subject.server.scrape().await), 1.0);
    let (ready, text) = http_get(subject.server.metrics_address(), "/readyz").await;
    assert_eq!(ready, 200, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_whose_run_cannot_be_stopped_stays_out_of_service_until_an_operator_asks() {
    let flags = ["--workers=1", MAX_RUN, "--poll-seconds=0.1"];
    let subject = Subject::start_with(Artifacts::tiles(), &flags).await;
    let (hangs, admin) = (subject.first + 1, subject.server.admin().await);
    admin.pin(MODEL, subject.first).await.unwrap();
    edit_encoder(&subject.artifacts, MODEL, hangs, |encoder| {
        stall_above(encoder, LIMIT);
    });
    // Loaded already when the second call needs it.
    admin.set_canary(MODEL, hangs, 1).await.unwrap();
    admin.set_canary(MODEL, hangs, 100).await.unwrap();
    let failed = ask_what_hangs(&subject, PATIENCE).await.unwrap_err();
    assert_reason(&failed, "WORKER_FAILED");
    let rejected = subject
        .server
        .until(MODEL, hangs, ModelState::Rejected)
        .await;

    // The graphs of the canary go to the stable version, however often the folder and the policy are read.
    let scans = |scrape: &Scrape| {
        scrape.value(
            "hlorank_model_loads_total",
            &[("model", MODEL), ("result", "loaded")],
        )
    };
    let loaded = scans(&subject.server.scrape().await);
    let other = subject
        .server
        .client()
        .await
        .get_model(OTHER, None)
        .await
        .unwrap()
        .version;
    for version in other + 1..other + 4 {
        subject.artifacts.publish(OTHER, version, |_| ());
        subject
            .server
            .until(OTHER, version, ModelState::Serving)
            .await;
        let stable = format!("{MODEL}@{}", subject.first);
        assert_eq!(subject.ask(MODEL, 12).await.model.to_string(), stable);
    }
    let same = subject
        .server
        .client()
        .await
        .get_model(MODEL, Some(hangs))
        .await
        .unwrap();
    assert_eq!(
        (same.state(), same.state_since),
        (ModelState::Rejected, rejected.state_since)
    );
    let scrape = subject.server.scrape().await;
    assert_eq!((scans(&scrape), abandoned(&scrape)), (loaded, 1.0));

    admin.set_canary(MODEL, hangs, 1).await.unwrap();
    subject
        .server
        .until(MODEL, hangs, ModelState::Serving)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_version_delays_no_other_and_is_freed_with_its_folder() {
    let flags = ["--max-load-seconds=600", "--max-run-seconds=600"];
    let subject = Subject::start_with(Artifacts::tiles(), &flags).await;
    let (endless, admin) = (subject.first + 1, subject.server.admin().await);
    edit_encoder(&subject.artifacts, MODEL, endless, |encoder| {
        loop_above(encoder, f32::MIN, STEPS);
    });
    subject
        .server
        .until(MODEL, endless, ModelState::Validating)
        .await;

    let other = subject
        .server
        .client()
        .await
        .get_model(OTHER, None)
        .await
        .unwrap()
        .version;
    subject.artifacts.publish(OTHER, other + 1, |_| ());
    subject
        .server
        .until(OTHER, other + 1, ModelState::Serving)
        .await;
    admin.pin(OTHER, other).await.unwrap();
    admin.unpin(OTHER).await.unwrap();
    admin.reload().await.unwrap();
    assert_eq!(subject.states().await[1], (endless, ModelState::Validating));

    fs::remove_dir_all(
        subject
            .artifacts
            .folder()
            .join(MODEL)
            .join(endless.to_string()),
    )
    .unwrap();
    admin.reload().await.unwrap();
    assert_eq!(
        subject.states().await,
        [(subject.first, ModelState::Serving)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_a_version_ends_at_its_limit_also_inside_an_operator_and_at_a_start() {
    let flags = ["--max-load-seconds=3", "--max-run-seconds=600"];
    let subject = Subject::start_with(Artifacts::tiles(), &flags).await;
    let (endless, stalls) = (subject.first + 1, subject.first + 2);
    edit_encoder(&subject.artifacts, MODEL, endless, |encoder| {
        loop_above(encoder, f32::MIN, STEPS);
    });
    let rejected = subject
        .server
        .until(MODEL, endless, ModelState::Rejected)
        .await
        .rejection
        .unwrap();
    assert_eq!(rejected.reason, "LOAD_TIMEOUT", "{}", rejected.message);
    fs::remove_dir_all(
        subject
            .artifacts
            .folder()
            .join(MODEL)
            .join(endless.to_string()),
    )
    .unwrap();
    edit_encoder(&subject.artifacts, MODEL, stalls, stall_session);
    let rejected = subject
        .server
        .until(MODEL, stalls, ModelState::Rejected)
        .await
        .rejection
        .unwrap();
    assert_eq!(rejected.reason, "LOAD_TIMEOUT", "{}", rejected.message);

    // A start does not wait longer, and serves what works.
    let Subject {
        artifacts,
        server,
        first,
    } = subject;
    server.stop().await;
    let subject = Subject::start_with(artifacts, &flags).await;
    assert_eq!(subject.first, first);
    subject
        .server
        .until(MODEL, stalls, ModelState::Rejected)
        .await;
}
