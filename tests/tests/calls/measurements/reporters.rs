//! Who reported a measurement is kept, shown and used: what a client measured itself comes before what others say of it.

use std::convert::identity;

use hlorank_client::v1::Reporter;

use super::*;

/// A server of two clients who report, one who only reads, and an operator.
async fn team(flags: &[&str]) -> Team {
    let clients = [
        ("ann", "read,report"),
        ("bob", "read,report"),
        ("reader", "read"),
        ("operator", "read,admin"),
    ];
    Team::start(&clients, flags).await
}

impl MeasuredList {
    /// All measured lists of the repository with at least this many configurations, one of each graph.
    fn all(count: usize) -> Vec<Self> {
        let pools = ["pools/halide_kernels.pb", "pools/unseen_families.pb"];
        let pools = pools.iter().flat_map(|file| read_graphs(&fixture(file)));
        let mut all: Vec<MeasuredGraph> = measured_graphs().into_iter().chain(pools).collect();
        let mut known = BTreeSet::new();
        all.retain(|graph| graph.measurements.is_some() && known.insert(graph.graph.hash().0));
        let lists = all.iter().map(Self::of);
        lists.filter(|list| list.seconds.len() >= count).collect()
    }

    fn first(count: usize) -> Self {
        Self::all(count).remove(0)
    }

    /// The numbers of every second configuration.
    fn evens(&self) -> Vec<usize> {
        (0..self.seconds.len()).step_by(2).collect()
    }

    /// The numbers of the other configurations.
    fn odds(&self) -> Vec<usize> {
        (1..self.seconds.len()).step_by(2).collect()
    }

    /// Measurements of some configurations, whose times may be false.
    fn measured_as(&self, chosen: &[usize], seconds: impl Fn(f64) -> f64) -> Adapt {
        let outcomes = run_times(chosen.iter().map(|&config| seconds(self.seconds[config])));
        Adapt::new(TARGET).measured(&part(&self.configurations, chosen.to_vec()), &outcomes)
    }

    /// Reports some configurations under a name, or under the client's own if it is empty.
    async fn report_as(
        &self,
        client: &Client,
        reporter: &str,
        chosen: &[usize],
        seconds: impl Fn(f64) -> f64,
    ) {
        let adapt = self.measured_as(chosen, seconds);
        let details = reported(reporter, &[]);
        let report = client.report_measurements_with(&details, &self.handle, &adapt);
        report.await.unwrap();
    }

    /// Times in the reversed order, of the same size.
    fn inverted(&self) -> impl Fn(f64) -> f64 + Copy {
        let times = || self.seconds.iter().copied();
        let product = times().fold(f64::INFINITY, f64::min) * times().fold(0.0, f64::max);
        move |seconds| product / seconds
    }

    /// The bits of an answer that rests on all that is stored.
    async fn stored_bits(&self, client: &Client) -> Vec<u32> {
        all_bits(&self.rank(client, Some(stored())).await)
    }

    /// Kendall's tau of what was measured, and the scores of an answer.
    fn tau(&self, ranking: &Ranking) -> f64 {
        let pairs = pairs(&ranking.scores, &self.seconds);
        pairs.kendall_tau().unwrap_or_default()
    }
}

fn shares(ranking: &Ranking) -> &[Reporter] {
    &ranking.adaptation.as_ref().unwrap().reporters
}

fn names(ranking: &Ranking) -> Vec<&str> {
    let shares = shares(ranking).iter();
    shares.map(|share| share.reporter.as_str()).collect()
}

/// Deletes the measurements of a reporter on all targets.
fn of_reporter(reporter: &str) -> DeleteMeasurementsRequest {
    DeleteMeasurementsRequest {
        reporter: reporter.to_owned(),
        ..DeleteMeasurementsRequest::default()
    }
}

