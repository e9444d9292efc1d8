mod decisions;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::{Digest, Task};
use redb::Database;
use tempfile::TempDir;

use super::{
    GraphKind, KeptGraph, Measurement, MeasurementChange, MeasurementFilter, MeasurementStore,
    OpenStoreError, Outcome, ReportOutcome, Reporter, ReporterFilter, RunningRetention, StoreError,
    StoreFault, Subject, file::tables::FACTS,
};
use crate::{clock, metrics::Metrics};

fn of_target(target: &str) -> MeasurementFilter {
    MeasurementFilter {
        target: Some(target.to_owned()),
        ..MeasurementFilter::default()
    }
}

fn of_subject(subject: &Subject) -> MeasurementFilter {
    MeasurementFilter {
        graph: Some(subject.graph),
        ..of_target(&subject.target)
    }
}

fn of_reporter(chosen: MeasurementFilter, reporter: Option<Reporter>) -> MeasurementFilter {
    MeasurementFilter { reporter, ..chosen }
}

fn open_with(path: &Path, limit: u64) -> Result<MeasurementStore, OpenStoreError> {
    MeasurementStore::open(path, limit, Metrics::default().store)
}

fn open(path: &Path) -> MeasurementStore {
    open_with(path, 1 << 30).unwrap_or_else(|error| panic!("{error}"))
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("measurements");
    (folder, path)
}

fn subject(target: &str, graph: u8) -> Subject {
    Subject {
        target: target.to_owned(),
        graph: Digest([graph; 32]),
    }
}

/// The first `count` measurements of a graph.
async fn of_graph(store: &MeasurementStore, subject: &Subject, count: usize) -> Vec<Measurement> {
    let page = store.list(&of_subject(subject), None, count).await.unwrap();
    page.measurements
        .into_iter()
        .map(|(_, measurement)| measurement)
        .collect()
}

fn measurement(number: u32) -> Measurement {
    let outcome = Outcome {
        seconds: 1.0 + f64::from(number),
        repeats: 1,
        failure: 0,
    };
    let config = (number / 2).to_le_bytes().to_vec();
    Measurement {
        task: Task::Tile,
        config,
        id: number.to_le_bytes().to_vec(),
        outcome,
        reporter: Reporter::named("ci").unwrap(),
        reported_at: 1_000 + u64::from(number),
        machine: String::new(),
    }
}

fn measurements(numbers: impl IntoIterator<Item = u32>) -> Vec<Measurement> {
    numbers.into_iter().map(measurement).collect()
}

fn reported(accepted: u64, known: u64) -> ReportOutcome {
    ReportOutcome { accepted, known }
}

#[tokio::test]
async fn a_measurement_is_kept_once_by_its_id() {
    let (_folder, path) = folder();
    let (store, subject) = (open(&path), subject("a", 1));
    assert_eq!(
        store
            .report(subject.clone(), measurements(0..4), None)
            .await,
        Ok(reported(4, 0))
    );
    assert_eq!(
        store
            .report(subject.clone(), measurements([3, 4, 4]), None)
            .await,
        Ok(reported(1, 2))
    );
    assert_eq!(of_graph(&store, &subject, 100).await.len(), 5);
}

#[tokio::test]
async fn a_measurement_keeps_when_it_was_first_reported() {
    let (_folder, path) = folder();
    let (store, subject) = (open(&path), subject("a", 1));
    let first = measurements(0..6);
    store
        .report(subject.clone(), first.clone(), Some(graph(1)))
        .await
        .unwrap();
    let mut again = first.clone();
    for each in &mut again {
        each.reported_at = 1_000_000;
    }
    assert_eq!(
        store.report(subject.clone(), again, None).await,
        Ok(reported(0, 6))
    );
    assert_eq!(of_graph(&store, &subject, 100).await.len(), 6);
    // Those that were reported at 1,000, 1,001 and so on.
    let before = |time| MeasurementFilter {
        reported_before: Some(time),
        ..MeasurementFilter::default()
    };
    let mut listed = store.list(&before(1_004), None, 100).await.unwrap();
    listed
        .measurements
        .sort_by_key(|(_, each)| each.reported_at);
    let listed = listed.measurements.into_iter().map(|(_, each)| each);
    assert_eq!(listed.collect::<Vec<_>>(), first[..4]);
    let of_other = MeasurementFilter {
        target: Some("b".to_owned()),
        ..before(1_004)
    };
    assert_eq!(store.delete(&of_other).await, Ok(0));
    assert_eq!(store.delete(&before(1_004)).await, Ok(4));
    assert_eq!(of_graph(&store, &subject, 100).await.len(), 2);
    assert_eq!(store.has_graph(subject.clone()).await, Ok(true));
    assert_eq!(store.delete(&before(2_000)).await, Ok(2));
    assert_eq!(store.has_graph(subject).await, Ok(false));
}

