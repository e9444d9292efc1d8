//! Configurations, rows and stages are counted.

use hlorank_proto::v1::ReuseCounts;
use hlorank_tests::prelude::*;

const MODEL: &str = TILE_MODEL;

/// Names of all counts of an answer.
const COUNTS: [&str; 5] = [
    "configs",
    "distinct_configs",
    "segment_rows",
    "rows_evaluated",
    "rows_cached",
];

/// Returns the counters of the model.
fn counted(scrape: &Scrape) -> [f64; 5] {
    COUNTS.map(|name| scrape.value(&format!("hlorank_{name}_total"), &[("model", MODEL)]))
}

/// Returns the counts that an answer reports.
fn reported(reuse: &ReuseCounts) -> [f64; 5] {
    let ReuseCounts {
        configs,
        distinct_configs,
        segment_rows,
        rows_evaluated,
        rows_cached,
        ..
    } = *reuse;
    [
        configs,
        distinct_configs,
        segment_rows,
        rows_evaluated,
        rows_cached,
    ]
    .map(|count| count as f64)
}

fn stage(scrape: &Scrape, stage: &str) -> f64 {
    scrape.value("hlorank_stage_duration_seconds_count", &[("stage", stage)])
}

#[tokio::test]
async fn work_is_counted_as_answers_tell_it() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, GraphHandle::features(&kernel_of(3)));
    let batch = Configurations::Tile(tiles(&[[1, 2], [3, 4], [1, 2], [5, 6]]));
    let first = client
        .rank(&RankRequest::new(&graph, &batch))
        .await
        .unwrap()
        .reuse;
    assert_eq!(counted(&server.scrape().await), reported(&first));
    assert_eq!(reported(&first), [4.0, 3.0, 4.0, 3.0, 0.0]);

    let again = client
        .rank(&RankRequest::new(&graph, &batch))
        .await
        .unwrap()
        .reuse;
    assert_eq!((again.rows_evaluated, again.rows_cached), (0, 3));
    let scrape = server.scrape().await;
    assert_eq!(counted(&scrape), [8.0, 6.0, 8.0, 3.0, 3.0]);
    for (name, count) in [
        ("queue", 2.0),
        ("featurize", 1.0),
        ("parse", 2.0),
        ("encode", 2.0),
        ("head", 2.0),
        ("rank", 2.0),
        ("total", 2.0),
    ] {
        assert_eq!(stage(&scrape, name), count, "{name}");
    }
}

#[tokio::test]
async fn batches_of_a_stream_are_counted_one_by_one() {
    let server = TestServer::start().await;
    let kernel = &read_graphs(&fixture("measured/tile_kernels.pb"))[0];
    let (client, graph) = (server.client().await, GraphHandle::from_measured(kernel));
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    for batches in 1..=3 {
        stream.send(configurations(kernel)).await.unwrap();
        let scores = stream.scores().await.unwrap().unwrap().scores;
        let scrape = server.scrape().await;
        assert_eq!(
            counted(&scrape)[0],
            f64::from(batches) * scores.len() as f64
        );
        assert_eq!(
            (stage(&scrape, "encode"), stage(&scrape, "rank")),
            (f64::from(batches), 0.0)
        );
    }
    let ranking = stream.finish().await.unwrap();
    let scrape = server.scrape().await;
    assert_eq!(counted(&scrape), reported(&ranking.reuse));
    assert_eq!(stage(&scrape, "rank"), 1.0);
}

#[tokio::test]
async fn durations_fall_into_buckets_from_10_microseconds_to_30_seconds() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, GraphHandle::features(&kernel_of(3)));
    client.put_graph(&graph).await.unwrap();
    let scrape = server.scrape().await;
    let buckets = scrape.samples.iter().filter(|sample| {
        sample.name == "hlorank_stage_duration_seconds_bucket"
            && sample.label("stage") == Some("featurize")
    });
    let buckets: Vec<(f64, f64)> = buckets
        .map(|sample| (sample.label("le").unwrap().parse().unwrap(), sample.value))
        .collect();
    assert_eq!(
        (buckets[0].0, buckets[19].0, buckets[20].0),
        (10e-6, 30.0, f64::INFINITY)
    );
    assert!(
        buckets.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1),
        "{buckets:?}"
    );
    assert_eq!(buckets[20].1, 1.0);
}
