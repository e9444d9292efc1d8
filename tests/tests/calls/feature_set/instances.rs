//! Measurements of other instances say what to expect of one that nobody measured.

use hlorank_proto::v1::{
    Adapt, Evidence, FeatureGraph, InstanceFeature, ParameterConfig, ParameterConfigs,
    RelatedSource, SourceKind, instance_feature::Value,
};
use hlorank_tests::prelude::*;

const TARGET: &str = "a board";

/// The tiles of a matrix product, as powers of two.
const TILES: [[f32; 2]; 25] = {
    let mut tiles = [[0.0; 2]; 25];
    let mut number = 0;
    while number < 25 {
        tiles[number] = [(16 << (number / 5)) as f32, (16 << (number % 5)) as f32];
        number += 1;
    }
    tiles
};

/// A tile that is too small does little work at a time, one that is too large wastes most of it.
fn seconds([m, n]: [u32; 2], tile: [f32; 2]) -> f64 {
    let [m, n, tile_m, tile_n] = [f64::from(m), f64::from(n), tile[0].into(), tile[1].into()];
    let tiles = (m / tile_m).ceil() * (n / tile_n).ceil();
    1e-6 * tiles * (50.0 + tile_m * tile_n * if tile_m * tile_n > 8_192.0 { 3.0 } else { 1.0 })
}

fn instance(sizes: [u32; 2], dtype: &str) -> Graph {
    let number = |name: &str, size: u32| InstanceFeature {
        name: name.to_owned(),
        value: Some(Value::Number(size.into())),
    };
    let dtype = InstanceFeature {
        name: "dtype".to_owned(),
        value: Some(Value::Text(dtype.to_owned())),
    };
    let space = FeatureGraph {
        feature_set: "gemm".to_owned(),
        config_columns: ["tile_m", "tile_n"].map(str::to_owned).to_vec(),
        instance_features: vec![number("m", sizes[0]), number("n", sizes[1]), dtype],
        ..FeatureGraph::default()
    };
    Graph {
        source: Some(Source::FeatureGraph(space)),
        ..Graph::default()
    }
}

fn batch(tiles: &[[f32; 2]]) -> ConfigBatch {
    let config = |tile: &[f32; 2]| ParameterConfig {
        values: tile.to_vec(),
    };
    let configs = tiles.iter().map(config).collect();
    ConfigBatch {
        configs: Some(Configs::ParameterConfigs(ParameterConfigs { configs })),
    }
}

/// Sizes of instances, which differ in every number.
fn sizes(number: u32) -> [u32; 2] {
    [64 + 37 * (number * 7 % 24), 64 + 53 * (number * 11 % 24)]
}

async fn report(server: &TestServer, target: &str, number: u32, every: usize) {
    let first = number as usize % every;
    report_of(server, target, sizes(number), every, first).await;
}

/// Reports one in `every` tiles of an instance, beginning with the tile `first`.
async fn report_of(server: &TestServer, target: &str, sizes: [u32; 2], every: usize, first: usize) {
    let measured: Vec<[f32; 2]> = TILES.into_iter().skip(first).step_by(every).collect();
    let request = ReportMeasurementsRequest {
        graph: Some(instance(sizes, "f32")),
        batch: Some(batch(&measured)),
        target: target.to_owned(),
        seconds: measured.iter().map(|&tile| seconds(sizes, tile)).collect(),
        ..ReportMeasurementsRequest::default()
    };
    server
        .cost_model()
        .await
        .report_measurements(request)
        .await
        .unwrap();
}

async fn rank(server: &TestServer, graph: Graph, adapt: Adapt) -> RankConfigsResponse {
    let request = RankConfigsRequest {
        graph: Some(graph),
        batch: Some(batch(&TILES)),
        adapt: Some(adapt),
        include_scores: true,
        ..RankConfigsRequest::default()
    };
    let answer = server.cost_model().await.rank_configs(request).await;
    answer.unwrap().into_inner()
}

fn stored(target: &str) -> Adapt {
    Adapt {
        target: target.to_owned(),
        use_stored: true,
        ..Adapt::default()
    }
}