#[tokio::test]
async fn an_id_whose_outcome_changes_refuses_the_whole_report() {
    let (_folder, path) = folder();
    let (store, subject) = (open(&path), subject("a", 1));
    store
        .report(subject.clone(), measurements([0]), None)
        .await
        .unwrap();
    let mut changed = measurements([7, 0]);
    changed[1].outcome.seconds = 9.0;
    assert_eq!(
        store.report(subject.clone(), changed, None).await,
        Err(StoreError::Changed { index: 1 })
    );
    let mut twice = measurements([8, 8]);
    twice[1].outcome.repeats = 2;
    assert_eq!(
        store.report(subject.clone(), twice, None).await,
        Err(StoreError::Changed { index: 1 })
    );
    assert_eq!(of_graph(&store, &subject, 100).await, measurements([0]));
}

#[tokio::test]
async fn the_set_is_the_same_in_any_order_and_after_a_restart() {
    let (_folder, path) = folder();
    let (_other_folder, other_path) = folder();
    let subject = subject("a", 1);
    let (forth, back) = (open(&path), open(&other_path));
    for number in 0..50 {
        forth
            .report(subject.clone(), measurements([number]), None)
            .await
            .unwrap();
        back.report(
            subject.clone(),
            measurements([49 - number, (49 - number).min(48) + 1]),
            None,
        )
        .await
        .unwrap();
    }
    let all = of_graph(&forth, &subject, 1_000).await;
    assert_eq!(all.len(), 50);
    assert_eq!(of_graph(&back, &subject, 1_000).await, all);
    assert_eq!(of_graph(&back, &subject, 20).await, all[..20]);
    forth.close().await;
    assert_eq!(of_graph(&open(&path), &subject, 1_000).await, all);
}

#[tokio::test]
async fn targets_and_graphs_do_not_mix() {
    let (_folder, path) = folder();
    let store = open(&path);
    let subjects = [
        subject("a", 1),
        subject("a", 2),
        subject("ab", 1),
        subject("", 0),
    ];
    for (number, subject) in (0..).zip(&subjects) {
        store
            .report(subject.clone(), measurements([number]), None)
            .await
            .unwrap();
    }
    for (number, subject) in (0..).zip(&subjects) {
        assert_eq!(of_graph(&store, subject, 10).await, measurements([number]));
    }
    assert_eq!(
        store
            .list(&of_target("a"), None, 10)
            .await
            .unwrap()
            .measurements
            .len(),
        2
    );
    assert_eq!(store.delete(&of_subject(&subject("a", 2))).await, Ok(1));
    assert_eq!(store.delete(&of_target("a")).await, Ok(1));
    assert_eq!(store.delete(&of_target("a")).await, Ok(0));
    assert_eq!(
        store
            .list(&MeasurementFilter::default(), None, 10)
            .await
            .unwrap()
            .measurements
            .len(),
        2
    );
}

#[tokio::test]
async fn pages_together_are_the_whole() {
    let (_folder, path) = folder();
    let (store, subject) = (open(&path), subject("a", 1));
    store
        .report(subject.clone(), measurements(0..25), None)
        .await
        .unwrap();
    let (mut all, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = store.list(&of_target("a"), after, 10).await.unwrap();
        all.extend(
            page.measurements
                .into_iter()
                .map(|(_, measurement)| measurement),
        );
        (after, pages) = (page.next, pages + 1);
        if after.is_none() {
            break;
        }
    }
    assert_eq!((all, pages), (of_graph(&store, &subject, 100).await, 3));
}

