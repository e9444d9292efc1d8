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

fn step(key: DecisionKey, step: Step) -> DecideRequest {
    DecideRequest {
        step: Some(step),
        ..look(key)
    }
}

/// Proposes a value with this number, in place of the decision of a generation; 0 for none.
fn propose(key: DecisionKey, number: usize, supersede: u64) -> DecideRequest {
    let proposal = Proposal {
        value: format!("{{\"num_warps\": {number}}}").into(),
        evidence: Some(DecisionEvidence {
            seconds: 0.25,
            runs: 5,
            measured_configs: 72,
            tie_band: 0.01,
            machine: "node 7".to_owned(),
        }),
        supersede,
    };
    step(key, Step::Propose(proposal))
}

/// A claim that lasts longer than any test.
fn claim(key: DecisionKey, worker: &str) -> DecideRequest {
    claim_for(Duration::from_hours(1), key, worker)
}

fn claim_for(ttl: Duration, key: DecisionKey, worker: &str) -> DecideRequest {
    let claim = Claim {
        worker: worker.to_owned(),
        ttl: ttl.try_into().ok(),
        ..Claim::default()
    };
    step(key, Step::Claim(claim))
}

async fn outcome(client: &Client, request: DecideRequest) -> Outcome {
    client.decide(&request).await.unwrap().outcome.unwrap()
}

async fn assert_claimed(client: &Client, request: DecideRequest) {
    let answer = outcome(client, request).await;
    assert!(matches!(answer, Outcome::Claimed(_)), "{answer:?}");
}

async fn assert_held(client: &Client, request: DecideRequest) {
    let answer = outcome(client, request).await;
    assert!(matches!(answer, Outcome::Held(_)), "{answer:?}");
}

async fn assert_undecided(client: &Client, request: DecideRequest) {
    let answer = outcome(client, request).await;
    assert!(matches!(answer, Outcome::Undecided(_)), "{answer:?}");
}

async fn assert_overtaken(client: &Client, request: DecideRequest) {
    let refused = client.decide(&request).await.unwrap_err();
    assert_reason(&refused, "OVERTAKEN");
    says!(refused.to_string(), "generation 1", "2");
}

