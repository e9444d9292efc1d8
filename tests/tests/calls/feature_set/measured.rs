use hlorank_client::v1::ScoreUnit;
use hlorank_graph::{FeatureFile, FileKind};
use hlorank_tests::prelude::*;

use super::{Subject, assert_near};

const TARGET: &str = "a board";

/// A graph, its configurations, and times that are three times the scores.
fn case(model: &FeatureSetModel) -> (FeatureGraph, NodeFeatureBatch, Vec<MeasuredOutcome>) {
    let mut random = Rng::with_seed(11);
    let (graph, batch) = (
        Loops::graph(6, &mut random),
        Loops::batch(6, 60, &mut random),
    );
    let time = |&score: &f32| MeasuredOutcome::Time {
        seconds: f64::from(score.max(0.1)) * 3.0,
        repeats: 2,
    };
    let times = model.scores(&graph, &batch).iter().map(time).collect();
    (graph, batch, times)
}

fn seconds() -> FeatureSetModel {
    FeatureSetModel {
        seconds: true,
        config_weights: vec![1.5, 0.5],
        ..FeatureSetModel::of_loops("loops-sum")
    }
}

#[tokio::test]
async fn measurements_adapt_scores_and_suggestions() {
    let subject = Subject::with(seconds(), &[]).await;
    let (graph, batch, times) = case(&subject.model);
    let (handle, all) = (
        GraphHandle::feature_graph(&graph),
        Configurations::FeatureSet(batch.clone()),
    );
    let predicted = subject.rank(&graph, &batch).await;
    assert_eq!(
        (predicted.unit, predicted.predicted_seconds.len()),
        (ScoreUnit::Seconds, 60)
    );
    let some: Vec<usize> = (0..20).collect();
    let adapt = Adapt::new(TARGET).measured(&all.select(&some), &times[..20]);
    let request = RankRequest::new(&handle, &all)
        .with_scores()
        .adapt(Some(adapt.clone()));
    let adapted = subject.client.rank(&request).await.unwrap();
    assert_eq!(adapted.unit, ScoreUnit::LogSeconds);
    for (config, (&score, before)) in adapted
        .scores
        .iter()
        .zip(&predicted.scores)
        .enumerate()
        .skip(20)
    {
        let factor = score.exp() / before.max(0.1);
        assert!(
            (2.5..3.5).contains(&factor),
            "configuration {config}: {factor}"
        );
    }
    let suggest = SuggestRequest::new(&handle, &all)
        .adapt(Some(&adapt))
        .count(5);
    let suggested = subject.client.suggest(&suggest).await.unwrap().suggestions;
    let known: BTreeSet<Vec<u8>> = some.iter().map(|&config| all.canonical(config)).collect();
    assert_eq!(suggested.len(), 5);
    assert!(
        suggested
            .iter()
            .all(|each| !known.contains(&all.canonical(each.config))),
        "measured again"
    );
}

#[tokio::test]
async fn what_only_another_target_says_has_no_unit() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("measurements");
    let subject = Subject::with(seconds(), &[&format!("--measurements={}", store.display())]).await;
    let (graph, batch, times) = case(&subject.model);
    let handle = GraphHandle::feature_graph(&graph);
    let all = Configurations::FeatureSet(batch);
    let sent = Adapt::new(TARGET).measured(&all, &times);
    let reported = subject.client.report_measurements(&handle, &sent).await;
    assert_eq!(reported.unwrap().accepted, 60);
    let adapt = Adapt::new("another board").other_targets([TARGET]);
    let request = RankRequest::new(&handle, &all).adapt(Some(adapt));
    let ranking = subject.client.rank(&request).await.unwrap();
    assert!(ranking.adaptation.unwrap().sources[0].used);
    assert_eq!(ranking.unit, ScoreUnit::Unspecified);
    assert!(ranking.predicted_seconds.is_empty() && ranking.log_sd.is_empty());
}

#[tokio::test]
async fn reported_measurements_adapt_as_sent_ones_do() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_flag(folder.path());
    let subject = Subject::with(seconds(), &[&store]).await;
    let (graph, batch, times) = case(&subject.model);
    let (handle, all) = (
        GraphHandle::feature_graph(&graph),
        Configurations::FeatureSet(batch),
    );
    let sent = Adapt::new(TARGET).measured(&all, &times);
    let reported = subject
        .client
        .report_measurements(&handle, &sent)
        .await
        .unwrap();
    assert_eq!((reported.accepted, reported.known), (60, 0));
    let again = subject
        .client
        .report_measurements(&handle, &sent)
        .await
        .unwrap();
    assert_eq!((again.accepted, again.known), (0, 60));
    let rank = async |adapt| {
        let request = RankRequest::new(&handle, &all)
            .with_scores()
            .adapt(Some(adapt));
        subject.client.rank(&request).await.unwrap()
    };
    let (stored, direct) = (
        rank(Adapt::new(TARGET).use_stored()).await,
        rank(sent).await,
    );
    assert!(stored.warnings.is_empty(), "{:?}", stored.warnings);
    assert_eq!(stored.scores, direct.scores);
    let listed = subject
        .client
        .list_measurements(&ListMeasurementsRequest::default())
        .await
        .unwrap();
    assert_eq!(
        listed
            .graphs
            .iter()
            .map(|each| each.ids.len())
            .sum::<usize>(),
        60
    );
}

#[tokio::test]
async fn a_measured_file_is_read_ranked_and_written_again() {
    let subject = Subject::new().await;
    let measured = Loops::measured(&subject.model, 5, 30, &mut Rng::with_seed(3));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loops.npz");
    FeatureFile::write(&path, &measured, Pad::Zero).unwrap();
    let file = GraphFile::read(&path, Task::Layout, &Limits::default()).unwrap();
    assert_eq!(file.kind, FileKind::ConfigurationNpz(Task::FeatureSet));
    let [read] = &file.graphs[..] else {
        panic!("one graph")
    };
    assert_eq!(read.graph, measured.graph);
    let (read_runs, runs) = (
        read.measurements.as_ref().unwrap(),
        measured.measurements.as_ref().unwrap(),
    );
    assert_eq!(
        (&read_runs.configurations, &read_runs.run_times),
        (&runs.configurations, &runs.run_times)
    );
    let Configurations::FeatureSet(batch) = &runs.configurations else {
        panic!("columns")
    };
    let handle = GraphHandle::from_measured(read);
    let request = RankRequest::new(&handle, &runs.configurations).with_scores();
    let ranking = subject.client.rank(&request).await.unwrap();
    assert_near(
        &ranking.scores,
        &subject
            .model
            .scores(measured.graph.feature_graph().unwrap(), batch),
    );
}
