//! The version that an operator chose serves, now and after a restart.

use hlorank_tests::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_version_survives_newer_ones_and_a_restart() {
    let subject = Subject::start().await;
    let (first, second, third) = (subject.first, subject.first + 1, subject.first + 2);
    subject.publish(second).await;
    let admin = subject.admin().await;
    let models = admin.pin(MODEL, first).await.unwrap();
    let pinned: Vec<(u64, bool)> = models
        .iter()
        .map(|model| (model.version, model.pinned))
        .collect();
    assert_eq!(pinned, [(first, true), (second, false)]);
    subject.artifacts.publish(MODEL, third, |_| ());
    admin.reload().await.unwrap();
    assert_eq!(subject.serving().await, first);

    let subject = subject.restart(&[]).await;
    assert_eq!(subject.serving().await, first);
    subject.admin().await.unpin(MODEL).await.unwrap();
    assert_eq!(subject.serving().await, third);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_one_call_and_no_other_call_fails() {
    let subject = Subject::start().await;
    let (first, second) = (subject.first, subject.first + 1);
    subject.publish(second).await;
    let load = subject.load().await;
    sleep(Duration::from_millis(200)).await;
    assert_eq!(subject.serving().await, second);
    let admin = subject.admin().await;
    let models = admin.rollback(MODEL).await.unwrap();
    assert!(
        models
            .iter()
            .any(|model| (model.version, model.serving, model.pinned) == (first, true, true))
    );
    assert_eq!(subject.serving().await, first);
    sleep(Duration::from_millis(200)).await;
    // Asserts that no request failed.
    let _every_request_succeeded = rankings(load.finish().await);

    let refused = admin.rollback(MODEL).await.unwrap_err();
    assert_reason(&refused, "NO_OLDER_VERSION");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_loaded_is_loaded_and_checked_before_it_is_pinned() {
    let subject = Subject::start().await;
    let first = subject.first;
    for version in first + 1..=first + 3 {
        subject.publish(version).await;
    }
    let admin = subject.admin().await;
    admin.pin(MODEL, first).await.unwrap();
    assert_eq!(subject.serving().await, first);

    let bad = first + 4;
    subject.artifacts.publish(MODEL, bad, |folder| {
        fs::remove_file(folder.join("head.onnx")).unwrap();
    });
    let refused = admin.pin(MODEL, bad).await.unwrap_err();
    assert_reason(&refused, "MODEL_REJECTED");
    says!(refused.to_string(), "FILE_MISSING");
    assert_eq!(subject.serving().await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_cannot_be_chosen() {
    let subject = Subject::start().await;
    let admin = subject.admin().await;
    for (name, version, reason) in [
        (MODEL, 99, "MODEL_NOT_FOUND"),
        ("another", 1, "MODEL_NOT_FOUND"),
        ("", 1, "FIELD_MISSING"),
        (MODEL, 0, "FIELD_MISSING"),
    ] {
        let refused = admin.pin(name, version).await.unwrap_err();
        assert_reason(&refused, reason);
    }
    for (version, percent, reason) in [
        (subject.first, 10, "SERVES_ALREADY"),
        (99, 101, "FIELD_INVALID"),
    ] {
        let refused = admin.set_canary(MODEL, version, percent).await.unwrap_err();
        assert_reason(&refused, reason);
    }
    assert_eq!(
        subject.states().await,
        [(subject.first, ModelState::Serving)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_edited_by_hand_is_followed_and_a_broken_one_changes_nothing() {
    let subject = Subject::start().await;
    let (first, second) = (subject.first, subject.first + 1);
    subject.publish(second).await;
    let policy = subject.artifacts.folder().join("policy.json");
    let admin = subject.admin().await;

    fs::write(&policy, format!(r#"{{"{MODEL}": {{"pinned": {first}}}}}"#)).unwrap();
    admin.reload().await.unwrap();
    assert_eq!(subject.serving().await, first);

    fs::write(&policy, "{").unwrap();
    let refused = admin.reload().await.unwrap_err();
    assert_reason(&refused, "POLICY_NOT_KEPT");
    says!(refused.to_string(), "policy.json");
    assert_eq!(subject.serving().await, first);

    fs::remove_file(&policy).unwrap();
    admin.reload().await.unwrap();
    assert_eq!(subject.serving().await, second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_outlives_the_model_folder_while_that_is_away() {
    let subject = Subject::start().await;
    let (first, second) = (subject.first, subject.first + 1);
    subject.publish(second).await;
    let admin = subject.admin().await;
    admin.pin(MODEL, first).await.unwrap();
    let states = [(first, ModelState::Serving), (second, ModelState::Retained)];
    let folder = subject.artifacts.folder();
    let away = folder.with_extension("away");
    fs::rename(folder, &away).unwrap();
    let refused = admin.reload().await.unwrap_err();
    assert_reason(&refused, "MODELS_UNREADABLE");
    assert_eq!(subject.states().await, states);
    fs::rename(&away, folder).unwrap();
    admin.reload().await.unwrap();
    assert_eq!(subject.states().await, states);
}
