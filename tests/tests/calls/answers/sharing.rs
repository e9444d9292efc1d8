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

    async fn evaluation(
        &self,
        graph: &Arc<SegmentedGraph>,
        configurations: &Configurations,
    ) -> Evaluation {
        let configurations = configurations.clone();
        self.engine
            .score(&self.model, graph, configurations, Terms::default())
            .await
            .unwrap()
    }

    async fn reuse(&self, graph: &Arc<SegmentedGraph>, configurations: &Configurations) -> Reuse {
        self.evaluation(graph, configurations).await.reuse
    }
}

fn graph(blocks: &[usize]) -> Arc<SegmentedGraph> {
    Arc::new(SegmentedGraph::new(&block_graph(&OPCODES, &SIZES, blocks)))
}

/// Returns layouts that set all slots equally, so that equal blocks have equal local configurations.
fn uniform(graph: &SegmentedGraph) -> Configurations {
    Configurations::Layout(layouts(
        graph.slots(),
        &[vec![0], vec![1], vec![2], vec![1]],
    ))
}

#[tokio::test]
async fn a_row_is_evaluated_once_within_and_across_calls() {
    let (fixture, graph) = (Fixture::new(), graph(&[1, 2, 1, 2, 1]));
    let expected = Reuse {
        configs: 4,
        distinct_configs: 3,
        segment_rows: 20,
        distinct_segment_rows: 6,
        rows_evaluated: 6,
    };
    assert_eq!(fixture.reuse(&graph, &uniform(&graph)).await, expected);
    assert_eq!(
        fixture.reuse(&graph, &uniform(&graph)).await,
        Reuse {
            rows_evaluated: 0,
            ..expected
        }
    );
}

#[tokio::test]
async fn graphs_share_equal_segments() {
    let fixture = Fixture::new();
    let (one, other) = (graph(&[1, 2]), graph(&[3, 2, 1]));
    assert_eq!(fixture.reuse(&one, &uniform(&one)).await.rows_evaluated, 6);
    let reuse = fixture.reuse(&other, &uniform(&other)).await;
    assert_eq!((reuse.distinct_segment_rows, reuse.rows_evaluated), (9, 3));
}

/// Returns a program whose kernels are one node each, of arrays of these sizes.
fn unfused(sizes: impl Iterator<Item = usize>) -> Arc<SegmentedGraph> {
    let sizes: Vec<usize> = sizes.collect();
    let lines = sizes.iter().enumerate().map(|(at, size)| {
        format!("  p{at} = f32[{size}] parameter({at})\n  r{at} = f32[{size}] exponential(p{at})\n")
    });
    let shapes: Vec<String> = sizes.iter().map(|size| format!("f32[{size}]")).collect();
    let results: Vec<String> = (0..sizes.len()).map(|at| format!("r{at}")).collect();
    let root = format!(
        "  ROOT all = ({}) tuple({})\n",
        shapes.join(", "),
        results.join(", ")
    );
    let text = format!(
        "HloModule m\n\nENTRY e {{\n{}{root}}}\n",
        lines.collect::<String>()
    );
    let module = HloModule::read_text(&text, &Limits::default()).unwrap();
    Arc::new(SegmentedGraph::new(
        &module.into_graph(Task::Fusion, Vec::new()).unwrap(),
    ))
}

/// The bits of an embedding do not tell which rows were evaluated in the same run.
#[tokio::test]
async fn a_kernel_alone_has_the_seconds_that_it_has_among_others() {
    let pool = Arc::new(ComputePool::new(WORKERS).unwrap());
    let (model, engine) = (
        load_model(Task::Fusion, WORKERS.get()),
        Engine::without_cache(pool),
    );
    let seconds = async |graph: &Arc<SegmentedGraph>| {
        let nothing = Configurations::Fusion(
            FusionBatch::from_bits(0, &[vec![]], &Limits::default()).unwrap(),
        );
        let kernels = engine.kernels(&model, graph, nothing, Terms::default());
        let kernels = kernels.await.unwrap().remove(0);
        kernels
            .iter()
            .map(|kernel| kernel.seconds.to_bits())
            .collect::<Vec<_>>()
    };
    let sizes = || (1..=40).map(|number| 8 * number * number);
    let together = seconds(&unfused(sizes())).await;
    assert_eq!(together.len(), 40);
    for (size, expected) in sizes().zip(together) {
        assert_eq!(
            seconds(&unfused([size].into_iter())).await,
            [expected],
            "{size} elements"
        );
    }
}

#[tokio::test]
async fn calls_at_the_same_time_evaluate_a_row_once() {
    let (fixture, graph) = (Fixture::new(), graph(&[1, 2, 3, 1]));
    let configurations = uniform(&graph);
    let calls = (0..64).map(|_| fixture.reuse(&graph, &configurations));
    let evaluated: Vec<usize> = join_all(calls)
        .await
        .iter()
        .map(|reuse| reuse.rows_evaluated)
        .collect();
    assert_eq!(evaluated.iter().sum::<usize>(), 9, "{evaluated:?}");
}

#[tokio::test]
async fn a_cancelled_call_leaves_its_rows_to_others() {
    let (fixture, graph) = (Fixture::new(), graph(&[1, 2, 3, 1]));
    let configurations = uniform(&graph);
    let undisturbed = fixture.evaluation(&graph, &configurations).await.scores;
    let mut cancelled = 0;
    for microseconds in (0..2_000).step_by(50) {
        fixture.engine.forget(fixture.model.digest());
        let impatient = timeout(
            Duration::from_micros(microseconds),
            fixture.evaluation(&graph, &configurations),
        );
        let patient = timeout(
            Duration::from_secs(10),
            fixture.evaluation(&graph, &configurations),
        );
        let (impatient, patient) = tokio::join!(impatient, patient);
        assert_eq!(patient.expect("the call ends").scores, undisturbed);
        cancelled += usize::from(impatient.is_err());
    }
    assert!(cancelled > 0, "no call was cancelled");
}

#[tokio::test]
async fn a_forgotten_model_leaves_nothing() {
    let (fixture, graph) = (Fixture::new(), graph(&[1]));
    assert_eq!(
        fixture.reuse(&graph, &uniform(&graph)).await.rows_evaluated,
        3
    );
    fixture.engine.forget(fixture.model.digest());
    assert_eq!(
        fixture.reuse(&graph, &uniform(&graph)).await.rows_evaluated,
        3
    );
}
