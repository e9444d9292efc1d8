//! Reported measurements are kept once, and adapt later calls as sent ones do.

use hlorank_tests::prelude::*;

use crate::measurements::{TARGET, all_bits, folder, start};

fn stored() -> Adapt {
    Adapt::new(TARGET).use_stored()
}

#[tokio::test]
async fn stored_measurements_adapt_as_sent_ones_do() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    for graph in measured_graphs() {
        let (handle, chosen) = (GraphHandle::from_measured(&graph), some_of(&graph));
        let sent = rank_measured(&client, &graph, Some(adapt(TARGET, &graph, &chosen))).await;
        let reported = client
            .report_measurements(&handle, &adapt(TARGET, &graph, &chosen))
            .await
            .unwrap();
        let all = u32::try_from(chosen.len()).unwrap();
        assert_eq!(
            (reported.accepted, reported.known),
            (all, 0),
            "{}",
            graph.name
        );
        let kept = rank_measured(&client, &graph, Some(stored())).await;
        assert_eq!(all_bits(&kept), all_bits(&sent), "{}", graph.name);
        let (kept_on, sent_on) = (
            kept.adaptation.as_ref().unwrap(),
            sent.adaptation.as_ref().unwrap(),
        );
        assert_eq!(
            (kept_on.stored_measurements, sent_on.stored_measurements),
            (all, 0)
        );
        assert_eq!(kept_on.measured_configs, sent_on.measured_configs);

        let both = rank_measured(
            &client,
            &graph,
            Some(adapt(TARGET, &graph, &chosen).use_stored()),
        )
        .await;
        assert_eq!(
            all_bits(&both),
            all_bits(&sent),
            "a measurement that was sent too counts once"
        );
        assert_eq!(both.adaptation.unwrap().stored_measurements, 0);
        let half = rank_measured(
            &client,
            &graph,
            Some(adapt(TARGET, &graph, &chosen[..2]).use_stored()),
        )
        .await;
        assert_eq!(
            (
                all_bits(&half),
                half.adaptation.unwrap().stored_measurements
            ),
            (all_bits(&sent), all - 2)
        );
    }
}

#[tokio::test]
async fn every_order_of_reports_and_a_restart_give_equal_bits() {
    let (forth_folder, back_folder) = (folder(), folder());
    let (server, forth) = start(forth_folder.path(), &[]).await;
    let (_other, back) = start(back_folder.path(), &[]).await;
    let graphs = measured_graphs();
    for graph in &graphs {
        let (handle, other, chosen) = (
            GraphHandle::from_measured(graph),
            GraphHandle::from_measured(graph),
            some_of(graph),
        );
        for half in chosen.chunks(5) {
            forth
                .report_measurements(&handle, &adapt(TARGET, graph, half))
                .await
                .unwrap();
        }
        for &one in chosen.iter().rev() {
            // Twice, as a client that repeats a call does.
            back.report_measurements(&other, &adapt(TARGET, graph, &[one]))
                .await
                .unwrap();
            back.report_measurements(&other, &adapt(TARGET, graph, &[one]))
                .await
                .unwrap();
        }
    }
    // Kernels of one structure teach about each other, so rankings are compared once all are reported.
    let mut expected = Vec::new();
    for graph in &graphs {
        let ranking = rank_measured(&forth, graph, Some(stored())).await;
        assert!(ranking.adaptation.as_ref().unwrap().adapted);
        assert_eq!(
            all_bits(&rank_measured(&back, graph, Some(stored())).await),
            all_bits(&ranking),
            "{}",
            graph.name
        );
        expected.push(all_bits(&ranking));
    }
    server.stop().await;
    let (_server, client) = start(forth_folder.path(), &[]).await;
    for (graph, expected) in graphs.iter().zip(expected) {
        assert_eq!(
            all_bits(&rank_measured(&client, graph, Some(stored())).await),
            expected,
            "{}",
            graph.name
        );
    }
}

#[tokio::test]
async fn targets_are_never_mixed() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    let graph = measured_graphs().remove(0);
    client
        .report_measurements(
            &GraphHandle::from_measured(&graph),
            &adapt(TARGET, &graph, &some_of(&graph)),
        )
        .await
        .unwrap();
    let today = rank_measured(&client, &graph, None).await;
    let other = rank_measured(
        &client,
        &graph,
        Some(Adapt::new("another board").use_stored()),
    )
    .await;
    assert_eq!(other.scores, today.scores);
    assert_eq!(other.adaptation.unwrap().stored_measurements, 0);
}

