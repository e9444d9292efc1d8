//! A shadow scores what the stable version answered, and answers nothing itself.

use hlorank_client::StreamRequest;
use hlorank_tests::{Artifacts, Question, Scrape};

use crate::subject::{MODEL, Subject, question};

/// Number of distinct kernels.
const GRAPHS: u8 = 12;

/// Number of batches of a stream.
const BATCHES: u32 = 40;

fn calls(scrape: &Scrape, result: &str) -> f64 {
    scrape.value(
        "hlorank_shadow_calls_total",
        &[("model", MODEL), ("result", result)],
    )
}

/// Asks about every kernel, and returns how many of the calls a shadow compared and skipped.
async fn ask(subject: &Subject, answered_by: u64) -> [f64; 2] {
    let before = subject.server.scrape().await;
    for nodes in 1..=GRAPHS {
        let answer = subject.ask(MODEL, nodes).await;
        assert_eq!(answer.model.to_string(), format!("{MODEL}@{answered_by}"));
    }
    counted(subject, &before, GRAPHS.into()).await
}

/// Sends batches about a kernel as one stream, and returns how many of them a shadow compared and skipped.
async fn stream(subject: &Subject, answered_by: u64) -> [f64; 2] {
    let before = subject.server.scrape().await;
    let Question {
        graph,
        configurations,
    } = question(12);
    let (client, model) = (subject.server.client().await, Some(MODEL.parse().unwrap()));
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph).model(model))
        .await
        .unwrap();
    for _ in 0..BATCHES {
        stream.send(&configurations).await.unwrap();
        stream.scores().await.unwrap();
    }
    let answer = stream.finish().await.unwrap();
    assert_eq!(answer.model.to_string(), format!("{MODEL}@{answered_by}"));
    counted(subject, &before, BATCHES.into()).await
}

/// Waits until a shadow has compared or skipped `all` calls or batches since `before`, and returns how many of each.
async fn counted(subject: &Subject, before: &Scrape, all: f64) -> [f64; 2] {
    let since = |scrape: &Scrape| {
        ["compared", "skipped", "failed"]
            .map(|result| calls(scrape, result) - calls(before, result))
    };
    let after = subject
        .server
        .until_metrics(|scrape| since(scrape).iter().sum::<f64>() >= all)
        .await;
    let [compared, skipped, failed] = since(&after);
    assert_eq!((compared + skipped, failed), (all, 0.0));
    [compared, skipped]
}

/// Has a copy of the stable version be its shadow, and returns both numbers.
async fn begin_shadow(subject: &Subject) -> [u64; 2] {
    let (stable, shadow) = (subject.first, subject.first + 1);
    let admin = subject.server.admin().await;
    admin.pin(MODEL, stable).await.unwrap();
    subject.artifacts.publish(MODEL, shadow, |_| ());
    admin.reload().await.unwrap();
    let models = admin.set_shadow(MODEL, shadow).await.unwrap();
    assert!(
        models
            .iter()
            .all(|model| model.shadow == (model.version == shadow)),
        "{models:?}"
    );
    [stable, shadow]
}

/// Asserts that the shadow, a copy of the stable version, agreed with it on every pair, of which there were many.
async fn assert_agreed(subject: &Subject) {
    let scrape = subject.server.scrape().await;
    let pairs = |order| {
        scrape.value(
            "hlorank_shadow_pairs_total",
            &[("model", MODEL), ("order", order)],
        )
    };
    assert!(
        pairs("same") > 100.0 && pairs("other") == 0.0,
        "it is a copy, so it agrees on every pair"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_scores_the_same_calls_and_answers_none() {
    let subject = Subject::start().await;
    let [stable, shadow] = begin_shadow(&subject).await;
    let [compared, _] = ask(&subject, stable).await;
    assert!(compared >= 1.0);
    assert_agreed(&subject).await;
    let named = subject.ask(&format!("{MODEL}@canary"), 1).await;
    assert_eq!(
        named.model.to_string(),
        format!("{MODEL}@{shadow}"),
        "it answers calls that name it"
    );

    // It stays after a restart, and ends as a canary does.
    let Subject {
        artifacts, server, ..
    } = subject;
    server.stop().await;
    let subject = Subject::start_with(artifacts, &[]).await;
    ask(&subject, stable).await;
    subject
        .server
        .admin()
        .await
        .set_canary(MODEL, 0, 0)
        .await
        .unwrap();
    let before = subject.server.scrape().await;
    subject.ask(MODEL, 1).await;
    let models = subject.server.client().await.list_models().await.unwrap();
    assert!(models.iter().all(|model| !model.shadow));
    let after = subject.server.scrape().await;
    let counts =
        |scrape: &Scrape| ["compared", "skipped", "failed"].map(|result| calls(scrape, result));
    assert_eq!(counts(&before), counts(&after));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_scores_batches_of_streams_and_skips_those_that_arrive_while_it_is_busy() {
    // After a batch, the shadow rests for nineteen times as long.
    let subject = Subject::start().await;
    let [stable, _] = begin_shadow(&subject).await;
    let [compared, skipped] = stream(&subject, stable).await;
    assert!(compared >= 1.0 && skipped > 0.0, "{compared} {skipped}");
    assert_agreed(&subject).await;
    // With all of the time, nothing but its work keeps it busy.
    let Subject {
        artifacts, server, ..
    } = subject;
    server.stop().await;
    let subject = Subject::start_with(artifacts, &["--replay-share=1"]).await;
    let [compared, _] = stream(&subject, stable).await;
    assert!(compared >= 2.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_without_a_share_of_the_time_scores_nothing() {
    let subject = Subject::start_with(Artifacts::copy(), &["--replay-share=0"]).await;
    begin_shadow(&subject).await;
    for nodes in 1..4 {
        subject.ask(MODEL, nodes).await;
    }
    let scrape = subject.server.scrape().await;
    assert_eq!(
        ["compared", "skipped", "failed"].map(|result| calls(&scrape, result)),
        [0.0; 3]
    );
}
