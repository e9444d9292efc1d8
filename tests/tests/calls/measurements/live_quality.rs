//! Reported measurements are replayed through the versions in use, and show how well each ranks.

use hlorank_client::v1::LiveQuality;

use super::*;

const MODEL: &str = TILE_MODEL;

/// Maximum time until everything was replayed.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until something is known.
async fn until<T>(known: impl AsyncFn() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = known().await {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "it is never known");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the quality of a version once it is over this many graphs.
pub(crate) async fn quality_of(
    client: &Client,
    version: Option<u64>,
    graphs: usize,
) -> LiveQuality {
    until(async || {
        let quality = client.get_model(MODEL, version).await.unwrap().live_quality;
        let of_target = quality.into_iter().find(|each| each.target == TARGET);
        let of_target = of_target.unwrap_or_default();
        (of_target.graphs as usize == graphs).then_some(of_target)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn live_quality_is_that_of_the_rankings_and_outlives_a_restart() {
    let kernels = MeasuredList::kernels();
    let (folder, server, client) = storing_server(&["--replay-share=1"]).await;
    let [mut tau, mut ordered] = [0.0; 2];
    for kernel in &kernels {
        kernel.report(&client, TARGET).await;
        let pairs = pairs(&kernel.scores(&client, MODEL).await, &kernel.seconds);
        tau += pairs.kendall_tau().unwrap() / kernels.len() as f64;
        ordered += pairs.ordered_pair_accuracy().unwrap() / kernels.len() as f64;
    }
    let quality = quality_of(&client, None, kernels.len()).await;
    let configs: usize = kernels.iter().map(|kernel| kernel.seconds.len()).sum();
    assert_eq!(quality.configs as usize, configs);
    for (found, expected) in [(quality.kendall_tau, tau), (quality.ordered_pairs, ordered)] {
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }
    assert!(tau > 0.3 && quality.top_pick_regret >= 0.0, "{quality:?}");
    let of_times = [quality.predicted_time_ratio, quality.time_error_ratio];
    assert_eq!(of_times, [None; 2], "scores have no unit");

    let labels = [("model", MODEL), ("role", "stable"), ("target", TARGET)];
    let graphs = |scrape: &Scrape| scrape.sum("hlorank_quality_graphs", &labels);
    let all = kernels.len() as f64;
    let scrape = server.until_metrics(|scrape| graphs(scrape) == all).await;
    let shown = scrape.value("hlorank_quality_kendall_tau", &labels);
    assert_eq!(shown, quality.kendall_tau);
    let shown = scrape.value("hlorank_quality_configs", &labels);
    assert_eq!(shown, configs as f64);

    server.stop().await;
    let store = store_flag(folder.path());
    let (server, client) = storing_server_at(&store, &["--replay-share=1"]).await;
    let again = quality_of(&client, None, kernels.len()).await;
    assert_eq!(again, quality, "no call sent the graphs again");
    let all = deletion(TARGET, None);
    client.delete_measurements(&all).await.unwrap();
    quality_of(&client, None, 0).await;
    server.until_metrics(|scrape| graphs(scrape) == 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_is_judged_on_the_same_measurements() {
    let (kernels, artifacts) = (MeasuredList::kernels(), Artifacts::copy());
    let flags = [
        &*artifacts.flag(),
        "--admin-listen=127.0.0.1:0",
        "--replay-share=1",
    ];
    let (_folder, server, client) = storing_server(&flags).await;
    let stable = client.get_model(MODEL, None).await.unwrap().version;
    for kernel in &kernels {
        kernel.report(&client, TARGET).await;
    }
    let admin = server.admin().await;
    admin.pin(MODEL, stable).await.unwrap();
    artifacts.publish(MODEL, stable + 1, |_| ());
    admin.reload().await.unwrap();
    admin.set_canary(MODEL, stable + 1, 10).await.unwrap();
    let of_canary = quality_of(&client, Some(stable + 1), kernels.len()).await;
    let of_stable = quality_of(&client, Some(stable), kernels.len()).await;
    assert_eq!(of_canary, of_stable, "it is a copy");
    let labels = [("model", MODEL), ("role", "canary"), ("target", TARGET)];
    server
        .until_metrics(|scrape| scrape.sum("hlorank_quality_graphs", &labels) > 0.0)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_replayed_without_a_share_of_the_time() {
    let (_folder, server, client) = storing_server(&["--replay-share=0"]).await;
    MeasuredList::kernels()[0].report(&client, TARGET).await;
    let model = MODEL.parse().unwrap();
    let compared = client.compare_models([&model; 2], "").await.unwrap();
    assert_eq!(compared.graphs, 1, "but a comparison replays what it needs");
    let scrape = server.scrape().await;
    let is_shown = |sample: &Sample| sample.label("target") == Some(TARGET);
    assert!(!scrape.samples.iter().any(is_shown));
}

#[tokio::test(flavor = "multi_thread")]
async fn predicted_seconds_are_calibrated_by_fusions_that_were_reported_by_hash() {
    let flags = ["--replay-share=1", &all_models_flag()];
    let (_folder, _server, client) = storing_server(&flags).await;
    let program = program_graph("sharpen_train");
    let batch = random_fusions(&program, 30, &mut Rng::with_seed(3));
    let configurations = Configurations::Fusion(batch);
    let handle = GraphHandle::hlo_module(program_module("sharpen_train"), Task::Fusion, Vec::new());
    let request = RankRequest::new(&handle, &configurations).with_scores();
    let scores = client.rank(&request).await.unwrap().scores;
    // The ranking has the hash, but the store has no program yet: the client sends it again.
    let outcomes = run_times(scores.iter().map(|&score| 2.0 * f64::from(score)));
    let measured = Adapt::new(TARGET).measured(&configurations, &outcomes);
    client
        .report_measurements(&handle, &measured)
        .await
        .unwrap();
    let quality = until(async || {
        let model = client.get_model("fusion-xla-cpu", None).await.unwrap();
        model.live_quality.into_iter().next()
    })
    .await;
    let ranks = (quality.kendall_tau, quality.top_pick_regret);
    assert_eq!(ranks, (1.0, 0.0), "{quality:?}");
    let ratio = quality.predicted_time_ratio.unwrap();
    let error = quality.time_error_ratio.unwrap();
    assert!((ratio - 0.5).abs() < 1e-6, "{quality:?}");
    assert!((error - 2.0).abs() < 1e-6, "{quality:?}");
}
