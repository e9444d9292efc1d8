//! Many workers measure one search: nothing twice, and nothing is lost.

use futures::future::join_all;
use hlorank_client::{
    ReportDetails, Suggestions,
    v1::{self, Budget, LeaseRequest, LeaseState, RenewLeasesRequest, SearchState},
};
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
        let limits = Limits::default();
        let graph = FeatureGraph::new(name.to_owned(), 1, vec![], vec![], &limits).unwrap();
        let graph = graph.described(vec![], vec!["size".to_owned()]).unwrap();
        let sizes: Vec<f32> = (0..count).map(f32::from).collect();
        let batch = NodeFeatureBatch::from_values([1, 1], &sizes, &limits).unwrap();
        Self {
            graph: GraphHandle::feature_graph(&graph),
            configurations: Configurations::FeatureSet(batch),
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
        Self::with_budget(client, name, space, None)
    }

    fn with_budget(
        client: &Client,
        name: &'static str,
        space: &'a Space,
        budget: Option<Budget>,
    ) -> Self {
        let lease = LeaseRequest {
            worker: name.to_owned(),
            ttl: TTL.try_into().ok(),
            budget,
            ..LeaseRequest::default()
        };
        let request = SuggestRequest::new(&space.graph, &space.configurations);
        Self {
            client: client.clone(),
            name,
            request: request.adapt(Some(Adapt::new(TARGET))).lease(lease),
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
        let configuration = part(&self.space.configurations, [given.suggestions[0].config]);
        let adapt = Adapt::new(TARGET).measured(&configuration, &run_times([seconds]));
        let details = ReportDetails {
            machine: format!("machine of {}", self.name),
            leases: vec![given.leases[0].id.clone()],
            ..ReportDetails::default()
        };
        let report = self
            .client
            .report_measurements_with(&details, &self.space.graph, &adapt);
        let kept = report.await.unwrap();
        (kept.accepted, kept.known)
    }

    async fn renew(&self, given: &Suggestions) -> LeaseState {
        self.renew_with(given, RenewLeasesRequest::default()).await
    }

    async fn give_back(&self, given: &Suggestions) -> LeaseState {
        let request = RenewLeasesRequest {
            give_back: true,
            ..RenewLeasesRequest::default()
        };
        self.renew_with(given, request).await
    }

    async fn renew_with(&self, given: &Suggestions, request: RenewLeasesRequest) -> LeaseState {
        let request = RenewLeasesRequest {
            graph_hash: given.graph_hash.0.to_vec().into(),
            target: TARGET.to_owned(),
            worker: self.name.to_owned(),
            ttl: TTL.try_into().ok(),
            ids: vec![given.leases[0].id.clone()],
            configs: vec![given.leases[0].config.clone()],
            ..request
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

/// The machines of all measurements that a server keeps.
async fn machines(client: &Client) -> Vec<String> {
    let request = ListMeasurementsRequest::default();
    let page = client.list_measurements(&request).await.unwrap();
    let graphs = page.graphs.into_iter();
    graphs.flat_map(|graph| graph.machines).collect()
}

/// Asserts that four workers at two servers of one store measure each configuration of a space once.
async fn assert_nothing_is_measured_twice([one, other]: [&TestServer; 2]) {
    let space = Space::new("shared", 40);
    let mut workers = Vec::new();
    for (server, name) in [(one, "a"), (other, "b"), (one, "c"), (other, "d")] {
        workers.push(Worker::new(&server.client().await, name, &space));
    }
    let measured = join_all(workers.iter().map(|worker| worker.measure(40))).await;
    let distinct: HashSet<usize> = measured.iter().flatten().copied().collect();
    assert_eq!((distinct.len(), measured.concat().len()), (40, 40));
    let machines = machines(&workers[0].client).await;
    assert_eq!(machines.len(), 40);
    for (worker, measured) in workers.iter().zip(measured) {
        let own = format!("machine of {}", worker.name);
        let kept = machines.iter().filter(|machine| **machine == own);
        assert_eq!(kept.count(), measured.len(), "{own}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_one_search_measure_nothing_twice() {
    let (_folder, server, _client) = storing_server(&[]).await;
    assert_nothing_is_measured_twice([&server; 2]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_two_servers_with_one_database_measure_nothing_twice() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let (one, of_one) = storing_server_at(&database.store_flag(), &[]).await;
    let (other, of_other) = storing_server_at(&database.store_flag(), &[]).await;
    assert_nothing_is_measured_twice([&one, &other]).await;
    // A lease of one server is known to the other.
    let space = Space::new("database, one", 1);
    let first = Worker::new(&of_one, "a", &space);
    let second = Worker::new(&of_other, "b", &space);
    let given = first.ask().await;
    assert_eq!(second.ask().await.state, SearchState::AllLeased);
    assert_eq!(second.renew(&given).await, LeaseState::Held);
}

#[tokio::test]
async fn a_worker_is_given_its_own_leases_first_and_one_that_is_given_back_is_free() {
    let (_folder, _server, client) = storing_server(&[]).await;
    let space = Space::new("small", 2);
    let [one, other, third] =
        ["one", "other", "third"].map(|name| Worker::new(&client, name, &space));
    let first = one.ask().await;
    assert_eq!(one.ask().await.leases[0].id, first.leases[0].id);
    assert_eq!(first.leases[0].attempt, 1);
    assert_eq!(one.renew(&first).await, LeaseState::Held);
    let second = other.ask().await;
    assert_ne!(second.suggestions[0].config, first.suggestions[0].config);
    let waiting = third.ask().await;
    assert_eq!(waiting.state, SearchState::AllLeased);
    assert!(waiting.retry_after > Duration::ZERO);
    assert_eq!(one.give_back(&first).await, LeaseState::Ended);
    let given = third.ask().await;
    assert_eq!(given.suggestions[0].config, first.suggestions[0].config);
    assert_eq!(given.leases[0].attempt, 1);
    assert_eq!(one.renew(&first).await, LeaseState::Ended);
    third.report(&given, 1.0).await;
    other.report(&second, 1.0).await;
    assert_eq!(third.ask().await.state, SearchState::Exhausted);
}

#[tokio::test]
async fn a_budget_ends_a_search_and_counts_live_leases() {
    let (_folder, _server, client) = storing_server(&[]).await;
    let space = Space::new("budgeted", 100);
    let two = Budget {
        measurements: 2,
        time: None,
    };
    let [one, other] =
        ["one", "other"].map(|name| Worker::with_budget(&client, name, &space, Some(two)));
    let first = one.ask().await;
    assert_eq!(other.measure(1).await.len(), 1);
    assert_eq!(other.ask().await.state, SearchState::AllLeased);
    one.report(&first, 1.0).await;
    assert_eq!(other.ask().await.state, SearchState::BudgetSpent);
    let moment = Budget {
        measurements: 0,
        time: Duration::from_millis(1).try_into().ok(),
    };
    let timed = Worker::with_budget(&client, "third", &space, Some(moment));
    assert_eq!(timed.ask().await.state, SearchState::BudgetSpent);
}

#[tokio::test]
async fn a_decision_ends_a_search() {
    let (_folder, _server, client) = storing_server(&[]).await;
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
    client.decide(&proposal).await.unwrap();
    assert_eq!(worker.ask().await.state, SearchState::Decided);
}

#[tokio::test]
async fn a_late_report_is_kept_once_beside_that_of_the_next_worker() {
    let (_folder, _server, client) = storing_server(&[]).await;
    let space = Space::new("late", 1);
    let [one, other] = ["one", "other"].map(|name| Worker::new(&client, name, &space));
    let late = one.ask().await;
    let again = other.ask_until(SearchState::Running).await;
    assert_eq!(again.leases[0].attempt, 2);
    assert_eq!(one.renew(&late).await, LeaseState::Taken);
    assert_eq!(one.report(&late, 1.0).await, (1, 0));
    assert_eq!(one.report(&late, 1.0).await, (0, 1));
    assert_eq!(other.report(&again, 1.0).await, (1, 0));
    assert_eq!(machines(&client).await.len(), 2);
    assert_eq!(other.ask().await.state, SearchState::Exhausted);
}

#[tokio::test]
async fn a_server_that_was_started_anew_leases_nothing_that_a_living_worker_has() {
    let (folder, server, client) = storing_server(&[]).await;
    let space = Space::new("restarted", 3);
    let given = Worker::new(&client, "one", &space).ask().await;
    server.stop().await;
    let (_server, client) = storing_server_at(&store_flag(folder.path()), &[]).await;
    let [one, other] = ["one", "other"].map(|name| Worker::new(&client, name, &space));
    let waiting = other.ask().await;
    assert_eq!(waiting.state, SearchState::AllLeased);
    assert!(waiting.retry_after < TTL);
    assert_eq!(one.renew(&given).await, LeaseState::Adopted);
    assert_eq!(one.ask().await.leases[0].id, given.leases[0].id);
    let others = other.ask_until(SearchState::Running).await;
    assert_ne!(others.suggestions[0].config, given.suggestions[0].config);
    assert_eq!(one.report(&given, 1.0).await, (1, 0));
    other.report(&others, 1.0).await;
    assert_eq!(other.measure(3).await.len(), 1);
    assert_eq!(machines(&client).await.len(), 3);
}

#[tokio::test]
async fn a_batch_is_sent_once_to_each_server_that_does_not_know_it() {
    let (folder, server, client) = storing_server(&[]).await;
    let space = Space::new("large", 18_000);
    let worker = Worker::new(&client, "one", &space);
    let given = worker.ask().await;
    let by_digest = SuggestConfigsRequest {
        graph: Some(graph_by_hash(given.graph_hash.0.to_vec())),
        batch_digest: given.batch_digest.clone(),
        adapt: Some(v1::Adapt {
            target: TARGET.to_owned(),
            ..v1::Adapt::default()
        }),
        ..SuggestConfigsRequest::default()
    };
    let answer = server.cost_model().await.suggest_configs(by_digest).await;
    assert_eq!(answer.unwrap().into_inner().suggestions.len(), 1);
    // The client sends the batch again.
    server.stop().await;
    let (_server, client) = storing_server_at(&store_flag(folder.path()), &[]).await;
    let worker = Worker { client, ..worker };
    assert_eq!(worker.ask().await.state, SearchState::AllLeased);
}
