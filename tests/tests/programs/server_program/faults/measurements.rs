//! Measurements that were acknowledged are kept, whatever ends the server, and a file that is unusable is reported.

use hlorank_proto::v1::{
    Adapt, DecideRequest, DecisionKey, Proposal, decide_request::Step, decide_response::Outcome,
};
use hlorank_tests::prelude::*;
use rustix::process::Resource;
use tokio::sync::mpsc;

use super::calls::{ended_well, limit, start};

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
    let number = |id: &Bytes| -> u32 {
        let id = std::str::from_utf8(id).unwrap();
        id.split(' ').next().unwrap().parse().unwrap()
    };
    let numbers: BTreeSet<u32> = ids.iter().map(number).collect();
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

/// Kills a server after this number of answers, and returns all answers.
async fn answers_until_killed<T>(
    server: ServerProcess,
    mut answers: mpsc::Receiver<T>,
    count: usize,
) -> Vec<T> {
    let mut received = Vec::new();
    for _ in 0..count {
        received.push(answers.recv().await.expect("the server answers"));
    }
    server.signal("KILL");
    while let Some(answer) = answers.recv().await {
        received.push(answer);
    }
    server.stopped(Instant::now()).await;
    received
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
        let (sender, receiver) = mpsc::channel(1);
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
        acknowledged.extend(answers_until_killed(server, receiver, 20 + 7 * round).await);
    }
    assert!(acknowledged.len() >= 6 * 20);
    let server = start(&[&flag]);
    let mut client = server.cost_model().await;
    assert!(kept(&mut client).await.is_superset(&acknowledged));
    report(&mut client, u32::MAX).await.unwrap();
    ended_well(server).await;
}

/// Proposes a value for a key, or looks its decision up, and returns what is decided.
async fn decide(client: &mut CostModel, key: u32, step: Option<Step>) -> Result<Bytes, Status> {
    let request = DecideRequest {
        key: Some(DecisionKey {
            namespace: "space".to_owned(),
            key: key.to_string().into(),
            target: TARGET.to_owned(),
        }),
        step,
        ..DecideRequest::default()
    };
    let answer = client.decide(request).await?.into_inner();
    let Some(Outcome::Decided(decision)) = answer.outcome else {
        panic!("{key} is not decided");
    };
    Ok(decision.value)
}

/// Proposes values of a rank for keys from a number on, as fast as the server answers until it ends. Sends each answer.
async fn propose_on(
    mut client: CostModel,
    rank: u32,
    first: u32,
    answers: mpsc::Sender<(u32, Bytes)>,
) {
    for key in first.. {
        let proposal = Step::Propose(Proposal {
            value: format!("{{\"rank\": {rank}}}").into(),
            ..Proposal::default()
        });
        let Ok(value) = decide(&mut client, key, Some(proposal)).await else {
            return;
        };
        if answers.send((key, value)).await.is_err() {
            return;
        }
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
        for (&key, value) in &decided {
            let kept = decide(&mut client, key, None).await.unwrap();
            assert_eq!(&kept, value, "round {round}: {key}");
        }
        let (sender, receiver) = mpsc::channel(1);
        // Some ranks may not have been answered about the last keys.
        let first = decided.len().saturating_sub(20).try_into().unwrap();
        for rank in 0..RANKS {
            let proposing = propose_on(client.clone(), rank, first, sender.clone());
            tokio::spawn(proposing);
        }
        drop(sender);
        for (key, value) in answers_until_killed(server, receiver, 100 + 37 * round).await {
            let known = decided.entry(key).or_insert(value.clone());
            assert_eq!(*known, value, "round {round}: ranks differ about {key}");
        }
    }
    ended_well(start(&[&flag])).await;
}

/// Ranks with stored measurements, and asserts that they are used, whatever they say of the model.
async fn learn(client: &mut CostModel) {
    let adapt = Adapt {
        target: TARGET.to_owned(),
        use_stored: true,
        ..Adapt::default()
    };
    let request = RankConfigsRequest {
        adapt: Some(adapt),
        ..rank_request(graph(), packed_tiles(&grid_tiles(10))).with_model(TILE_MODEL)
    };
    let ranking = client.rank_configs(request).await.unwrap().into_inner();
    assert_eq!(ranking.ranking.len(), 10);
    assert!(ranking.adaptation.unwrap().stored_measurements > 0);
    let reasons: Vec<String> = ranking
        .warnings
        .into_iter()
        .map(|warning| warning.reason)
        .collect();
    assert!(
        !reasons.contains(&"STORED_MEASUREMENTS_UNUSED".to_owned()),
        "{reasons:?}"
    );
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
    learn(&mut client).await;
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
        kept.is_superset(&listed) && kept.contains(&number),
        "{kept:?}"
    );
    learn(&mut client).await;
    ended_well(server).await;
}

/// What a server that does not start says.
fn refusal(flag: &str) -> String {
    refused_start(server_program().args([flag, "--models=no/such/folder"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_in_use_or_damaged_is_reported_with_what_to_do() {
    let (folder, flag) = folder();
    let file = folder.path().join("measurements");
    let server = start(&[&flag]);
    report(&mut server.cost_model().await, 0).await.unwrap();
    says!(
        refusal(&flag),
        &*file.to_string_lossy(),
        "a file of its own"
    );
    ended_well(server).await;

    let intact = fs::read(&file).unwrap();
    // The first page is the header.
    let mut damaged = intact.clone();
    for page in damaged.chunks_exact_mut(4_096).skip(1) {
        page[..64].fill(0xAB);
    }
    // All but the first page is empty, as after a disk lost what it had not written yet.
    let mut empty = intact.clone();
    empty[4_096..].fill(0);
    let cut = intact[..intact.len() / 2].to_vec();
    for content in [damaged, empty, cut] {
        fs::write(&file, content).unwrap();
        let said = refusal(&flag);
        says!(said, "damaged", "move it away", &*file.to_string_lossy());
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    says!(refusal(&flag), "may write there");
    fs::remove_dir(&file).unwrap();
    let server = start(&[&flag]);
    assert!(kept(&mut server.cost_model().await).await.is_empty());
    ended_well(server).await;
}
