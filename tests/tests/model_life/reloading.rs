//! New versions take over without a hole.

use std::{collections::BTreeSet, time::Duration};

use hlorank_client::{ModelVersion, v1::ModelState};
use hlorank_tests::{Artifacts, resident_bytes};
use tokio::time::Instant;

use crate::asking::{MODEL, Subject, rankings};

/// From the manifest in place to the version serving.
const TAKES_OVER_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_over_a_hundred_reloads_and_memory_comes_back() {
    let subject = Subject::start().await;
    let load = subject.load().await;
    // Caches and allocators have settled by then.
    let warmed_up = subject.first + 10;
    let mut baseline = 0;
    for version in subject.first + 1..=subject.first + 100 {
        subject.publish(version).await;
        if version == warmed_up {
            baseline = resident_bytes(std::process::id());
        }
    }
    let after = resident_bytes(std::process::id());
    let rankings = rankings(load.finish().await);
    let versions: BTreeSet<String> = rankings.iter().map(|ranking| ranking.model.to_string()).collect();
    assert!(versions.len() > 90, "{} versions answered {} calls", versions.len(), rankings.len());
    println!("{} calls; resident {} KiB, then {} KiB", rankings.len(), baseline >> 10, after >> 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_version_is_seen_at_once_or_by_polling() {
    for flags in [&["--poll-seconds=3600"], &["--poll-seconds=0.2"]] {
        let subject = Subject::start_with(Artifacts::copy(), flags).await;
        let started = Instant::now();
        subject.publish(subject.first + 1).await;
        assert!(started.elapsed() < TAKES_OVER_WITHIN, "{:?}", started.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_finish_on_the_version_that_they_began_with() {
    use hlorank_client::StreamRequest;
    use hlorank_tests::Question;

    let subject = Subject::start().await;
    let Question { graph, configurations } = crate::asking::question(12);
    let client = subject.server.client().await;
    let mut stream = client.rank_stream(&StreamRequest::new(&graph)).await.unwrap();
    stream.send(&configurations).await.unwrap();
    stream.scores().await.unwrap();
    for version in [subject.first + 1, subject.first + 2] {
        subject.publish(version).await;
    }
    // It is still needed, so it is still there.
    subject.server.admin().await.reload().await.unwrap();
    assert_eq!(subject.states().await[0], (subject.first, ModelState::Retained));
    stream.send(&configurations).await.unwrap();
    let ranking = stream.finish().await.unwrap();
    assert_eq!(ranking.model.version, ModelVersion::Number(subject.first));
    subject.server.until(MODEL, subject.first, ModelState::Unloaded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_weights_give_the_same_scores_in_every_version() {
    let subject = Subject::start().await;
    let before = subject.ask(MODEL, 40).await;
    subject.publish(subject.first + 1).await;
    let after = subject.ask(MODEL, 40).await;
    assert_ne!(before.model, after.model);
    assert_eq!(before.scores, after.scores);
    assert_eq!(subject.ask(&before.model.to_string(), 40).await.model, before.model, "it is retained");
}
