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
    let versions: BTreeSet<String> = rankings
        .iter()
        .map(|ranking| ranking.model.to_string())
        .collect();
    assert!(
        versions.len() > 90,
        "{} versions answered {} calls",
        versions.len(),
        rankings.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_is_seen_at_once() {
    // Polling alone would find the version after an hour.
    let subject = Subject::start_with(Artifacts::tiles(), &["--poll-seconds=3600"]).await;
    subject.publish(subject.first + 1).await;
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
    let Question {
        graph,
        configurations,
    } = hlorank_tests::subject::question(12);
    let client = subject.server.client().await;
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    stream.send(&configurations).await.unwrap();
    stream.scores().await.unwrap();
    for version in [subject.first + 1, subject.first + 2] {
        subject.publish(version).await;
    }
    // The call still uses the version, so it is not unloaded.
    subject.server.admin().await.reload().await.unwrap();
    assert_eq!(
        subject.states().await[0],
        (subject.first, ModelState::Retained)
    );
    stream.send(&configurations).await.unwrap();
    let ranking = stream.finish().await.unwrap();
    assert_eq!(ranking.model.version, ModelVersion::Number(subject.first));
    subject
        .server
        .until(MODEL, subject.first, ModelState::Unloaded)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_weights_give_the_same_scores_in_every_version() {
    let subject = Subject::start().await;
    let before = subject.ask(MODEL, 40).await;
    subject.publish(subject.first + 1).await;
    let after = subject.ask(MODEL, 40).await;
    assert_ne!(before.model, after.model);
    assert_eq!(before.scores, after.scores);
    assert_eq!(
        subject.ask(&before.model.to_string(), 40).await.model,
        before.model,
        "it is retained"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_serving_version_outlives_its_folder() {
    let subject = Subject::start().await;
    let before = subject.ask(MODEL, 12).await;
    fs::remove_dir_all(subject.artifacts.folder().join(MODEL)).unwrap();
    subject.server.admin().await.reload().await.unwrap();
    let after = subject.ask(MODEL, 12).await;
    assert_eq!((before.model, before.scores), (after.model, after.scores));
    assert_eq!(
        subject.states().await,
        [(subject.first, ModelState::Serving)]
    );
    let removed = subject
        .server
        .client()
        .await
        .get_model(MODEL, None)
        .await
        .unwrap();
    assert!(removed.folder_gone, "the list of models says so");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_with_a_lower_number_replaces_one_whose_folder_is_removed() {
    let subject = Subject::start().await;
    let [lower, higher] = [subject.first + 1, subject.first + 5];
    subject.publish(higher).await;
    fs::remove_dir_all(
        subject
            .artifacts
            .folder()
            .join(MODEL)
            .join(higher.to_string()),
    )
    .unwrap();
    subject.server.admin().await.reload().await.unwrap();
    assert!(
        subject
            .server
            .client()
            .await
            .get_model(MODEL, None)
            .await
            .unwrap()
            .folder_gone
    );
    subject.publish(lower).await;
    assert_eq!(
        subject.ask(MODEL, 12).await.model.to_string(),
        format!("{MODEL}@{lower}")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_wanted_any_more_is_unloaded() {
    let subject = Subject::start().await;
    let (second, third) = (subject.first + 1, subject.first + 2);
    for version in [second, third] {
        subject.publish(version).await;
    }
    subject
        .server
        .until(MODEL, subject.first, ModelState::Unloaded)
        .await;
    assert_eq!(
        subject.states().await,
        [
            (subject.first, ModelState::Unloaded),
            (second, ModelState::Retained),
            (third, ModelState::Serving)
        ]
    );

    let question = question(12);
    let model = Some(format!("{MODEL}@{}", subject.first).parse().unwrap());
    let request = RankRequest::new(&question.graph, &question.configurations).model(model);
    let refused = subject
        .server
        .client()
        .await
        .rank(&request)
        .await
        .unwrap_err()
        .to_string();
    says!(refused, "is not loaded", "MODEL_NOT_FOUND");

    fs::remove_dir_all(
        subject
            .artifacts
            .folder()
            .join(MODEL)
            .join(second.to_string()),
    )
    .unwrap();
    fs::remove_dir_all(
        subject
            .artifacts
            .folder()
            .join(MODEL)
            .join(subject.first.to_string()),
    )
    .unwrap();
    subject.server.admin().await.reload().await.unwrap();
    assert_eq!(subject.states().await, [(third, ModelState::Serving)]);
}
