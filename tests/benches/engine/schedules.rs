use hlorank_tests::prelude::*;

/// Model of the schedules of Halide's autoscheduler.
const MODEL: &str = "halide-adams2019";

const STAGES: usize = 10;
const SCHEDULES: usize = 1_000;
const CALLS: usize = 9;

/// Compares one call with all schedules of a pipeline with one call for each.
pub(crate) async fn at_once_and_one_by_one() {
    let models = Artifacts::all();
    if !models.folder().join(MODEL).exists() {
        return println!("skipped: schedules need the model {MODEL} in models/registry");
    }
    let case = golden_cases(&models.versions(MODEL)[0]).swap_remove(0);
    let mut random = Rng::with_seed(3);
    let graph = GraphHandle::feature_graph(&pipeline(&case));
    let batch = schedules(&case, &mut random);
    let server = TestServer::start_with(&[&models.flag()]).await;
    let client = server.client().await;
    client.put_graph(&graph).await.expect("a pipeline");
    let all = Configurations::FeatureSet(batch.clone());
    let request = RankRequest::new(&graph, &all).top(10);
    let at_once = call_times(CALLS, async || {
        drop(client.rank(&request).await.expect("a ranking"));
    })
    .await;
    let each: Vec<Configurations> = (0..SCHEDULES)
        .map(|config| Configurations::FeatureSet(batch.select(&[config])))
        .collect();
    let start = Instant::now();
    for one in &each {
        client
            .rank(&RankRequest::new(&graph, one))
            .await
            .expect("a ranking");
    }
    let one_by_one = start.elapsed().as_secs_f64() * 1e3;
    let median = at_once[CALLS / 2];
    Figure {
        name: "schedules_at_once".to_owned(),
        value: one_by_one / median,
        unit: "x",
        target: Target::AtLeast(5.0),
        how: format!(
            "{SCHEDULES} schedules of a pipeline of {STAGES} stages with {MODEL} at the client: {median:.1} ms in one call \
             (median of {CALLS}, fastest {:.1}), {one_by_one:.0} ms in a call for each; all distinct, graph cached",
            at_once[0],
        ),
    }
    .write();
}

/// A chain of stages with the columns of a golden case.
fn pipeline(case: &GoldenCase) -> FeatureGraph {
    let graph = case
        .graph
        .feature_graph()
        .expect("a graph of a feature set");
    let rows: Vec<&[f32]> = graph.features().chunks(graph.columns()).collect();
    let features = (0..STAGES)
        .flat_map(|stage| rows[stage % rows.len()])
        .copied()
        .collect();
    let edges = (1_u32..)
        .zip(0..)
        .take(STAGES - 1)
        .map(|(consumer, producer)| [consumer, producer])
        .collect();
    FeatureGraph::new(
        graph.set().to_owned(),
        STAGES,
        features,
        edges,
        &Limits::default(),
    )
    .expect("a graph")
}

/// Schedules with the columns of a golden case, scaled so that no two rows are equal.
fn schedules(case: &GoldenCase, random: &mut Rng) -> NodeFeatureBatch {
    let Configurations::FeatureSet(own) = &case.configurations else {
        unreachable!("configurations of a feature set")
    };
    let mut values = Vec::with_capacity(SCHEDULES * STAGES * own.columns());
    for place in 0..SCHEDULES * STAGES {
        let row = own.numbers(random.usize(..own.len()))[place % STAGES % own.nodes()] as usize;
        let scale = 0.5 + random.f32();
        values.extend(
            own.rows()[row * own.columns()..][..own.columns()]
                .iter()
                .map(|value| value * scale),
        );
    }
    NodeFeatureBatch::from_values([STAGES, own.columns()], &values, &Limits::default())
        .expect("schedules")
}
