//! A server without models answers from measurements alone, of its target and of others.

use hlorank_client::v1::{Evidence, FeatureGraph, SourceRefusal, SuggestionReason};
use hlorank_tests::prelude::*;

use crate::feature_set::{TARGET, WithoutModels, parameters, space};

const COLUMNS: [&str; 3] = ["width", "height", "switch"];

/// What the switch does on [`TARGET`].
const SWITCH: f64 = -0.2;

/// The sizes and the switch of a space of 72 configurations.
fn values(number: u16) -> [f32; 3] {
    let [width, height] = [number % 6, number / 6 % 6].map(|exponent| 1_u16 << exponent);
    [width, height, number / 36].map(f32::from)
}

/// Fast where the product of the sizes is 128; what the switch does depends on the target.
fn seconds(number: u16, switch: f64) -> f64 {
    let [width, height, is_on] = values(number);
    let off = f64::from((width * height).log2()) - 7.0;
    1e-3 * (0.1 * off * off + switch * f64::from(is_on)).exp()
}

fn gemm(columns: [&str; 3], instance: &str) -> GraphHandle {
    let described = FeatureGraph {
        instance: instance.to_owned(),
        ..FeatureGraph::default()
    };
    space(&columns, described)
}

fn batch(numbers: &[u16]) -> Configurations {
    let rows: Vec<[f32; 3]> = numbers.iter().map(|&number| values(number)).collect();
    parameters(&rows)
}

fn all() -> Vec<u16> {
    (0..72).collect()
}

fn measured(numbers: &[u16]) -> Adapt {
    let times = run_times(numbers.iter().map(|&number| seconds(number, SWITCH)));
    Adapt::new(TARGET).measured(&batch(numbers), &times)
}

async fn rank(subject: &WithoutModels, adapt: Option<Adapt>) -> Ranking {
    let graph = gemm(COLUMNS, "1024");
    let configurations = batch(&all());
    let request = RankRequest::new(&graph, &configurations).with_scores();
    subject.client.rank(&request.adapt(adapt)).await.unwrap()
}

fn evidence(ranking: &Ranking) -> Vec<Evidence> {
    let adaptation = ranking.adaptation.as_ref().unwrap();
    adaptation.rests_on().collect()
}

/// Asserts that nine in ten pairs of configurations have scores in the order of their times.
fn assert_ordered(ranking: &Ranking) {
    let times: Vec<f64> = all()
        .into_iter()
        .map(|each| seconds(each, SWITCH))
        .collect();
    let ordered = pairs(&ranking.scores, &times).ordered_pair_accuracy();
    assert!(ordered.unwrap() > 0.9, "{ordered:?}");
}

#[tokio::test]
async fn measurements_alone_rank_a_space() {
    let subject = WithoutModels::start().await;
    let (status, text) = http_get(subject.server.metrics_address(), "/readyz").await;
    assert_eq!(status, 200, "{text}");
    let nothing = rank(&subject, None).await;
    assert_eq!(nothing.scores, [0.0; 72]);
    assert_eq!(nothing.model.name, "");
    let mut some = all();
    some.retain(|number| number % 5 < 2);
    let learned = rank(&subject, Some(measured(&some))).await;
    assert_eq!(evidence(&learned), [Evidence::Measurements]);
    assert_ordered(&learned);
    let few = rank(&subject, Some(measured(&[3]))).await;
    assert_eq!(evidence(&few), []);
}

#[tokio::test]
async fn instances_and_columns_are_told_apart() {
    let subject = WithoutModels::start().await;
    let mut hashes = HashSet::new();
    for graph in [
        gemm(COLUMNS, "1024"),
        gemm(COLUMNS, "2048"),
        gemm(["width", "height", "swap"], "1024"),
        gemm(COLUMNS, ""),
    ] {
        let request = RankRequest::new(&graph, &batch(&[0, 1, 2]));
        let ranking = subject.client.rank(&request).await.unwrap();
        assert!(hashes.insert(ranking.graph_hash), "{graph:?}");
    }
    let again = rank(&subject, None).await;
    assert!(hashes.contains(&again.graph_hash));
}

#[tokio::test]
async fn suggestions_fill_the_space_and_find_the_fastest() {
    let subject = WithoutModels::start().await;
    let time = |number: &u16| seconds(*number, SWITCH);
    let fastest = all().iter().map(time).fold(f64::INFINITY, f64::min);
    let is_found = |known: &[u16]| known.iter().any(|number| time(number) <= fastest);
    let (graph, configurations) = (gemm(COLUMNS, "1024"), batch(&all()));
    let mut known: Vec<u16> = Vec::new();
    let mut reasons = Vec::new();
    while !is_found(&known) && known.len() < 40 {
        let adapt = (!known.is_empty()).then(|| measured(&known));
        let request = SuggestRequest::new(&graph, &configurations).adapt(adapt);
        let request = request.since_improvement(0, 5);
        let suggested = subject.client.suggest(&request).await.unwrap();
        let suggestion = suggested.suggestions[0];
        let config = u16::try_from(suggestion.config).unwrap();
        assert!(!known.contains(&config), "{config} was measured");
        known.push(config);
        reasons.push(suggestion.reason);
    }
    assert!(is_found(&known), "{known:?}");
    assert_eq!(reasons[..3], [SuggestionReason::Random; 3]);
    assert!(!reasons[3..].contains(&SuggestionReason::Model));
}

#[tokio::test]
async fn other_targets_say_what_to_expect() {
    let subject = WithoutModels::start().await;
    let report = async |target: &str, time: &dyn Fn(u16) -> f64| {
        let times = run_times(all().into_iter().map(time));
        let adapt = Adapt::new(target).measured(&batch(&all()), &times);
        let graph = gemm(COLUMNS, "1024");
        let reported = subject.client.report_measurements(&graph, &adapt).await;
        assert_eq!(reported.unwrap().accepted, 72);
    };
    report("alpha", &|number| seconds(number, -0.1)).await;
    report("beta", &|number| 7.0 * seconds(number, -0.3)).await;
    report("noise", &|number| f64::from(1 + number * 31 % 67)).await;
    let ranking = rank(&subject, Some(Adapt::new(TARGET).all_other_targets())).await;
    assert_eq!(evidence(&ranking), [Evidence::OtherTargets]);
    assert_ordered(&ranking);
    let sources = ranking.adaptation.unwrap().sources;
    let told = sources
        .iter()
        .map(|source| (&*source.target, source.used, source.refusal()));
    let expected = [
        ("alpha", true, SourceRefusal::Unspecified),
        ("beta", true, SourceRefusal::Unspecified),
        ("noise", false, SourceRefusal::UnlikeOthers),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let some: Vec<u16> = (0..72).step_by(9).collect();
    let both = measured(&some).other_targets(["beta", TARGET]);
    let ranking = rank(&subject, Some(both)).await;
    assert_eq!(
        evidence(&ranking),
        [Evidence::Measurements, Evidence::OtherTargets]
    );
    let sources = ranking.adaptation.unwrap().sources;
    assert_eq!((sources.len(), sources[0].measured_configs), (1, 72));
    assert!(sources[0].agreement > 0.5);
}