#[tokio::test]
async fn streams_and_suggestions_use_stored_measurements() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    for graph in measured_graphs() {
        let (handle, chosen) = (GraphHandle::from_measured(&graph), some_of(&graph));
        let sent = adapt(TARGET, &graph, &chosen);
        client.report_measurements(&handle, &sent).await.unwrap();
        let at_once = rank_measured(&client, &graph, Some(sent.clone())).await;
        let request = StreamRequest::new(&handle).adapt(Some(stored()));
        let mut stream = client.rank_stream(&request).await.unwrap();
        stream.send(configurations(&graph)).await.unwrap();
        let ranking = stream.finish().await.unwrap();
        assert_eq!(
            (&ranking.best, &ranking.log_sd),
            (&at_once.best, &at_once.log_sd),
            "{}",
            graph.name
        );

        let suggest = async |adapt: &Adapt| {
            let request = SuggestRequest::new(&handle, configurations(&graph))
                .adapt(Some(adapt))
                .count(8);
            client.suggest(&request).await.unwrap().suggestions
        };
        let suggested = suggest(&stored()).await;
        assert_eq!(suggested, suggest(&sent).await);
        assert!(
            suggested.iter().all(|each| !chosen.contains(&each.config)),
            "{}",
            graph.name
        );
    }
}

#[tokio::test]
async fn failures_are_kept_and_ranked_last() {
    let folder = folder();
    let (_server, client) = start(folder.path(), &[]).await;
    for graph in measured_graphs() {
        let (handle, chosen) = (GraphHandle::from_measured(&graph), some_of(&graph));
        let mut measured = outcomes(&graph, &chosen);
        measured[0] = MeasuredOutcome::Failed(MeasurementFailure::Timeout);
        let all =
            Adapt::new(TARGET).measured(&part(configurations(&graph), chosen.clone()), &measured);
        client.report_measurements(&handle, &all).await.unwrap();
        let ranking = rank_measured(&client, &graph, Some(stored())).await;
        assert_eq!(ranking.scores[chosen[0]], f32::MAX, "{}", graph.name);
    }
}

/// Distinct tiles, by number.
fn tiles(numbers: impl Iterator<Item = usize>) -> Configurations {
    let bounds = numbers.map(|number| {
        let number = i64::try_from(number).unwrap();
        [
            1 + number % 100,
            1 + number / 100 % 100,
            1 + number / 10_000,
        ]
    });
    Configurations::Tile(hlorank_tests::tiles(&bounds.collect::<Vec<_>>()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_measurements_of_a_graph_take_bounded_memory_and_time() {
    const ALL: usize = 100_000;
    const AT_ONCE: usize = 2_500;
    /// Bytes that all calls may hold, and the pages of the file that are kept in memory.
    const CALL_BYTES: usize = 128 << 20;
    const FILE_BYTES: usize = 16 << 20;
    let folder = folder();
    let flag = format!("--max-call-bytes={CALL_BYTES}");
    let (server, client) = start(folder.path(), &[&flag]).await;
    let graph = measured_graph_of(Task::Tile);
    let handle = GraphHandle::from_measured(&graph);
    rank_measured(&client, &graph, None).await;
    let before = resident_bytes(std::process::id());
    let mut times = Vec::new();
    for first in (0..ALL).step_by(AT_ONCE) {
        let numbers = || first..first + AT_ONCE;
        let time = |number: usize| 1e-3 + (number as f64).sin().abs() * 1e-3;
        let measured: Vec<_> = numbers()
            .map(|each| MeasuredOutcome::Time {
                seconds: time(each),
                repeats: 1,
            })
            .collect();
        let adapt = Adapt::new(TARGET).measured(&tiles(numbers()), &measured);
        let started = Instant::now();
        let reported = client.report_measurements(&handle, &adapt).await.unwrap();
        times.push(started.elapsed());
        assert_eq!(reported.accepted as usize, AT_ONCE);
    }
    let took: Duration = times.iter().sum();
    let grown = resident_bytes(std::process::id()).saturating_sub(before);
    println!("{ALL} measurements took {took:?} and {} MiB", grown >> 20);
    // If a report took time with the number of those before it, the second half would take three times as long as the first.
    let (first, second) = times.split_at(times.len() / 2);
    let (first, second): (Duration, Duration) = (first.iter().sum(), second.iter().sum());
    assert!(second < first * 5 / 2, "{first:?}, then {second:?}");
    assert!(
        grown < with_fragments(CALL_BYTES + FILE_BYTES),
        "{} MiB",
        grown >> 20
    );
    assert_eq!(
        server.scrape().await.value("hlorank_measurements", &[]),
        ALL as f64
    );

    let started = Instant::now();
    let ranking = rank_measured(&client, &graph, Some(stored())).await;
    println!("ranking with them took {:?}", started.elapsed());
    let adaptation = ranking.adaptation.as_ref().unwrap();
    assert_eq!(
        (adaptation.stored_measurements, adaptation.measured_configs),
        (2_000, 2_000)
    );
    assert!(adaptation.adapted);
    assert_eq!(
        all_bits(&rank_measured(&client, &graph, Some(stored())).await),
        all_bits(&ranking)
    );
}
