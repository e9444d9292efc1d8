//! Everybody is answered with one decision of a key on a target, whoever asks, when and at which server.

use hlorank_proto::v1::{
    Claim, DecideRequest, DecideResponse, Decision, DecisionEvidence, DecisionKey,
    ListDecisionsRequest, Proposal, decide_request::Step, decide_response::Outcome,
};
use hlorank_tests::prelude::*;

const TARGET: &str = "device=NVIDIA H100 PCIe;triton=3.9.0";

fn key(name: &str) -> DecisionKey {
    DecisionKey {
        namespace: "helion".to_owned(),
        key: name.as_bytes().to_vec().into(),
        target: TARGET.to_owned(),
    }
}

fn look(key: DecisionKey) -> DecideRequest {
    DecideRequest {
        key: Some(key),
        ..DecideRequest::default()
    }
}

fn propose(key: DecisionKey, value: &str, supersede: u64) -> DecideRequest {
    DecideRequest {
        step: Some(Step::Propose(Proposal {
            value: value.as_bytes().to_vec().into(),
            evidence: Some(DecisionEvidence {
                seconds: 0.25,
                runs: 5,
                measured_configs: 72,
                tie_band: 0.01,
                machine: "node 7".to_owned(),
            }),
            supersede,
        })),
        ..look(key)
    }
}

/// A claim that lasts longer than any test.
fn claim(key: DecisionKey, worker: &str) -> DecideRequest {
    claim_for(Duration::from_hours(1), key, worker)
}

fn claim_for(ttl: Duration, key: DecisionKey, worker: &str) -> DecideRequest {
    DecideRequest {
        step: Some(Step::Claim(Claim {
            worker: worker.to_owned(),
            ttl: ttl.try_into().ok(),
            ..Claim::default()
        })),
        ..look(key)
    }
}

fn value(number: usize) -> String {
    format!("{{\"num_warps\": {number}}}")
}

async fn outcome(client: &Client, request: DecideRequest) -> Outcome {
    client.decide(&request).await.unwrap().outcome.unwrap()
}

/// The decision of an answer, of which there must be one.
fn decided(answer: DecideResponse) -> Decision {
    match answer.outcome {
        Some(Outcome::Decided(decision)) => decision,
        other => panic!("{other:?}"),
    }
}

async fn decision(client: &Client, request: DecideRequest) -> Decision {
    decided(client.decide(&request).await.unwrap())
}

/// All decisions, page by page.
async fn listed(client: &Client, mut request: ListDecisionsRequest) -> Vec<Decision> {
    let mut all = Vec::new();
    loop {
        let page = client.list_decisions(&request).await.unwrap();
        all.extend(page.decisions);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return all;
        }
    }
}

fn reason(error: &ClientError) -> Option<&str> {
    error.refusal()?.reason()
}

async fn start(flag: &str) -> (TestServer, Client) {
    let server = TestServer::start_with(&[flag]).await;
    let client = server.client().await;
    (server, client)
}

