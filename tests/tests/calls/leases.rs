//! Many workers measure one search: nothing twice, and nothing is lost.

use hlorank_client::{
    ReportDetails, Suggestions,
    v1::{
        self, Budget, LeaseRequest, LeaseState, ParameterConfig, ParameterConfigs,
        RenewLeasesRequest, SearchState,
    },
};
use hlorank_proto::v1::FeatureGraph;
use hlorank_tests::prelude::*;

const TARGET: &str = "a board";

/// The shortest time of a lease.
const TTL: Duration = Duration::from_secs(5);

/// Longer than a lease and a server's grace.
const PATIENCE: Duration = Duration::from_mins(1);

/// A space of one parameter with this many values.
struct Space {
    graph: GraphHandle,
    configurations: Configurations,
}

impl Space {
    fn new(name: &str, count: u16) -> Self {
        let graph = FeatureGraph {
            feature_set: name.to_owned(),
            config_columns: vec!["size".to_owned()],
            ..FeatureGraph::default()
        };
        let graph = Graph {
            source: Some(Source::FeatureGraph(graph)),
            ..Graph::default()
        };
        let configs = (0..count).map(|size| ParameterConfig {
            values: vec![size.into()],
        });
        let configs = Configs::ParameterConfigs(ParameterConfigs {
            configs: configs.collect(),
        });
        let batch = hlorank_graph::EncodedBatch::try_from(&configs).unwrap();
        Self {
            graph: GraphHandle::of_message(graph).unwrap(),
            configurations: batch
                .read(Task::FeatureSet, &[0], &Limits::default())
                .unwrap(),
        }
    }
}

/// A worker of a search.
struct Worker<'a> {
    client: Client,
    name: &'static str,
    request: SuggestRequest<'a>,
    space: &'a Space,
}

impl<'a> Worker<'a> {
    fn new(client: &Client, name: &'static str, space: &'a Space) -> Self {
        Self::with(client, name, space, |_| {})
    }

    fn with(
        client: &Client,
        name: &'static str,
        space: &'a Space,
        change: impl FnOnce(&mut LeaseRequest),
    ) -> Self {
        let mut lease = LeaseRequest {
            worker: name.to_owned(),
            ttl: TTL.try_into().ok(),
            ..LeaseRequest::default()
        };
        change(&mut lease);
        let request = SuggestRequest::new(&space.graph, &space.configurations)
            .adapt(Some(&Adapt::new(TARGET)))
            .lease(lease);
        Self {
            client: client.clone(),
            name,
            request,
            space,
        }
    }

    async fn ask(&self) -> Suggestions {
        self.client.suggest(&self.request).await.unwrap()
    }

    /// Asks until a search is in this state.
    async fn ask_until(&self, state: SearchState) -> Suggestions {
        let ask = async {
            loop {
                let given = self.ask().await;
                if given.state == state {
                    return given;
                }
                sleep(given.retry_after).await;
            }
        };
        timeout(PATIENCE, ask).await.unwrap()
    }

    /// Reports what was leased, as often as it may take.
    async fn report(&self, given: &Suggestions, seconds: f64) -> (u32, u32) {
        let config = given.suggestions[0].config;
        let measured = [MeasuredOutcome::Time {
            seconds,
            repeats: 1,
        }];
        let configuration = self.space.configurations.select(&[config]);
        let adapt = Adapt::new(TARGET).measured(&configuration, &measured);
        let details = ReportDetails {
            machine: format!("machine of {}", self.name),
            leases: vec![given.leases[0].id.clone()],
            ..ReportDetails::default()
        };
        let graph = &self.space.graph;
        let kept = self
            .client
            .report_measurements_with(&details, graph, &adapt)
            .await
            .unwrap();
        (kept.accepted, kept.known)
    }

    async fn renew(&self, given: &Suggestions, give_back: bool) -> LeaseState {
        let request = RenewLeasesRequest {
            graph_hash: given.graph_hash.0.to_vec().into(),
            target: TARGET.to_owned(),
            worker: self.name.to_owned(),
            ttl: TTL.try_into().ok(),
            ids: vec![given.leases[0].id.clone()],
            configs: vec![given.leases[0].config.clone()],
            give_back,
            ..RenewLeasesRequest::default()
        };
        let states = self.client.renew_leases(&self.space.graph, &request).await;
        states.unwrap()[0]
    }

    /// Measures until the search ends or a number of configurations is measured. Returns their numbers.
    async fn measure(&self, count: usize) -> Vec<usize> {
        let mut measured = Vec::new();
        while measured.len() < count {
            let given = self.ask().await;
            match given.state {
                SearchState::Running => {
                    let config = given.suggestions[0].config;
                    self.report(&given, 1e-3 * (1.0 + config as f64)).await;
                    measured.push(config);
                }
                SearchState::AllLeased => sleep(given.retry_after).await,
                _ => break,
            }
        }
        measured
    }
}

