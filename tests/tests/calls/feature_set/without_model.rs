//! A server without models answers from measurements alone, of its target and of others.

use hlorank_proto::{
    v1,
    v1::{Adapt, Evidence, FeatureGraph, ParameterConfig, ParameterConfigs, SourceRefusal},
};
use hlorank_tests::prelude::*;

/// The sizes and the switch of a space of 72 configurations.
fn values(number: u16) -> Vec<f32> {
    let sizes = [number % 6, number / 6 % 6].map(|exponent| f32::from(1_u16 << exponent));
    vec![sizes[0], sizes[1], f32::from(number / 36)]
}

/// Fast where the product of the sizes is 128; what the switch does depends on the target.
fn seconds(number: u16, switch: f64) -> f64 {
    let [width, height, is_on] = values(number)[..] else {
        panic!("three parameters")
    };
    let off = f64::from((width * height).log2()) - 7.0;
    1e-3 * (0.1 * off * off + switch * f64::from(is_on)).exp()
}

fn space(columns: &[&str], instance: &str) -> Graph {
    let space = FeatureGraph {
        feature_set: "gemm".to_owned(),
        config_columns: columns.iter().map(|&name| name.to_owned()).collect(),
        instance: instance.to_owned(),
        ..FeatureGraph::default()
    };
    Graph {
        source: Some(Source::FeatureGraph(space)),
        ..Graph::default()
    }
}

fn gemm() -> Graph {
    space(&["width", "height", "switch"], "1024")
}

fn batch(numbers: impl IntoIterator<Item = u16>) -> ConfigBatch {
    let config = |number| ParameterConfig {
        values: values(number),
    };
    let configs = numbers.into_iter().map(config).collect();
    let configs = Configs::ParameterConfigs(ParameterConfigs { configs });
    ConfigBatch {
        configs: Some(configs),
    }
}

fn measured(numbers: &[u16]) -> Adapt {
    let all = numbers.iter().copied();
    Adapt {
        target: "a board".to_owned(),
        batch: Some(batch(all.clone())),
        seconds: all.map(|number| seconds(number, -0.2)).collect(),
        ..Adapt::default()
    }
}

async fn server(flags: &[&str]) -> (TestServer, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let models = format!("--models={}", folder.path().display());
    // The default of the tests is a model that this folder lacks.
    let tiles = "--default-models=none";
    let flags = [&[models.as_str(), tiles], flags].concat();
    (TestServer::start_with(&flags).await, folder)
}

async fn rank(server: &TestServer, adapt: Option<Adapt>) -> RankConfigsResponse {
    let request = RankConfigsRequest {
        graph: Some(gemm()),
        batch: Some(batch(0..72)),
        adapt,
        include_scores: true,
        ..RankConfigsRequest::default()
    };
    let answer = server.cost_model().await.rank_configs(request).await;
    answer.unwrap().into_inner()
}

fn evidence(answer: &RankConfigsResponse) -> Vec<Evidence> {
    let adaptation = answer.adaptation.as_ref().unwrap();
    adaptation.rests_on().collect()
}

/// The share of pairs of configurations whose scores are in the order of their times.
fn ordered_pairs(scores: &[f32], switch: f64) -> f64 {
    let times: Vec<f64> = (0..72).map(|number| seconds(number, switch)).collect();
    let pairs = (0..72).flat_map(|one| (0..one).map(move |other| (one, other)));
    let different = pairs.filter(|&(one, other)| (times[one] - times[other]).abs() > 1e-12);
    let right: Vec<bool> = different
        .map(|(one, other)| (scores[one] < scores[other]) == (times[one] < times[other]))
        .collect();
    let count = right.iter().filter(|right| **right).count();
    f64::from(u32::try_from(count).unwrap()) / f64::from(u32::try_from(right.len()).unwrap())
}

#[tokio::test]
async fn measurements_alone_rank_a_space() {
    let (server, _folder) = server(&[]).await;
    let (status, text) = http_get(server.metrics_address(), "/readyz").await;
    assert_eq!(status, 200, "{text}");
    let nothing = rank(&server, None).await;
    assert_eq!(nothing.scores, [0.0; 72]);
    assert_eq!(nothing.model.unwrap().name, "");
    let some: Vec<u16> = (0..72).filter(|number| number % 5 < 2).collect();
    let learned = rank(&server, Some(measured(&some))).await;
    assert_eq!(evidence(&learned), [Evidence::Measurements]);
    assert!(ordered_pairs(&learned.scores, -0.2) > 0.9);
    let few = rank(&server, Some(measured(&[3]))).await;
    assert_eq!(evidence(&few), []);
}

