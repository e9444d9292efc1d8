//! New versions take over without a failed call.

use std::os::unix::fs::symlink;

use hlorank_client::ModelVersion;
use hlorank_tests::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_over_a_hundred_reloads() {
    let subject = Subject::start().await;
    let load = subject.load().await;
    for version in subject.first + 1..=subject.first + 100 {
        subject.publish(version).await;
    }
    let rankings = rankings(load.finish().await);
    let calls = rankings.len();
    let versions = rankings.into_iter().map(|each| each.model.to_string());
    let versions = versions.collect::<BTreeSet<_>>().len();
    assert!(versions > 90, "{versions} versions answered {calls} calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_is_seen_at_once_and_gives_the_scores_of_its_weights() {
    // Polling alone would find the version after an hour.
    let subject = Subject::start_with(Artifacts::tiles(), &["--poll-seconds=3600"]).await;
    let before = subject.ask(MODEL, 40).await;
    subject.publish(subject.first + 1).await;
    let after = subject.ask(MODEL, 40).await;
    assert_ne!(before.model, after.model);
    assert_eq!(before.scores, after.scores, "the weights are the same");
    let retained = subject.ask(&before.model.to_string(), 40).await;
    assert_eq!(retained.model, before.model);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_is_found_by_polling_where_the_disk_tells_nothing() {
    // A link to another folder replaces the first link, so the watched folder does not change.
    let (old, new) = (Artifacts::tiles(), Artifacts::tiles());
    let link = old.folder().with_extension("link");
    symlink(old.folder(), &link).unwrap();
    let models = format!("--models={}", link.display());
    let server = TestServer::start_with(&[&models, "--poll-seconds=0.1"]).await;
    new.publish(MODEL, 1000, |_| ());
    symlink(new.folder(), link.with_extension("new")).unwrap();
    fs::rename(link.with_extension("new"), &link).unwrap();
    server.until(MODEL, 1000, ModelState::Serving).await;
    fs::remove_file(link).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_finish_on_the_version_that_they_began_with() {
    let subject = Subject::start().await;
    let first = subject.first;
    let Question {
        graph,
        configurations,
    } = question(12);
    let client = subject.server.client().await;
    let stream = client.rank_stream(&StreamRequest::new(&graph)).await;
    let mut stream = stream.unwrap();
    stream.send(&configurations).await.unwrap();
    stream.scores().await.unwrap();
    for version in [first + 1, first + 2] {
        subject.publish(version).await;
    }
    // The call still uses the version, so it is not unloaded.
    subject.admin().await.reload().await.unwrap();
    assert_eq!(subject.states().await[0], (first, ModelState::Retained));
    stream.send(&configurations).await.unwrap();
    let ranking = stream.finish().await.unwrap();
    assert_eq!(ranking.model.version, ModelVersion::Number(first));
    subject.until(first, ModelState::Unloaded).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_serving_version_outlives_its_folder_until_a_lower_one_is_published() {
    let subject = Subject::start().await;
    let [lower, higher] = [subject.first + 1, subject.first + 5];
    subject.publish(higher).await;
    let before = subject.ask(MODEL, 12).await;
    subject.remove(higher);
    subject.admin().await.reload().await.unwrap();
    let after = subject.ask(MODEL, 12).await;
    assert_eq!((before.model, before.scores), (after.model, after.scores));
    let removed = subject.until(higher, ModelState::Serving).await;
    assert!(removed.folder_gone, "the list of models says so");
    subject.publish(lower).await;
    assert_eq!(subject.serving().await, lower);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_wanted_any_more_is_unloaded() {
    let subject = Subject::start().await;
    let (first, second, third) = (subject.first, subject.first + 1, subject.first + 2);
    for version in [second, third] {
        subject.publish(version).await;
    }
    subject.until(first, ModelState::Unloaded).await;
    assert_eq!(
        subject.states().await,
        [
            (first, ModelState::Unloaded),
            (second, ModelState::Retained),
            (third, ModelState::Serving)
        ]
    );

    let Question {
        graph,
        configurations,
    } = question(12);
    let client = subject.server.client().await;
    let model = format!("{MODEL}@{first}");
    let refused = rank_by(&client, &model, &graph, &configurations).await;
    let refused = refused.unwrap_err().to_string();
    says!(refused, "is not loaded", "MODEL_NOT_FOUND");

    subject.remove(second);
    subject.remove(first);
    subject.admin().await.reload().await.unwrap();
    assert_eq!(subject.states().await, [(third, ModelState::Serving)]);
}