#[tokio::test]
async fn a_full_store_refuses_until_something_is_deleted() {
    let (_folder, path) = folder();
    let (store, subject) = (open_with(&path, 1_100).unwrap(), subject("a", 1));
    // Each of another reporter, so that no share is full before the store is.
    let one = |number: u32| by(&number.to_string(), measurements([number]));
    let mut number = 0;
    let refused = loop {
        match store.report(subject.clone(), one(number), None).await {
            Ok(_) => number += 1,
            Err(refused) => break refused,
        }
    };
    assert!(
        matches!(refused, StoreError::Full { held, needed, limit: 1_100 } if held + needed > 1_100)
    );
    assert!(number >= 4, "{number}");
    assert_eq!(
        store.report(subject.clone(), one(0), None).await,
        Ok(reported(0, 1)),
        "it is there"
    );
    store.delete(&of_target("a")).await.unwrap();
    assert_eq!(
        store.report(subject.clone(), one(number), None).await,
        Ok(reported(1, 0))
    );
}

fn graph(byte: u8) -> KeptGraph {
    graph_of("ci", byte)
}

fn graph_of(reporter: &str, byte: u8) -> KeptGraph {
    KeptGraph {
        kind: GraphKind {
            task: Task::Tile,
            structure: Digest([byte % 2; 32]),
            reporter: Reporter::named(reporter).unwrap(),
        },
        message: vec![byte; 100],
    }
}

#[tokio::test]
async fn a_graph_is_kept_once_and_deleted_with_its_measurements() {
    let (_folder, path) = folder();
    let (store, [one, other]) = (open(&path), [subject("a", 1), subject("b", 1)]);
    for subject in [&one, &other] {
        store
            .report(subject.clone(), measurements([0]), Some(graph(1)))
            .await
            .unwrap();
        store
            .report(subject.clone(), measurements([1]), Some(graph(2)))
            .await
            .unwrap();
    }
    assert_eq!(
        store.graph(one.clone()).await,
        Ok(Some(graph(1))),
        "the first stays"
    );
    let tile = |subject: &Subject| (subject.clone(), Task::Tile);
    assert_eq!(
        store.subjects(None, 10).await,
        Ok(vec![tile(&one), tile(&other)])
    );
    assert_eq!(
        store.subjects(Some(one.clone()), 10).await,
        Ok(vec![tile(&other)])
    );
    assert_eq!(store.delete(&of_target("a")).await, Ok(2));
    assert_eq!(
        (store.graph(one).await, store.graph(other).await),
        (Ok(None), Ok(Some(graph(1))))
    );
}

#[tokio::test]
async fn graphs_of_a_structure_are_found_on_their_target_alone() {
    let (_folder, path) = folder();
    let store = open(&path);
    for number in 0..6 {
        for target in ["a", "ab"] {
            store
                .report(
                    subject(target, number),
                    measurements([0]),
                    Some(graph(number)),
                )
                .await
                .unwrap();
        }
    }
    let alike = async |count| {
        store
            .alike(subject("a", 2), Digest([0; 32]), count)
            .await
            .unwrap()
    };
    assert_eq!(
        alike(10).await,
        [subject("a", 0), subject("a", 4)],
        "neither itself nor another target"
    );
    assert_eq!(alike(1).await, [subject("a", 0)]);
    store.delete(&of_subject(&subject("a", 0))).await.unwrap();
    assert_eq!(alike(10).await, [subject("a", 4)]);
}

