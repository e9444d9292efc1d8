//! A segment model and a whole-graph model of one task replace each other.

use hlorank_tests::prelude::*;

/// Number of calls beside the load before the next change.
const ANSWERS: usize = 10;

/// Replaces the files of a version by those of another one, which gets the name and the number.
fn replace_files(artifacts: &Artifacts, folder: &Path, other: &Path, version: u64) {
    fs::remove_dir_all(folder).unwrap();
    fs::create_dir(folder).unwrap();
    for file in fs::read_dir(other).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    artifacts.edit_manifest(folder, |manifest| {
        manifest["name"] = MODEL.into();
        manifest["version"] = version.into();
    });
}

/// Asserts that a version answers the calls that name none.
async fn assert_answers(subject: &Subject, version: u64) {
    for _ in 0..ANSWERS {
        assert_eq!(subject.serving().await, version);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_while_the_kinds_of_a_model_change() {
    // A whole-graph model may take many times as long.
    let subject = Subject::start_with(Artifacts::tiles(), &["--max-slowdown=1000"]).await;
    let (artifacts, admin) = (&subject.artifacts, subject.admin().await);
    let [segment, whole_graph, again] = [0, 1, 2].map(|later| subject.first + later);
    let load = subject.load().await;
    assert_answers(&subject, segment).await;

    let other = fixture("registry/tile-whole-graph/1");
    artifacts.publish(MODEL, whole_graph, |folder| {
        replace_files(artifacts, folder, &other, whole_graph);
    });
    subject.until(whole_graph, ModelState::Serving).await;
    assert_answers(&subject, whole_graph).await;

    // The segment model is the canary of all graphs.
    admin.pin(MODEL, whole_graph).await.unwrap();
    admin.set_canary(MODEL, segment, 100).await.unwrap();
    assert_answers(&subject, segment).await;
    admin.set_canary(MODEL, 0, 0).await.unwrap();
    assert_answers(&subject, whole_graph).await;

    admin.rollback(MODEL).await.unwrap();
    assert_answers(&subject, segment).await;
    // The whole-graph model is the canary of the segment model.
    admin.set_canary(MODEL, whole_graph, 100).await.unwrap();
    assert_answers(&subject, whole_graph).await;
    admin.set_canary(MODEL, 0, 0).await.unwrap();
    assert_answers(&subject, segment).await;

    let first = artifacts.versions(MODEL).remove(0);
    artifacts.publish(MODEL, again, |folder| {
        replace_files(artifacts, folder, &first, again);
    });
    admin.unpin(MODEL).await.unwrap();
    subject.until(again, ModelState::Serving).await;
    assert_answers(&subject, again).await;

    let mut scores: BTreeMap<String, BTreeSet<Vec<u32>>> = BTreeMap::new();
    for ranking in rankings(load.finish().await) {
        let of_version = scores.entry(ranking.model.to_string()).or_default();
        of_version.insert(bits(&ranking.scores));
    }
    let of = |version: u64| &scores[&format!("{MODEL}@{version}")];
    assert_eq!(
        [segment, whole_graph, again].map(|version| of(version).len()),
        [2; 3],
        "one answer a question"
    );
    assert_eq!(of(segment), of(again));
    assert!(of(segment).is_disjoint(of(whole_graph)));
}
