//! Versions whose folders are removed.

use hlorank_tests::prelude::*;

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
