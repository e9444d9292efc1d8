//! Measurements of other instances say what to expect of one that nobody measured.

use hlorank_client::v1::{
    Evidence, FeatureGraph, InstanceFeature, RelatedSource, SourceKind, instance_feature::Value,
};
use hlorank_tests::prelude::*;

use crate::feature_set::{TARGET, WithoutModels, parameters, space};

/// Returns the tiles of a matrix product, as powers of two.
fn tiles() -> Vec<[f32; 2]> {
    let sizes = [16.0, 32.0, 64.0, 128.0, 256.0];
    let tiles = sizes.iter().flat_map(|&m| sizes.map(|n| [m, n]));
    tiles.collect()
}

/// A tile that is too small does little work at a time, one that is too large wastes most of it.
fn seconds([m, n]: [u32; 2], tile: [f32; 2]) -> f64 {
    let [m, n, tile_m, tile_n] = [f64::from(m), f64::from(n), tile[0].into(), tile[1].into()];
    let tiles = (m / tile_m).ceil() * (n / tile_n).ceil();
    1e-6 * tiles * (50.0 + tile_m * tile_n * if tile_m * tile_n > 8_192.0 { 3.0 } else { 1.0 })
}

fn instance([m, n]: [u32; 2], dtype: &str) -> GraphHandle {
    let feature = |name: &str, value: Value| InstanceFeature {
        name: name.to_owned(),
        value: Some(value),
    };
    let instance_features = vec![
        feature("m", Value::Number(m.into())),
        feature("n", Value::Number(n.into())),
        feature("dtype", Value::Text(dtype.to_owned())),
    ];
    let instance = FeatureGraph {
        instance_features,
        ..FeatureGraph::default()
    };
    space(&["tile_m", "tile_n"], instance)
}

/// Sizes of instances, which differ in every number.
fn sizes(number: u32) -> [u32; 2] {
    [64 + 37 * (number * 7 % 24), 64 + 53 * (number * 11 % 24)]
}

/// Reports one in `every` tiles of an instance, beginning with the tile `first`.
async fn report(client: &Client, target: &str, sizes: [u32; 2], every: usize, first: usize) {
    let measured: Vec<[f32; 2]> = tiles().into_iter().skip(first).step_by(every).collect();
    let times = run_times(measured.iter().map(|&tile| seconds(sizes, tile)));
    let adapt = Adapt::new(target).measured(&parameters(&measured), &times);
    let graph = instance(sizes, "f32");
    client.report_measurements(&graph, &adapt).await.unwrap();
}

async fn rank(client: &Client, graph: &GraphHandle, adapt: Adapt) -> Ranking {
    let tiles = parameters(&tiles());
    let request = RankRequest::new(graph, &tiles).with_scores();
    client.rank(&request.adapt(Some(adapt))).await.unwrap()
}

fn stored() -> Adapt {
    Adapt::new(TARGET).use_stored()
}

/// The time of the configuration that is ranked first over that of the fastest.
fn slowdown(ranking: &Ranking, sizes: [u32; 2]) -> f64 {
    let times = tiles().into_iter().map(|tile| seconds(sizes, tile));
    let times: Vec<f64> = times.collect();
    let first = ranking.best[0].config;
    times[first] / times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn source(ranking: &Ranking) -> &RelatedSource {
    let adaptation = ranking.adaptation.as_ref().unwrap();
    assert_eq!(adaptation.sources.len(), 1, "{adaptation:?}");
    &adaptation.sources[0]
}

#[tokio::test]
async fn instances_that_were_measured_rank_one_that_was_not() {
    let subject = WithoutModels::start().await;
    let (client, new) = (&subject.client, [500, 700]);
    let graph = instance(new, "f32");
    let nothing = rank(client, &graph, stored()).await;
    assert_eq!(source(&nothing).kind(), SourceKind::Instances);
    assert!(!source(&nothing).used && nothing.scores.iter().all(|&score| score == 0.0));
    for number in 0..24 {
        report(client, TARGET, sizes(number), 2, number as usize % 2).await;
    }
    // A set that changes is learned again in the background, and the answer says what it rests on.
    let known = loop {
        let ranking = rank(client, &graph, stored()).await;
        if source(&ranking).lists == 24 {
            break ranking;
        }
        tokio::task::yield_now().await;
    };
    let source = source(&known);
    assert!(source.used && source.agreement > 0.5, "{source:?}");
    assert_eq!(source.measured_configs, 24 * 25 / 2);
    let adaptation = known.adaptation.as_ref().unwrap();
    let evidence: Vec<Evidence> = adaptation.rests_on().collect();
    assert_eq!(evidence, [Evidence::OtherInstances]);
    assert!(slowdown(&known, new) < 1.15, "{}", slowdown(&known, new));
    let confidence = known.confidence.unwrap();
    let expected = confidence.expected_slowdown.unwrap();
    let upper = confidence.expected_slowdown_p90.unwrap();
    assert!(
        (1.0..1.5).contains(&expected) && upper >= expected,
        "{expected} {upper}"
    );
    assert!(known.warnings.is_empty(), "{:?}", known.warnings);
    // A type that nobody measured may run through other code.
    let unknown = rank(client, &instance(new, "f8"), stored()).await;
    assert_eq!(reasons(&unknown), ["INSTANCE_VALUE_UNKNOWN"]);
    says!(unknown.warnings[0].message, "`dtype` = \"f8\"");
}

#[tokio::test]
async fn instances_of_another_target_count_if_the_call_asks_for_them() {
    let subject = WithoutModels::start().await;
    let (client, new) = (&subject.client, sizes(3));
    for number in 0..8 {
        report(client, "another board", sizes(number), 1, 0).await;
    }
    let graph = instance(new, "f32");
    let alone = rank(client, &graph, stored()).await;
    assert!(!source(&alone).used);
    let ranking = rank(client, &graph, stored().all_other_targets()).await;
    assert_eq!((source(&ranking).lists, source(&ranking).used), (8, true));
    assert!(slowdown(&ranking, new) < 1.1, "{}", slowdown(&ranking, new));
}

#[tokio::test]
async fn a_call_does_not_wait_for_many_instances_longer_than_half_of_its_time() {
    let subject = WithoutModels::start().await;
    let client = &subject.client;
    for number in 0..240 {
        let sizes = [40 + 11 * number, 3_000 - 7 * number];
        report(client, TARGET, sizes, 1, 0).await;
    }
    let graph = instance([500, 700], "f32");
    let request = RankRequest::new(&graph, &parameters(&tiles())).adapt(Some(stored()));
    let hasty = client.rank(&request.timeout(Duration::from_secs(2))).await;
    assert_eq!(reasons(&hasty.unwrap()), ["INSTANCES_BEING_LEARNED"]);
    // The set is learned in the background meanwhile.
    let known = loop {
        let ranking = rank(client, &graph, stored()).await;
        if ranking.warnings.is_empty() {
            break ranking;
        }
    };
    assert_eq!((source(&known).lists, source(&known).used), (240, true));
}
