use hlorank_client::v1::ScoreUnit;
use hlorank_graph::KernelLimits;
use hlorank_proto::v1::Graph as GraphMessage;
use hlorank_tests::prelude::*;

use crate::fusion::Subject;

#[tokio::test]
async fn a_score_is_the_seconds_of_all_kernels() {
    let subject = Subject::new("sharpen_train").await;
    let batch = random_fusions(&subject.program, 20, &mut Rng::with_seed(1));
    let configurations = Configurations::Fusion(batch.clone());
    let request = RankRequest::new(&subject.handle, &configurations).explain(5);
    let ranking = subject.client.rank(&request).await.unwrap();
    assert_eq!(
        (ranking.unit, ranking.kernels.len()),
        (ScoreUnit::Seconds, 5)
    );
    let scores: Vec<f32> = ranking.best.iter().map(|each| each.score).collect();
    assert_eq!(ranking.predicted_seconds, scores);
    assert!(ranking.log_sd.is_empty());
    let program = subject.program.program().unwrap();
    for (best, kernels) in ranking.best.iter().zip(&ranking.kernels) {
        let sum: f32 = kernels.iter().map(|kernel| kernel.seconds).sum();
        assert!(
            best.score > 0.0 && (sum - best.score).abs() <= 1e-5 * sum,
            "{sum}, not {}",
            best.score
        );
        let formed = program
            .kernels(batch.row(best.config), &KernelLimits::default())
            .unwrap();
        let expected: Vec<(u32, u32)> = formed
            .iter()
            .map(|kernel| (kernel.root, u32::try_from(kernel.computed()).unwrap()))
            .collect();
        let found: Vec<(u32, u32)> = kernels
            .iter()
            .map(|kernel| (kernel.node, kernel.computed_nodes))
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
    let unfused = FusionBatch::new(
        1,
        nodes.len(),
        vec![0; nodes.len().div_ceil(8)],
        &Limits::default(),
    );
    let ranking = subject.rank(&unfused.unwrap()).await;
    assert_eq!(u64::from(put.summary.segments), ranking.reuse.segment_rows);
    assert_eq!(
        u64::from(put.summary.distinct_segments),
        ranking.reuse.distinct_segment_rows
    );
}

#[tokio::test]
async fn every_form_has_the_same_scores() {
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let program = program_graph("adam_small");
    let batch = random_fusions(&program, 30, &mut Rng::with_seed(2));
    let (mut scores, graph) = (Vec::new(), graph_of_module(program_module("adam_small")));
    for form in forms(&Configurations::Fusion(batch), program.configurable()) {
        let request = rank_request(graph.clone(), form).with_scores();
        scores.push(server.rank(request).await.unwrap().scores);
    }
    assert_eq!(scores.len(), 2);
    assert_eq!(scores[0], scores[1]);
}

#[tokio::test]
async fn a_neighbour_costs_the_kernels_that_it_changes() {
    let subject = Subject::new("transformer_encoder").await;
    let mut random = Rng::with_seed(3);
    let base = random_fusions(&subject.program, 1, &mut random);
    let first = subject.rank(&base).await;
    assert_eq!(
        first.reuse.rows_evaluated,
        first.reuse.distinct_segment_rows
    );
    assert!(
        first.reuse.distinct_segment_rows < first.reuse.segment_rows,
        "equal layers share kernels"
    );
    let near = subject
        .rank(&fusion_neighbours(&base, 0, 1, 1, &mut random))
        .await;
    println!("{:?}, then {:?}", first.reuse, near.reuse);
    assert!(
        4 * near.reuse.rows_evaluated < near.reuse.distinct_segment_rows,
        "{:?}",
        near.reuse
    );
    assert_eq!(subject.rank(&base).await.scores, first.scores);
}

#[tokio::test]
async fn too_large_kernels_are_last_with_a_warning() {
    let subject = Subject::new("sharpen_train").await;
    let slots = subject.program.configurable().len();
    let mut fused = vec![0; slots.div_ceil(8)];
    (0..slots).for_each(|slot| fused[slot / 8] |= 1 << (slot % 8));
    let program = subject.program.program().unwrap();
    let reason = program
        .kernels(&fused, &KernelLimits::default())
        .unwrap_err();
    fused.extend(vec![0; slots.div_ceil(8)]);
    let ranking = subject
        .rank(&FusionBatch::new(2, slots, fused, &Limits::default()).unwrap())
        .await;
    assert_eq!(
        ranking
            .best
            .iter()
            .map(|each| each.config)
            .collect::<Vec<_>>(),
        [1, 0]
    );
    assert!(ranking.scores[0].is_infinite() && ranking.scores[1].is_finite());
    let [warning] = &ranking.warnings[..] else {
        panic!("{:?}", ranking.warnings)
    };
    assert_eq!(warning.reason, "KERNEL_TOO_LARGE");
    assert!(
        warning.message.contains(&reason.to_string()),
        "{}",
        warning.message
    );
}

#[tokio::test]
async fn a_stream_has_the_scores_of_one_call() {
    let subject = Subject::new("adam_small").await;
    let batch = random_fusions(&subject.program, 60, &mut Rng::with_seed(4));
    let whole = subject.rank(&batch).await;
    let mut stream = subject
        .client
        .rank_stream(&StreamRequest::new(&subject.handle))
        .await
        .unwrap();
    let mut scores = Vec::new();
    for some in (0..60).collect::<Vec<_>>().chunks(25) {
        stream
            .send(&Configurations::Fusion(batch.select(some)))
            .await
            .unwrap();
        scores.extend(stream.scores().await.unwrap().unwrap().scores);
    }
    let ranking = stream.finish().await.unwrap();
    assert_eq!((scores, ranking.best), (whole.scores, whole.best));
    assert_eq!(
        (ranking.unit, ranking.predicted_seconds.len()),
        (ScoreUnit::Seconds, 60)
    );
}

/// Seconds that a program takes on a machine where kernels take twice as long as predicted, and a call a constant.
fn measured(scores: &[f32]) -> Vec<MeasuredOutcome> {
    scores
        .iter()
        .map(|&score| MeasuredOutcome::Time {
            seconds: f64::from(score) * 2.0,
            repeats: 3,
        })
        .collect()
}

#[tokio::test]
async fn measurements_correct_the_seconds() {
    let subject = Subject::new("adam_small").await;
    let batch = random_fusions(&subject.program, 40, &mut Rng::with_seed(5));
    let predicted = subject.rank(&batch).await.scores;
    let configurations = Configurations::Fusion(batch.clone());
    let some: Vec<usize> = (0..20).collect();
    let adapt =
        Adapt::new("test").measured(&configurations.select(&some), &measured(&predicted[..20]));
    let request = RankRequest::new(&subject.handle, &configurations)
        .with_scores()
        .adapt(Some(adapt.clone()));
    let adapted = subject.client.rank(&request).await.unwrap();
    assert_eq!(adapted.unit, ScoreUnit::LogSeconds);
    for (config, (&score, &before)) in adapted.scores.iter().zip(&predicted).enumerate() {
        let factor = score.exp() / before;
        assert!(
            (1.7..2.3).contains(&factor),
            "configuration {config}: {factor}"
        );
    }
    let suggest = SuggestRequest::new(&subject.handle, &configurations)
        .adapt(Some(&adapt))
        .count(4);
    let suggested = subject.client.suggest(&suggest).await.unwrap().suggestions;
    let rows: HashMap<&[u8], usize> = some
        .iter()
        .map(|&config| (batch.row(config), config))
        .collect();
    assert!(
        suggested.len() == 4
            && suggested
                .iter()
                .all(|each| !rows.contains_key(batch.row(each.config)))
    );
}

#[tokio::test]
async fn a_graph_hash_is_of_the_program() {
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let text = |operands: &str| {
        format!(
            "HloModule m\nENTRY e {{\n p = f32[64,64] parameter(0)\n q = f32[64,64] parameter(1)\n \
             n = f32[64,64] negate(p)\n s = f32[64,64] subtract({operands})\n ROOT t = f32[64,64] tanh(s)\n}}"
        )
    };
    let hash = async |operands: &str| {
        let graph = GraphMessage {
            task: 3,
            ..hlorank_tests::graph_of_text(text(operands))
        };
        let fusions = FusionBatch::new(1, 2, vec![0b11], &Limits::default()).unwrap();
        let batch = ConfigBatch {
            configs: Some(Configurations::Fusion(fusions).to_smallest_form()),
        };
        let request = RankConfigsRequest {
            graph: Some(graph),
            batch: Some(batch),
            ..Default::default()
        };
        server.rank(request).await.unwrap().graph_hash
    };
    // The operands are the same set, in another order: other parameters of the kernel.
    assert_ne!(hash("n, q").await, hash("q, n").await);
    assert_eq!(hash("n, q").await, hash("n, q").await);
}