/// Eight ranks propose a value of their own for each of some keys, at the same time. Returns what each was answered.
async fn race(clients: &[Client], keys: usize) -> Vec<Vec<Bytes>> {
    let mut ranks = JoinSet::new();
    for rank in 0..8 {
        let client = clients[rank % clients.len()].clone();
        ranks.spawn(async move {
            let mut values = Vec::new();
            for number in 0..keys {
                let request = propose(key(&number.to_string()), &value(8 * number + rank), 0);
                values.push(decision(&client, request).await.value);
            }
            values
        });
    }
    ranks.join_all().await
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_ranks_that_propose_different_values_for_200_keys_get_one_each() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = start(&store_flag(folder.path())).await;
    let answers = race(std::slice::from_ref(&client), 200).await;
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    let request = ListDecisionsRequest {
        page_size: 7,
        ..ListDecisionsRequest::default()
    };
    let all = listed(&client, request.clone()).await;
    let snapshots: Vec<u64> = all.iter().map(|decision| decision.snapshot).collect();
    assert_eq!(snapshots, (1..=200).collect::<Vec<u64>>());
    assert!(all.iter().all(|decision| decision.generation == 1));
    let younger = ListDecisionsRequest {
        after_snapshot: 190,
        ..request
    };
    assert_eq!(listed(&client, younger).await, all[190..]);
    server
        .until_metrics(|scrape| {
            scrape.value("hlorank_decisions", &[]) == 200.0
                && scrape.value(
                    "hlorank_decisions_answered_total",
                    &[("outcome", "decided")],
                ) == 1_600.0
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_worker_tunes_and_all_others_are_told_when_to_ask_again() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = start(&store_flag(folder.path())).await;
    let first = outcome(&client, claim(key("a"), "first")).await;
    assert!(matches!(first, Outcome::Claimed(_)), "{first:?}");
    for _ in 0..2 {
        let Outcome::Held(held) = outcome(&client, claim(key("a"), "second")).await else {
            panic!()
        };
        let retry_after = Duration::try_from(held.retry_after.unwrap()).unwrap();
        let range = Duration::from_millis(50)..=Duration::from_secs(1);
        assert!(range.contains(&retry_after), "{retry_after:?}");
    }
    let looked = outcome(&client, look(key("a"))).await;
    assert!(matches!(looked, Outcome::Undecided(_)), "{looked:?}");
    // Who holds no claim may propose as well.
    let proposed = decision(&client, propose(key("a"), &value(4), 0)).await;
    for request in [
        look(key("a")),
        claim(key("a"), "first"),
        claim(key("a"), "second"),
        propose(key("a"), &value(8), 0),
    ] {
        assert_eq!(decision(&client, request).await, proposed);
    }
    assert_eq!(proposed.evidence.as_ref().unwrap().measured_configs, 72);
    assert!(proposed.decided_at > 0 && proposed.reporter == "127.0.0.1");

    // A server that starts on the file has forgotten this claim, but takes it from its holder.
    assert!(matches!(
        outcome(&client, claim(key("b"), "first")).await,
        Outcome::Claimed(_)
    ));
    server.stop().await;
    let (_server, client) = start(&store_flag(folder.path())).await;
    let second = outcome(&client, claim(key("b"), "second")).await;
    assert!(matches!(second, Outcome::Held(_)), "{second:?}");
    let mut renewal = claim(key("b"), "first");
    if let Some(Step::Claim(claim)) = &mut renewal.step {
        claim.renew = true;
    }
    let renewed = outcome(&client, renewal.clone()).await;
    assert!(matches!(renewed, Outcome::Claimed(_)), "{renewed:?}");
    if let Some(Step::Claim(claim)) = &mut renewal.step {
        claim.give_back = true;
    }
    let given_back = outcome(&client, renewal).await;
    assert!(
        matches!(given_back, Outcome::Undecided(_)),
        "{given_back:?}"
    );
    // New claims are granted once the time that they ask for has passed.
    let started = Instant::now();
    let short = claim_for(Duration::from_secs(5), key("b"), "second");
    while !matches!(outcome(&client, short.clone()).await, Outcome::Claimed(_)) {
        assert!(started.elapsed() < Duration::from_mins(1));
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_a_snapshot_see_nothing_that_was_decided_later() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = start(&store_flag(folder.path())).await;
    let old = decision(&client, propose(key("old"), &value(1), 0)).await;
    let snapshot = client.decide(&look(key("new"))).await.unwrap().snapshot;
    let superseding = decision(&client, propose(key("old"), &value(2), 1)).await;
    assert_eq!(superseding.generation, 2);
    let young = decision(&client, propose(key("new"), &value(3), 0)).await;
    decision(&client, propose(key("new"), &value(4), 1)).await;
    let at = |name: &str, strict| DecideRequest {
        snapshot,
        strict,
        ..look(key(name))
    };
    for strict in [false, true] {
        let answer = client.decide(&at("old", strict)).await.unwrap();
        assert_eq!(answer.snapshot, snapshot);
        assert_eq!(decided(answer), old);
    }
    assert_eq!(decision(&client, at("new", false)).await, young);
    let strict = outcome(&client, at("new", true)).await;
    assert!(matches!(strict, Outcome::Undecided(_)), "{strict:?}");
    assert_eq!(decision(&client, look(key("old"))).await, superseding);

    // Another generation is superseded by nobody who has not seen the latest, and a lost answer is asked for again.
    let late = client
        .decide(&propose(key("old"), &value(5), 1))
        .await
        .unwrap_err();
    assert_eq!(reason(&late), Some("OVERTAKEN"), "{late}");
    says!(late.to_string(), "generation 1", "2");
    let again = decision(&client, propose(key("old"), &value(2), 1)).await;
    assert_eq!(again, superseding);
    let every = ListDecisionsRequest {
        namespace: "helion".to_owned(),
        key: "old".into(),
        // In any order.
        target: "triton=3.9.0 ; device=NVIDIA H100 PCIe".to_owned(),
        all_generations: true,
        ..ListDecisionsRequest::default()
    };
    assert_eq!(
        listed(&client, every.clone()).await,
        [old, superseding.clone()]
    );
    let latest = ListDecisionsRequest {
        all_generations: false,
        ..every
    };
    assert_eq!(listed(&client, latest).await, [superseding]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_on_a_database_decide_once_for_each_release_of_a_compiler() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let flag = format!("--measurements={}", database.url());
    let ((one, first), (_other, second)) = tokio::join!(start(&flag), start(&flag));
    let answers = race(&[first.clone(), second.clone()], 25).await;
    assert!(answers.iter().all(|answer| *answer == answers[0]));

    // The claims are those of both, and outlive a server.
    let claimed = outcome(&first, claim(key("a"), "first")).await;
    assert!(matches!(claimed, Outcome::Claimed(_)), "{claimed:?}");
    one.stop().await;
    let (_one, first) = start(&flag).await;
    for client in [&first, &second] {
        let held = outcome(client, claim(key("a"), "second")).await;
        assert!(matches!(held, Outcome::Held(_)), "{held:?}");
    }
    let renewed = outcome(&second, claim(key("a"), "first")).await;
    assert!(matches!(renewed, Outcome::Claimed(_)), "{renewed:?}");
    let proposed = decision(&first, propose(key("a"), &value(1), 0)).await;
    assert_eq!(decision(&second, claim(key("a"), "second")).await, proposed);

    // The next release of the compiler has decisions of its own.
    let newer = DecisionKey {
        target: TARGET.replace("3.9.0", "4.0.0"),
        ..key("a")
    };
    let Outcome::Undecided(undecided) = outcome(&second, look(newer.clone())).await else {
        panic!()
    };
    assert_eq!(undecided.near.len(), 1);
    assert_eq!(undecided.near[0].decision.as_ref(), Some(&proposed));
    assert_eq!(undecided.near[0].different_parts, ["triton"]);
    let crossed = decision(&second, propose(newer.clone(), &value(2), 0)).await;
    for client in [&first, &second] {
        assert_eq!(decision(client, look(key("a"))).await, proposed);
        assert_eq!(decision(client, look(newer.clone())).await, crossed);
    }

    // Snapshots are those of both.
    let superseding = decision(&first, propose(key("a"), &value(3), 1)).await;
    let before = DecideRequest {
        snapshot: crossed.snapshot,
        ..look(key("a"))
    };
    assert_eq!(decision(&second, before).await, proposed);
    assert_eq!(decision(&second, look(key("a"))).await, superseding);
    let late = second
        .decide(&propose(key("a"), &value(4), 1))
        .await
        .unwrap_err();
    assert_eq!(reason(&late), Some("OVERTAKEN"), "{late}");
    second
        .delete_measurements(&deletion(TARGET, None))
        .await
        .unwrap();
    let request = ListDecisionsRequest {
        page_size: 4,
        ..ListDecisionsRequest::default()
    };
    assert_eq!(listed(&second, request).await.len(), 27);
    let own = ListDecisionsRequest {
        target: newer.target.clone(),
        ..ListDecisionsRequest::default()
    };
    assert_eq!(listed(&second, own).await, [crossed]);
}

/// A server with tokens, and the clients with those of a reader, of who reports and of an operator.
async fn with_tokens(decisions: &str) -> (TestServer, Files, TempDir, [Client; 4]) {
    let (files, folder) = (Files::new(), tempfile::tempdir().unwrap());
    let tokens = [
        ("reader", "read"),
        ("other", "read"),
        ("ci", "read,report"),
        ("boss", "read,admin"),
    ];
    let lines = tokens.map(|(name, scopes)| token_line(name, scopes, name));
    files.write("tokens", &lines.concat());
    let flags = [&store_flag(folder.path()), decisions];
    let server = files.start_with(&flags).await;
    let client = async |token: &str| {
        let connection = Connection {
            token: Some(token.parse().unwrap()),
            ..Connection::default()
        };
        server.client_with(connection).await
    };
    let clients = [
        client("reader").await,
        client("other").await,
        client("ci").await,
        client("boss").await,
    ];
    (server, files, folder, clients)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_says_what_readers_decide() {
    let scope = |error: ClientError| {
        assert_eq!(reason(&error), Some("SCOPE_MISSING"), "{error}");
        error.to_string()
    };
    {
        let (_server, _files, _folder, [reader, _, ci, boss]) =
            with_tokens("--decisions=off").await;
        for request in [claim(key("a"), "w"), propose(key("a"), &value(1), 0)] {
            says!(scope(reader.decide(&request).await.unwrap_err()), "report");
        }
        let made = decision(&ci, propose(key("a"), &value(1), 0)).await;
        assert_eq!(made.reporter, "ci");
        let seen = decision(&reader, look(key("a"))).await;
        assert_eq!((seen.reporter.as_str(), &seen.value), ("", &made.value));
        let supersede = propose(key("a"), &value(2), 1);
        says!(scope(ci.decide(&supersede).await.unwrap_err()), "admin");
        assert_eq!(decision(&boss, supersede).await.generation, 2);
    }
    {
        let (_server, _files, _folder, [reader, other, ci, _]) =
            with_tokens("--decisions=own").await;
        let claimed = outcome(&reader, claim(key("a"), "w")).await;
        assert!(matches!(claimed, Outcome::Claimed(_)), "{claimed:?}");
        // A claim of a reader keeps nobody else waiting.
        let claimed = outcome(&ci, claim(key("a"), "w")).await;
        assert!(matches!(claimed, Outcome::Claimed(_)), "{claimed:?}");
        let own = decision(&reader, propose(key("a"), &value(1), 0)).await;
        let unknown = outcome(&other, look(key("a"))).await;
        assert!(matches!(unknown, Outcome::Undecided(_)), "{unknown:?}");
        let made = decision(&ci, propose(key("a"), &value(2), 0)).await;
        assert_eq!(decision(&other, look(key("a"))).await.value, made.value);
        assert_eq!(decision(&reader, look(key("a"))).await, own);
        let all = ListDecisionsRequest::default();
        assert_eq!(listed(&other, all).await.len(), 1);
    }
    let (_server, _files, _folder, [reader, other, ci, _]) = with_tokens("--decisions=all").await;
    let made = decision(&reader, propose(key("a"), &value(1), 0)).await;
    for client in [&other, &ci] {
        let answered = decision(client, propose(key("a"), &value(2), 0)).await;
        assert_eq!(answered.value, made.value);
    }
}
