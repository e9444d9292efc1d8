//! A shadow scores what the stable version answered, and answers nothing itself.

use hlorank_tests::Scrape;

use crate::subject::{MODEL, Subject};

/// Number of distinct kernels.
const GRAPHS: u8 = 12;

fn calls(scrape: &Scrape, result: &str) -> f64 {
    scrape.value("hlorank_shadow_calls_total", &[("model", MODEL), ("result", result)])
}

/// Asks about every kernel, and returns how many of the calls a shadow compared and skipped.
async fn ask(subject: &Subject, answered_by: u64) -> [f64; 2] {
    let before = subject.server.scrape().await;
    for nodes in 1..=GRAPHS {
        let answer = subject.ask(MODEL, nodes).await;
        assert_eq!(answer.model.to_string(), format!("{MODEL}@{answered_by}"));
    }
    let since = |scrape: &Scrape| {
        ["compared", "skipped", "failed"].map(|result| calls(scrape, result) - calls(&before, result))
    };
    let all = f64::from(GRAPHS);
    let after = subject.server.until_metrics(|scrape| since(scrape).iter().sum::<f64>() >= all).await;
    let [compared, skipped, failed] = since(&after);
    assert_eq!((compared + skipped, failed), (all, 0.0));
    [compared, skipped]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_scores_the_same_calls_and_answers_none() {
    let subject = Subject::start().await;
    let (stable, shadow) = (subject.first, subject.first + 1);
    let admin = subject.server.admin().await;
    admin.pin(MODEL, stable).await.unwrap();
    subject.artifacts.publish(MODEL, shadow, |_| ());
    admin.reload().await.unwrap();
    let models = admin.set_shadow(MODEL, shadow).await.unwrap();
    assert!(models.iter().all(|model| model.shadow == (model.version == shadow)), "{models:?}");

    let [compared, _] = ask(&subject, stable).await;
    assert!(compared >= 1.0);
    let scrape = subject.server.scrape().await;
    let pairs = |order| scrape.value("hlorank_shadow_pairs_total", &[("model", MODEL), ("order", order)]);
    assert!(pairs("same") > 100.0 && pairs("other") == 0.0, "it is a copy, so it agrees on every pair");
    let named = subject.ask(&format!("{MODEL}@canary"), 1).await;
    assert_eq!(named.model.to_string(), format!("{MODEL}@{shadow}"), "it answers calls that name it");

    // It stays after a restart, and ends as a canary does.
    let Subject { artifacts, server, .. } = subject;
    server.stop().await;
    let subject = Subject::start_with(artifacts, &[]).await;
    ask(&subject, stable).await;
    subject.server.admin().await.set_canary(MODEL, 0, 0).await.unwrap();
    let before = subject.server.scrape().await;
    subject.ask(MODEL, 1).await;
    let models = subject.server.client().await.list_models().await.unwrap();
    assert!(models.iter().all(|model| !model.shadow));
    let after = subject.server.scrape().await;
    let counts = |scrape: &Scrape| ["compared", "skipped", "failed"].map(|result| calls(scrape, result));
    assert_eq!(counts(&before), counts(&after));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_without_a_share_of_the_time_scores_nothing() {
    let subject = Subject::start_with(hlorank_tests::Artifacts::copy(), &["--replay-share=0"]).await;
    let admin = subject.server.admin().await;
    admin.pin(MODEL, subject.first).await.unwrap();
    subject.artifacts.publish(MODEL, subject.first + 1, |_| ());
    admin.reload().await.unwrap();
    admin.set_shadow(MODEL, subject.first + 1).await.unwrap();
    for nodes in 1..4 {
        subject.ask(MODEL, nodes).await;
    }
    let scrape = subject.server.scrape().await;
    assert_eq!(["compared", "skipped", "failed"].map(|result| calls(&scrape, result)), [0.0; 3]);
}