#[tokio::test]
async fn a_graph_counts_towards_the_limit() {
    let (_folder, path) = folder();
    let (store, subject) = (open_with(&path, 1_000).unwrap(), subject("a", 1));
    let large = KeptGraph {
        message: vec![0; 1_000],
        ..graph(0)
    };
    let refused = store
        .report(subject.clone(), measurements([0]), Some(large))
        .await;
    assert!(
        matches!(
            refused,
            Err(StoreError::Full {
                needed: 1_000..,
                ..
            })
        ),
        "{refused:?}"
    );
    assert!(of_graph(&store, &subject, 10).await.is_empty());
    store
        .report(subject.clone(), measurements([0]), Some(graph(1)))
        .await
        .unwrap();
    store.delete(&of_target("a")).await.unwrap();
    store
        .report(subject, measurements([0]), Some(graph(1)))
        .await
        .unwrap();
}

#[tokio::test]
async fn whoever_waits_is_told_what_changed() {
    let (_folder, path) = folder();
    let (store, [one, other]) = (open(&path), [subject("a", 1), subject("b", 1)]);
    store
        .report(one.clone(), measurements([0]), None)
        .await
        .unwrap();
    store
        .report(other.clone(), measurements([0]), None)
        .await
        .unwrap();
    assert_eq!(
        store.changed().await,
        MeasurementChange::Subjects([one.clone(), other].into())
    );
    store.report(one, measurements([0]), None).await.unwrap();
    store.delete(&of_target("a")).await.unwrap();
    assert_eq!(
        store.changed().await,
        MeasurementChange::All,
        "a known measurement changes nothing, and a deletion anything"
    );
}

#[tokio::test]
async fn reports_that_wait_together_are_all_answered() {
    let (_folder, path) = folder();
    let (store, subject) = (open(&path), subject("a", 1));
    let all = measurements(0..500);
    let reports = all
        .chunks(1)
        .map(|one| store.report(subject.clone(), one.to_vec(), None));
    let answers = futures::future::join_all(reports).await;
    assert!(answers.iter().all(|answer| *answer == Ok(reported(1, 0))));
    assert_eq!(of_graph(&store, &subject, 1_000).await.len(), 500);
}

fn refusal(path: &Path) -> StoreFault {
    let error = open_with(path, 1).err().expect("it is refused");
    assert!(
        error.to_string().contains(&path.display().to_string()),
        "{error}"
    );
    error.reason
}

#[tokio::test]
async fn a_file_that_is_open_already_is_refused() {
    let (_folder, path) = folder();
    let store = open(&path);
    assert!(matches!(refusal(&path), StoreFault::Locked));
    store.close().await;
    open(&path);
}

#[tokio::test]
async fn a_file_of_a_later_format_is_refused_and_left_alone() {
    let (_folder, path) = folder();
    open(&path).close().await;
    let database = Database::open(&path).unwrap();
    let write = database.begin_write().unwrap();
    write
        .open_table(FACTS)
        .unwrap()
        .insert("format", 8)
        .unwrap();
    write.commit().unwrap();
    drop(database);
    assert!(matches!(
        refusal(&path),
        StoreFault::OtherFormat { found: 8, known: 7 }
    ));
}

/// Waits until something about the store is so.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < Duration::from_mins(1), "it never is");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_file_shrinks_after_most_was_deleted_and_keeps_the_rest() {
    let (_folder, path) = folder();
    let (store, [large, small]) = (open(&path), [subject("a", 1), subject("b", 1)]);
    let of_bytes = |number: u32| Measurement {
        config: [&number.to_le_bytes()[..], &vec![7; 20_000]].concat(),
        ..measurement(number)
    };
    for number in 0..20 {
        let some: Vec<Measurement> = (number * 100..(number + 1) * 100).map(of_bytes).collect();
        store.report(large.clone(), some, None).await.unwrap();
    }
    store
        .report(small.clone(), measurements(0..50), Some(graph(1)))
        .await
        .unwrap();
    let length = || fs::metadata(&path).unwrap().len();
    assert!(length() > 32 << 20, "{}", length());
    assert_eq!(store.delete(&of_target("a")).await, Ok(2_000));
    until(async || length() < 4 << 20).await;
    assert_eq!(of_graph(&store, &small, 100).await.len(), 50);
    store
        .report(small.clone(), measurements(50..60), None)
        .await
        .unwrap();
    assert!(matches!(refusal(&path), StoreFault::Locked));
    store.close().await;
    let store = open(&path);
    let mut kept = of_graph(&store, &small, 100).await;
    kept.sort_by_key(|each| each.reported_at);
    assert_eq!(kept, measurements(0..60));
    assert_eq!(store.graph(small.clone()).await, Ok(Some(graph(1))));
    assert_eq!(
        store.delete(&chosen_by("ci")).await,
        Ok(60),
        "of a reporter"
    );
}

