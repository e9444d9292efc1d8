//! A canary serves a part of the graphs, always the same ones.

use hlorank_tests::prelude::*;

/// Number of distinct kernels.
const GRAPHS: u8 = 40;

/// Returns the version that answers for each kernel.
async fn versions(subject: &Subject) -> Vec<String> {
    let mut versions = Vec::new();
    for nodes in 1..=GRAPHS {
        versions.push(subject.ask(MODEL, nodes).await.model.to_string());
    }
    versions
}

fn count(versions: &[String], version: &str) -> usize {
    let answered = versions.iter().filter(|answered| *answered == version);
    answered.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_always_sees_the_same_version() {
    let subject = Subject::start().await;
    let all = usize::from(GRAPHS);
    let (stable, canary) = (subject.first, subject.first + 1);
    let [stable_name, canary_name] = [stable, canary].map(|version| format!("{MODEL}@{version}"));
    let admin = subject.admin().await;
    subject.artifacts.publish(MODEL, canary, |_| ());
    admin.reload().await.unwrap();
    admin.pin(MODEL, stable).await.unwrap();

    admin.set_canary(MODEL, canary, 30).await.unwrap();
    let split = versions(&subject).await;
    assert_eq!(versions(&subject).await, split);
    let tried = count(&split, &canary_name);
    assert!((4..=20).contains(&tried), "{tried} of {GRAPHS} at 30 %");
    assert_eq!(tried + count(&split, &stable_name), all);

    // Another replica, or this one after a restart, assigns them alike.
    let subject = subject.restart(&[]).await;
    assert_eq!(versions(&subject).await, split);

    let admin = subject.admin().await;
    admin.set_canary(MODEL, canary, 60).await.unwrap();
    let grown = versions(&subject).await;
    let mut changes = split.iter().zip(&grown);
    assert!(changes.all(|(before, after)| *before == stable_name || *after == canary_name));

    for (label, expected) in [("stable", &stable_name), ("canary", &canary_name)] {
        for nodes in [1, 2, 3, 4] {
            let answered = subject.ask(&format!("{MODEL}@{label}"), nodes).await;
            assert_eq!(&answered.model.to_string(), expected);
        }
    }

    admin.set_canary(MODEL, 0, 0).await.unwrap();
    let pinned = versions(&subject).await;
    assert_eq!(count(&pinned, &stable_name), all, "it stays pinned");
    admin.pin(MODEL, canary).await.unwrap();
    assert_eq!(count(&versions(&subject).await, &canary_name), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_that_is_rejected_changes_nothing() {
    let subject = Subject::start().await;
    let bad = subject.first + 1;
    subject.artifacts.publish(MODEL, bad, |folder| {
        fs::remove_file(folder.join("head.onnx")).unwrap();
    });
    let admin = subject.admin().await;
    for (version, reason) in [(bad, "MODEL_REJECTED"), (bad + 1, "MODEL_NOT_FOUND")] {
        let refused = admin.set_canary(MODEL, version, 10).await.unwrap_err();
        assert_reason(&refused, reason);
    }
    let models = subject.server.client().await.list_models().await.unwrap();
    assert!(
        models
            .iter()
            .all(|model| !model.pinned && model.canary_percent == 0)
    );
    // The next version is a copy of the newest, so this one is removed.
    subject.remove(bad);
    subject.publish(bad + 2).await;
}
