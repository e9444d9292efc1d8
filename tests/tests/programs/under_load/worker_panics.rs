//! A panic in a worker fails the call whose rows caused it and no other, and the worker is replaced.

use futures::future::join_all;
use hlorank_server::{
    compute::{Class, ComputePool},
    engine::{CacheBytes, Engine, EngineError, Terms},
    metrics::Metrics,
    model::Model,
};
use hlorank_tests::prelude::*;
use tokio::sync::oneshot;

use crate::under_load::requests::alone;

/// One worker, so that the rows of all calls wait for it.
const WORKERS: NonZeroUsize = NonZeroUsize::MIN;

const CALLS: u16 = 8;

/// Number of tiles of each call.
const ROWS: u16 = 3;

fn kernel(size: u16) -> SegmentedGraph {
    SegmentedGraph::new(&chain_kernel(&[1, 2, 3, 4, 5, 6, 7, 8], &[size, 64]))
}

/// Returns a graph that no reader yields: an edge leaves its segment, so building its encoder input panics.
fn impossible_kernel() -> SegmentedGraph {
    let mut graph = kernel(CALLS + 1);
    graph.segments[0].edges.push([u16::MAX, u16::MAX]);
    graph.segments[0].digest = Digest([1; 32]);
    graph
}

async fn scores(
    engine: &Engine,
    model: &Arc<Model>,
    graph: &Arc<SegmentedGraph>,
) -> Result<Vec<u32>, EngineError> {
    let tiles = Configurations::Tile(grid_tiles(ROWS.into()));
    let evaluation = engine.score(model, graph, tiles, Terms::default()).await?;
    Ok(evaluation
        .scores
        .iter()
        .map(|score| score.to_bits())
        .collect())
}

/// Blocks the worker until the sender is used.
fn hold(pool: &ComputePool) -> oneshot::Sender<()> {
    let (go, held) = oneshot::channel();
    pool.spawn(Class::Bulk, move |_| held.blocking_recv().unwrap());
    go
}

async fn until(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(
            started.elapsed() < Duration::from_mins(1),
            "it is not so after a minute"
        );
        tokio::task::yield_now().await;
    }
}

fn waiting_rows(engine: &Engine, metrics: &Metrics) -> f64 {
    engine.sample(&metrics.load, &metrics.other_caches.segments);
    Scrape::parse(&metrics.render()).value("hlorank_waiting_rows", &[])
}

/// Returns the number of panics. A panic is counted once its call has failed, before the worker does anything else.
async fn panics(pool: &ComputePool) -> u64 {
    pool.run(Class::Bulk, |_| ()).await.unwrap();
    pool.panics()
}

#[tokio::test]
async fn calls_beside_one_that_panics_have_their_answers() {
    let _alone = alone().await;
    let model = load_model(Task::Tile, WORKERS.get());
    let sound: Vec<_> = (1..=CALLS).map(|size| Arc::new(kernel(size))).collect();
    let (impossible, pool) = (
        Arc::new(impossible_kernel()),
        Arc::new(ComputePool::new(WORKERS).unwrap()),
    );
    let metrics = Metrics::default();
    let engine = Engine::new(Arc::clone(&pool), CacheBytes::default(), &metrics);
    let expected: Vec<_> = join_all(
        sound
            .iter()
            .map(async |graph| scores(&engine, &model, graph).await.unwrap()),
    )
    .await;

    let read = hold(&pool);
    let beside = join_all(
        sound
            .iter()
            .map(async |graph| scores(&engine, &model, graph).await.unwrap()),
    );
    let asked = async { tokio::join!(scores(&engine, &model, &impossible), beside) };
    let release = async {
        // Now the configurations of all calls wait to be read.
        until(|| pool.queued() > CALLS.into()).await;
        let evaluate = hold(&pool);
        read.send(()).unwrap();
        // Now the rows of all calls wait, so they are in one block.
        until(|| waiting_rows(&engine, &metrics) == f64::from(ROWS * (CALLS + 1))).await;
        evaluate.send(()).unwrap();
    };
    let ((failed, found), ()) = tokio::join!(asked, release);
    assert!(matches!(failed, Err(EngineError::Worker(_))), "{failed:?}");
    assert_eq!(found, expected);
    let before = panics(&pool).await;
    assert!(
        before >= 2,
        "{before} panics: it was not in one block with others"
    );
    assert!(
        scores(&engine, &model, &impossible).await.is_err(),
        "what failed is not kept"
    );
    assert_eq!(
        panics(&pool).await,
        before + 1,
        "a lone call is to blame for all of its block"
    );
    assert_eq!(
        scores(&engine, &model, &sound[0]).await.unwrap(),
        expected[0]
    );
}
