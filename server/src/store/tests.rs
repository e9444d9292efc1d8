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
    open_with(path, LARGE).unwrap()
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("measurements");
    (folder, path)
}

/// A store in a new folder, with a maximum number of bytes.
fn new_store(limit: u64) -> (TempDir, MeasurementStore) {
    let (folder, path) = folder();
    (folder, open_with(&path, limit).unwrap())
}

/// A limit that no test reaches.
const LARGE: u64 = 1 << 30;

fn subject(target: &str, graph: u8) -> Subject {
    Subject {
        target: target.to_owned(),
        graph: Digest([graph; 32]),
    }
}

/// Reports measurements that the store has to take.
async fn keep(
    store: &MeasurementStore,
    subject: &Subject,
    measurements: Vec<Measurement>,
    graph: Option<KeptGraph>,
) -> ReportOutcome {
    let reported = store.report(subject.clone(), measurements, graph).await;
    reported.unwrap()
}

/// The first `count` of the chosen measurements.
async fn listed(
    store: &MeasurementStore,
    chosen: &MeasurementFilter,
    count: usize,
) -> Vec<Measurement> {
    let page = store.list(chosen, None, count).await.unwrap();
    let measurements = page.measurements.into_iter();
    measurements.map(|(_, measurement)| measurement).collect()
}

