//! The version that an operator chose serves, now and after a restart.

use hlorank_tests::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_version_survives_newer_ones_and_a_restart() {
    let subject = Subject::start().await;
    let (first, second, third) = (subject.first, subject.first + 1, subject.first + 2);
    subject.publish(second).await;
    let models = subject
        .server
        .admin()
        .await
        .pin(MODEL, first)
        .await
        .unwrap();
    let pinned: Vec<(u64, bool)> = models
        .iter()
        .map(|model| (model.version, model.pinned))
        .collect();
    assert_eq!(pinned, [(first, true), (second, false)]);
    subject.artifacts.publish(MODEL, third, |_| ());
    subject.server.admin().await.reload().await.unwrap();
    let before = subject.ask(MODEL, 12).await;
    assert_eq!(before.model.to_string(), format!("{MODEL}@{first}"));

    let Subject {
        artifacts, server, ..
    } = subject;
    server.stop().await;
    let subject = Subject::start_with(artifacts, &[]).await;
    assert_eq!(subject.first, first);
    assert_eq!(subject.ask(MODEL, 12).await.model, before.model);

    subject.server.admin().await.unpin(MODEL).await.unwrap();
    assert_eq!(
        subject.ask(MODEL, 12).await.model.to_string(),
        format!("{MODEL}@{third}")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_one_call_and_no_other_call_fails() {
    let subject = Subject::start().await;
    let (first, second) = (subject.first, subject.first + 1);
    subject.publish(second).await;
    let load = subject.load().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        subject.ask(MODEL, 12).await.model.to_string(),
        format!("{MODEL}@{second}")
    );
    let models = subject.server.admin().await.rollback(MODEL).await.unwrap();
    assert!(
        models
            .iter()
            .any(|model| (model.version, model.serving, model.pinned) == (first, true, true))
    );
    assert_eq!(
        subject.ask(MODEL, 12).await.model.to_string(),
        format!("{MODEL}@{first}")
    );
    tokio::time::sleep(Duration::from_millis(200)).await;
    // Asserts that no request failed.
    let _every_request_succeeded = rankings(load.finish().await);

    let refused = subject
        .server
        .admin()
        .await
        .rollback(MODEL)
        .await
        .unwrap_err();
    assert_reason(&refused, "NO_OLDER_VERSION");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_loaded_is_loaded_and_checked_before_it_is_pinned() {
    let subject = Subject::start().await;
    for version in subject.first + 1..=subject.first + 3 {
        subject.publish(version).await;
    }
    subject
        .server
        .admin()
        .await
        .pin(MODEL, subject.first)
        .await
        .unwrap();
    let asked = subject.ask(MODEL, 12).await;
    assert_eq!(
        asked.model.to_string(),
        format!("{MODEL}@{}", subject.first)
    );

    let bad = subject.first + 4;
    subject.artifacts.publish(MODEL, bad, |folder| {
        fs::remove_file(folder.join("head.onnx")).unwrap();
    });
    let refused = subject
        .server
        .admin()
        .await
        .pin(MODEL, bad)
        .await
        .unwrap_err();
    assert_reason(&refused, "MODEL_REJECTED");
    says!(refused.to_string(), "FILE_MISSING");
    assert_eq!(subject.ask(MODEL, 12).await.model, asked.model);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_cannot_be_chosen() {
    let subject = Subject::start().await;
    let admin = subject.server.admin().await;
    let reason = |refused: hlorank_client::ClientError| {
        refused.refusal().unwrap().reason().unwrap().to_owned()
    };
    assert_eq!(
        reason(admin.pin(MODEL, 99).await.unwrap_err()),
        "MODEL_NOT_FOUND"
    );
    assert_eq!(
        reason(admin.pin("another", 1).await.unwrap_err()),
        "MODEL_NOT_FOUND"
    );
    assert_eq!(reason(admin.pin("", 1).await.unwrap_err()), "FIELD_MISSING");
    assert_eq!(
        reason(admin.pin(MODEL, 0).await.unwrap_err()),
        "FIELD_MISSING"
    );
    assert_eq!(
        reason(
            admin
                .set_canary(MODEL, subject.first, 10)
                .await
                .unwrap_err()
        ),
        "SERVES_ALREADY"
    );
    assert_eq!(
        reason(admin.set_canary(MODEL, 99, 101).await.unwrap_err()),
        "FIELD_INVALID"
    );
    assert_eq!(
        subject.states().await,
        [(subject.first, ModelState::Serving)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cannot_be_kept_changes_nothing() {
    let subject = Subject::start().await;
    subject.publish(subject.first + 1).await;
    // A folder takes the place of the file, because permissions do not stop tests that run as root.
    let policy = subject.artifacts.folder().join("policy.json");
    fs::create_dir(policy).unwrap();
    let refused = subject
        .server
        .admin()
        .await
        .rollback(MODEL)
        .await
        .unwrap_err();
    assert_reason(&refused, "POLICY_NOT_KEPT");
    says!(refused.to_string(), "policy.json");
    let serving = subject.ask(MODEL, 12).await.model;
    assert_eq!(
        serving.to_string(),
        format!("{MODEL}@{}", subject.first + 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_calls_are_answered_on_their_listener_alone() {
    use hlorank_client::{AdminClient, Connection};

    let server = TestServer::start().await;
    let admin = AdminClient::connect(server.endpoint(), Connection::default())
        .await
        .unwrap();
    let refused = admin.reload().await.unwrap_err();
    assert_eq!(
        refused.refusal().unwrap().code(),
        tonic::Code::Unimplemented
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_reported_by_the_name_of_a_model() {
    let subject = Subject::start().await;
    let mut health = HealthClient::new(subject.server.channel().await);
    let mut check = async |service: &str| {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        health
            .check(request)
            .await
            .map(|answer| answer.into_inner().status().as_str_name())
    };
    assert_eq!(check("").await.unwrap(), "SERVING");
    assert_eq!(check(MODEL).await.unwrap(), "SERVING");
    assert_eq!(
        check("another").await.unwrap_err().code(),
        tonic::Code::NotFound
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_edited_by_hand_is_followed_and_a_broken_one_changes_nothing() {
    let subject = Subject::start().await;
    let (first, second) = (subject.first, subject.first + 1);
    subject.publish(second).await;
    let policy = subject.artifacts.folder().join("policy.json");
    let admin = subject.server.admin().await;
    let serving = async || subject.ask(MODEL, 12).await.model.to_string();

    fs::write(&policy, format!(r#"{{"{MODEL}": {{"pinned": {first}}}}}"#)).unwrap();
    admin.reload().await.unwrap();
    assert_eq!(serving().await, format!("{MODEL}@{first}"));

    fs::write(&policy, "{").unwrap();
    let refused = admin.reload().await.unwrap_err();
    assert_reason(&refused, "POLICY_NOT_KEPT");
    says!(refused.to_string(), "policy.json");
    assert_eq!(serving().await, format!("{MODEL}@{first}"));

    fs::remove_file(&policy).unwrap();
    admin.reload().await.unwrap();
    assert_eq!(serving().await, format!("{MODEL}@{second}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_outlives_the_model_folder_while_that_is_away() {
    let subject = Subject::start().await;
    let (first, second) = (subject.first, subject.first + 1);
    subject.publish(second).await;
    let admin = subject.server.admin().await;
    admin.pin(MODEL, first).await.unwrap();
    let folder = subject.artifacts.folder();
    let away = folder.with_extension("away");
    fs::rename(folder, &away).unwrap();
    let refused = admin.reload().await.unwrap_err();
    assert_reason(&refused, "MODELS_UNREADABLE");
    assert_eq!(
        subject.states().await,
        [(first, ModelState::Serving), (second, ModelState::Retained)]
    );
    fs::rename(&away, folder).unwrap();
    admin.reload().await.unwrap();
    assert_eq!(
        subject.states().await,
        [(first, ModelState::Serving), (second, ModelState::Retained)]
    );
}