#[tokio::test]
async fn instances_and_columns_are_told_apart() {
    let (server, _folder) = server(&[]).await;
    let mut hashes = Vec::new();
    for graph in [
        gemm(),
        space(&["width", "height", "switch"], "2048"),
        space(&["width", "height", "swap"], "1024"),
        space(&["width", "height", "switch"], ""),
        gemm(),
    ] {
        let request = RankConfigsRequest {
            graph: Some(graph),
            batch: Some(batch(0..3)),
            ..RankConfigsRequest::default()
        };
        let answer = server.cost_model().await.rank_configs(request).await;
        hashes.push(answer.unwrap().into_inner().graph_hash);
    }
    assert_eq!(hashes[0], hashes[4]);
    for (number, hash) in hashes[..4].iter().enumerate() {
        assert!(!hashes[..number].contains(hash), "graph {number}");
    }
}

#[tokio::test]
async fn suggestions_fill_the_space_and_find_the_fastest() {
    let (server, _folder) = server(&[]).await;
    let mut known: Vec<u16> = Vec::new();
    let fastest = (0..72)
        .map(|number| seconds(number, -0.2))
        .fold(f64::INFINITY, f64::min);
    let is_found = |known: &[u16]| known.iter().any(|&number| seconds(number, -0.2) <= fastest);
    let mut reasons = Vec::new();
    while !is_found(&known) && known.len() < 40 {
        let request = SuggestConfigsRequest {
            graph: Some(gemm()),
            batch: Some(batch(0..72)),
            adapt: Some(measured(&known)).filter(|_| !known.is_empty()),
            count: 1,
            seed: 5,
            ..SuggestConfigsRequest::default()
        };
        let answer = server.cost_model().await.suggest_configs(request).await;
        let suggestion = answer.unwrap().into_inner().suggestions.remove(0);
        let config = u16::try_from(suggestion.config).unwrap();
        assert!(!known.contains(&config), "{config} was measured");
        known.push(config);
        reasons.push(suggestion.reason());
    }
    println!("found after {} of 72: {known:?}", known.len());
    assert!(is_found(&known));
    assert_eq!(reasons[..3], [v1::SuggestionReason::Random; 3]);
    assert!(
        reasons[3..]
            .iter()
            .all(|reason| *reason != v1::SuggestionReason::Model)
    );
}

#[tokio::test]
async fn other_targets_say_what_to_expect() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_flag(folder.path());
    let (server, _models) = server(&[&store]).await;
    let report = async |target: &str, time: &dyn Fn(u16) -> f64| {
        let request = ReportMeasurementsRequest {
            graph: Some(gemm()),
            target: target.to_owned(),
            batch: Some(batch(0..72)),
            seconds: (0..72).map(time).collect(),
            ..ReportMeasurementsRequest::default()
        };
        let answer = server.cost_model().await.report_measurements(request).await;
        assert_eq!(answer.unwrap().into_inner().accepted, 72);
    };
    report("alpha", &|number| seconds(number, -0.1)).await;
    report("beta", &|number| 7.0 * seconds(number, -0.3)).await;
    report("noise", &|number| f64::from(1 + number * 31 % 67)).await;
    let others = |names: &[&str], all| Adapt {
        other_targets: names.iter().map(|&name| name.to_owned()).collect(),
        all_other_targets: all,
        ..measured(&[])
    };
    let none = Adapt {
        batch: None,
        seconds: Vec::new(),
        ..others(&[], true)
    };
    let answer = rank(&server, Some(none)).await;
    assert_eq!(evidence(&answer), [Evidence::OtherTargets]);
    assert!(ordered_pairs(&answer.scores, -0.2) > 0.9);
    let sources = answer.adaptation.unwrap().sources;
    let told = sources
        .iter()
        .map(|source| (source.target.as_str(), source.used, source.refusal()));
    let unlike = SourceRefusal::UnlikeOthers;
    let expected = [
        ("alpha", true, SourceRefusal::Unspecified),
        ("beta", true, SourceRefusal::Unspecified),
        ("noise", false, unlike),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let some: Vec<u16> = (0..72).step_by(9).collect();
    let both = Adapt {
        other_targets: vec!["beta".to_owned(), "a board".to_owned()],
        ..measured(&some)
    };
    let answer = rank(&server, Some(both)).await;
    assert_eq!(
        evidence(&answer),
        [Evidence::Measurements, Evidence::OtherTargets]
    );
    let sources = answer.adaptation.unwrap().sources;
    assert_eq!((sources.len(), sources[0].measured_configs), (1, 72));
    assert!(sources[0].agreement > 0.5);
}
