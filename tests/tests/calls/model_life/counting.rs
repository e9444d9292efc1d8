//! Metrics of the versions of a model.

use hlorank_tests::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn metrics_show_states_loads_and_the_reasons_of_rejections() {
    let subject = Subject::start().await;
    let (second, bad) = (subject.first + 1, subject.first + 2);
    subject.publish(second).await;
    subject.artifacts.publish(MODEL, bad, |folder| {
        fs::remove_file(folder.join("head.onnx")).unwrap();
    });
    subject.server.until(MODEL, bad, ModelState::Rejected).await;

    let scrape = subject.server.scrape().await;
    let versions = |state| {
        scrape.value(
            "hlorank_model_versions",
            &[("model", MODEL), ("state", state)],
        )
    };
    assert_eq!(
        ["serving", "retained", "rejected", "validating"].map(versions),
        [1.0, 1.0, 1.0, 0.0]
    );
    assert_eq!(
        scrape.value("hlorank_model_stable_version", &[("model", MODEL)]),
        second as f64
    );
    assert_eq!(
        scrape.value("hlorank_model_canary_version", &[("model", MODEL)]),
        0.0
    );
    let loads = |result| {
        scrape.value(
            "hlorank_model_loads_total",
            &[("model", MODEL), ("result", result)],
        )
    };
    assert_eq!(["loaded", "rejected"].map(loads), [2.0, 1.0]);
    assert_eq!(
        scrape.value(
            "hlorank_model_rejections_total",
            &[("reason", "FILE_MISSING")]
        ),
        1.0
    );
    // The serving version changed once for each model at the start, and once for the second version.
    let models = subject.server.client().await.list_models().await.unwrap();
    let serving = models.iter().filter(|model| model.serving).count();
    assert_eq!(
        scrape.value("hlorank_model_swap_duration_seconds_count", &[]),
        serving as f64 + 1.0
    );
}