/// Asserts that a client's token lacks a scope for a request.
async fn assert_scope_missing(client: &Client, request: DecideRequest, scope: &str) {
    let refused = client.decide(&request).await.unwrap_err();
    assert_reason(&refused, "SCOPE_MISSING");
    says!(refused.to_string(), scope);
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

/// Eight ranks propose a value of their own for each of some keys, at the same time. Returns what each was answered.
async fn race(clients: &[Client], keys: usize) -> Vec<Vec<Bytes>> {
    let mut ranks = JoinSet::new();
    for rank in 0..8 {
        let client = clients[rank % clients.len()].clone();
        ranks.spawn(async move {
            let mut values = Vec::new();
            for number in 0..keys {
                let request = propose(key(&number.to_string()), 8 * number + rank, 0);
                values.push(decision(&client, request).await.value);
            }
            values
        });
    }
    ranks.join_all().await
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_ranks_that_propose_different_values_for_200_keys_get_one_each() {
    let (_folder, server, client) = storing_server(&[]).await;
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
    let decided = [("outcome", "decided")];
    server
        .until_metrics(|scrape| {
            scrape.value("hlorank_decisions", &[]) == 200.0
                && scrape.value("hlorank_decisions_answered_total", &decided) == 1_600.0
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_worker_tunes_and_all_others_are_told_when_to_ask_again() {
    let (folder, server, client) = storing_server(&[]).await;
    assert_claimed(&client, claim(key("a"), "first")).await;
    for _ in 0..2 {
        let Outcome::Held(held) = outcome(&client, claim(key("a"), "second")).await else {
            panic!()
        };
        let retry_after = Duration::try_from(held.retry_after.unwrap()).unwrap();
        let range = Duration::from_millis(50)..=Duration::from_secs(1);
        assert!(range.contains(&retry_after), "{retry_after:?}");
    }
    assert_undecided(&client, look(key("a"))).await;
    // Who holds no claim may propose as well.
    let proposed = decision(&client, propose(key("a"), 4, 0)).await;
    for request in [
        look(key("a")),
        claim(key("a"), "first"),
        claim(key("a"), "second"),
        propose(key("a"), 8, 0),
    ] {
        assert_eq!(decision(&client, request).await, proposed);
    }
    assert_eq!(proposed.evidence.as_ref().unwrap().measured_configs, 72);
    assert!(proposed.decided_at > 0 && proposed.reporter == "127.0.0.1");

    // A server that starts on the file has forgotten this claim, but takes it from its holder.
    assert_claimed(&client, claim(key("b"), "first")).await;
    server.stop().await;
    let (_server, client) = storing_server_at(&store_flag(folder.path()), &[]).await;
    assert_held(&client, claim(key("b"), "second")).await;
    let renewal = Claim {
        worker: "first".to_owned(),
        ttl: Duration::from_hours(1).try_into().ok(),
        renew: true,
        ..Claim::default()
    };
    assert_claimed(&client, step(key("b"), Step::Claim(renewal.clone()))).await;
    let end = Claim {
        give_back: true,
        ..renewal
    };
    assert_undecided(&client, step(key("b"), Step::Claim(end))).await;
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
    let (_folder, _server, client) = storing_server(&[]).await;
    let old = decision(&client, propose(key("old"), 1, 0)).await;
    let snapshot = client.decide(&look(key("new"))).await.unwrap().snapshot;
    let superseding = decision(&client, propose(key("old"), 2, 1)).await;
    assert_eq!(superseding.generation, 2);
    let young = decision(&client, propose(key("new"), 3, 0)).await;
    decision(&client, propose(key("new"), 4, 1)).await;
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
    assert_undecided(&client, at("new", true)).await;
    assert_eq!(decision(&client, look(key("old"))).await, superseding);

    // Another generation is superseded by nobody who has not seen the latest, and a lost answer is asked for again.
    assert_overtaken(&client, propose(key("old"), 5, 1)).await;
    let again = decision(&client, propose(key("old"), 2, 1)).await;
    assert_eq!(again, superseding);
    let every = ListDecisionsRequest {
        namespace: "helion".to_owned(),
        key: "old".into(),
        // In any order.
        target: "triton=3.9.0 ; device=NVIDIA H100 PCIe".to_owned(),
        all_generations: true,
        ..ListDecisionsRequest::default()
    };
    let both = [old, superseding.clone()];
    assert_eq!(listed(&client, every.clone()).await, both);
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
    let store = database.store_flag();
    let ((one, first), (_other, second)) = tokio::join!(
        storing_server_at(&store, &[]),
        storing_server_at(&store, &[])
    );
    let answers = race(&[first.clone(), second.clone()], 25).await;
    assert!(answers.iter().all(|answer| *answer == answers[0]));

    // The claims are those of both, and outlive a server.
    assert_claimed(&first, claim(key("a"), "first")).await;
    one.stop().await;
    let (_one, first) = storing_server_at(&store, &[]).await;
    for client in [&first, &second] {
        assert_held(client, claim(key("a"), "second")).await;
    }
    assert_claimed(&second, claim(key("a"), "first")).await;
    let proposed = decision(&first, propose(key("a"), 1, 0)).await;
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
    let crossed = decision(&second, propose(newer.clone(), 2, 0)).await;
    for client in [&first, &second] {
        assert_eq!(decision(client, look(key("a"))).await, proposed);
        assert_eq!(decision(client, look(newer.clone())).await, crossed);
    }

    // Snapshots are those of both.
    let superseding = decision(&first, propose(key("a"), 3, 1)).await;
    let before = DecideRequest {
        snapshot: crossed.snapshot,
        ..look(key("a"))
    };
    assert_eq!(decision(&second, before).await, proposed);
    assert_eq!(decision(&second, look(key("a"))).await, superseding);
    assert_overtaken(&second, propose(key("a"), 4, 1)).await;
    let everything = deletion(TARGET, None);
    second.delete_measurements(&everything).await.unwrap();
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

/// A server that lets two readers decide as a flag says, beside a client who reports and an operator.
async fn team(decisions: &str) -> Team {
    let clients = [
        ("reader", "read"),
        ("other", "read"),
        ("ci", "read,report"),
        ("boss", "read,admin"),
    ];
    Team::start(&clients, &[decisions]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_decide_nothing_if_the_operator_says_so() {
    let team = team("--decisions=off").await;
    let [reader, ci, boss] = team.clients(["reader", "ci", "boss"]).await;
    for request in [claim(key("a"), "w"), propose(key("a"), 1, 0)] {
        assert_scope_missing(&reader, request, "report").await;
    }
    let made = decision(&ci, propose(key("a"), 1, 0)).await;
    assert_eq!(made.reporter, "ci");
    let seen = decision(&reader, look(key("a"))).await;
    assert_eq!((seen.reporter.as_str(), &seen.value), ("", &made.value));
    let supersede = propose(key("a"), 2, 1);
    assert_scope_missing(&ci, supersede.clone(), "admin").await;
    assert_eq!(decision(&boss, supersede).await.generation, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_decide_for_themselves_if_the_operator_says_so() {
    let team = team("--decisions=own").await;
    let [reader, other, ci] = team.clients(["reader", "other", "ci"]).await;
    assert_claimed(&reader, claim(key("a"), "w")).await;
    // A claim of a reader keeps nobody else waiting.
    assert_claimed(&ci, claim(key("a"), "w")).await;
    let own = decision(&reader, propose(key("a"), 1, 0)).await;
    assert_undecided(&other, look(key("a"))).await;
    let made = decision(&ci, propose(key("a"), 2, 0)).await;
    assert_eq!(decision(&other, look(key("a"))).await.value, made.value);
    assert_eq!(decision(&reader, look(key("a"))).await, own);
    let all = ListDecisionsRequest::default();
    assert_eq!(listed(&other, all).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_decide_for_all_if_the_operator_says_so() {
    let team = team("--decisions=all").await;
    let [reader, other, ci] = team.clients(["reader", "other", "ci"]).await;
    let made = decision(&reader, propose(key("a"), 1, 0)).await;
    for client in [&other, &ci] {
        let answered = decision(client, propose(key("a"), 2, 0)).await;
        assert_eq!(answered.value, made.value);
    }
}
