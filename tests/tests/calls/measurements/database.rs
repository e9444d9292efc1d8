//! Servers share measurements in a PostgreSQL database, and rank without it while it is away.

use hlorank_tests::prelude::*;

use super::*;

/// Starts a server that keeps measurements in a database.
async fn start_with(database: &Postgres, flags: &[&str]) -> (TestServer, Client) {
    let measurements = format!("--measurements={}", database.url());
    let server = TestServer::start_with(&[&[&*measurements], flags].concat()).await;
    let client = server.client().await;
    (server, client)
}

pub(crate) async fn rank(client: &Client, kernel: &Kernel) -> Ranking {
    let request = RankRequest::new(&kernel.handle, &kernel.tiles).with_scores();
    client
        .rank(&request.adapt(Some(Adapt::new(TARGET).use_stored())))
        .await
        .unwrap()
}

pub(crate) fn adapt(kernel: &Kernel) -> Adapt {
    Adapt::new(TARGET).measured(&kernel.tiles, &run_times(kernel.seconds.iter().copied()))
}

pub(crate) fn reason(error: &ClientError) -> Option<&str> {
    error.refusal()?.reason()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_what_either_was_told() {
    let Some(database) = Postgres::start() else {
        return;
    };
    // Both create the tables.
    let ((_one, first), (_other, second)) = tokio::join!(
        start_with(&database, &["--replay-share=1"]),
        start_with(&database, &["--replay-share=1"])
    );
    let (folder, kernels) = (folder(), Kernel::all());
    let (_file, of_file) = start(folder.path(), &[]).await;
    for (number, kernel) in kernels.iter().enumerate() {
        let (one, other) = if number % 2 == 0 {
            (&first, &second)
        } else {
            (&second, &first)
        };
        let all = u32::try_from(kernel.seconds.len()).unwrap();
        let reported = one
            .report_measurements(&kernel.handle, &adapt(kernel))
            .await
            .unwrap();
        assert_eq!((reported.accepted, reported.known), (all, 0));
        let repeated = other
            .report_measurements(&kernel.handle, &adapt(kernel))
            .await
            .unwrap();
        assert_eq!(
            (repeated.accepted, repeated.known),
            (0, all),
            "it is known to both"
        );
        kernel.report(&of_file, TARGET).await;
        let expected = rank(&of_file, kernel).await;
        assert!(expected.adaptation.as_ref().unwrap().adapted);
        for client in [&first, &second] {
            assert_eq!(
                all_bits(&rank(client, kernel).await),
                all_bits(&expected),
                "as from a file"
            );
        }
    }
    let mut lists = Vec::new();
    for client in [&first, &second, &of_file] {
        let list = listed(client, of_target()).await;
        // The file's server dates the same reports a moment later.
        let undated = list.into_iter().map(|graph| GraphMeasurements {
            reported_at: Vec::new(),
            ..graph
        });
        lists.push(undated.collect::<Vec<_>>());
    }
    let [one, other, file] = &lists[..] else {
        panic!()
    };
    assert!(one.len() == kernels.len() && one == other && other == file);
    // Each judges its models by what the other was told.
    for client in [&first, &second] {
        let quality = live_quality::quality_of(client, None, kernels.len()).await;
        assert!(quality.kendall_tau > 0.3, "{quality:?}");
    }
    let all: usize = kernels.iter().map(|kernel| kernel.seconds.len()).sum();
    assert_eq!(
        second
            .delete_measurements(&deletion(TARGET, None))
            .await
            .unwrap(),
        all as u64
    );
    assert_eq!(
        rank(&first, &kernels[0])
            .await
            .adaptation
            .unwrap()
            .stored_measurements,
        0
    );
    live_quality::quality_of(&first, None, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ranking_goes_on_while_the_database_is_away() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let (server, client) = start_with(&database, &[]).await;
    let kernels = Kernel::all();
    let [kernel, other] = [&kernels[0], &kernels[1]];
    client
        .report_measurements(&kernel.handle, &adapt(kernel))
        .await
        .unwrap();
    let adapted = rank(&client, kernel).await;
    database.stop();
    let without = rank(&client, kernel).await;
    let unused: Vec<&str> = without
        .warnings
        .iter()
        .map(|warning| warning.reason.as_str())
        .collect();
    assert!(unused.contains(&"STORED_MEASUREMENTS_UNUSED"), "{unused:?}");
    assert_eq!(without.adaptation.unwrap().stored_measurements, 0);
    let once = server.client_without_retries().await;
    let refused = once.report_measurements(&other.handle, &adapt(other)).await;
    let refused = refused.unwrap_err();
    assert_eq!(reason(&refused), Some("MEASUREMENTS_FAILED"), "{refused}");
    // A server starts without the database, too.
    let (_late, late) = start_with(&database, &[]).await;
    assert_eq!(rank(&late, kernel).await.scores, without.scores);

    database.resume();
    for client in [&client, &late] {
        assert_eq!(
            all_bits(&rank(client, kernel).await),
            all_bits(&adapted),
            "nothing acknowledged is lost"
        );
    }
    late.report_measurements(&other.handle, &adapt(other))
        .await
        .unwrap();
    assert!(rank(&client, other).await.adaptation.unwrap().adapted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_draws_what_a_file_draws() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let folder = folder();
    let (_file, of_file) = start(folder.path(), &["--replay-share=0"]).await;
    let (_server, of_database) = start_with(&database, &["--replay-share=0"]).await;
    let kernel = &Kernel::all()[0];
    let often: Vec<usize> = [0, 1, 2].repeat(1_000);
    let measured = |seconds: &dyn Fn(usize, f64) -> f64, chosen: &[usize]| {
        let time = |(number, &tile): (usize, &usize)| seconds(number, kernel.seconds[tile]);
        let measured = run_times(chosen.iter().enumerate().map(time));
        Adapt::new(TARGET).measured(&part(&kernel.tiles, chosen.to_vec()), &measured)
    };
    let all: Vec<usize> = (0..kernel.seconds.len()).collect();
    let own = &all[1..];
    let mut rankings = Vec::new();
    for client in [&of_file, &of_database] {
        let many = measured(
            &|number, seconds| seconds * (1.0 + 1e-4 * (1 + number) as f64),
            &often,
        );
        for (reporter, adapt) in [
            ("eve", &many),
            ("ann", &measured(&|_, seconds| 1.01005 * seconds, &all)),
            ("", &measured(&|_, seconds| seconds, own)),
        ] {
            client
                .report_measurements_with(&reported(reporter, &[]), &kernel.handle, adapt)
                .await
                .unwrap();
        }
        rankings.push(rank(client, kernel).await);
    }
    assert_eq!(all_bits(&rankings[0]), all_bits(&rankings[1]));
    assert_eq!(rankings[0].adaptation, rankings[1].adaptation);
    let adaptation = rankings[0].adaptation.as_ref().unwrap();
    assert_eq!(adaptation.stored_measurements, 2_000);
    assert_eq!(adaptation.measured_configs as usize, all.len());
}

/// Reports all of a kernel under the name of a reporter, at some times.
async fn report_of(
    client: &Client,
    kernel: &Kernel,
    reporter: &str,
    times: Vec<u64>,
) -> Result<hlorank_client::ReportOutcome, ClientError> {
    client
        .report_measurements_with(&reported(reporter, &times), &kernel.handle, &adapt(kernel))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn old_measurements_are_listed_and_expire_in_a_database_too() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let kernels = Kernel::all();
    let (_server, client) = start_with(&database, &[]).await;
    // Ann reported the measurements of the first kernel in 1975, and those of the second one today.
    let old = vec![157_800_000; kernels[0].seconds.len()];
    report_of(&client, &kernels[0], "ann", old.clone())
        .await
        .unwrap();
    report_of(&client, &kernels[1], "ann", Vec::new())
        .await
        .unwrap();
    let again = report_of(&client, &kernels[0], "ann", Vec::new()).await;
    assert_eq!(again.unwrap().known as usize, old.len());
    let reported_before = 1_000_000_000;
    let of_old = ListMeasurementsRequest {
        reported_before,
        ..ListMeasurementsRequest::default()
    };
    let listed = client.list_measurements(&of_old).await.unwrap();
    let times: Vec<u64> = listed
        .graphs
        .into_iter()
        .flat_map(|graph| graph.reported_at)
        .collect();
    assert_eq!(times, old, "the time of the first report stays");
    let of_another = DeleteMeasurementsRequest {
        reported_before,
        ..deletion("another board", None)
    };
    assert_eq!(client.delete_measurements(&of_another).await.unwrap(), 0);
    let (keeping, _) = start_with(&database, &["--keep-measurements-for=365d"]).await;
    let expired = old.len() as f64;
    keeping
        .until_metrics(|scrape| scrape.value("hlorank_measurements_deleted_total", &[]) == expired)
        .await;
    let left = client
        .list_measurements(&ListMeasurementsRequest::default())
        .await
        .unwrap();
    let times = left.graphs.into_iter().flat_map(|graph| graph.reported_at);
    assert_eq!(times.count(), kernels[1].seconds.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_bounded_and_refused_in_another_format() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let kernels = Kernel::all();
    {
        let (_server, client) = start_with(&database, &["--max-measurements-bytes=100"]).await;
        let refused = client
            .report_measurements(&kernels[0].handle, &adapt(&kernels[0]))
            .await
            .unwrap_err();
        assert_eq!(reason(&refused), Some("MEASUREMENTS_FULL"), "{refused}");
        assert_eq!(
            rank(&client, &kernels[0])
                .await
                .adaptation
                .unwrap()
                .stored_measurements,
            0
        );
    }
    {
        let (server, _) = start_with(&database, &[]).await;
        // Others repeat what failed in the server.
        let client = server.client_without_retries().await;
        report_of(&client, &kernels[0], "ann", Vec::new())
            .await
            .unwrap();
        database.execute("UPDATE hlorank_store SET format = 7");
        // Whether the measurements are new or known.
        for kernel in &kernels[..2] {
            let refused = report_of(&client, kernel, "ann", Vec::new())
                .await
                .unwrap_err();
            assert_eq!(reason(&refused), Some("MEASUREMENTS_FAILED"), "{refused}");
            says!(refused.to_string(), "format 7", "reads format 6");
        }
        let refused = client
            .delete_measurements(&deletion(TARGET, None))
            .await
            .unwrap_err();
        assert_eq!(reason(&refused), Some("MEASUREMENTS_FAILED"), "{refused}");
        database.execute("UPDATE hlorank_store SET format = 6");
        let kept = client
            .list_measurements(&ListMeasurementsRequest::default())
            .await;
        assert_eq!(
            kept.unwrap().graphs.len(),
            1,
            "nothing was written or deleted"
        );
        database.execute("UPDATE hlorank_store SET format = 7");
    }
    let refusal = async |flag: &str| {
        TestServer::try_start_with(&[flag])
            .await
            .err()
            .unwrap()
            .to_string()
    };
    let refused = refusal(&format!("--measurements={}", database.url())).await;
    says!(refused, "format 7", "127.0.0.1/postgres");
    let refused = refusal("--measurements=postgres://me:secret@host:port/x").await;
    says!(refused, "no address of a PostgreSQL database");
    assert!(!refused.contains("secret"), "{refused}");
}