/// The first `count` measurements of a graph.
async fn of_graph(store: &MeasurementStore, subject: &Subject, count: usize) -> Vec<Measurement> {
    listed(store, &of_subject(subject), count).await
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
async fn a_measurement_is_kept_once_by_its_id_with_when_it_was_first_reported() {
    let (_folder, store) = new_store(LARGE);
    let subject = subject("a", 1);
    let first = measurements(0..6);
    let reported_first = keep(&store, &subject, measurements(0..5), Some(graph(1))).await;
    assert_eq!(reported_first, reported(5, 0));
    let next = keep(&store, &subject, measurements([4, 5, 5]), None).await;
    assert_eq!(next, reported(1, 2));
    let mut again = first.clone();
    for each in &mut again {
        each.reported_at = 1_000_000;
    }
    assert_eq!(keep(&store, &subject, again, None).await, reported(0, 6));
    assert_eq!(of_graph(&store, &subject, 100).await.len(), 6);
    // Those that were reported at 1,000, 1,001 and so on.
    let before = |time| MeasurementFilter {
        reported_before: Some(time),
        ..MeasurementFilter::default()
    };
    let mut early = listed(&store, &before(1_004), 100).await;
    early.sort_by_key(|each| each.reported_at);
    assert_eq!(early, first[..4]);
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
    let (_folder, store) = new_store(LARGE);
    let subject = subject("a", 1);
    keep(&store, &subject, measurements([0]), None).await;
    let mut changed = measurements([7, 0]);
    changed[1].outcome.seconds = 9.0;
    let mut twice = measurements([8, 8]);
    twice[1].outcome.repeats = 2;
    for refused in [changed, twice] {
        assert_eq!(
            store.report(subject.clone(), refused, None).await,
            Err(StoreError::Changed { index: 1 })
        );
    }
    assert_eq!(of_graph(&store, &subject, 100).await, measurements([0]));
}

#[tokio::test]
async fn the_set_is_the_same_in_any_order_and_after_a_restart() {
    let (_folder, path) = folder();
    let (_other_folder, back) = new_store(LARGE);
    let (forth, subject) = (open(&path), subject("a", 1));
    for number in 0..50 {
        keep(&forth, &subject, measurements([number]), None).await;
        let number = 49 - number;
        let two = measurements([number, number.min(48) + 1]);
        keep(&back, &subject, two, None).await;
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
    let (_folder, store) = new_store(LARGE);
    let subjects = [
        subject("a", 1),
        subject("a", 2),
        subject("ab", 1),
        subject("", 0),
    ];
    for (number, subject) in (0..).zip(&subjects) {
        keep(&store, subject, measurements([number]), None).await;
    }
    for (number, subject) in (0..).zip(&subjects) {
        assert_eq!(of_graph(&store, subject, 10).await, measurements([number]));
    }
    assert_eq!(listed(&store, &of_target("a"), 10).await.len(), 2);
    assert_eq!(store.delete(&of_subject(&subject("a", 2))).await, Ok(1));
    assert_eq!(store.delete(&of_target("a")).await, Ok(1));
    assert_eq!(store.delete(&of_target("a")).await, Ok(0));
    let all = MeasurementFilter::default();
    assert_eq!(listed(&store, &all, 10).await.len(), 2);
}

#[tokio::test]
async fn pages_together_are_the_whole() {
    let (_folder, store) = new_store(LARGE);
    let subject = subject("a", 1);
    keep(&store, &subject, measurements(0..25), None).await;
    let (mut all, mut after) = (Vec::new(), None);
    for has_next in [true, true, false] {
        let page = store.list(&of_target("a"), after, 10).await.unwrap();
        assert_eq!(page.next.is_some(), has_next);
        let measurements = page.measurements.into_iter();
        all.extend(measurements.map(|(_, measurement)| measurement));
        after = page.next;
    }
    assert_eq!(all, of_graph(&store, &subject, 100).await);
}

#[tokio::test]
async fn a_full_store_refuses_until_something_is_deleted() {
    let (_folder, store) = new_store(1_100);
    let subject = subject("a", 1);
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
    let known = keep(&store, &subject, one(0), None).await;
    assert_eq!(known, reported(0, 1), "it is there");
    store.delete(&of_target("a")).await.unwrap();
    keep(&store, &subject, one(number), None).await;
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
    let (_folder, store) = new_store(LARGE);
    let [one, other] = [subject("a", 1), subject("b", 1)];
    for subject in [&one, &other] {
        keep(&store, subject, measurements([0]), Some(graph(1))).await;
        keep(&store, subject, measurements([1]), Some(graph(2))).await;
    }
    let first = store.graph(one.clone()).await;
    assert_eq!(first, Ok(Some(graph(1))), "the first stays");
    let all = [one.clone(), other.clone()].map(|subject| (subject, Task::Tile));
    assert_eq!(store.subjects(None, 10).await.unwrap(), all);
    let after = store.subjects(Some(one.clone()), 10).await;
    assert_eq!(after.unwrap(), all[1..]);
    assert_eq!(store.delete(&of_target("a")).await, Ok(2));
    assert_eq!(store.graph(one).await, Ok(None));
    assert_eq!(store.graph(other).await, Ok(Some(graph(1))));
}

#[tokio::test]
async fn graphs_of_a_structure_are_found_on_their_target_alone() {
    let (_folder, store) = new_store(LARGE);
    for number in 0..6 {
        for target in ["a", "ab"] {
            let subject = subject(target, number);
            keep(&store, &subject, measurements([0]), Some(graph(number))).await;
        }
    }
    let alike = async |count| {
        let found = store.alike(subject("a", 2), Digest([0; 32]), count);
        found.await.unwrap()
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
    let (_folder, store) = new_store(1_000);
    let subject = subject("a", 1);
    let large = KeptGraph {
        message: vec![0; 1_000],
        ..graph(0)
    };
    let refused = store.report(subject.clone(), measurements([0]), Some(large));
    let refused = refused.await.unwrap_err();
    assert!(
        matches!(
            refused,
            StoreError::Full {
                needed: 1_000..,
                ..
            }
        ),
        "{refused:?}"
    );
    assert!(of_graph(&store, &subject, 10).await.is_empty());
    for _ in 0..2 {
        keep(&store, &subject, measurements([0]), Some(graph(1))).await;
        store.delete(&of_target("a")).await.unwrap();
    }
}

#[tokio::test]
async fn whoever_waits_is_told_what_changed() {
    let (_folder, store) = new_store(LARGE);
    let [one, other] = [subject("a", 1), subject("b", 1)];
    for subject in [&one, &other] {
        keep(&store, subject, measurements([0]), None).await;
    }
    let both = MeasurementChange::Subjects([one.clone(), other].into());
    assert_eq!(store.changed().await, both);
    keep(&store, &one, measurements([0]), None).await;
    store.delete(&of_target("a")).await.unwrap();
    assert_eq!(
        store.changed().await,
        MeasurementChange::All,
        "a known measurement changes nothing, and a deletion anything"
    );
}

#[tokio::test]
async fn reports_that_wait_together_are_all_answered() {
    let (_folder, store) = new_store(LARGE);
    let subject = subject("a", 1);
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
async fn a_file_of_a_later_format_is_refused_and_left_alone() {
    let (_folder, path) = folder();
    open(&path).close().await;
    let database = Database::open(&path).unwrap();
    let write = database.begin_write().unwrap();
    let mut facts = write.open_table(FACTS).unwrap();
    facts.insert("format", 8).unwrap();
    drop(facts);
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
        keep(&store, &large, some, None).await;
    }
    keep(&store, &small, measurements(0..50), Some(graph(1))).await;
    let length = || fs::metadata(&path).unwrap().len();
    assert!(length() > 32 << 20, "{}", length());
    assert_eq!(store.delete(&of_target("a")).await, Ok(2_000));
    until(async || length() < 4 << 20).await;
    assert_eq!(of_graph(&store, &small, 100).await.len(), 50);
    keep(&store, &small, measurements(50..60), None).await;
    assert!(matches!(refusal(&path), StoreFault::Locked));
    store.close().await;
    let store = open(&path);
    let mut kept = of_graph(&store, &small, 100).await;
    kept.sort_by_key(|each| each.reported_at);
    assert_eq!(kept, measurements(0..60));
    assert_eq!(store.graph(small.clone()).await, Ok(Some(graph(1))));
    let deleted = store.delete(&chosen_by("ci")).await;
    assert_eq!(deleted, Ok(60), "of a reporter");
}

#[tokio::test]
async fn measurements_expire_once_they_were_kept_for_long_enough() {
    let (_folder, store) = new_store(LARGE);
    let (store, subject) = (Arc::new(store), subject("a", 1));
    let year = Duration::from_hours(24 * 365);
    let mut new = measurements(10..15);
    for each in &mut new {
        each.reported_at = clock::seconds().unwrap();
    }
    keep(&store, &subject, measurements(0..10), Some(graph(1))).await;
    keep(&store, &subject, new, None).await;
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
    let (_folder, store) = new_store(LARGE);
    let subject = subject("a", 1);
    let mut slower = by("eve", measurements([0]));
    slower[0].outcome.seconds = 9.0;
    keep(&store, &subject, slower.clone(), None).await;
    let own = measurements(0..4);
    let reported_own = keep(&store, &subject, own.clone(), None).await;
    assert_eq!(reported_own, reported(4, 0), "no id is taken");
    assert_eq!(keep(&store, &subject, own, None).await, reported(0, 4));
    assert_eq!(listed(&store, &chosen_by("eve"), 100).await, slower);
    let ci = || Reporter::named("ci");
    for (chosen, count) in [
        (of_reporter(of_subject(&subject), ci()), 4),
        (of_reporter(of_target("b"), ci()), 0),
        (MeasurementFilter::default(), 5),
    ] {
        assert_eq!(
            listed(&store, &chosen, 100).await.len(),
            count,
            "{chosen:?}"
        );
    }
}

#[tokio::test]
async fn deleting_a_reporter_leaves_what_others_measured() {
    let (_folder, store) = new_store(LARGE);
    let [shared, own] = [subject("a", 1), subject("b", 1)];
    let graph = || Some(graph_of("eve", 1));
    keep(&store, &shared, by("eve", measurements(0..30)), graph()).await;
    keep(&store, &shared, measurements(0..3), None).await;
    keep(&store, &own, by("eve", measurements(0..5)), graph()).await;
    let of_other = of_reporter(of_target("b"), Reporter::named("ci"));
    assert_eq!(store.delete(&of_other).await, Ok(0));
    assert_eq!(store.delete(&chosen_by("eve")).await, Ok(35));
    assert_eq!(of_graph(&store, &shared, 100).await, measurements(0..3));
    let is_kept = store.has_graph(shared.clone()).await;
    assert_eq!(is_kept, Ok(true), "it has measurements");
    assert_eq!(store.has_graph(own).await, Ok(false));
    assert_eq!(store.delete(&chosen_by("ci")).await, Ok(3));
    assert_eq!(store.has_graph(shared).await, Ok(false));
}

#[tokio::test]
async fn the_share_of_a_client_is_free_again_once_its_measurements_are_deleted() {
    let (_folder, store) = new_store(6_000);
    let subject = subject("a", 1);
    let fill = async || {
        let mut number = 0;
        loop {
            let one = measurements([number]);
            match store.report(subject.clone(), one, None).await {
                Ok(_) => number += 1,
                Err(refused) => return (number, refused),
            }
        }
    };
    let (count, refused) = fill().await;
    assert!(
        matches!(&refused, StoreError::ShareFull { reporter, found: 4_350..4_800, .. } if reporter == "ci"),
        "{refused:?}"
    );
    assert_eq!(store.delete(&chosen_by("ci")).await, Ok(count.into()));
    assert_eq!(fill().await.0, count);
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
    let pair = |each: Measurement| {
        let config = each.config.try_into().unwrap();
        (u32::from_le_bytes(config), each.outcome.seconds)
    };
    let mut read: Vec<(u32, f64)> = all.into_iter().map(pair).collect();
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
    let (_folder, store) = new_store(LARGE);
    let subject = subject("a", 1);
    for config in 0..8 {
        keep(&store, &subject, repeated("eve", config, 2_000), None).await;
    }
    for config in 0..20 {
        keep(&store, &subject, repeated("ci", config, 1), None).await;
    }
    let everyone = ReporterFilter::Everyone;
    for count in [20, 100, 2_000] {
        let read = drawn(&store, &subject, &everyone, count).await;
        assert_eq!(read.len(), count);
        let mut configs = [0; 20];
        for (config, _) in read {
            configs[config as usize] += 1;
        }
        assert!(configs.iter().all(|&number| number > 0), "{configs:?}");
        // The rest is shared by the eight that have more.
        let often = &configs[..8];
        let [least, most] = [often.iter().min().unwrap(), often.iter().max().unwrap()];
        assert!(most - least <= 1, "{configs:?}");
    }
    let all = drawn(&store, &subject, &everyone, 100_000).await;
    assert_eq!(all.len(), 16_020);
}

#[tokio::test]
async fn what_a_reporter_measured_is_drawn_before_what_others_did() {
    let (_folder, store) = new_store(LARGE);
    let subject = subject("a", 1);
    let ci = Reporter::named("ci").unwrap();
    for config in 0..500 {
        keep(&store, &subject, repeated("eve", config, 1), None).await;
    }
    for config in 490..510 {
        keep(&store, &subject, repeated("ci", config, 3), None).await;
    }
    let own_first = ReporterFilter::First(ci.clone());
    let own = drawn(&store, &subject, &ReporterFilter::Only(ci), 2_000).await;
    assert_eq!(own.len(), 60);
    let first = drawn(&store, &subject, &own_first, 100).await;
    assert_eq!(first.len(), 100);
    assert!(own.iter().all(|each| first.contains(each)), "{first:?}");
    let some = drawn(&store, &subject, &own_first, 20).await;
    let configs: Vec<u32> = some.iter().map(|(config, _)| *config).collect();
    assert_eq!(configs, (490..510).collect::<Vec<u32>>(), "each once");
    let nobody = ReporterFilter::Only(Reporter::named("bob").unwrap());
    assert!(drawn(&store, &subject, &nobody, 10).await.is_empty());
    store.delete(&chosen_by("ci")).await.unwrap();
    let left = drawn(&store, &subject, &own_first, 2_000).await;
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
    keep(&store, &subject, measurements(0..2_000), None).await;
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