async fn start(folder: &Path) -> (TestServer, Client) {
    let server = TestServer::start_with(&[&store_flag(folder)]).await;
    let client = server.client().await;
    (server, client)
}

/// All measurements that a server keeps: how each failed, and its machine.
async fn kept(client: &Client) -> Vec<(i32, String)> {
    let page = client
        .list_measurements(&ListMeasurementsRequest::default())
        .await;
    let graphs = page.unwrap().graphs.into_iter();
    graphs
        .flat_map(|graph| graph.failures.into_iter().zip(graph.machines))
        .collect()
}

fn distinct(measured: &[Vec<usize>]) -> usize {
    measured.iter().flatten().collect::<HashSet<_>>().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_of_one_search_measure_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = start(folder.path()).await;
    let space = Space::new("shared", 100);
    let [one, other] = ["one", "other"].map(|name| Worker::new(&client, name, &space));
    let measured = tokio::join!(one.measure(30), other.measure(30));
    assert_eq!(distinct(&[measured.0, measured.1]), 60);
    let kept = kept(&client).await;
    let of_one = kept.iter().filter(|(_, name)| name == "machine of one");
    assert_eq!((kept.len(), of_one.count()), (60, 30));
    // Without leases, both are told the same.
    let alone = SuggestRequest::new(&space.graph, &space.configurations)
        .adapt(Some(&Adapt::new(TARGET).use_stored()));
    let suggested = async || client.suggest(&alone).await.unwrap().suggestions[0].config;
    assert_eq!(suggested().await, suggested().await);
}

#[tokio::test]
async fn a_worker_is_given_its_own_leases_first_and_one_that_is_given_back_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = start(folder.path()).await;
    let space = Space::new("small", 2);
    let [one, other, third] =
        ["one", "other", "third"].map(|name| Worker::new(&client, name, &space));
    let first = one.ask().await;
    assert_eq!(one.ask().await.leases[0].id, first.leases[0].id);
    assert_eq!(first.leases[0].attempt, 1);
    assert_eq!(one.renew(&first, false).await, LeaseState::Held);
    let second = other.ask().await;
    assert_ne!(second.suggestions[0].config, first.suggestions[0].config);
    let waiting = third.ask().await;
    assert_eq!(waiting.state, SearchState::AllLeased);
    assert!(waiting.retry_after > Duration::ZERO);
    assert_eq!(one.renew(&first, true).await, LeaseState::Ended);
    let given = third.ask().await;
    assert_eq!(given.suggestions[0].config, first.suggestions[0].config);
    assert_eq!(given.leases[0].attempt, 1);
    assert_eq!(one.renew(&first, false).await, LeaseState::Ended);
    third.report(&given, 1.0).await;
    other.report(&second, 1.0).await;
    assert_eq!(third.ask().await.state, SearchState::Exhausted);
}

#[tokio::test]
async fn a_budget_ends_a_search_and_counts_live_leases() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = start(folder.path()).await;
    let space = Space::new("budgeted", 100);
    let [one, other] = ["one", "other"].map(|name| {
        Worker::with(&client, name, &space, |lease| {
            lease.budget = Some(Budget {
                measurements: 2,
                time: None,
            });
        })
    });
    let first = one.ask().await;
    assert_eq!(other.measure(1).await.len(), 1);
    assert_eq!(other.ask().await.state, SearchState::AllLeased);
    one.report(&first, 1.0).await;
    assert_eq!(other.ask().await.state, SearchState::BudgetSpent);
    let timed = Worker::with(&client, "third", &space, |lease| {
        let time = Duration::from_millis(1).try_into().ok();
        lease.budget = Some(Budget {
            measurements: 0,
            time,
        });
    });
    assert_eq!(timed.ask().await.state, SearchState::BudgetSpent);
}

#[tokio::test]
async fn a_decision_ends_a_search() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = start(folder.path()).await;
    let space = Space::new("decided", 2);
    let worker = Worker::new(&client, "one", &space);
    let given = worker.ask().await;
    worker.report(&given, 1.0).await;
    let proposal = v1::DecideRequest {
        key: Some(v1::DecisionKey {
            namespace: "space".to_owned(),
            key: given.graph_hash.0.to_vec().into(),
            target: TARGET.to_owned(),
        }),
        step: Some(v1::decide_request::Step::Propose(v1::Proposal {
            value: "{\"size\": 0}".into(),
            ..v1::Proposal::default()
        })),
        ..v1::DecideRequest::default()
    };
    server.cost_model().await.decide(proposal).await.unwrap();
    assert_eq!(worker.ask().await.state, SearchState::Decided);
}

#[tokio::test]
async fn what_workers_that_are_gone_had_is_leased_again_and_after_two_of_them_has_crashed() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = start(folder.path()).await;
    let space = Space::new("deadly", 1);
    let [one, other, third] =
        ["one", "other", "third"].map(|name| Worker::new(&client, name, &space));
    one.ask().await;
    let again = other.ask_until(SearchState::Running).await;
    assert_eq!(again.leases[0].attempt, 2);
    third.ask_until(SearchState::Exhausted).await;
    let crashed = MeasurementFailure::Crash.into();
    assert_eq!(kept(&client).await, [(crashed, String::new())]);
}

