//! Reported measurements are kept once, and adapt later calls as sent ones do.

use super::*;

#[tokio::test]
async fn stored_measurements_adapt_every_call_as_sent_ones_do_until_they_are_deleted() {
    let (_folder, _server, client) = storing_server(&[]).await;
    for graph in measured_graphs() {
        let name = &graph.name;
        let handle = GraphHandle::from_measured(&graph);
        let chosen = some_of(&graph);
        let mut measured = outcomes(&graph, &chosen);
        *measured.last_mut().unwrap() = MeasuredOutcome::Failed(MeasurementFailure::Timeout);
        let first = |count: usize| {
            let configs = part(configurations(&graph), chosen[..count].to_vec());
            Adapt::new(TARGET).measured(&configs, &measured[..count])
        };
        let sent = first(chosen.len());
        let without = rank_measured(&client, &graph, None).await;
        let expected = rank_measured(&client, &graph, Some(sent.clone())).await;
        let expected_on = expected.adaptation.as_ref().unwrap();
        assert_eq!(expected_on.stored_measurements, 0, "{name}");

        let reported = client.report_measurements(&handle, &sent).await.unwrap();
        let all = u32::try_from(chosen.len()).unwrap();
        assert_eq!((reported.accepted, reported.known), (all, 0), "{name}");
        // A measurement that is sent, too, counts once.
        for (adapt, used) in [
            (stored(), all),
            (first(2).use_stored(), all - 2),
            (sent.clone().use_stored(), 0),
        ] {
            let ranking = rank_measured(&client, &graph, Some(adapt)).await;
            assert_eq!(all_bits(&ranking), all_bits(&expected), "{name}, {used}");
            let adaptation = ranking.adaptation.unwrap();
            assert_eq!(adaptation.stored_measurements, used, "{name}");
            assert_eq!(adaptation.measured_configs, expected_on.measured_configs);
        }
        let elsewhere = Adapt::new("another board").use_stored();
        let other = rank_measured(&client, &graph, Some(elsewhere)).await;
        assert_eq!(other.scores, without.scores, "{name} on another target");
        assert_eq!(other.adaptation.unwrap().stored_measurements, 0);

        let request = StreamRequest::new(&handle).adapt(Some(stored()));
        let mut stream = client.rank_stream(&request).await.unwrap();
        stream.send(configurations(&graph)).await.unwrap();
        let streamed = stream.finish().await.unwrap();
        assert_eq!(streamed.best, expected.best, "{name}");
        assert_eq!(streamed.log_sd, expected.log_sd, "{name}");

        let suggest = async |adapt: &Adapt| {
            let request = SuggestRequest::new(&handle, configurations(&graph)).count(8);
            let suggested = client.suggest(&request.adapt(Some(adapt))).await;
            suggested.unwrap().suggestions
        };
        let suggested = suggest(&stored()).await;
        assert_eq!(suggested, suggest(&sent).await, "{name}");
        let is_new = |config: usize| !chosen.contains(&config);
        assert!(suggested.iter().all(|each| is_new(each.config)), "{name}");

        let of_graph = deletion(TARGET, Some(reported.graph_hash));
        let deleted = client.delete_measurements(&of_graph).await.unwrap();
        assert_eq!(deleted, u64::from(all), "{name}");
        let forgotten = rank_measured(&client, &graph, Some(stored())).await;
        assert_eq!(all_bits(&forgotten), all_bits(&without), "{name}");
    }
}

#[tokio::test]
async fn a_server_without_a_store_ranks_and_warns() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let graph = measured_graphs().remove(0);
    let sent = adapt(TARGET, &graph, &some_of(&graph));
    let alone = rank_measured(&client, &graph, Some(sent.clone())).await;
    let ranking = rank_measured(&client, &graph, Some(sent.use_stored())).await;
    assert_eq!(all_bits(&ranking), all_bits(&alone));
    assert!(reasons(&alone).is_empty());
    assert_eq!(reasons(&ranking), ["STORED_MEASUREMENTS_UNUSED"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_measurements_of_a_graph_take_bounded_memory_and_time() {
    const AT_ONCE: usize = 2_500;
    /// Bytes that all calls may hold, and the pages of the file that are kept in memory.
    const CALL_BYTES: usize = 128 << 20;
    const FILE_BYTES: usize = 16 << 20;
    let flag = format!("--max-call-bytes={CALL_BYTES}");
    let (_folder, server, client) = storing_server(&[&flag]).await;
    let graph = measured_graph_of(Task::Tile);
    let handle = GraphHandle::from_measured(&graph);
    let grid = grid_configurations(100_000);
    let all = grid.len();
    rank_measured(&client, &graph, None).await;
    let before = resident_bytes(std::process::id());
    let mut times = Vec::new();
    for first in (0..all).step_by(AT_ONCE) {
        let numbers = first..first + AT_ONCE;
        let seconds = |number: usize| 1e-3 + (number as f64).sin().abs() * 1e-3;
        let measured = run_times(numbers.clone().map(seconds));
        let adapt = Adapt::new(TARGET).measured(&part(&grid, numbers), &measured);
        let started = Instant::now();
        let reported = client.report_measurements(&handle, &adapt).await.unwrap();
        times.push(started.elapsed());
        assert_eq!(reported.accepted as usize, AT_ONCE);
    }
    let grown = resident_bytes(std::process::id()).saturating_sub(before) >> 20;
    // If a report took time with the number of those before it, the second half would take three times as long as the first.
    let (first, second) = times.split_at(times.len() / 2);
    let [first, second] = [first, second].map(|half| half.iter().sum::<Duration>());
    println!("{all} measurements took {first:?}, then {second:?}, and {grown} MiB");
    assert!(second < first * 5 / 2, "{first:?}, then {second:?}");
    let allowed = with_fragments(CALL_BYTES + FILE_BYTES) >> 20;
    assert!(grown < allowed, "{grown} MiB of {allowed}");
    let scrape = server.scrape().await;
    assert_eq!(scrape.value("hlorank_measurements", &[]), all as f64);

    let started = Instant::now();
    let ranking = rank_measured(&client, &graph, Some(stored())).await;
    println!("ranking with them took {:?}", started.elapsed());
    let adaptation = ranking.adaptation.as_ref().unwrap();
    assert_eq!(adaptation.stored_measurements, 2_000);
    assert_eq!(adaptation.measured_configs, 2_000);
    assert!(adaptation.adapted);
    let again = rank_measured(&client, &graph, Some(stored())).await;
    assert_eq!(all_bits(&again), all_bits(&ranking));
}
