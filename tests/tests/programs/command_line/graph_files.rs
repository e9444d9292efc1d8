//! `hlorank graph`: files of graphs, read without a server.

use hlorank_graph::FeatureSet;
use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, measurements};

#[test]
fn the_graphs_of_a_file_are_inspected() {
    for file in MeasuredFile::both() {
        let report = CommandLine::without_server().json(&["graph", "inspect", file.argument()]);
        assert_eq!(report["format"], file.kind.to_string());
        let graphs = report["graphs"].as_array().unwrap();
        assert_eq!(graphs.len(), file.graphs.len());
        for (graph, measured) in graphs.iter().zip(&file.graphs) {
            assert_eq!(graph["nodes"], measured.graph.len());
            assert_eq!(graph["configurable"], measured.graph.configurable().len());
            assert_eq!(
                graph["configurations"],
                measurements(measured).run_times.len()
            );
            assert_eq!(graph["hash"], measured.graph.hash().to_string());
        }
    }
}

#[test]
fn the_nodes_that_a_layout_sets_are_listed() {
    let file = MeasuredFile::layout();
    let report =
        CommandLine::without_server().json(&["graph", "inspect", file.argument(), "--nodes"]);
    let listed = report["graphs"][0]["configurable_nodes"]
        .as_array()
        .unwrap();
    let configurable = file.graphs[0].graph.configurable();
    assert_eq!(listed.len(), configurable.len());
    for (listed, node) in listed.iter().zip(configurable) {
        assert_eq!(listed["node"], *node);
        assert!(
            ["convolution", "dot", "reshape"].contains(&listed["opcode"].as_str().unwrap()),
            "{listed}"
        );
        assert!(listed["name"].is_string(), "{listed}");
    }
}

#[test]
fn a_graph_written_as_features_is_the_same_graph() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    let hash = |path: &str| -> Value {
        command_line.json(&["graph", "inspect", path])["graphs"][0]["hash"].take()
    };
    for (out, pad) in [("zero.npz", "--pad=0"), ("minus_one.npz", "--pad=-1")] {
        let features = ["graph", "features", file.argument(), "--out", out, pad];
        let report = command_line.json(&features);
        let runs = measurements(&file.graphs[0]).run_times.len();
        assert_eq!(report["configurations"], runs);
        assert_eq!(report["nodes"], file.graphs[0].graph.len());
    }
    assert_eq!(hash("minus_one.npz"), hash(file.argument()));
    // What was padded with zero is not padded anew.
    let again = [
        "graph",
        "features",
        "zero.npz",
        "--out=again.npz",
        "--pad=-1",
    ];
    says!(command_line.failure(2, &again), "padded with 0");
}

#[test]
fn text_is_reported_from_protobuf_by_content() {
    let command_line = CommandLine::without_server();
    let file = |ending: &str| {
        let path = fixture(HLO_FIXTURES).join(format!("mlp_train.before_opt.{ending}"));
        path.to_str().unwrap().to_owned()
    };
    let inspect = |path: &str| command_line.json(&["graph", "inspect", path, "--nodes"]);
    let [mut text, mut module] = [inspect(&file("hlo.txt")), inspect(&file("hlo_module.pb"))];
    assert_eq!(
        (&text["format"], &module["format"]),
        (&"HLO text".into(), &"HloModuleProto".into())
    );
    assert_eq!(text["graphs"].take(), module["graphs"].take());
}

/// Training reads files with this command, so it must yield the graph that a server reads from the same module.
#[tokio::test]
async fn training_reads_the_features_that_the_server_ranks_by() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for file in MeasuredFile::both() {
        let command_line = CommandLine::without_server();
        for (module, measured) in file.graphs.iter().enumerate() {
            let out = format!("{module}.npz");
            let module = format!("--module={module}");
            let features = ["graph", "features", file.argument(), &module];
            command_line.text(&[&features[..], &["--out", &out, "--pad=0"]].concat());
            let trained = command_line.read(&out, measured.graph.task());
            let handle = GraphHandle::from_measured(measured);
            let cached = client.put_graph(&handle).await.unwrap();
            assert_eq!(
                cached.hash,
                measured.graph.hash(),
                "the server holds this graph"
            );
            assert_eq!(
                trained.graph.raw_features(),
                measured.graph.features(Pad::Zero).unwrap()
            );
            assert_eq!(trained.graph.opcodes(), measured.graph.opcodes());
            assert_eq!(trained.graph.edges(), measured.graph.edges());
            assert_eq!(trained.graph.configurable(), measured.graph.configurable());
            assert_eq!(
                measurements(&trained).run_times,
                measurements(measured).run_times
            );
        }
    }
}

#[test]
fn the_feature_digest_needs_no_file() {
    let command_line = CommandLine::without_server();
    let digest = ["graph", "features", "--digest"];
    let expected = format!("{}\n", FeatureSet::TPUGRAPHS.digest());
    assert_eq!(command_line.text(&digest), expected);
    let digest_of = |set: &'static str| [&digest[..], &[set]].concat();
    for set in FeatureSet::ALL {
        let expected = format!("{}\n", set.digest());
        assert_eq!(command_line.text(&digest_of(set.name())), expected);
    }
    says!(
        command_line.failure(2, &digest_of("tpugraphs-141")),
        "tpugraphs-140 or tpugraphs-140-loops"
    );
}

/// Runs a command with a file as standard input.
fn with_input(arguments: &[&str], input: &Path) -> Output {
    let command_line = CommandLine::without_server();
    let mut command = command_line.command(arguments);
    command.stdin(File::open(input).unwrap()).output().unwrap()
}

#[test]
fn a_dash_is_standard_input() {
    let file = MeasuredFile::tile();
    let read = with_input(&["graph", "inspect", "-", "--json"], &file.path);
    assert!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
    let report: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(
        report["graphs"].as_array().unwrap().len(),
        file.graphs.len()
    );
    let twice = ["rank", "--graph", "-", "--module", "0", "--configs", "-"];
    let refused = with_input(&twice, &file.path);
    assert_eq!(refused.status.code(), Some(2));
    says!(
        String::from_utf8(refused.stderr).unwrap(),
        "standard input is one file"
    );
}

#[test]
fn a_table_in_place_of_a_graph_or_of_json_is_named() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::tile());
    command_line.write(
        "table.csv",
        "block_m;vectorize;seconds\n16;false;0.004\n32;true;\n",
    );
    let graph = ["rank", "--module=0", "--graph", file.argument()];
    for arguments in [
        &["graph", "inspect", "table.csv"][..],
        &[&graph[..], &["--measured", "table.csv"]].concat(),
        &[&graph[..], &["--configs", "table.csv"]].concat(),
    ] {
        says!(
            command_line.failure(2, arguments),
            "table.csv: this is a table whose columns are separated by semicolons"
        );
    }
}