#[tokio::test]
async fn a_late_report_is_kept_once_beside_that_of_the_next_worker() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = start(folder.path()).await;
    let space = Space::new("late", 1);
    let [one, other] = ["one", "other"].map(|name| Worker::new(&client, name, &space));
    let late = one.ask().await;
    let again = other.ask_until(SearchState::Running).await;
    assert_eq!(one.renew(&late, false).await, LeaseState::Taken);
    assert_eq!(one.report(&late, 1.0).await, (1, 0));
    assert_eq!(one.report(&late, 1.0).await, (0, 1));
    assert_eq!(other.report(&again, 1.0).await, (1, 0));
    assert_eq!(kept(&client).await.len(), 2);
    assert_eq!(other.ask().await.state, SearchState::Exhausted);
}

#[tokio::test]
async fn a_server_that_was_started_anew_leases_nothing_that_a_living_worker_has() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = start(folder.path()).await;
    let space = Space::new("restarted", 3);
    let one = Worker::new(&client, "one", &space);
    let given = one.ask().await;
    server.stop().await;
    let (_server, client) = start(folder.path()).await;
    let [one, other] = ["one", "other"].map(|name| Worker::new(&client, name, &space));
    let waiting = other.ask().await;
    assert_eq!(waiting.state, SearchState::AllLeased);
    assert!(waiting.retry_after < TTL);
    assert_eq!(one.renew(&given, false).await, LeaseState::Adopted);
    assert_eq!(one.ask().await.leases[0].id, given.leases[0].id);
    let others = other.ask_until(SearchState::Running).await;
    assert_ne!(others.suggestions[0].config, given.suggestions[0].config);
    assert_eq!(one.report(&given, 1.0).await, (1, 0));
    other.report(&others, 1.0).await;
    assert_eq!(other.measure(3).await.len(), 1);
    assert_eq!(kept(&client).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_two_servers_with_one_database_measure_nothing_twice() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let measurements = format!("--measurements={}", database.url());
    let one = TestServer::start_with(&[&measurements]).await;
    let other = TestServer::start_with(&[&measurements]).await;
    let space = Space::new("database", 40);
    let workers = [(&one, "a"), (&other, "b"), (&one, "c"), (&other, "d")];
    let mut clients = Vec::new();
    for (server, name) in workers {
        clients.push(Worker::new(&server.client().await, name, &space));
    }
    let measured = futures::future::join_all(clients.iter().map(|worker| worker.measure(40))).await;
    assert_eq!((distinct(&measured), measured.concat().len()), (40, 40));
    assert_eq!(kept(&clients[0].client).await.len(), 40);
    // A lease of one server is known to the other.
    let space = Space::new("database, one", 1);
    let [first, second] = [&one, &other].map(Reach::client);
    let first = Worker::new(&first.await, "a", &space);
    let second = Worker::new(&second.await, "b", &space);
    let given = first.ask().await;
    assert_eq!(second.ask().await.state, SearchState::AllLeased);
    assert_eq!(second.renew(&given, false).await, LeaseState::Held);
}

#[tokio::test]
async fn a_batch_is_sent_once_and_a_lease_costs_little() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = start(folder.path()).await;
    let space = Space::new("large", 18_000);
    let worker = Worker::new(&client, "one", &space);
    // The batch goes with the first call.
    let given = worker.ask().await;
    let request = |lease: Option<LeaseRequest>| SuggestConfigsRequest {
        graph: Some(Graph {
            source: Some(Source::GraphHash(given.graph_hash.0.to_vec().into())),
            ..Graph::default()
        }),
        batch_digest: given.batch_digest.clone(),
        adapt: Some(v1::Adapt {
            target: TARGET.to_owned(),
            use_stored: true,
            ..v1::Adapt::default()
        }),
        lease,
        ..SuggestConfigsRequest::default()
    };
    let leased = request(Some(LeaseRequest {
        worker: "other".to_owned(),
        ..LeaseRequest::default()
    }));
    assert!(leased.encoded_len() <= 1 << 10, "{}", leased.encoded_len());
    for config in 0..20 {
        let given = worker.ask().await;
        worker.report(&given, 1e-3 * f64::from(1 + config)).await;
    }
    let mut service = server.cost_model().await;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..12 {
        for (request, times) in [request(None), leased.clone()].iter().zip(&mut times) {
            let started = Instant::now();
            service.suggest_configs(request.clone()).await.unwrap();
            times.push(started.elapsed());
        }
    }
    let [plain, with_lease] = times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    });
    println!("18,000 configurations: {plain:?}, with a lease {with_lease:?}");
    // The client sends the batch again to a server that does not know it.
    server.stop().await;
    let (_server, client) = start(folder.path()).await;
    let worker = Worker { client, ..worker };
    assert_eq!(worker.ask().await.state, SearchState::AllLeased);
}
