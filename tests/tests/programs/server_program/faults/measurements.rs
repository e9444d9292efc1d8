//! Measurements that were acknowledged are kept, whatever ends the server, and a file that is unusable is reported.

use hlorank_proto::v1::{
    Adapt, DecideRequest, DecisionKey, Proposal, Warning, decide_request::Step,
    decide_response::Outcome,
};
use hlorank_tests::prelude::*;
use rustix::process::Resource;
use tokio::sync::mpsc;

use super::calls::{PATIENCE, ended_well, limit, start};

type CostModel = CostModelServiceClient<Channel>;

const TARGET: &str = "a board";

fn graph() -> Graph {
    kernel_graph(graph_of_text(
        "HloModule kernel\n\nENTRY %entry {\n  ROOT %n0 = f32[16,8] parameter(0)\n}\n",
    ))
}

fn folder() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let flag = store_flag(folder.path());
    (folder, flag)
}

/// Reports a measurement of each of ten tiles, whose ids have this number.
async fn report(client: &mut CostModel, number: u32) -> Result<(), Status> {
    let ids = (0..10).map(|tile| format!("{number} {tile}").into_bytes().into());
    let request = ReportMeasurementsRequest {
        graph: Some(graph()),
        target: TARGET.to_owned(),
        batch: Some(config_batch(packed_tiles(&grid_tiles(10)))),
        seconds: (0..10).map(|tile| 1.0 + f64::from(tile)).collect(),
        ids: ids.collect(),
        ..ReportMeasurementsRequest::default()
    };
    client.report_measurements(request).await.map(drop)
}

