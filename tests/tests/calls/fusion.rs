//! Fusions are ranked by the predicted seconds of their kernels, and measured ones are kept.

use hlorank_client::v1::{self, ScoreUnit};
use hlorank_graph::{Graph, KernelLimits};
use hlorank_tests::prelude::*;

/// A program, and a server that ranks its fusions.
struct Subject {
    server: TestServer,
    client: Client,
    handle: GraphHandle,
    program: Graph,
}

impl Subject {
    async fn new(name: &str) -> Self {
        Self::with(name, &[]).await
    }

    async fn with(name: &str, flags: &[&str]) -> Self {
        let models = all_models_flag();
        let server = TestServer::start_with(&[&[models.as_str()], flags].concat()).await;
        Self {
            client: server.client().await,
            server,
            handle: GraphHandle::hlo_module(program_module(name), Task::Fusion, Vec::new()),
            program: program_graph(name),
        }
    }

    async fn rank(&self, batch: &FusionBatch) -> Ranking {
        let configurations = Configurations::Fusion(batch.clone());
        let request = RankRequest::new(&self.handle, &configurations).with_scores();
        self.client.rank(&request).await.unwrap()
    }
}

#[tokio::test]
async fn a_score_is_the_seconds_of_all_kernels() {
    let subject = Subject::new("sharpen_train").await;
    let batch = random_fusions(&subject.program, 20, &mut Rng::with_seed(1));
    let configurations = Configurations::Fusion(batch.clone());
    let request = RankRequest::new(&subject.handle, &configurations).explain(5);
    let ranking = subject.client.rank(&request).await.unwrap();
    assert_eq!(ranking.unit, ScoreUnit::Seconds);
    assert_eq!(ranking.kernels.len(), 5);
    let scores: Vec<f32> = ranking.best.iter().map(|each| each.score).collect();
    assert_eq!(ranking.predicted_seconds, scores);
    assert!(ranking.log_sd.is_empty());
    let program = subject.program.program().unwrap();
    for (best, kernels) in ranking.best.iter().zip(&ranking.kernels) {
        let score = best.score;
        let sum: f32 = kernels.iter().map(|kernel| kernel.seconds).sum();
        assert!(
            score > 0.0 && (sum - score).abs() <= 1e-5 * sum,
            "{sum}, not {score}"
        );
        let formed = program.kernels(batch.row(best.config), &KernelLimits::default());
        let expected: Vec<(u32, usize)> = formed
            .unwrap()
            .iter()
            .map(|kernel| (kernel.root, kernel.computed()))
            .collect();
        let found: Vec<(u32, usize)> = kernels
            .iter()
            .map(|kernel| (kernel.node, kernel.computed_nodes as usize))
            .collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn put_graph_lists_the_slots() {
    let subject = Subject::new("adam_small").await;
    let put = subject.client.put_graph(&subject.handle).await.unwrap();
    let nodes: Vec<u32> = put
        .configurable_nodes
        .iter()
        .map(|node| node.node)
        .collect();
    assert_eq!(nodes, subject.program.configurable());
    assert!(
        put.configurable_nodes
            .iter()
            .all(|node| !node.name.is_empty() && !node.opcode.is_empty())
    );
    let none = [vec![false; nodes.len()]];
    let unfused = FusionBatch::from_bits(nodes.len(), &none, &Limits::default());
    let reuse = subject.rank(&unfused.unwrap()).await.reuse;
    assert_eq!(u64::from(put.summary.segments), reuse.segment_rows);
    assert_eq!(
        u64::from(put.summary.distinct_segments),
        reuse.distinct_segment_rows
    );
}

#[tokio::test]
async fn a_neighbour_costs_the_kernels_that_it_changes() {
    let subject = Subject::new("transformer_encoder").await;
    let mut random = Rng::with_seed(3);
    let base = random_fusions(&subject.program, 1, &mut random);
    let first = subject.rank(&base).await;
    let reuse = &first.reuse;
    assert_eq!(reuse.rows_evaluated, reuse.distinct_segment_rows);
    assert!(
        reuse.distinct_segment_rows < reuse.segment_rows,
        "equal layers share kernels"
    );
    let near = fusion_neighbours(&base, 0, 1, 1, &mut random);
    let near = subject.rank(&near).await.reuse;
    assert!(
        4 * near.rows_evaluated < near.distinct_segment_rows,
        "{near:?}"
    );
    assert_eq!(subject.rank(&base).await.scores, first.scores);
}

#[tokio::test]
async fn too_large_kernels_are_last_with_a_warning() {
    let subject = Subject::new("sharpen_train").await;
    let slots = subject.program.configurable().len();
    let bits = [vec![true; slots], vec![false; slots]];
    let batch = FusionBatch::from_bits(slots, &bits, &Limits::default()).unwrap();
    let program = subject.program.program().unwrap();
    let kernels = program.kernels(batch.row(0), &KernelLimits::default());
    let reason = kernels.unwrap_err().to_string();
    let ranking = subject.rank(&batch).await;
    let best: Vec<usize> = ranking.best.iter().map(|each| each.config).collect();
    assert_eq!(best, [1, 0]);
    assert!(ranking.scores[0].is_infinite() && ranking.scores[1].is_finite());
    assert_eq!(reasons(&ranking), ["KERNEL_TOO_LARGE"]);
    says!(ranking.warnings[0].message, reason);
}

#[tokio::test]
async fn every_form_and_a_stream_have_the_same_scores() {
    let subject = Subject::new("adam_small").await;
    let batch = random_fusions(&subject.program, 60, &mut Rng::with_seed(4));
    let whole = subject.rank(&batch).await;
    let fusions = Configurations::Fusion(batch.clone());
    for form in forms(&fusions, subject.program.configurable()) {
        let graph = graph_of_module(program_module("adam_small"));
        let request = rank_request(graph, form).with_scores();
        let answer = subject.server.rank(request).await.unwrap();
        assert_eq!(answer.scores, whole.scores);
    }
    let request = StreamRequest::new(&subject.handle);
    let mut stream = subject.client.rank_stream(&request).await.unwrap();
    let mut scores = Vec::new();
    for some in (0..60).collect::<Vec<_>>().chunks(25) {
        stream.send(&fusions.select(some)).await.unwrap();
        scores.extend(stream.scores().await.unwrap().unwrap().scores);
    }
    let ranking = stream.finish().await.unwrap();
    assert_eq!((scores, ranking.best), (whole.scores, whole.best));
    assert_eq!(ranking.unit, ScoreUnit::Seconds);
    assert_eq!(ranking.predicted_seconds.len(), 60);
}

#[tokio::test]
async fn measurements_correct_the_seconds() {
    let subject = Subject::new("adam_small").await;
    let batch = random_fusions(&subject.program, 40, &mut Rng::with_seed(5));
    let predicted = subject.rank(&batch).await.scores;
    let fusions = Configurations::Fusion(batch.clone());
    // Kernels take twice as long as predicted.
    let times = run_times(predicted[..20].iter().map(|&score| f64::from(score) * 2.0));
    let some: Vec<usize> = (0..20).collect();
    let adapt = Adapt::new("test").measured(&fusions.select(&some), &times);
    let request = RankRequest::new(&subject.handle, &fusions).with_scores();
    let adapted = subject.client.rank(&request.adapt(Some(&adapt))).await;
    let adapted = adapted.unwrap();
    assert_eq!(adapted.unit, ScoreUnit::LogSeconds);
    for (config, (&score, &before)) in adapted.scores.iter().zip(&predicted).enumerate() {
        let factor = score.exp() / before;
        assert!(
            (1.7..2.3).contains(&factor),
            "configuration {config}: {factor}"
        );
    }
    let request = SuggestRequest::new(&subject.handle, &fusions).adapt(Some(&adapt));
    let suggested = subject.client.suggest(&request.count(4)).await.unwrap();
    assert_eq!(suggested.suggestions.len(), 4);
    let known: HashSet<&[u8]> = some.iter().map(|&config| batch.row(config)).collect();
    for suggestion in suggested.suggestions {
        assert!(!known.contains(batch.row(suggestion.config)));
    }
}

#[test]
fn a_graph_hash_is_of_the_program() {
    let hash = |operands: &str| {
        let text = format!(
            "HloModule m\nENTRY e {{\n p = f32[64,64] parameter(0)\n q = f32[64,64] parameter(1)\n \
             n = f32[64,64] negate(p)\n s = f32[64,64] subtract({operands})\n ROOT t = f32[64,64] tanh(s)\n}}"
        );
        let module = HloModule::read_text(&text, &Limits::default()).unwrap();
        module.into_graph(Task::Fusion, Vec::new()).unwrap().hash()
    };
    // The operands are the same set, in another order: other parameters of the kernel.
    assert_ne!(hash("n, q"), hash("q, n"));
    assert_eq!(hash("n, q"), hash("n, q"));
}

#[tokio::test]
async fn a_report_by_hash_keeps_the_program_that_another_call_sent() {
    let folder = tempfile::tempdir().unwrap();
    let subject = Subject::with("adam_small", &[&store_flag(folder.path())]).await;
    let client = &subject.client;
    // The report has only the hash.
    let put = client.put_graph(&subject.handle).await.unwrap();
    let batch = random_fusions(&subject.program, 6, &mut Rng::with_seed(1));
    let times = run_times([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let adapt = Adapt::new("a board").measured(&Configurations::Fusion(batch), &times);
    let reported = client.report_measurements(&subject.handle, &adapt).await;
    let reported = reported.unwrap();
    assert_eq!((reported.accepted, reported.graph_hash), (6, put.hash));
    let kept = client.measured_graph("a board", put.hash).await.unwrap();
    let program = v1::Graph {
        task: v1::Task::Fusion.into(),
        ..graph_of_module(program_module("adam_small"))
    };
    assert_eq!(kept, Some(program), "it can be replayed");
}
