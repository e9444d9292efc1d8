//! Measurements of every kind of graph and configuration are exported and imported without loss.

use super::{
    exported::{hlorank, path, run},
    *,
};

/// Something that is measured.
struct Measurable {
    kind: String,
    handle: GraphHandle,
    configurations: Configurations,
}

impl Measurable {
    fn new(kind: &str, measured: &MeasuredGraph, configurations: Configurations) -> Self {
        Self {
            kind: kind.to_owned(),
            handle: GraphHandle::from_measured(measured),
            configurations,
        }
    }

    fn of_features(kind: &str, graph: &FeatureGraph, columns: usize, random: &mut Rng) -> Self {
        let values: Vec<f32> = (0..24 * graph.nodes() * columns)
            .map(|_| f32::from(random.u8(..)) / 8.0)
            .collect();
        let shape = [graph.nodes(), columns];
        let batch = NodeFeatureBatch::from_values(shape, &values, &Limits::default());
        Self {
            kind: kind.to_owned(),
            handle: GraphHandle::feature_graph(graph),
            configurations: Configurations::FeatureSet(batch.unwrap()),
        }
    }

    /// At least one of every kind that ships.
    async fn every_kind(client: &Client) -> Vec<Self> {
        let mut random = Rng::with_seed(9);
        let mut all = Vec::new();
        for (kind, file) in [
            ("layouts", "measured/layout_random_window_nchw_train.pb"),
            ("tiles of XLA", "measured/tile_kernels.pb"),
            ("tiles of IREE", "measured/tile_dispatches.pb"),
            ("measured fusions", "fused/rotary.pb"),
        ] {
            for graph in read_graphs(&fixture(file)) {
                all.push(Self::new(kind, &graph, configurations(&graph).clone()));
            }
        }
        let program = program_graph("adam_small");
        let fusions = random_fusions(&program, 24, &mut random);
        all.push(Self {
            kind: "programs before fusion".to_owned(),
            handle: GraphHandle::hlo_module(program_module("adam_small"), Task::Fusion, vec![]),
            configurations: Configurations::Fusion(fusions),
        });
        let text = "HloModule f\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  a = f32[8]{0} exponential(p)\n  \
                    b = f32[8]{0} negate(a)\n  c = f32[8]{0} add(b, p)\n  ROOT d = f32[8]{0} multiply(c, p)\n}\n";
        let path = Path::new("program.hlo.txt");
        let text = GraphFile::parse(path, text.into(), Task::Fusion, &Limits::default()).unwrap();
        let text = &text.graphs[0];
        let fusions = random_fusions(&text.graph, 24, &mut random);
        let fusions = Configurations::Fusion(fusions);
        all.push(Self::new("programs before fusion as text", text, fusions));
        // Schedules of Halide and TVM, and whatever else models of feature sets rank.
        let models = client.list_models().await.unwrap().into_iter();
        for set in models.filter_map(|model| model.feature_set) {
            let kind = format!("columns of {}", set.name);
            // A set without columns of nodes has graphs of one node.
            let (nodes, edges) = match set.node_features.len() {
                0 => (1, vec![]),
                _ => (3, vec![[1, 0], [2, 1]]),
            };
            let values = 0..nodes * set.node_features.len();
            let features = values.map(|_| f32::from(random.u8(..20))).collect();
            let limits = Limits::default();
            let graph = FeatureGraph::new(set.name, nodes, features, edges, &limits).unwrap();
            let columns = set.config_features.len();
            all.push(Self::of_features(&kind, &graph, columns, &mut random));
        }
        let loops = Loops::graph(4, &mut random);
        let nodes = ["depth", "iterations", "flops"].map(str::to_owned);
        let columns = ["tile", "unroll"].map(str::to_owned);
        let loops = loops.described(nodes.to_vec(), columns.to_vec()).unwrap();
        all.push(Self::of_features("a described set", &loops, 2, &mut random));
        let space = ParameterSpace::new("1024 x 512");
        all.push(Self::of_features("a space", &space.graph, 2, &mut random));
        all
    }