#[tokio::test]
async fn measurements_expire_once_they_were_kept_for_long_enough() {
    let (_folder, path) = folder();
    let (store, subject) = (Arc::new(open(&path)), subject("a", 1));
    let year = Duration::from_hours(24 * 365);
    let mut new = measurements(10..15);
    for each in &mut new {
        each.reported_at = clock::seconds().unwrap();
    }
    store
        .report(subject.clone(), measurements(0..10), Some(graph(1)))
        .await
        .unwrap();
    store
        .report(subject.clone(), new.clone(), None)
        .await
        .unwrap();
    let retention = RunningRetention::start(Arc::clone(&store), year);
    until(async || of_graph(&store, &subject, 100).await.len() == 5).await;
    drop(retention);
    let _retention = RunningRetention::start(Arc::clone(&store), Duration::from_secs(1));
    until(async || of_graph(&store, &subject, 100).await.is_empty()).await;
    until(async || store.has_graph(subject.clone()).await == Ok(false)).await;
}

/// The same measurements, reported by somebody.
fn by(reporter: &str, measurements: Vec<Measurement>) -> Vec<Measurement> {
    let reporter = Reporter::named(reporter).unwrap();
    measurements
        .into_iter()
        .map(|each| Measurement {
            reporter: reporter.clone(),
            ..each
        })
        .collect()
}

fn chosen_by(reporter: &str) -> MeasurementFilter {
    of_reporter(MeasurementFilter::default(), Reporter::named(reporter))
}

#[tokio::test]
async fn each_reporter_has_its_own_measurements_whatever_the_ids() {
    let (_folder, path) = folder();
    let (store, subject) = (open(&path), subject("a", 1));
    let mut slower = by("eve", measurements([0]));
    slower[0].outcome.seconds = 9.0;
    assert_eq!(
        store.report(subject.clone(), slower.clone(), None).await,
        Ok(reported(1, 0))
    );
    let own = by("ci", measurements(0..4));
    assert_eq!(
        store.report(subject.clone(), own.clone(), None).await,
        Ok(reported(4, 0)),
        "no id is taken"
    );
    assert_eq!(
        store.report(subject.clone(), own.clone(), None).await,
        Ok(reported(0, 4))
    );
    let list = async |chosen: &MeasurementFilter| {
        let page = store.list(chosen, None, 100).await.unwrap();
        page.measurements
            .into_iter()
            .map(|(_, measurement)| measurement)
            .collect::<Vec<_>>()
    };
    assert_eq!(list(&chosen_by("eve")).await, slower);
    assert_eq!(
        list(&of_reporter(of_subject(&subject), Reporter::named("ci")))
            .await
            .len(),
        4
    );
    assert_eq!(
        list(&of_reporter(of_target("b"), Reporter::named("ci"))).await,
        []
    );
    assert_eq!(list(&MeasurementFilter::default()).await.len(), 5);
}

