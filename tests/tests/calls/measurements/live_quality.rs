//! Reported measurements are replayed through the versions in use, and show how well each ranks.

use hlorank_client::v1::LiveQuality;
use hlorank_tests::prelude::*;

use super::*;

const MODEL: &str = TILE_MODEL;

/// Maximum time until everything was replayed.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns the quality of a version once it is over this many graphs.
pub(crate) async fn quality_of(
    client: &Client,
    version: Option<u64>,
    graphs: usize,
) -> LiveQuality {
    let started = Instant::now();
    loop {
        let quality = client.get_model(MODEL, version).await.unwrap().live_quality;
        let found = quality
            .iter()
            .find(|quality| quality.target == TARGET)
            .cloned()
            .unwrap_or_default();
        if found.graphs as usize == graphs {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "{quality:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn live_quality_is_that_of_the_rankings_and_outlives_a_restart() {
    let (folder, kernels) = (folder(), Kernel::all());
    let (server, client) = start(folder.path(), &["--replay-share=1"]).await;
    let (mut tau, mut ordered) = (0.0, 0.0);
    for kernel in &kernels {
        kernel.report(&client, TARGET).await;
        let pairs = kernel.pairs(&client, MODEL).await;
        tau += pairs.kendall_tau().unwrap() / kernels.len() as f64;
        ordered += pairs.ordered_pair_accuracy().unwrap() / kernels.len() as f64;
    }
    let quality = quality_of(&client, None, kernels.len()).await;
    let configs: usize = kernels.iter().map(|kernel| kernel.seconds.len()).sum();
    assert_eq!(quality.configs as usize, configs);
    assert!(
        (quality.kendall_tau - tau).abs() < 1e-12,
        "{quality:?}, expected {tau}"
    );
    assert!(
        (quality.ordered_pairs - ordered).abs() < 1e-12,
        "{quality:?}, expected {ordered}"
    );
    assert!(tau > 0.3 && quality.top_pick_regret >= 0.0, "{quality:?}");
    assert_eq!(
        (quality.predicted_time_ratio, quality.time_error_ratio),
        (None, None),
        "scores have no unit"
    );

    let labels = [("model", MODEL), ("role", "stable"), ("target", TARGET)];
    let shown = async |metric: &str| server.scrape().await.value(metric, &labels);
    while shown("hlorank_quality_graphs").await != kernels.len() as f64 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(
        shown("hlorank_quality_kendall_tau").await,
        quality.kendall_tau
    );
    assert_eq!(shown("hlorank_quality_configs").await, configs as f64);

    server.stop().await;
    let (server, client) = start(folder.path(), &["--replay-share=1"]).await;
    assert_eq!(
        quality_of(&client, None, kernels.len()).await,
        quality,
        "no call sent the graphs again"
    );
    client
        .delete_measurements(&deletion(TARGET, None))
        .await
        .unwrap();
    quality_of(&client, None, 0).await;
    while server
        .scrape()
        .await
        .value("hlorank_quality_graphs", &labels)
        != 0.0
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_is_judged_on_the_same_measurements() {
    let (folder, kernels, artifacts) = (folder(), Kernel::all(), Artifacts::copy());
    let flags = [
        &*artifacts.flag(),
        "--admin-listen=127.0.0.1:0",
        "--replay-share=1",
    ];
    let (server, client) = start(folder.path(), &flags).await;
    let stable = client.get_model(MODEL, None).await.unwrap().version;
    for kernel in &kernels {
        kernel.report(&client, TARGET).await;
    }
    let admin = server.admin().await;
    admin.pin(MODEL, stable).await.unwrap();
    artifacts.publish(MODEL, stable + 1, |_| ());
    admin.reload().await.unwrap();
    admin.set_canary(MODEL, stable + 1, 10).await.unwrap();
    let canary = quality_of(&client, Some(stable + 1), kernels.len()).await;
    assert_eq!(
        canary,
        quality_of(&client, Some(stable), kernels.len()).await,
        "it is a copy"
    );
    let labels = [("model", MODEL), ("role", "canary"), ("target", TARGET)];
    while server.scrape().await.samples.iter().all(|sample| {
        !labels
            .iter()
            .all(|(name, value)| sample.label(name) == Some(value))
    }) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_replayed_without_a_share_of_the_time() {
    let folder = folder();
    let (server, client) = start(folder.path(), &["--replay-share=0"]).await;
    Kernel::all()[0].report(&client, TARGET).await;
    let compared = client
        .compare_models([&MODEL.parse().unwrap(); 2], "")
        .await
        .unwrap();
    assert_eq!(compared.graphs, 1, "but a comparison replays what it needs");
    assert!(
        server
            .scrape()
            .await
            .samples
            .iter()
            .all(|sample| sample.label("target") != Some(TARGET))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn predicted_seconds_are_calibrated_by_fusions_that_were_reported_by_hash() {
    const FUSIONS: &str = "fusion-xla-cpu";
    let folder = folder();
    let flags = ["--replay-share=1", &all_models_flag()];
    let (_server, client) = start(folder.path(), &flags).await;
    let program = program_graph("sharpen_train");
    let batch = random_fusions(&program, 30, &mut fastrand::Rng::with_seed(3));
    let configurations = Configurations::Fusion(batch);
    let handle = GraphHandle::hlo_module(program_module("sharpen_train"), Task::Fusion, Vec::new());
    let request = RankRequest::new(&handle, &configurations).with_scores();
    let scores = client.rank(&request).await.unwrap().scores;
    // The ranking has the hash, but the store has no program yet: the client sends it again.
    let twice = |&score: &f32| MeasuredOutcome::Time {
        seconds: 2.0 * f64::from(score),
        repeats: 1,
    };
    let measured: Vec<MeasuredOutcome> = scores.iter().map(twice).collect();
    let measurements = Adapt::new(TARGET).measured(&configurations, &measured);
    client
        .report_measurements(&handle, &measurements)
        .await
        .unwrap();
    let started = Instant::now();
    let quality = loop {
        let found = client.get_model(FUSIONS, None).await.unwrap().live_quality;
        if let Some(quality) = found.into_iter().next() {
            break quality;
        }
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(
        (quality.kendall_tau, quality.top_pick_regret) == (1.0, 0.0),
        "{quality:?}"
    );
    let [ratio, error] =
        [quality.predicted_time_ratio, quality.time_error_ratio].map(Option::unwrap);
    assert!(
        (ratio - 0.5).abs() < 1e-6 && (error - 2.0).abs() < 1e-6,
        "{quality:?}"
    );
}