    /// Reports some configurations as those of a reporter: times of several runs, and every kind of failure.
    async fn report(&self, client: &Client, target: &str, reporter: &str, first: usize) {
        let all = first..self.configurations.len();
        let chosen: Vec<usize> = all.step_by(2).take(12).collect();
        let failures = [
            MeasurementFailure::Compile,
            MeasurementFailure::Crash,
            MeasurementFailure::WrongResult,
            MeasurementFailure::Timeout,
        ];
        let times = (3_u32..)
            .zip(1..)
            .map(|(part, repeats)| MeasuredOutcome::Time {
                seconds: 1e-3 / f64::from(part),
                repeats,
            });
        let outcomes = failures.map(MeasuredOutcome::Failed).into_iter();
        let outcomes: Vec<MeasuredOutcome> = outcomes.chain(times).take(chosen.len()).collect();
        let ids = chosen.iter().map(|config| format!("{reporter} {config}"));
        let adapt = Adapt::new(target)
            .measured(&self.configurations.select(&chosen), &outcomes)
            .ids(ids);
        // As if another server had kept them.
        let times = (157_800_000..).step_by(86_400).take(chosen.len());
        let details = reported(reporter, &times.collect::<Vec<u64>>());
        let answer = client
            .report_measurements_with(&details, &self.handle, &adapt)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", self.kind));
        assert_eq!(answer.accepted as usize, chosen.len(), "{}", self.kind);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_measurement_is_exported_and_imported_bit_for_bit() {
    let (folder, one, of_one) = storing_server(&[&all_models_flag()]).await;
    let (_other_folder, other, of_other) = storing_server(&[&all_models_flag()]).await;
    let measurables = Measurable::every_kind(&of_one).await;
    for measurable in &measurables {
        measurable.report(&of_one, TARGET, "ann", 0).await;
        measurable.report(&of_one, TARGET, "bob", 1).await;
        measurable.report(&of_one, "another board", "ann", 0).await;
    }
    let exported = folder.path().join("exported");
    let written = hlorank(&one, &["export", "--out", path(&exported)]);
    let files = written["files"].as_array().unwrap();
    assert_eq!(files.len(), 2 * measurables.len());
    for file in files {
        let is_fusion = file["task"] == "fusion";
        assert_eq!(file["trainable"], !is_fusion, "{file}");
    }
    let expected = kept(&of_one).await;
    let all: usize = expected.iter().map(|part| part.ids.len()).sum();
    for [accepted, known] in [[all, 0], [0, all]] {
        let imported = hlorank(&other, &["import", path(&exported)]);
        assert_eq!(imported["accepted"], accepted);
        assert_eq!(imported["known"], known);
        assert_eq!(kept(&of_other).await, expected);
    }
    for measurable in &measurables {
        let hash = measurable.handle.hash().unwrap();
        let graph = async |client: &Client| client.measured_graph(TARGET, hash).await.unwrap();
        assert_eq!(graph(&of_other).await, graph(&of_one).await);
        println!("{} exported and imported", measurable.kind);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_exported_or_imported_is_named_and_the_rest_goes_on() {
    let (folder, one, of_one) = storing_server(&[&all_models_flag()]).await;
    let (_other_folder, other, of_other) = storing_server(&[&all_models_flag()]).await;
    for measurable in Measurable::every_kind(&of_one).await {
        measurable.report(&of_one, TARGET, "ann", 0).await;
    }
    let exported = folder.path().join("exported");
    let written = hlorank(&one, &["export", "--out", path(&exported)]);
    let files = written["files"].as_array().unwrap();
    let of_tiles = |file: &&Value| file["task"] == "tile";
    let tiles: Vec<&Value> = files.iter().filter(of_tiles).collect();
    // A file is where the folder of the tiles belongs.
    let first = Path::new(tiles[0]["path"].as_str().unwrap());
    let folder_of_tiles = first.parent().unwrap();
    fs::remove_dir_all(folder_of_tiles).unwrap();
    fs::write(folder_of_tiles, "").unwrap();
    let output = run(&one, &["export", "--out", path(&exported)]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failures = report["failures"].as_array().unwrap();
    assert_eq!(failures.len(), tiles.len());
    for tile in &tiles {
        let subject = format!("graph {} on {TARGET}", tile["graph"].as_str().unwrap());
        assert!(failures.iter().any(|each| each["subject"] == *subject));
    }
    let written = report["files"].as_array().unwrap();
    let (done, failed) = (written.len(), tiles.len());
    assert_eq!(done, files.len() - failed);
    let said = String::from_utf8(output.stderr).unwrap();
    says!(said, format!("{done} succeeded and {failed} failed"));

    let broken = written[0]["path"].as_str().unwrap();
    fs::write(broken, "PK and no archive").unwrap();
    let output = run(&other, &["import", path(&exported)]);
    assert_eq!(output.status.code(), Some(2));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failures = report["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0]["subject"], broken);
    assert_eq!(kept(&of_other).await.len(), done - 1);
}
