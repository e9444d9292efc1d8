//! Servers share measurements in a PostgreSQL database, and rank without it while it is away.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_what_either_was_told() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let store = database.store_flag();
    // Both create the tables.
    let ((_one, first), (_other, second)) = tokio::join!(
        storing_server_at(&store, &["--replay-share=1"]),
        storing_server_at(&store, &["--replay-share=1"])
    );
    let (_folder, _file, of_file) = storing_server(&[]).await;
    let kernels = MeasuredList::kernels();
    let mut clients = [&first, &second];
    for kernel in &kernels {
        let all = u32::try_from(kernel.seconds.len()).unwrap();
        let reported = kernel.report(clients[0], TARGET).await;
        assert_eq!((reported.accepted, reported.known), (all, 0));
        let repeated = kernel.report(clients[1], TARGET).await;
        assert_eq!((repeated.accepted, repeated.known), (0, all));
        kernel.report(&of_file, TARGET).await;
        let expected = kernel.rank(&of_file, Some(stored())).await;
        assert!(expected.adaptation.as_ref().unwrap().adapted);
        for client in clients {
            let ranking = kernel.rank(client, Some(stored())).await;
            assert_eq!(all_bits(&ranking), all_bits(&expected), "as from a file");
        }
        clients.reverse();
    }
    let mut lists = Vec::new();
    for client in [&first, &second, &of_file] {
        let mut graphs = kept(client).await;
        // The file's server dates the same reports a moment later.
        for graph in &mut graphs {
            graph.reported_at.clear();
        }
        lists.push(graphs);
    }
    assert_eq!(lists[0].len(), kernels.len());
    assert_eq!(lists[0], lists[1]);
    assert_eq!(lists[0], lists[2]);
    // Each judges its models by what the other was told.
    for client in clients {
        let quality = live_quality::quality_of(client, None, kernels.len()).await;
        assert!(quality.kendall_tau > 0.3, "{quality:?}");
    }
    let all: usize = kernels.iter().map(|kernel| kernel.seconds.len()).sum();
    let everything = deletion(TARGET, None);
    let deleted = second.delete_measurements(&everything).await.unwrap();
    assert_eq!(deleted, all as u64);
    assert_eq!(kernels[0].learned(&first).await, 0);
    live_quality::quality_of(&first, None, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ranking_goes_on_while_the_database_is_away() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let store = database.store_flag();
    let (server, client) = storing_server_at(&store, &[]).await;
    let kernels = MeasuredList::kernels();
    let [kernel, other] = [&kernels[0], &kernels[1]];
    kernel.report(&client, TARGET).await;
    let adapted = kernel.rank(&client, Some(stored())).await;
    database.stop();
    let without = kernel.rank(&client, Some(stored())).await;
    let unused = reasons(&without);
    assert!(unused.contains(&"STORED_MEASUREMENTS_UNUSED"), "{unused:?}");
    let adaptation = without.adaptation.as_ref().unwrap();
    assert_eq!(adaptation.stored_measurements, 0);
    let once = server.client_without_retries().await;
    let measured = other.measured(TARGET);
    let refused = once.report_measurements(&other.handle, &measured).await;
    assert_reason(&refused.unwrap_err(), "MEASUREMENTS_FAILED");
    // A server starts without the database, too.
    let (_late, late) = storing_server_at(&store, &[]).await;
    let ranking = kernel.rank(&late, Some(stored())).await;
    assert_eq!(ranking.scores, without.scores);

    database.resume();
    for client in [&client, &late] {
        let ranking = kernel.rank(client, Some(stored())).await;
        assert_eq!(all_bits(&ranking), all_bits(&adapted));
    }
    other.report(&late, TARGET).await;
    let ranking = other.rank(&client, Some(stored())).await;
    assert!(ranking.adaptation.unwrap().adapted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_draws_what_a_file_draws() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let flags = ["--replay-share=0"];
    let (_folder, _file, of_file) = storing_server(&flags).await;
    let (_server, of_database) = storing_server_at(&database.store_flag(), &flags).await;
    let kernel = &MeasuredList::kernels()[0];
    let all: Vec<usize> = (0..kernel.seconds.len()).collect();
    let mut rankings = Vec::new();
    for client in [&of_file, &of_database] {
        let report = async |reporter: &str, tiles: &[usize], slower: &dyn Fn(usize) -> f64| {
            let time = |(number, &config): (usize, &usize)| kernel.seconds[config] * slower(number);
            let outcomes = run_times(tiles.iter().enumerate().map(time));
            let configurations = part(&kernel.configurations, tiles.to_vec());
            let adapt = Adapt::new(TARGET).measured(&configurations, &outcomes);
            let details = reported(reporter, &[]);
            let report = client.report_measurements_with(&details, &kernel.handle, &adapt);
            report.await.unwrap();
        };
        let often: Vec<usize> = [0, 1, 2].repeat(1_000);
        let slower = |number: usize| 1.0 + 1e-4 * (1 + number) as f64;
        report("eve", &often, &slower).await;
        report("ann", &all, &|_: usize| 1.01005).await;
        report("", &all[1..], &|_: usize| 1.0).await;
        rankings.push(kernel.rank(client, Some(stored())).await);
    }
    assert_eq!(all_bits(&rankings[0]), all_bits(&rankings[1]));
    assert_eq!(rankings[0].adaptation, rankings[1].adaptation);
    let adaptation = rankings[0].adaptation.as_ref().unwrap();
    assert_eq!(adaptation.stored_measurements, 2_000);
    assert_eq!(adaptation.measured_configs as usize, all.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn old_measurements_are_listed_and_expire_in_a_database_too() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let store = database.store_flag();
    let (_server, client) = storing_server_at(&store, &[]).await;
    let kernels = MeasuredList::kernels();
    let [kernel, other] = [&kernels[0], &kernels[1]];
    // The measurements of the first kernel were reported in 1975, and those of the second one today.
    let old = vec![157_800_000; kernel.seconds.len()];
    let of_1975 = reported("", &old);
    let measured = kernel.measured(TARGET);
    let report = client.report_measurements_with(&of_1975, &kernel.handle, &measured);
    report.await.unwrap();
    other.report(&client, TARGET).await;
    let again = kernel.report(&client, TARGET).await;
    assert_eq!(again.known as usize, old.len());
    let reported_before = 1_000_000_000;
    let of_old = ListMeasurementsRequest {
        reported_before,
        ..ListMeasurementsRequest::default()
    };
    let times = async |of: ListMeasurementsRequest| {
        let graphs = listed(&client, of).await.into_iter();
        let times = graphs.flat_map(|graph| graph.reported_at);
        times.collect::<Vec<u64>>()
    };
    assert_eq!(times(of_old).await, old, "the time of the first report");
    let of_another = DeleteMeasurementsRequest {
        reported_before,
        ..deletion("another board", None)
    };
    assert_eq!(client.delete_measurements(&of_another).await.unwrap(), 0);
    let (keeping, _) = storing_server_at(&store, &["--keep-measurements-for=365d"]).await;
    let expired = old.len() as f64;
    keeping
        .until_metrics(|scrape| scrape.value("hlorank_measurements_deleted_total", &[]) == expired)
        .await;
    let left = times(ListMeasurementsRequest::default()).await;
    assert_eq!(left.len(), other.seconds.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_bounded_and_refused_in_another_format() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let store = database.store_flag();
    let kernels = MeasuredList::kernels();
    let report = async |client: &Client, kernel: &MeasuredList| {
        let measured = kernel.measured(TARGET);
        client.report_measurements(&kernel.handle, &measured).await
    };
    {
        let (_server, client) = storing_server_at(&store, &["--max-measurements-bytes=100"]).await;
        let refused = report(&client, &kernels[0]).await.unwrap_err();
        assert_reason(&refused, "MEASUREMENTS_FULL");
        assert_eq!(kernels[0].learned(&client).await, 0);
    }
    {
        let (server, _) = storing_server_at(&store, &[]).await;
        // Others repeat what failed in the server.
        let client = server.client_without_retries().await;
        report(&client, &kernels[0]).await.unwrap();
        database.execute("UPDATE hlorank_store SET format = 7");
        // Whether the measurements are new or known.
        for kernel in &kernels[..2] {
            let refused = report(&client, kernel).await.unwrap_err();
            assert_reason(&refused, "MEASUREMENTS_FAILED");
            says!(refused.to_string(), "format 7", "reads format 6");
        }
        let everything = deletion(TARGET, None);
        let refused = client.delete_measurements(&everything).await.unwrap_err();
        assert_reason(&refused, "MEASUREMENTS_FAILED");
        database.execute("UPDATE hlorank_store SET format = 6");
        let kept = kept(&client).await;
        assert_eq!(kept.len(), 1, "nothing was written or deleted");
        database.execute("UPDATE hlorank_store SET format = 7");
    }
    let refusal = async |flag: &str| {
        let server = TestServer::try_start_with(&[flag]).await;
        server.err().unwrap().to_string()
    };
    says!(refusal(&store).await, "format 7", "127.0.0.1/postgres");
    let refused = refusal("--measurements=postgres://me:secret@host:port/x").await;
    says!(refused, "no address of a PostgreSQL database");
    assert!(!refused.contains("secret"), "{refused}");
}
