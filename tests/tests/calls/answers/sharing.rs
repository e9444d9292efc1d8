//! Every distinct row is evaluated once: within a call, across calls, across graphs, and by concurrent calls.

use futures::future::join_all;
use hlorank_server::{
    compute::ComputePool,
    engine::{CacheBytes, Engine, Terms},
    metrics::Metrics,
    model::Model,
    outcome::{Evaluation, Reuse},
};
use hlorank_tests::prelude::*;

const WORKERS: NonZeroUsize = NonZeroUsize::new(2).unwrap();
const OPCODES: [u8; 4] = [26, 34, 2, 80];
const SIZES: [u16; 7] = [8, 16, 3, 128, 7, 64, 1];

struct Fixture {
    model: Arc<Model>,
    engine: Engine,
}

impl Fixture {
    fn new() -> Self {
        let pool = Arc::new(ComputePool::new(WORKERS).unwrap());
        let cached = CacheBytes {
            embeddings: 1 << 24,
            segments: 1 << 24,
        };
        let engine = Engine::new(pool, cached, &Metrics::default());
        Self {
            model: load_model(Task::Layout, WORKERS.get()),
            engine,
        }
    }

    /// Scores layouts that set all slots equally, so that equal blocks have equal local configurations.
    async fn evaluation(&self, graph: &Arc<SegmentedGraph>) -> Evaluation {
        let choices = [vec![0], vec![1], vec![2], vec![1]];
        let layouts = Configurations::Layout(layouts(graph.slots(), &choices));
        self.engine
            .score(&self.model, graph, layouts, Terms::default())
            .await
            .unwrap()
    }

    async fn reuse(&self, graph: &Arc<SegmentedGraph>) -> Reuse {
        self.evaluation(graph).await.reuse
    }
}

fn graph(blocks: &[usize]) -> Arc<SegmentedGraph> {
    Arc::new(SegmentedGraph::new(&block_graph(&OPCODES, &SIZES, blocks)))
}

#[tokio::test]
async fn a_row_is_evaluated_once_within_and_across_calls_until_the_model_is_forgotten() {
    let (fixture, graph) = (Fixture::new(), graph(&[1, 2, 1, 2, 1]));
    let expected = Reuse {
        configs: 4,
        distinct_configs: 3,
        segment_rows: 20,
        distinct_segment_rows: 6,
        rows_evaluated: 6,
    };
    assert_eq!(fixture.reuse(&graph).await, expected);
    let again = Reuse {
        rows_evaluated: 0,
        ..expected
    };
    assert_eq!(fixture.reuse(&graph).await, again);
    fixture.engine.forget(fixture.model.digest());
    assert_eq!(fixture.reuse(&graph).await, expected);
}

#[tokio::test]
async fn graphs_share_equal_segments() {
    let fixture = Fixture::new();
    let (one, other) = (graph(&[1, 2]), graph(&[3, 2, 1]));
    assert_eq!(fixture.reuse(&one).await.rows_evaluated, 6);
    let reuse = fixture.reuse(&other).await;
    assert_eq!((reuse.distinct_segment_rows, reuse.rows_evaluated), (9, 3));
}

/// Returns a program whose kernels are one node each, of arrays of these sizes.
fn unfused(sizes: &[usize]) -> Arc<SegmentedGraph> {
    let mut lines = vec!["HloModule m\n\nENTRY e {".to_owned()];
    for (at, size) in sizes.iter().enumerate() {
        lines.push(format!("p{at} = f32[{size}] parameter({at})"));
        lines.push(format!("r{at} = f32[{size}] exponential(p{at})"));
    }
    let shapes: Vec<String> = sizes.iter().map(|size| format!("f32[{size}]")).collect();
    let results: Vec<String> = (0..sizes.len()).map(|at| format!("r{at}")).collect();
    let (shapes, results) = (shapes.join(", "), results.join(", "));
    lines.push(format!("ROOT all = ({shapes}) tuple({results})\n}}\n"));
    let text = lines.join("\n");
    let module = HloModule::read_text(&text, &Limits::default()).unwrap();
    let program = module.into_graph(Task::Fusion, Vec::new()).unwrap();
    Arc::new(SegmentedGraph::new(&program))
}

/// The bits of an embedding do not tell which rows were evaluated in the same run.
#[tokio::test]
async fn a_kernel_alone_has_the_seconds_that_it_has_among_others() {
    let model = load_model(Task::Fusion, WORKERS.get());
    let engine = Engine::without_cache(Arc::new(ComputePool::new(WORKERS).unwrap()));
    let seconds = async |sizes: &[usize]| {
        let graph = unfused(sizes);
        let nothing = FusionBatch::from_bits(0, &[vec![]], &Limits::default());
        let nothing = Configurations::Fusion(nothing.unwrap());
        let kernels = engine.kernels(&model, &graph, nothing, Terms::default());
        let kernels = kernels.await.unwrap().remove(0);
        let seconds: Vec<f32> = kernels.iter().map(|kernel| kernel.seconds).collect();
        bits(&seconds)
    };
    let sizes: Vec<usize> = (1..=40).map(|number| 8 * number * number).collect();
    let together = seconds(&sizes).await;
    assert_eq!(together.len(), 40);
    for (size, expected) in sizes.into_iter().zip(together) {
        assert_eq!(seconds(&[size]).await, [expected], "{size} elements");
    }
}

#[tokio::test]
async fn calls_at_the_same_time_evaluate_a_row_once() {
    let (fixture, graph) = (Fixture::new(), graph(&[1, 2, 3, 1]));
    let calls = join_all((0..64).map(|_| fixture.reuse(&graph))).await;
    let evaluated: Vec<usize> = calls.iter().map(|reuse| reuse.rows_evaluated).collect();
    assert_eq!(evaluated.iter().sum::<usize>(), 9, "{evaluated:?}");
}

#[tokio::test]
async fn a_cancelled_call_leaves_its_rows_to_others() {
    let (fixture, graph) = (Fixture::new(), graph(&[1, 2, 3, 1]));
    let undisturbed = fixture.evaluation(&graph).await.scores;
    let mut cancelled = 0;
    for microseconds in (0..2_000).step_by(50) {
        fixture.engine.forget(fixture.model.digest());
        let allowed = Duration::from_micros(microseconds);
        let impatient = timeout(allowed, fixture.evaluation(&graph));
        let patient = timeout(Duration::from_secs(10), fixture.evaluation(&graph));
        let (impatient, patient) = tokio::join!(impatient, patient);
        assert_eq!(patient.expect("the call ends").scores, undisturbed);
        cancelled += usize::from(impatient.is_err());
    }
    assert!(cancelled > 0, "no call was cancelled");
}