#[tokio::test]
async fn deleting_a_reporter_leaves_what_others_measured() {
    let (_folder, path) = folder();
    let (store, [shared, own]) = (open(&path), [subject("a", 1), subject("b", 1)]);
    let graph = || Some(graph_of("eve", 1));
    store
        .report(shared.clone(), by("eve", measurements(0..30)), graph())
        .await
        .unwrap();
    store
        .report(shared.clone(), by("ci", measurements(0..3)), None)
        .await
        .unwrap();
    store
        .report(own.clone(), by("eve", measurements(0..5)), graph())
        .await
        .unwrap();
    assert_eq!(
        store
            .delete(&of_reporter(of_target("b"), Reporter::named("ci")))
            .await,
        Ok(0)
    );
    assert_eq!(store.delete(&chosen_by("eve")).await, Ok(35));
    assert_eq!(
        of_graph(&store, &shared, 100).await,
        by("ci", measurements(0..3))
    );
    assert_eq!(
        store.has_graph(shared.clone()).await,
        Ok(true),
        "it has measurements"
    );
    assert_eq!(store.has_graph(own).await, Ok(false));
    assert_eq!(store.delete(&chosen_by("ci")).await, Ok(3));
    assert_eq!(store.has_graph(shared).await, Ok(false));
}

#[tokio::test]
async fn one_client_leaves_room_for_others_until_its_own_is_deleted() {
    let (_folder, path) = folder();
    let (store, subject) = (open_with(&path, 6_000).unwrap(), subject("a", 1));
    let fill = async |reporter: &str| {
        let (mut number, mut refused) = (0, None);
        while refused.is_none() {
            refused = store
                .report(subject.clone(), by(reporter, measurements([number])), None)
                .await
                .err();
            number += 1;
        }
        (number - 1, refused.unwrap())
    };
    let (of_one, refused) = fill("eve").await;
    let StoreError::ShareFull {
        reporter,
        found,
        allowed,
    } = refused
    else {
        panic!("{refused}")
    };
    assert_eq!(reporter, "eve");
    assert!(
        (4_350..4_800).contains(&found) && found > allowed,
        "{found} of {allowed}"
    );
    let (of_other, _) = fill("ci").await;
    assert!(
        of_other >= 4 && of_one > 3 * of_other,
        "{of_one} and {of_other}"
    );
    assert_eq!(store.delete(&chosen_by("eve")).await, Ok(of_one.into()));
    assert!(
        fill("eve").await.0 >= of_one - of_other,
        "its share is free again"
    );
}

/// The measurements of a graph that are drawn, as numbers of their configurations and outcomes.
async fn drawn(
    store: &MeasurementStore,
    subject: &Subject,
    whose: &ReporterFilter,
    count: usize,
) -> Vec<(u32, f64)> {
    let keys = store.draw(subject, whose, count).await.unwrap();
    let (mut all, mut left) = (Vec::new(), keys.as_slice());
    while !left.is_empty() {
        let (page, keys_read) = store.read(left).await.unwrap();
        all.extend(page);
        left = &left[keys_read..];
    }
    let mut read: Vec<(u32, f64)> = all
        .into_iter()
        .map(|each| {
            let config = each.config.try_into().unwrap();
            (u32::from_le_bytes(config), each.outcome.seconds)
        })
        .collect();
    read.sort_by(|one, other| one.partial_cmp(other).unwrap());
    read
}

/// Measurements of a configuration by a reporter, from the number of the first one.
fn repeated(reporter: &str, config: u32, count: u32) -> Vec<Measurement> {
    let each = |number| Measurement {
        config: config.to_le_bytes().to_vec(),
        ..measurement(number)
    };
    by(reporter, (0..count).map(each).collect())
}

#[tokio::test]
async fn configurations_that_were_measured_often_leave_room_for_the_others() {
    let (_folder, path) = folder();
    let (store, subject) = (open(&path), subject("a", 1));
    for config in 0..8 {
        store
            .report(subject.clone(), repeated("eve", config, 2_000), None)
            .await
            .unwrap();
    }
    for config in 0..20 {
        store
            .report(subject.clone(), repeated("ci", config, 1), None)
            .await
            .unwrap();
    }
    for count in [20, 100, 2_000] {
        let read = drawn(&store, &subject, &ReporterFilter::Everyone, count).await;
        assert_eq!(read.len(), count);
        let configs: std::collections::BTreeMap<u32, usize> = read.iter().fold(
            std::collections::BTreeMap::default(),
            |mut all, (config, _)| {
                *all.entry(*config).or_default() += 1;
                all
            },
        );
        assert_eq!(configs.len(), 20, "{count} of all configurations");
        // The rest is shared by the eight that have more.
        let often: Vec<usize> = configs.range(..8).map(|(_, number)| *number).collect();
        let [least, most] = [often.iter().min().unwrap(), often.iter().max().unwrap()];
        assert!(most - least <= 1, "{often:?}");
    }
    let all = drawn(&store, &subject, &ReporterFilter::Everyone, 100_000).await;
    assert_eq!(all.len(), 16_020);
}