/// The time of the configuration that is ranked first over that of the fastest.
fn slowdown(answer: &RankConfigsResponse, sizes: [u32; 2]) -> f64 {
    let times: Vec<f64> = TILES.into_iter().map(|tile| seconds(sizes, tile)).collect();
    let first = answer.ranking[0] as usize;
    times[first] / times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn source(answer: &RankConfigsResponse) -> &RelatedSource {
    let adaptation = answer.adaptation.as_ref().unwrap();
    assert_eq!(adaptation.sources.len(), 1, "{adaptation:?}");
    &adaptation.sources[0]
}

async fn server() -> (TestServer, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let models = format!("--models={}", folder.path().display());
    let store = store_flag(folder.path());
    let flags = [models.as_str(), "--default-models=none", store.as_str()];
    (TestServer::start_with(&flags).await, folder)
}

#[tokio::test]
async fn instances_that_were_measured_rank_one_that_was_not() {
    let (server, _folder) = server().await;
    let new = [500, 700];
    let nothing = rank(&server, instance(new, "f32"), stored(TARGET)).await;
    assert_eq!(source(&nothing).kind(), SourceKind::Instances);
    assert!(!source(&nothing).used && nothing.scores.iter().all(|&score| score == 0.0));
    for number in 0..24 {
        report(&server, TARGET, number, 2).await;
    }
    // A set that changes is learned again in the background, and the answer says what it rests on.
    let known = loop {
        let answer = rank(&server, instance(new, "f32"), stored(TARGET)).await;
        if source(&answer).lists == 24 {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    let source = source(&known);
    assert!(source.used && source.agreement > 0.5, "{source:?}");
    assert_eq!(source.measured_configs, 24 * 25 / 2);
    let adaptation = known.adaptation.as_ref().unwrap();
    assert_eq!(
        adaptation.rests_on().collect::<Vec<_>>(),
        [Evidence::OtherInstances]
    );
    assert!(slowdown(&known, new) < 1.15, "{}", slowdown(&known, new));
    let confidence = known.confidence.unwrap();
    let [expected, upper] = [
        confidence.expected_slowdown,
        confidence.expected_slowdown_p90,
    ]
    .map(Option::unwrap);
    assert!(
        (1.0..1.5).contains(&expected) && upper >= expected,
        "{expected} {upper}"
    );
    assert!(known.warnings.is_empty(), "{:?}", known.warnings);
    // A type that nobody measured may run through other code.
    let unknown = rank(&server, instance(new, "f8"), stored(TARGET)).await;
    let reasons: Vec<&str> = unknown
        .warnings
        .iter()
        .map(|each| each.reason.as_str())
        .collect();
    assert_eq!(reasons, ["INSTANCE_VALUE_UNKNOWN"]);
    assert!(unknown.warnings[0].message.contains("`dtype` = \"f8\""));
}

#[tokio::test]
async fn instances_of_another_target_count_if_the_call_asks_for_them() {
    let (server, _folder) = server().await;
    let new = sizes(3);
    for number in 0..8 {
        report(&server, "another board", number, 1).await;
    }
    let alone = rank(&server, instance(new, "f32"), stored(TARGET)).await;
    assert!(!source(&alone).used);
    let with_others = Adapt {
        all_other_targets: true,
        ..stored(TARGET)
    };
    let answer = rank(&server, instance(new, "f32"), with_others).await;
    assert_eq!((source(&answer).lists, source(&answer).used), (8, true));
    assert!(slowdown(&answer, new) < 1.1, "{}", slowdown(&answer, new));
}

#[tokio::test]
async fn a_call_does_not_wait_for_many_instances_longer_than_half_of_its_time() {
    let (server, _folder) = server().await;
    let new = [500, 700];
    for number in 0..240 {
        report_of(
            &server,
            TARGET,
            [40 + 11 * number, 3_000 - 7 * number],
            1,
            0,
        )
        .await;
    }
    let mut request = tonic::Request::new(RankConfigsRequest {
        graph: Some(instance(new, "f32")),
        batch: Some(batch(&TILES)),
        adapt: Some(stored(TARGET)),
        ..RankConfigsRequest::default()
    });
    request.set_timeout(Duration::from_secs(2));
    let answer = server.cost_model().await.rank_configs(request).await;
    let answer = answer.unwrap().into_inner();
    let reasons: Vec<&str> = answer
        .warnings
        .iter()
        .map(|each| each.reason.as_str())
        .collect();
    assert_eq!(reasons, ["INSTANCES_BEING_LEARNED"]);
    // The set is learned in the background meanwhile.
    let known = loop {
        let answer = rank(&server, instance(new, "f32"), stored(TARGET)).await;
        if answer.warnings.is_empty() {
            break answer;
        }
    };
    assert_eq!((source(&known).lists, source(&known).used), (240, true));
}