/// The reporters of all measurements that a client is shown.
async fn reporters(client: &Client) -> BTreeSet<String> {
    let graphs = kept(client).await.into_iter();
    graphs.flat_map(|graph| graph.reporters).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_sees_its_own_name_and_an_operator_sees_all() {
    let team = team(&[]).await;
    let [ann, bob] = team.clients(["ann", "bob"]).await;
    let list = MeasuredList::first(10);
    list.report_as(&ann, "", &list.evens(), identity).await;
    list.report_as(&bob, "", &list.odds(), identity).await;
    for (name, shown, ranked) in [
        ("ann", ["", "ann"], ["ann", ""]),
        ("bob", ["", "bob"], ["bob", ""]),
        ("operator", ["ann", "bob"], ["ann", "bob"]),
    ] {
        let client = team.client(name).await;
        let shown = BTreeSet::from(shown.map(str::to_owned));
        assert_eq!(reporters(&client).await, shown);
        let ranking = list.rank(&client, Some(stored())).await;
        let mut named = names(&ranking);
        if name == "operator" {
            // Those of others come by the number of their configurations.
            named.sort_unstable();
        }
        assert_eq!(named, ranked, "{name}");
    }
    // The same measurement of two clients is one for each, and teaches once.
    let once = list.stored_bits(&ann).await;
    list.report_as(&ann, "", &list.odds(), identity).await;
    assert_eq!(list.stored_bits(&ann).await, once);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_others_and_at_other_times_and_deletions_need_their_scopes() {
    let team = team(&[]).await;
    let [ann, reader, operator] = team.clients(["ann", "reader", "operator"]).await;
    let list = MeasuredList::first(10);
    let adapt = list.measured_as(&list.evens(), identity);
    let all = u32::try_from(list.evens().len()).unwrap();
    let report = async |client: &Client, reporter: &str, reported_at: &[u64]| {
        let details = reported(reporter, reported_at);
        let report = client.report_measurements_with(&details, &list.handle, &adapt);
        report
            .await
            .map(|outcome| (outcome.accepted, outcome.known))
    };
    let too_long = "n".repeat(257);
    for (client, reporter, reported_at, reason) in [
        (&reader, "", vec![], "SCOPE_MISSING"),
        (&ann, "bob", vec![], "SCOPE_MISSING"),
        (&ann, "ann", vec![1_000_000; all as usize], "SCOPE_MISSING"),
        (&operator, too_long.as_str(), vec![], "FIELD_INVALID"),
    ] {
        let refused = report(client, reporter, &reported_at).await.unwrap_err();
        assert_reason(&refused, reason);
    }
    assert_eq!(report(&ann, "ann", &[]).await.unwrap(), (all, 0));
    assert_eq!(report(&operator, "ann", &[]).await.unwrap(), (0, all));
    let refused = ann.delete_measurements(&of_reporter("bob")).await;
    assert_reason(&refused.unwrap_err(), "SCOPE_MISSING");
    // Who only reads learns from what others reported.
    assert_eq!(list.learned(&reader).await, all as usize);
    assert_eq!(reporters(&reader).await, BTreeSet::from([String::new()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_liar_changes_nothing_of_what_a_client_measured_itself() {
    let team = team(&[]).await;
    let [ann, eve] = team.clients(["ann", "bob"]).await;
    let mut taus = [0.0; 2];
    let lists = MeasuredList::all(16);
    for list in &lists {
        let (name, own) = (&list.name, list.evens());
        list.report_as(&ann, "", &own, identity).await;
        let today = list.rank(&ann, None).await;
        let before = list.rank(&ann, Some(stored())).await;
        list.report_as(&eve, "", &own, list.inverted()).await;
        let after = list.rank(&ann, Some(stored())).await;
        assert_eq!(all_bits(&after), all_bits(&before), "{name}");
        for (sum, ranking) in taus.iter_mut().zip([&today, &before]) {
            *sum += list.tau(ranking) / lists.len() as f64;
        }
        assert_eq!(names(&after), ["ann", ""], "{name}");
        let differences = shares(&after).iter().map(|share| share.times_differ_by);
        let differences: Vec<f64> = differences.collect();
        assert!(differences[0] > 1.0, "{differences:?}");
        assert!((differences[1] - differences[0]).abs() < 1e-9, "{name}");
        for share in shares(&after) {
            let counts = [share.measured_configs, share.shared_configs];
            assert_eq!(counts.map(|count| count as usize), [own.len(); 2], "{name}");
        }
    }
    println!("means of {} lists: {taus:?}", lists.len());
    assert!(taus[1] > taus[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_call_sends_comes_before_what_others_reported() {
    let (_folder, _server, client) = storing_server(&[]).await;
    let list = MeasuredList::first(16);
    let own = list.evens();
    list.report_as(&client, "eve", &own, list.inverted()).await;
    let sent = list.measured_as(&own, identity);
    let alone = list.rank(&client, Some(sent.clone())).await;
    let with_all = list.rank(&client, Some(sent.use_stored())).await;
    assert_eq!(all_bits(&with_all), all_bits(&alone));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_can_learn_from_its_own_reports_alone() {
    let team = team(&[]).await;
    let [ann, eve] = team.clients(["ann", "bob"]).await;
    let own_only = || Some(Adapt::new(TARGET).use_own_stored());
    let lists = MeasuredList::all(10);
    for list in &lists {
        list.report_as(&ann, "", &list.evens(), identity).await;
    }
    let mut expected = Vec::new();
    for list in &lists {
        expected.push(all_bits(&list.rank(&ann, own_only()).await));
    }
    for list in &lists {
        let all: Vec<usize> = (0..list.seconds.len()).collect();
        list.report_as(&eve, "", &all, list.inverted()).await;
    }
    for (list, expected) in lists.iter().zip(expected) {
        let ranking = list.rank(&ann, own_only()).await;
        assert_eq!(all_bits(&ranking), expected, "{}", list.name);
        assert_eq!(names(&ranking), ["ann"], "{}", list.name);
        let learned = ranking.adaptation.unwrap().stored_measurements;
        assert_eq!(learned as usize, list.evens().len(), "{}", list.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reporters_that_agree_differ_by_nothing() {
    let (_folder, _server, client) = storing_server(&[]).await;
    let list = MeasuredList::first(10);
    let some = list.evens();
    let all = [list.evens(), list.odds()].concat();
    list.report_as(&client, "ann", &all, identity).await;
    let doubled = |seconds: f64| 2.0 * seconds;
    list.report_as(&client, "bob", &some, doubled).await;
    list.report_as(&client, "eve", &[0], identity).await;
    let ranking = list.rank(&client, Some(stored())).await;
    let share = |share: &Reporter| (share.measured_configs, share.shared_configs);
    let found: Vec<(u32, u32)> = shares(&ranking).iter().map(share).collect();
    let [all, some] = [all, some].map(|chosen| u32::try_from(chosen.len()).unwrap());
    assert_eq!(names(&ranking), ["ann", "bob", "eve"]);
    assert_eq!(found, [(all, some), (some, some), (1, 1)]);
    assert!((shares(&ranking)[1].times_differ_by - 2.0).abs() < 1e-9);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_order_of_reports_and_a_restart_give_equal_answers() {
    let (folder, server, forth) = storing_server(&[]).await;
    let (_other_folder, _other, back) = storing_server(&[]).await;
    let lists = MeasuredList::all(16);
    for list in &lists {
        let inverted = list.inverted();
        let reports = [
            ("ann", list.evens()),
            ("eve", list.odds()),
            ("bob", (0..8).collect()),
        ];
        let seconds = |reporter: &str| {
            let is_inverted = reporter == "eve";
            move |seconds: f64| {
                if is_inverted {
                    inverted(seconds)
                } else {
                    seconds
                }
            }
        };
        for (reporter, chosen) in &reports {
            list.report_as(&forth, reporter, chosen, seconds(reporter))
                .await;
        }
        for (reporter, chosen) in reports.iter().rev() {
            for &one in chosen.iter().rev() {
                list.report_as(&back, reporter, &[one], seconds(reporter))
                    .await;
            }
            // Again, as a client that repeats a call does.
            list.report_as(&back, reporter, chosen, seconds(reporter))
                .await;
        }
    }
    // Kernels of one structure teach about each other, so rankings are compared once all are reported.
    let mut expected = Vec::new();
    for list in &lists {
        let ranking = list.rank(&forth, Some(stored())).await;
        assert!(ranking.adaptation.as_ref().unwrap().stored_measurements > 0);
        expected.push(ranking);
    }
    server.stop().await;
    let (_server, again) = storing_server_at(&store_flag(folder.path()), &[]).await;
    for (list, expected) in lists.iter().zip(expected) {
        for client in [&back, &again] {
            let ranking = list.rank(client, Some(stored())).await;
            assert_eq!(all_bits(&ranking), all_bits(&expected), "{}", list.name);
            assert_eq!(ranking.adaptation, expected.adaptation, "{}", list.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_fills_its_share_leaves_room_for_others_until_its_own_is_deleted() {
    let team = team(&["--max-measurements-bytes=40000"]).await;
    let [ann, bob, operator] = team.clients(["ann", "bob", "operator"]).await;
    let list = MeasuredList::first(10);
    let all: Vec<usize> = (0..10).collect();
    let fill = async |client: &Client| {
        for number in 0_u32.. {
            let ids = all.iter().map(|config| format!("{number} {config}"));
            let adapt = list.measured_as(&all, identity).ids(ids);
            if let Err(refused) = client.report_measurements(&list.handle, &adapt).await {
                return (number, refused);
            }
        }
        unreachable!("the store is bounded")
    };
    let (of_ann, refused) = fill(&ann).await;
    assert_eq!(refused.code(), Some(Code::ResourceExhausted));
    assert_reason(&refused, "MEASUREMENTS_FULL");
    let refusal = refused.refusal().unwrap();
    says!(
        refusal.message(),
        "`ann`",
        "three times",
        "DeleteMeasurements",
        "--max-measurements-bytes"
    );
    assert!(refusal.retry_after().is_none(), "it stays full");
    let scrape = team.server.scrape().await;
    let counted = scrape.value("hlorank_measurements", &[]);
    assert_eq!(counted, f64::from(10 * of_ann), "nothing of the last one");
    assert!(scrape.value("hlorank_measurements_bytes", &[]) <= 30_000.0);
    let (of_bob, _) = fill(&bob).await;
    assert!(of_ann > of_bob && of_bob > 0, "{of_ann} and {of_bob}");
    let all_of_ann = of_reporter("ann");
    let deleted = operator.delete_measurements(&all_of_ann).await.unwrap();
    assert_eq!(deleted, u64::from(10 * of_ann));
    assert!(fill(&bob).await.0 > 0, "there is room again");
}
