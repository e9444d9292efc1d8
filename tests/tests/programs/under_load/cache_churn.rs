//! With ten times more graphs and rows than the caches hold, they stay within their limits, and answers do not depend
//! on their content. That their gauges agree with the process is tested in `attacks`.

use hlorank_tests::prelude::*;

use crate::under_load::requests::{alone, scores};

/// Number of kernels. Each is ranked twice, the second time after everything was evicted.
const QUESTIONS: usize = 64;

const SMALL: [&str; 2] = [
    "--graph-cache-bytes=1400000",
    "--embedding-cache-bytes=200000",
];

const CACHES: [&str; 3] = ["graphs_by_source", "graphs_by_hash", "embeddings"];

fn bytes(scrape: &Scrape, cache: &str) -> f64 {
    scrape.value("hlorank_cache_bytes", &[("cache", cache)])
}

fn most_bytes(scrape: &Scrape, cache: &str) -> f64 {
    scrape.value("hlorank_cache_max_bytes", &[("cache", cache)])
}

async fn ask(client: &Client, number: usize) -> Vec<u32> {
    let (graph, configurations) = varying(number);
    scores(client, &GraphHandle::features(&graph), &configurations).await
}

#[tokio::test(flavor = "multi_thread")]
async fn caches_stay_within_their_bytes_and_answers_are_right() {
    let _alone = alone().await;
    let large = TestServer::start().await;
    let client = large.client_without_retries().await;
    let mut expected = Vec::new();
    for number in 0..QUESTIONS {
        expected.push(ask(&client, number).await);
    }
    let needed = large.scrape().await;
    drop((client, large));

    let small = TestServer::start_with(&SMALL).await;
    let client = small.client_without_retries().await;
    for _ in 0..2 {
        for (number, expected) in expected.iter().enumerate() {
            assert_eq!(&ask(&client, number).await, expected, "question {number}");
            if number % 8 == 0 {
                let scrape = small.scrape().await;
                for cache in CACHES {
                    let (held, limit) = (bytes(&scrape, cache), most_bytes(&scrape, cache));
                    assert!(held <= limit, "{cache:?} holds {held} bytes of {limit}");
                }
            }
        }
    }
    let scrape = small.scrape().await;
    for cache in CACHES {
        let (all, limit) = (bytes(&needed, cache), most_bytes(&scrape, cache));
        println!("{cache:?}: {all} bytes went through {limit}");
        assert!(
            all >= 10.0 * limit,
            "{cache:?}: only {all} bytes went through {limit}"
        );
    }
}