#[tokio::test]
async fn what_a_reporter_measured_is_drawn_before_what_others_did() {
    let (_folder, path) = folder();
    let (store, subject) = (open(&path), subject("a", 1));
    let ci = Reporter::named("ci").unwrap();
    for config in 0..500 {
        store
            .report(subject.clone(), repeated("eve", config, 1), None)
            .await
            .unwrap();
    }
    for config in 490..510 {
        store
            .report(subject.clone(), repeated("ci", config, 3), None)
            .await
            .unwrap();
    }
    let own = drawn(&store, &subject, &ReporterFilter::Only(ci.clone()), 2_000).await;
    assert_eq!(own.len(), 60);
    let first = drawn(&store, &subject, &ReporterFilter::First(ci.clone()), 100).await;
    assert_eq!(first.len(), 100);
    assert!(own.iter().all(|each| first.contains(each)), "{first:?}");
    let some = drawn(&store, &subject, &ReporterFilter::First(ci.clone()), 20).await;
    let configs: Vec<u32> = some.iter().map(|(config, _)| *config).collect();
    assert_eq!(configs, (490..510).collect::<Vec<u32>>(), "each once");
    let nobody = ReporterFilter::Only(Reporter::named("bob").unwrap());
    assert!(drawn(&store, &subject, &nobody, 10).await.is_empty());
    store.delete(&chosen_by("ci")).await.unwrap();
    let left = drawn(&store, &subject, &ReporterFilter::First(ci), 2_000).await;
    assert_eq!(left.len(), 500);
}

#[test]
fn a_path_that_cannot_be_written_is_refused() {
    let (folder, _) = folder();
    assert!(matches!(
        refusal(&folder.path().join("no/such/folder")),
        StoreFault::Io(_)
    ));
    assert!(matches!(refusal(folder.path()), StoreFault::Io(_)));
}

#[test]
fn a_file_of_something_else_is_refused_and_left_alone() {
    let (_folder, path) = folder();
    for content in [b"{}".repeat(4_000), b"x".to_vec()] {
        fs::write(&path, &content).unwrap();
        assert!(matches!(refusal(&path), StoreFault::Damaged(_)));
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[tokio::test]
async fn a_damaged_file_is_refused_or_says_the_same_as_before() {
    let (_folder, path) = folder();
    let (store, subject) = (open(&path), subject("a", 1));
    store
        .report(subject.clone(), measurements(0..2_000), None)
        .await
        .unwrap();
    let all = of_graph(&store, &subject, 2_000).await;
    store.close().await;
    let (intact, mut refused) = (fs::read(&path).unwrap(), 0);
    for seed in 0..80 {
        let (mut random, mut damaged) = (fastrand::Rng::with_seed(seed), intact.clone());
        let place = random.usize(..damaged.len());
        match seed % 4 {
            0 => damaged[place] ^= 1 << random.u8(..8),
            // All but the header, and some of that.
            3 => damaged[(1 << random.u32(6..16)).min(intact.len())..].fill(0),
            1 => damaged[place / 4_096 * 4_096..][..4_096].fill_with(|| random.u8(..)),
            _ => damaged.truncate(place),
        }
        fs::write(&path, damaged).unwrap();
        match open_with(&path, 1) {
            Ok(store) => {
                assert_eq!(of_graph(&store, &subject, 2_000).await, all, "seed {seed}");
                store.close().await;
            }
            Err(OpenStoreError {
                reason: StoreFault::Damaged(_),
                ..
            }) => refused += 1,
            Err(other) => panic!("seed {seed}: {other}"),
        }
    }
    assert!(refused > 40, "{refused} of 80");
}
