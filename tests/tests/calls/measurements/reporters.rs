//! Who reported a measurement is kept, shown and used: what a client measured itself comes before what others say of it.

use hlorank_client::v1::Reporter;
use hlorank_tests::prelude::*;

use super::*;

/// A server whose tokens are those of two clients and an operator.
struct Team {
    server: TestServer,
    _files: Files,
    _folder: TempDir,
}

impl Team {
    async fn start(flags: &[&str]) -> Self {
        let (files, folder) = (Files::new(), folder());
        let tokens = [
            ("ann", "read,report"),
            ("bob", "read,report"),
            ("reader", "read"),
            ("operator", "read,admin"),
        ];
        files.write(
            "tokens",
            &tokens
                .map(|(name, scopes)| token_line(name, scopes, name))
                .concat(),
        );
        let measurements = store_flag(folder.path());
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
        self.server.client_with(connection).await
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
        let (all, seconds) = (configurations(graph), seconds_of(graph));
        let mut distinct = all.batch().distinct().first;
        distinct.retain(|&config| seconds[config] > 0.0);
        Self {
            name: graph.name.clone(),
            handle: GraphHandle::from_measured(graph),
            seconds: distinct.iter().map(|&config| seconds[config]).collect(),
            configurations: part(all, distinct),
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
        let measured = run_times(chosen.iter().map(|&config| seconds(self.seconds[config])));
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
            .report_measurements_with(&reported(reporter, &[]), &self.handle, &adapt)
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
        let pairs = pairs(&ranking.scores, &self.seconds);
        pairs.kendall_tau().unwrap_or_default()
    }
}

fn stored() -> Adapt {
    Adapt::new(TARGET).use_stored()
}

fn same(seconds: f64) -> f64 {
    seconds
}

fn shares(ranking: &Ranking) -> &[Reporter] {
    &ranking.adaptation.as_ref().unwrap().reporters
}

fn evens(list: &List) -> Vec<usize> {
    (0..list.seconds.len()).step_by(2).collect()
}

fn odds(list: &List) -> Vec<usize> {
    (1..list.seconds.len()).step_by(2).collect()
}

/// Deletes the measurements of a reporter on a target, or on all.
fn of_reporter(reporter: &str, target: &str) -> DeleteMeasurementsRequest {
    DeleteMeasurementsRequest {
        reporter: reporter.to_owned(),
        ..deletion(target, None)
    }
}

/// The reporters of all measurements of an answer to `ListMeasurements`.
async fn reporters(client: &Client) -> Vec<String> {
    let page = client
        .list_measurements(&ListMeasurementsRequest::default())
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

#[tokio::test(flavor = "multi_thread")]
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
    for (name, mut expected) in [
        ("ann", ["ann", ""]),
        ("bob", ["bob", ""]),
        ("operator", ["ann", "bob"]),
    ] {
        let ranking = list.rank(&team.client(name).await, Some(stored())).await;
        let mut named: Vec<&str> = shares(&ranking)
            .iter()
            .map(|each| &*each.reporter)
            .collect();
        if name == "operator" {
            named.sort_unstable();
            expected.sort_unstable();
        }
        assert_eq!(named, expected);
    }
    // The same measurement of two clients is one for each, and teaches once.
    let once = list.rank(&ann, Some(stored())).await;
    ann.report_measurements(&list.handle, &list.adapt(&odds(list), same))
        .await
        .unwrap();
    assert_eq!(
        all_bits(&list.rank(&ann, Some(stored())).await),
        all_bits(&once)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reports_under_the_name_of_another_without_the_scope() {
    let team = Team::start(&[]).await;
    let [ann, operator] = [team.client("ann").await, team.client("operator").await];
    let list = &List::all(10)[0];
    let adapt = list.adapt(&evens(list), same);
    let refused = ann
        .report_measurements_with(&reported("bob", &[]), &list.handle, &adapt)
        .await
        .unwrap_err();
    assert_reason(&refused, "SCOPE_MISSING");
    let times = vec![1_000_000; evens(list).len()];
    let refused = ann
        .report_measurements_with(&reported("ann", &times), &list.handle, &adapt)
        .await
        .unwrap_err();
    assert_reason(&refused, "SCOPE_MISSING");
    let own = ann
        .report_measurements_with(&reported("ann", &[]), &list.handle, &adapt)
        .await
        .unwrap();
    assert_eq!(own.accepted as usize, evens(list).len(), "its own name");
    let known = operator
        .report_measurements_with(&reported("ann", &[]), &list.handle, &adapt)
        .await
        .unwrap();
    assert_eq!((known.accepted, known.known), (0, own.accepted));
    let too_long = operator
        .report_measurements_with(&reported(&"n".repeat(257), &[]), &list.handle, &adapt)
        .await
        .unwrap_err();
    assert_reason(&too_long, "FIELD_INVALID");
    let refused = ann
        .delete_measurements(&of_reporter("bob", ""))
        .await
        .unwrap_err();
    assert_reason(&refused, "SCOPE_MISSING");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_only_reads_learns_from_reports_and_reports_nothing() {
    let team = Team::start(&[]).await;
    let [reader, operator] = [team.client("reader").await, team.client("operator").await];
    let list = &List::all(10)[0];
    let adapt = list.adapt(&evens(list), same);
    let refused = reader
        .report_measurements(&list.handle, &adapt)
        .await
        .unwrap_err();
    let refusal = refused.refusal().unwrap();
    assert_eq!(refusal.reason(), Some("SCOPE_MISSING"), "{refused}");
    assert!(refusal.message().contains("`report`"), "{refused}");
    operator
        .report_measurements(&list.handle, &adapt)
        .await
        .unwrap();
    assert!(
        list.rank(&reader, Some(stored()))
            .await
            .adaptation
            .unwrap()
            .adapted
    );
    assert_eq!(reporters(&reader).await, [""]);
}

#[tokio::test(flavor = "multi_thread")]
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
        expected.push(all_bits(&list.rank(&client, Some(stored())).await));
    }
    for list in &lists {
        list.report(&client, "eve", &odds(list), list.inverted())
            .await;
        of_eve += odds(list).len();
    }
    assert_eq!(
        client
            .delete_measurements(&of_reporter("eve", "another board"))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        client
            .delete_measurements(&of_reporter("eve", ""))
            .await
            .unwrap(),
        of_eve as u64
    );
    for (list, expected) in lists.iter().zip(expected) {
        assert_eq!(
            all_bits(&list.rank(&client, Some(stored())).await),
            expected,
            "{}",
            list.name
        );
    }
    assert_eq!(reporters(&client).await, ["ann"]);
}

#[tokio::test(flavor = "multi_thread")]
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
        expected.push(all_bits(&list.rank(&ann, own_only()).await));
    }
    for list in &lists {
        let all: Vec<usize> = (0..list.seconds.len()).collect();
        bob.report_measurements(&list.handle, &list.adapt(&all, list.inverted()))
            .await
            .unwrap();
    }
    for (list, expected) in lists.iter().zip(expected) {
        let ranking = list.rank(&ann, own_only()).await;
        assert_eq!(all_bits(&ranking), expected, "{}", list.name);
        let adaptation = ranking.adaptation.unwrap();
        assert_eq!(
            adaptation.stored_measurements as usize,
            evens(list).len(),
            "{}",
            list.name
        );
        let reporters: Vec<&str> = adaptation
            .reporters
            .iter()
            .map(|each| &*each.reporter)
            .collect();
        assert_eq!(reporters, ["ann"], "{}", list.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_liar_changes_nothing_of_what_a_client_measured_itself() {
    let team = Team::start(&[]).await;
    let [ann, eve] = [team.client("ann").await, team.client("bob").await];
    let mut taus = [0.0; 3];
    let lists = List::all(16);
    for list in &lists {
        let own = evens(list);
        ann.report_measurements(&list.handle, &list.adapt(&own, same))
            .await
            .unwrap();
        let zero = list.rank(&ann, None).await;
        let before = list.rank(&ann, Some(stored())).await;
        eve.report_measurements(&list.handle, &list.adapt(&own, list.inverted()))
            .await
            .unwrap();
        let after = list.rank(&ann, Some(stored())).await;
        let all = [&zero, &before, &after].map(|ranking| list.tau(ranking));
        println!(
            "{}: {} configurations, tau {all:?}",
            list.name,
            list.seconds.len()
        );
        assert_eq!(all_bits(&after), all_bits(&before), "{}", list.name);
        taus.iter_mut()
            .zip(all)
            .for_each(|(sum, tau)| *sum += tau / lists.len() as f64);
        let [of_ann, of_eve] = shares(&after) else {
            panic!("{}: {:?}", list.name, shares(&after));
        };
        assert_eq!((&*of_ann.reporter, &*of_eve.reporter), ("ann", ""));
        for share in [of_ann, of_eve] {
            assert_eq!(share.measured_configs as usize, own.len());
            assert_eq!(share.shared_configs as usize, own.len());
            assert!(
                (share.times_differ_by - of_ann.times_differ_by).abs() < 1e-9,
                "of each other"
            );
            assert!(share.times_differ_by > 1.0, "{share:?}");
        }
    }
    println!("means of {} lists: {taus:?}", lists.len());
    assert!(taus[1] > taus[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_call_sends_comes_before_what_others_reported() {
    let team = Team::start(&[]).await;
    let [ann, eve] = [team.client("ann").await, team.client("bob").await];
    let list = &List::all(16)[0];
    let own = evens(list);
    eve.report_measurements(&list.handle, &list.adapt(&own, list.inverted()))
        .await
        .unwrap();
    let alone = list.rank(&ann, Some(list.adapt(&own, same))).await;
    let with_all = list
        .rank(&ann, Some(list.adapt(&own, same).use_stored()))
        .await;
    assert_eq!(all_bits(&with_all), all_bits(&alone));
}

#[tokio::test(flavor = "multi_thread")]
async fn reporters_that_agree_differ_by_nothing() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    let list = &List::all(10)[0];
    let all: Vec<usize> = (0..list.seconds.len()).collect();
    list.report(&client, "ann", &all, same).await;
    list.report(&client, "bob", &evens(list), |seconds| 2.0 * seconds)
        .await;
    list.report(&client, "eve", &[0], same).await;
    let ranking = list.rank(&client, Some(stored())).await;
    let found: Vec<(&str, u32, u32)> = shares(&ranking)
        .iter()
        .map(|each| (&*each.reporter, each.measured_configs, each.shared_configs))
        .collect();
    let [all, some] = [all.len(), evens(list).len()].map(|count| u32::try_from(count).unwrap());
    assert_eq!(
        found,
        [("ann", all, some), ("bob", some, some), ("eve", 1, 1)]
    );
    assert!((shares(&ranking)[1].times_differ_by - 2.0).abs() < 1e-9);
}

#[tokio::test(flavor = "multi_thread")]
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
        assert_eq!(all_bits(&one), all_bits(&other), "{}", list.name);
        assert_eq!(one.adaptation, other.adaptation, "{}", list.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
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
    says!(
        refusal.message(),
        "`ann`",
        "three times",
        "DeleteMeasurements",
        "--max-measurements-bytes"
    );
    assert!(refusal.retry_after().is_none(), "it stays full");
    let (of_bob, _) = fill(&bob).await;
    assert!(of_ann > of_bob && of_bob > 0, "{of_ann} and {of_bob}");
    operator
        .delete_measurements(&of_reporter("ann", ""))
        .await
        .unwrap();
    assert!(fill(&bob).await.0 > 0, "there is room again");
}
