//! Who reported a measurement is kept, shown and used: each client can learn from its own, and reporters that contradict the
//! others are left out and told.

use super::*;
use std::collections::BTreeSet;

use hlorank_client::{Connection, Deletion, MeasurementsOf, Ranking, v1::Contradiction};
use hlorank_tests::{
    fixture, read_graphs,
    security::{Files, token_line},
};

/// A server whose tokens are those of two clients and an operator.
struct Team {
    server: TestServer,
    _files: Files,
    _folder: TempDir,
}

impl Team {
    async fn start(flags: &[&str]) -> Self {
        let (files, folder) = (Files::new(), folder());
        let tokens = [("ann", "read"), ("bob", "read"), ("operator", "read,admin")];
        files.write(
            "tokens",
            &tokens
                .map(|(name, scopes)| token_line(name, scopes, name))
                .concat(),
        );
        let measurements = format!(
            "--measurements={}",
            folder.path().join("measurements").display()
        );
        let server = files.start_with(&[&[&*measurements], flags].concat()).await;
        Self {
            server,
            _files: files,
            _folder: folder,
        }
    }

    async fn client(&self, token: &str) -> Client {
        let connection = Connection {
            token: Some(token.parse().unwrap()),
            ..Connection::default()
        };
        Client::connect(self.server.endpoint(), connection)
            .await
            .unwrap()
    }
}

/// A measured graph, and its lists.
struct List {
    name: String,
    handle: GraphHandle,
    configurations: Configurations,
    seconds: Vec<f64>,
}

impl List {
    fn of(graph: &MeasuredGraph) -> Self {
        let distinct = configurations(graph).batch().distinct().first;
        let times = &graph.measurements.as_ref().unwrap().run_times;
        let distinct: Vec<usize> = distinct
            .into_iter()
            .filter(|&config| times[config] > 0)
            .collect();
        Self {
            name: graph.name.clone(),
            handle: GraphHandle::of(graph),
            configurations: part(configurations(graph), distinct.clone()),
            seconds: distinct
                .iter()
                .map(|&config| times[config] as f64 * 1e-9)
                .collect(),
        }
    }

    /// All measured lists of the repository with at least this many configurations, one of each graph.
    fn all(count: usize) -> Vec<Self> {
        let pools = ["halide_kernels.pb", "unseen_families.pb"];
        let pools = pools
            .iter()
            .flat_map(|file| read_graphs(&fixture(&format!("pools/{file}"))));
        let all = measured_graphs().into_iter().chain(pools);
        let mut known = BTreeSet::new();
        let all =
            all.filter(|graph| graph.measurements.is_some() && known.insert(graph.graph.hash().0));
        let lists = all.map(|graph| Self::of(&graph));
        lists.filter(|list| list.seconds.len() >= count).collect()
    }

    fn adapt(&self, chosen: &[usize], seconds: impl Fn(f64) -> f64) -> Adapt {
        let time = |&config: &usize| Measured::Time {
            seconds: seconds(self.seconds[config]),
            repeats: 1,
        };
        let measured: Vec<Measured> = chosen.iter().map(time).collect();
        Adapt::new(TARGET).measured(&part(&self.configurations, chosen.to_vec()), &measured)
    }

    /// Reports some times under the name of a reporter.
    async fn report(
        &self,
        client: &Client,
        reporter: &str,
        chosen: &[usize],
        seconds: impl Fn(f64) -> f64,
    ) {
        let adapt = self.adapt(chosen, seconds);
        client
            .report_measurements_of(reporter, &self.handle, &adapt)
            .await
            .unwrap();
    }

    /// Times in the reversed order, of the same size.
    fn inverted(&self) -> impl Fn(f64) -> f64 + Copy {
        let product = self
            .seconds
            .iter()
            .fold(f64::INFINITY, |least, time| time.min(least))
            * self
                .seconds
                .iter()
                .fold(0.0, |most: f64, time| time.max(most));
        move |seconds| product / seconds
    }

