//! Configurations, rows and stages are counted.

use hlorank_proto::v1::ReuseCounts;
use hlorank_tests::prelude::*;

use crate::metrics::{kernel, rank};

/// Returns the counters of all counts of an answer.
fn counted(scrape: &Scrape) -> [f64; 5] {
    [
        "configs",
        "distinct_configs",
        "segment_rows",
        "rows_evaluated",
        "rows_cached",
    ]
    .map(|name| scrape.value(&format!("hlorank_{name}_total"), &[("model", TILE_MODEL)]))
}

/// Returns the counts that an answer reports.
fn reported(reuse: &ReuseCounts) -> [f64; 5] {
    [
        reuse.configs,
        reuse.distinct_configs,
        reuse.segment_rows,
        reuse.rows_evaluated,
        reuse.rows_cached,
    ]
    .map(|count| count as f64)
}

fn stage(scrape: &Scrape, stage: &str) -> f64 {
    scrape.value("hlorank_stage_duration_seconds_count", &[("stage", stage)])
}

#[tokio::test]
async fn work_is_counted_as_answers_tell_it_and_timed_in_buckets() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, kernel());
    let batch = Configurations::Tile(tiles(&[[1, 2], [3, 4], [1, 2], [5, 6]]));
    let first = rank(&client, &graph, &batch).await.reuse;
    assert_eq!(counted(&server.scrape().await), reported(&first));
    assert_eq!(reported(&first), [4.0, 3.0, 4.0, 3.0, 0.0]);

    let again = rank(&client, &graph, &batch).await.reuse;
    assert_eq!((again.rows_evaluated, again.rows_cached), (0, 3));
    let scrape = server.scrape().await;
    assert_eq!(counted(&scrape), [8.0, 6.0, 8.0, 3.0, 3.0]);
    assert_eq!(stage(&scrape, "featurize"), 1.0);
    for name in ["queue", "parse", "encode", "head", "rank", "total"] {
        assert_eq!(stage(&scrape, name), 2.0, "{name}");
    }
    let buckets = scrape.samples.iter().filter(|sample| {
        sample.name == "hlorank_stage_duration_seconds_bucket"
            && sample.label("stage") == Some("featurize")
    });
    let buckets: Vec<(f64, f64)> = buckets
        .map(|sample| (sample.label("le").unwrap().parse().unwrap(), sample.value))
        .collect();
    let bounds = (buckets[0].0, buckets[19].0, buckets[20].0);
    assert_eq!(bounds, (10e-6, 30.0, f64::INFINITY));
    assert!(
        buckets.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1),
        "{buckets:?}"
    );
    assert_eq!(buckets[20].1, 1.0);
}

#[tokio::test]
async fn batches_of_a_stream_are_counted_one_by_one() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, kernel());
    let stream = client.rank_stream(&StreamRequest::new(&graph)).await;
    let mut stream = stream.unwrap();
    for batches in [1.0, 2.0, 3.0] {
        stream.send(&grid_configurations(10)).await.unwrap();
        stream.scores().await.unwrap();
        let scrape = server.scrape().await;
        assert_eq!(counted(&scrape)[0], 10.0 * batches);
        assert_eq!(stage(&scrape, "encode"), batches);
        assert_eq!(stage(&scrape, "rank"), 0.0);
    }
    let ranking = stream.finish().await.unwrap();
    let scrape = server.scrape().await;
    assert_eq!(counted(&scrape), reported(&ranking.reuse));
    assert_eq!(stage(&scrape, "rank"), 1.0);
}
