use hlorank_client::v1::ScoreUnit;
use hlorank_tests::prelude::*;

use super::{Subject, TARGET};

/// A model of seconds, and a graph with configurations that take three times the seconds that it predicts.
struct Measured {
    subject: Subject,
    handle: GraphHandle,
    all: Configurations,
    times: Vec<MeasuredOutcome>,
}

impl Measured {
    async fn start(flags: &[&str]) -> Self {
        let model = FeatureSetModel {
            seconds: true,
            config_weights: vec![1.5, 0.5],
            ..FeatureSetModel::of_loops("loops-sum")
        };
        let mut random = Rng::with_seed(11);
        let graph = Loops::graph(6, &mut random);
        let batch = Loops::batch(6, 60, &mut random);
        let scores = model.scores(&graph, &batch).into_iter();
        Self {
            times: run_times(scores.map(|score| f64::from(score.max(0.1)) * 3.0)),
            handle: GraphHandle::feature_graph(&graph),
            all: Configurations::FeatureSet(batch),
            subject: Subject::with(model, flags).await,
        }
    }

    async fn rank(&self, adapt: Option<Adapt>) -> Ranking {
        let request = RankRequest::new(&self.handle, &self.all).with_scores();
        self.subject
            .client
            .rank(&request.adapt(adapt))
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn measurements_adapt_scores_and_suggestions() {
    let measured = Measured::start(&[]).await;
    let all = &measured.all;
    let predicted = measured.rank(None).await;
    assert_eq!(predicted.unit, ScoreUnit::Seconds);
    assert_eq!(predicted.predicted_seconds.len(), 60);
    let some: Vec<usize> = (0..20).collect();
    let adapt = Adapt::new(TARGET).measured(&all.select(&some), &measured.times[..20]);
    let adapted = measured.rank(Some(adapt.clone())).await;
    assert_eq!(adapted.unit, ScoreUnit::LogSeconds);
    let scores = adapted.scores.iter().zip(&predicted.scores);
    for (config, (&score, before)) in scores.enumerate().skip(20) {
        let factor = score.exp() / before.max(0.1);
        assert!(
            (2.5..3.5).contains(&factor),
            "configuration {config}: {factor}"
        );
    }
    let request = SuggestRequest::new(&measured.handle, all).adapt(Some(&adapt));
    let suggested = measured.subject.client.suggest(&request.count(5)).await;
    let suggestions = suggested.unwrap().suggestions;
    assert_eq!(suggestions.len(), 5);
    let known: BTreeSet<Vec<u8>> = some.iter().map(|&config| all.canonical(config)).collect();
    assert!(
        suggestions
            .iter()
            .all(|each| !known.contains(&all.canonical(each.config))),
        "measured again"
    );
}

#[tokio::test]
async fn reported_measurements_adapt_as_sent_ones_do_and_those_of_another_target_have_no_unit() {
    let folder = tempfile::tempdir().unwrap();
    let measured = Measured::start(&[&store_flag(folder.path())]).await;
    let sent = Adapt::new(TARGET).measured(&measured.all, &measured.times);
    for (accepted, known) in [(60, 0), (0, 60)] {
        let client = &measured.subject.client;
        let reported = client.report_measurements(&measured.handle, &sent).await;
        let reported = reported.unwrap();
        assert_eq!((reported.accepted, reported.known), (accepted, known));
    }
    let stored = measured.rank(Some(Adapt::new(TARGET).use_stored())).await;
    assert!(stored.warnings.is_empty(), "{:?}", stored.warnings);
    assert_eq!(stored.scores, measured.rank(Some(sent)).await.scores);

    let adapt = Adapt::new("another board").other_targets([TARGET]);
    let ranking = measured.rank(Some(adapt)).await;
    assert!(ranking.adaptation.unwrap().sources[0].used);
    assert_eq!(ranking.unit, ScoreUnit::Unspecified);
    assert!(ranking.predicted_seconds.is_empty() && ranking.log_sd.is_empty());
}