    async fn rank(&self, client: &Client, adapt: Option<Adapt>) -> Ranking {
        let request = RankRequest::new(&self.handle, &self.configurations)
            .with_scores()
            .adapt(adapt);
        client
            .rank(&request)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Kendall's tau of what was measured, and the scores of an answer.
    fn tau(&self, ranking: &Ranking) -> f64 {
        let outcome = |(&run_time, &score): (&f64, &f32)| Outcome {
            run_time,
            score: score.into(),
        };
        let outcomes: Vec<Outcome> = self
            .seconds
            .iter()
            .zip(&ranking.scores)
            .map(outcome)
            .collect();
        PairCounts::of(&outcomes)
            .unwrap()
            .kendall_tau()
            .unwrap_or_default()
    }
}

fn stored() -> Adapt {
    Adapt::new(TARGET).use_stored()
}

fn same(seconds: f64) -> f64 {
    seconds
}

fn contradictions(ranking: &Ranking) -> &[Contradiction] {
    &ranking.adaptation.as_ref().unwrap().contradictions
}

fn reasons(ranking: &Ranking) -> Vec<&str> {
    ranking
        .warnings
        .iter()
        .map(|warning| warning.reason.as_str())
        .collect()
}

fn evens(list: &List) -> Vec<usize> {
    (0..list.seconds.len()).step_by(2).collect()
}

fn odds(list: &List) -> Vec<usize> {
    (1..list.seconds.len()).step_by(2).collect()
}

/// The reporters of all measurements of an answer to `ListMeasurements`.
async fn reporters(client: &Client) -> Vec<String> {
    let page = client
        .list_measurements(MeasurementsOf::All, &[])
        .await
        .unwrap();
    let mut all: Vec<String> = page
        .graphs
        .into_iter()
        .flat_map(|graph| graph.reporters)
        .collect();
    all.sort();
    all.dedup();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_sees_its_own_name_and_an_operator_sees_all() {
    let team = Team::start(&[]).await;
    let [ann, bob, operator] = [
        team.client("ann").await,
        team.client("bob").await,
        team.client("operator").await,
    ];
    let list = &List::all(10)[0];
    for (client, chosen) in [(&ann, evens(list)), (&bob, odds(list))] {
        client
            .report_measurements(&list.handle, &list.adapt(&chosen, same))
            .await
            .unwrap();
    }
    assert_eq!(reporters(&operator).await, ["ann", "bob"]);
    assert_eq!(reporters(&ann).await, ["", "ann"]);
    // The same measurement of two clients is one for each, and teaches once.
    let once = list.rank(&ann, Some(stored())).await;
    ann.report_measurements(&list.handle, &list.adapt(&odds(list), same))
        .await
        .unwrap();
    assert_eq!(bits(&list.rank(&ann, Some(stored())).await), bits(&once));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_reports_under_the_name_of_another_without_the_scope() {
    let team = Team::start(&[]).await;
    let [ann, operator] = [team.client("ann").await, team.client("operator").await];
    let list = &List::all(10)[0];
    let adapt = list.adapt(&evens(list), same);
    let refused = ann
        .report_measurements_of("bob", &list.handle, &adapt)
        .await
        .unwrap_err();
    assert_eq!(
        refused.refusal().unwrap().reason(),
        Some("SCOPE_MISSING"),
        "{refused}"
    );
    let own = ann
        .report_measurements_of("ann", &list.handle, &adapt)
        .await
        .unwrap();
    assert_eq!(own.accepted as usize, evens(list).len(), "its own name");
    let known = operator
        .report_measurements_of("ann", &list.handle, &adapt)
        .await
        .unwrap();
    assert_eq!((known.accepted, known.known), (0, own.accepted));
    let too_long = operator
        .report_measurements_of(&"n".repeat(257), &list.handle, &adapt)
        .await
        .unwrap_err();
    assert_eq!(
        too_long.refusal().unwrap().reason(),
        Some("FIELD_INVALID"),
        "{too_long}"
    );
    let refused = ann.delete(Deletion::Reporter("bob")).await.unwrap_err();
    assert_eq!(
        refused.refusal().unwrap().reason(),
        Some("SCOPE_MISSING"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_reporter_measured_can_be_deleted() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    let lists = List::all(10);
    let mut of_eve = 0;
    for list in &lists {
        list.report(&client, "ann", &evens(list), same).await;
    }
    let mut expected = Vec::new();
    for list in &lists {
        expected.push(bits(&list.rank(&client, Some(stored())).await));
    }
    for list in &lists {
        list.report(&client, "eve", &odds(list), list.inverted())
            .await;
        of_eve += odds(list).len();
    }
    assert_eq!(
        client
            .delete(Deletion::ReporterOnTarget("eve", "another board"))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        client.delete(Deletion::Reporter("eve")).await.unwrap(),
        of_eve as u64
    );
    for (list, expected) in lists.iter().zip(expected) {
        assert_eq!(
            bits(&list.rank(&client, Some(stored())).await),
            expected,
            "{}",
            list.name
        );
    }
    assert_eq!(reporters(&client).await, ["ann"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_can_learn_from_its_own_reports_alone() {
    let team = Team::start(&[]).await;
    let [ann, bob] = [team.client("ann").await, team.client("bob").await];
    let own_only = || Some(Adapt::new(TARGET).use_own_stored());
    let lists = List::all(10);
    let mut expected = Vec::new();
    for list in &lists {
        ann.report_measurements(&list.handle, &list.adapt(&evens(list), same))
            .await
            .unwrap();
    }
    for list in &lists {
        expected.push(bits(&list.rank(&ann, own_only()).await));
    }
    for list in &lists {
        let all: Vec<usize> = (0..list.seconds.len()).collect();
        bob.report_measurements(&list.handle, &list.adapt(&all, list.inverted()))
            .await
            .unwrap();
    }
    for (list, expected) in lists.iter().zip(expected) {
        let ranking = list.rank(&ann, own_only()).await;
        assert_eq!(bits(&ranking), expected, "{}", list.name);
        let adaptation = ranking.adaptation.unwrap();
        assert_eq!(
            adaptation.stored_measurements as usize,
            evens(list).len(),
            "{}",
            list.name
        );
        assert!(adaptation.contradictions.is_empty());
    }
}

/// Reports each list by several honest clients, and returns the names of the lists of which contradictions are told.
async fn told(
    lists: &[List],
    clients: usize,
    chosen: impl Fn(&List, usize) -> Vec<usize>,
) -> Vec<&str> {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    for list in lists {
        for number in 0..clients {
            list.report(
                &client,
                &format!("client {number}"),
                &chosen(list, number),
                same,
            )
            .await;
        }
    }
    let mut told = Vec::new();
    for list in lists {
        let ranking = list.rank(&client, Some(stored())).await;
        let is_told = !contradictions(&ranking).is_empty();
        assert_eq!(
            reasons(&ranking).contains(&"MEASUREMENTS_CONTRADICT"),
            is_told,
            "{}",
            list.name
        );
        if is_told {
            told.push(list.name.as_str());
        }
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reporters_of_one_target_do_not_contradict_each_other() {
    let lists = List::all(10);
    let thirds = |list: &List, third: usize| (third..list.seconds.len()).step_by(3).collect();
    let all = |list: &List, _: usize| (0..list.seconds.len()).collect();
    assert_eq!(told(&lists, 3, thirds).await, [""; 0]);
    assert_eq!(told(&lists, 3, all).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reporters_of_different_parts_of_a_list_hardly_ever_contradict_each_other() {
    let lists = List::all(10);
    let half = |order: Vec<usize>, half: usize| {
        let middle = order.len() / 2;
        if half == 0 {
            order[..middle].to_vec()
        } else {
            order[middle..].to_vec()
        }
    };
    let halves = |list: &List, number: usize| half((0..list.seconds.len()).collect(), number);
    // The fastest half and the slowest one, as searches of different length have them.
    let by_time = |list: &List, number: usize| {
        let mut order: Vec<usize> = (0..list.seconds.len()).collect();
        order.sort_by(|&one, &other| list.seconds[one].total_cmp(&list.seconds[other]));
        half(order, number)
    };
    let [halves, by_time] = [
        told(&lists, 2, halves).await,
        told(&lists, 2, by_time).await,
    ];
    println!("of {} lists: {halves:?}, by time {by_time:?}", lists.len());
    assert!(
        50 * halves.len().max(by_time.len()) <= lists.len(),
        "{halves:?}, {by_time:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inverted_reporter_is_told_and_left_out_if_others_outvote_it() {
    let (mut told, mut left_out, mut honest_left_out, mut lists) = (0, 0, 0, 0);
    let mut taus = [0.0; 3];
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    for list in List::all(16) {
        let inverted = list.inverted();
        list.report(&client, "ann", &evens(&list), same).await;
        let before = list.rank(&client, Some(stored())).await;
        list.report(&client, "eve", &odds(&list), inverted).await;
        let after = list.rank(&client, Some(stored())).await;
        let by_eve = contradictions(&after)
            .iter()
            .find(|each| each.reporter == "eve");
        told += usize::from(by_eve.is_some());
        left_out += usize::from(by_eve.is_some_and(|eve| eve.left_out));
        honest_left_out += usize::from(
            contradictions(&after)
                .iter()
                .any(|each| each.reporter == "ann" && each.left_out),
        );
        if list.seconds.len() > 40 {
            assert!(
                by_eve.is_some_and(|eve| eve.left_out),
                "{}: enough to be sure",
                list.name
            );
            assert_eq!(bits(&after), bits(&before), "{}", list.name);
        }
        if let Some(eve) = by_eve {
            assert!(
                reasons(&after).contains(&"MEASUREMENTS_CONTRADICT"),
                "{}",
                list.name
            );
            assert!(
                after.adaptation.as_ref().unwrap().trust <= 0.5,
                "{}",
                list.name
            );
            assert_eq!(eve.measured_configs as usize, odds(&list).len());
            if eve.left_out {
                assert!(eve.agreement < 0.0, "{eve:?}");
            }
        }
        let zero = list.rank(&client, None).await;
        let all = [&zero, &before, &after].map(|ranking| list.tau(ranking));
        println!(
            "{}: {} configurations, tau {all:?}, {:?}",
            list.name,
            list.seconds.len(),
            contradictions(&after)
        );
        taus.iter_mut().zip(all).for_each(|(sum, tau)| *sum += tau);
        lists += 1;
    }
    println!(
        "of {lists}: {told} told, {left_out} left out, {honest_left_out} honest ones; {:?}",
        taus.map(|tau| tau / lists as f64)
    );
    // The model's order of a few kernels that it does not know is reversed, so that it votes for the inverted times.
    assert!(
        20 * honest_left_out <= lists,
        "{honest_left_out} of {lists}"
    );
    assert!(told > 0 && left_out > 0, "{told} and {left_out} of {lists}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_is_the_same_in_any_order_of_reports() {
    let (forth_folder, back_folder) = (folder(), folder());
    let (_one, forth) = start(forth_folder.path(), &[]).await;
    let (_other, back) = start(back_folder.path(), &[]).await;
    let lists = List::all(16);
    for list in &lists {
        let reports = [
            ("ann", evens(list)),
            ("eve", odds(list)),
            ("bob", (0..8).collect()),
        ];
        let seconds = |reporter: &str| {
            let inverted = list.inverted();
            let is_inverted = reporter == "eve";
            move |seconds| {
                if is_inverted {
                    inverted(seconds)
                } else {
                    seconds
                }
            }
        };
        for (reporter, chosen) in &reports {
            list.report(&forth, reporter, chosen, seconds(reporter))
                .await;
        }
        for (reporter, chosen) in reports.iter().rev() {
            for &one in chosen.iter().rev() {
                list.report(&back, reporter, &[one], seconds(reporter))
                    .await;
            }
        }
    }
    for list in &lists {
        let [one, other] = [
            list.rank(&forth, Some(stored())).await,
            list.rank(&back, Some(stored())).await,
        ];
        assert_eq!(bits(&one), bits(&other), "{}", list.name);
        assert_eq!(one.adaptation, other.adaptation, "{}", list.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_contradicting_reporters_are_for_operators() {
    let team = Team::start(&[]).await;
    let [ann, bob, operator] = [
        team.client("ann").await,
        team.client("bob").await,
        team.client("operator").await,
    ];
    let list = List::all(16)
        .into_iter()
        .max_by_key(|list| list.seconds.len())
        .unwrap();
    ann.report_measurements(&list.handle, &list.adapt(&evens(&list), same))
        .await
        .unwrap();
    bob.report_measurements(&list.handle, &list.adapt(&odds(&list), list.inverted()))
        .await
        .unwrap();
    let shown = async |client: &Client| {
        let ranking = list.rank(client, Some(stored())).await;
        let told = contradictions(&ranking).to_vec();
        assert!(!told.is_empty());
        let message = ranking
            .warnings
            .iter()
            .map(|warning| warning.message.clone())
            .collect::<String>();
        let named = told.iter().any(|each| each.reporter == "bob");
        assert_eq!(message.contains("`bob`"), named, "{message}");
        assert_eq!(message.contains("another client"), !named, "{message}");
        named
    };
    assert!(!shown(&ann).await);
    assert!(shown(&bob).await, "its own name");
    assert!(shown(&operator).await);
    // What a call sends counts for it.
    let own = list
        .rank(
            &bob,
            Some(list.adapt(&evens(&list), list.inverted()).use_stored()),
        )
        .await;
    assert!(
        contradictions(&own)
            .iter()
            .all(|each| each.reporter != "bob" || !each.left_out),
        "{own:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_fills_its_share_leaves_room_for_others() {
    let team = Team::start(&["--max-measurements-bytes=40000"]).await;
    let [ann, bob, operator] = [
        team.client("ann").await,
        team.client("bob").await,
        team.client("operator").await,
    ];
    let list = &List::all(10)[0];
    let all: Vec<usize> = (0..10).collect();
    let fill = async |client: &Client| {
        for number in 0_u32.. {
            let adapt = list
                .adapt(&all, same)
                .ids((0..10).map(|place| format!("{number} {place}")));
            if let Err(refused) = client.report_measurements(&list.handle, &adapt).await {
                return (number, refused);
            }
        }
        unreachable!("the store is bounded")
    };
    let (of_ann, refused) = fill(&ann).await;
    let refusal = refused.refusal().unwrap();
    assert_eq!(refusal.reason(), Some("MEASUREMENTS_FULL"));
    for part in [
        "`ann`",
        "three times",
        "DeleteMeasurements",
        "--max-measurements-bytes",
    ] {
        assert!(refusal.message().contains(part), "{}", refusal.message());
    }
    assert!(refusal.retry_after().is_none(), "it stays full");
    let (of_bob, _) = fill(&bob).await;
    assert!(of_ann > of_bob && of_bob > 0, "{of_ann} and {of_bob}");
    operator.delete(Deletion::Reporter("ann")).await.unwrap();
    assert!(fill(&bob).await.0 > 0, "there is room again");
}