/// The numbers of all reports that are kept, each of which must be whole.
async fn kept(client: &mut CostModel) -> BTreeSet<u32> {
    let (mut ids, mut request) = (Vec::new(), ListMeasurementsRequest::default());
    loop {
        let page = client
            .list_measurements(request.clone())
            .await
            .unwrap()
            .into_inner();
        ids.extend(page.graphs.into_iter().flat_map(|graph| graph.ids));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    let number = |id: &[u8]| -> u32 {
        std::str::from_utf8(id)
            .unwrap()
            .split_once(' ')
            .unwrap()
            .0
            .parse()
            .unwrap()
    };
    let numbers: BTreeSet<u32> = ids.iter().map(|id| number(id)).collect();
    assert_eq!(
        ids.len(),
        10 * numbers.len(),
        "a report is kept as a whole or not at all"
    );
    numbers
}

/// Reports as fast as the server answers until it ends. Sends the number of each acknowledged report.
async fn report_on(
    mut client: CostModel,
    numbers: impl Iterator<Item = u32>,
    acknowledged: mpsc::Sender<u32>,
) {
    for number in numbers {
        if report(&mut client, number).await.is_err() || acknowledged.send(number).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed_again_and_again() {
    const CLIENTS: usize = 4;
    let (_folder, flag) = folder();
    let mut acknowledged = BTreeSet::new();
    for round in 0..6 {
        let server = start(&[&flag]);
        let mut client = server.cost_model().await;
        let found = kept(&mut client).await;
        assert!(
            found.is_superset(&acknowledged),
            "round {round}: {:?}",
            acknowledged.difference(&found)
        );
        let (sender, mut receiver) = mpsc::channel(1);
        let first = found.last().map_or(0, |last| last + 1);
        for own in (first..).take(CLIENTS) {
            tokio::spawn(report_on(
                client.clone(),
                (own..).step_by(CLIENTS),
                sender.clone(),
            ));
        }
        drop(sender);
        // Reports are in flight when the server is killed, at another moment in each round.
        for _ in 0..20 + 7 * round {
            acknowledged.insert(receiver.recv().await.expect("the server answers"));
        }
        server.signal("KILL");
        while let Some(number) = receiver.recv().await {
            acknowledged.insert(number);
        }
        server.stopped(Instant::now()).await;
    }
    assert!(acknowledged.len() >= 6 * 20);
    let server = start(&[&flag]);
    let mut client = server.cost_model().await;
    assert!(kept(&mut client).await.is_superset(&acknowledged));
    report(&mut client, u32::MAX).await.unwrap();
    ended_well(server).await;
}

/// Proposes values of a rank for keys from a number on, as fast as the server answers until it ends. Sends each answer.
async fn propose_on(
    mut client: CostModel,
    rank: u32,
    first: u32,
    answers: mpsc::Sender<(u32, Bytes)>,
) {
    for number in first.. {
        let request = DecideRequest {
            key: Some(decision_key(number)),
            step: Some(Step::Propose(Proposal {
                value: format!("{{\"rank\": {rank}}}").into(),
                ..Proposal::default()
            })),
            ..DecideRequest::default()
        };
        let Ok(answer) = client.decide(request).await else {
            return;
        };
        let Some(Outcome::Decided(decision)) = answer.into_inner().outcome else {
            panic!("a proposal is answered with a decision");
        };
        if answers.send((number, decision.value)).await.is_err() {
            return;
        }
    }
}

fn decision_key(number: u32) -> DecisionKey {
    DecisionKey {
        namespace: "space".to_owned(),
        key: number.to_string().into(),
        target: TARGET.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_was_answered_stays_when_the_server_is_killed_again_and_again() {
    const RANKS: u32 = 8;
    let (_folder, flag) = folder();
    let mut decided = BTreeMap::<u32, Bytes>::new();
    for round in 0..4 {
        let server = start(&[&flag]);
        let mut client = server.cost_model().await;
        for (&number, value) in &decided {
            let look = DecideRequest {
                key: Some(decision_key(number)),
                ..DecideRequest::default()
            };
            let answer = client.decide(look).await.unwrap().into_inner();
            let Some(Outcome::Decided(decision)) = answer.outcome else {
                panic!("round {round}: the decision {number} is lost");
            };
            assert_eq!(&decision.value, value, "round {round}: {number}");
        }
        let (sender, mut receiver) = mpsc::channel(1);
        // Some ranks may not have been answered about the last keys.
        let first = decided.len().saturating_sub(20).try_into().unwrap();
        for rank in 0..RANKS {
            let proposing = propose_on(client.clone(), rank, first, sender.clone());
            tokio::spawn(proposing);
        }
        drop(sender);
        let mut agree = |(number, value): (u32, Bytes)| {
            let known = decided.entry(number).or_insert(value.clone());
            assert_eq!(*known, value, "round {round}: ranks differ about {number}");
        };
        for _ in 0..100 + 37 * round {
            agree(receiver.recv().await.expect("the server answers"));
        }
        server.signal("KILL");
        while let Some(answer) = receiver.recv().await {
            agree(answer);
        }
        server.stopped(Instant::now()).await;
    }
    let server = start(&[&flag]);
    ended_well(server).await;
}

/// A request to rank that uses stored measurements.
fn using_stored() -> RankConfigsRequest {
    let adapt = Adapt {
        target: TARGET.to_owned(),
        use_stored: true,
        ..Adapt::default()
    };
    let request = rank_request(graph(), packed_tiles(&grid_tiles(10))).with_model(TILE_MODEL);
    RankConfigsRequest {
        adapt: Some(adapt),
        ..request
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_may_not_grow_fails_reports_and_nothing_else_until_it_may() {
    let (_folder, flag) = folder();
    let server = start(&[&flag]);
    let mut client = server.cost_model().await;
    report(&mut client, 0).await.unwrap();
    let before = limit(server.id(), Resource::Fsize, Some(0));
    let (mut number, mut acknowledged) = (1, 0);
    let refused = loop {
        match report(&mut client, number).await {
            Ok(()) => (number, acknowledged) = (number + 1, number),
            Err(refused) => break refused,
        }
        assert!(number < 10_000, "it always finds room");
    };
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    assert_eq!(reason(&refused), "MEASUREMENTS_FAILED");
    let ranking = client
        .rank_configs(using_stored())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(ranking.ranking.len(), 10, "the call goes on");
    assert!(learns(&ranking), "and learns: {ranking:?}");
    let listed = kept(&mut client).await;
    assert!(
        (0..=acknowledged).all(|number| listed.contains(&number)),
        "listing goes on: {listed:?}"
    );
    let refused_again = report(&mut client, number).await.unwrap_err();
    assert_eq!(refused_again.code(), Code::Unavailable, "{refused_again:?}");
    assert_eq!(kept(&mut client).await, listed);

    limit(server.id(), Resource::Fsize, before);
    report(&mut client, number).await.unwrap();
    let kept = kept(&mut client).await;
    assert!(
        (0..=acknowledged)
            .chain([number])
            .all(|number| kept.contains(&number)),
        "{kept:?}"
    );
    let ranking = client
        .rank_configs(using_stored())
        .await
        .unwrap()
        .into_inner();
    assert!(learns(&ranking), "{ranking:?}");
    ended_well(server).await;
}

/// Whether stored measurements were used, whatever they say of the model.
fn learns(ranking: &RankConfigsResponse) -> bool {
    let is_unused = |warning: &Warning| warning.reason == "STORED_MEASUREMENTS_UNUSED";
    let stored = ranking
        .adaptation
        .as_ref()
        .map_or(0, |adaptation| adaptation.stored_measurements);
    stored > 0 && !ranking.warnings.iter().any(is_unused)
}

/// What a server that does not start says.
fn refusal(flag: &str) -> String {
    let started = Instant::now();
    let listeners = ["--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0"];
    let output = server_program()
        .args(listeners)
        .args([flag, "--models", "no/such/folder"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    String::from_utf8(output.stderr).unwrap()
}

fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    // Pages in the middle: the first one is the header.
    let pages = bytes.len() / 4_096;
    for page in 1..pages {
        bytes[page * 4_096..][..64].fill(0xAB);
    }
    fs::write(file, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_in_use_or_damaged_is_reported_with_what_to_do() {
    let (folder, flag) = folder();
    let file = folder.path().join("measurements");
    let server = start(&[&flag]);
    report(&mut server.cost_model().await, 0).await.unwrap();
    let said = refusal(&flag);
    assert!(
        said.contains(&file.display().to_string()) && said.contains("a file of its own"),
        "{said}"
    );
    ended_well(server).await;

    let intact = fs::read(&file).unwrap();
    damage(&file);
    let damaged = fs::read(&file).unwrap();
    // All but the first page is empty, as after a disk lost what it had not written yet.
    let mut empty = intact.clone();
    empty[4_096..].fill(0);
    let cut = intact[..intact.len() / 2].to_vec();
    for content in [damaged, empty, cut] {
        fs::write(&file, content).unwrap();
        let said = refusal(&flag);
        says!(said, "damaged", "move it away", &*file.to_string_lossy());
        assert!(!said.contains("panic"), "{said}");
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let said = refusal(&flag);
    says!(said, "may write there");
    fs::remove_dir(&file).unwrap();
    let server = start(&[&flag]);
    assert!(kept(&mut server.cost_model().await).await.is_empty());
    tokio::time::timeout(Duration::from_mins(1), server.stop())
        .await
        .unwrap();
}
