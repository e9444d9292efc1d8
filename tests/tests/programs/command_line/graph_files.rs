//! `hlorank graph`: files of graphs, read without a server.

use hlorank_graph::FeatureSet;
use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, measurements};

#[test]
fn the_graphs_of_a_file_are_inspected() {
    for file in MeasuredFile::both() {
        let report = CommandLine::without_server().json(&["graph", "inspect", file.argument()]);
        assert_eq!(report["format"], file.kind.to_string());
        assert_eq!(
            report["graphs"].as_array().map(Vec::len),
            Some(file.graphs.len())
        );
        for (graph, measured) in report["graphs"]
            .as_array()
            .unwrap()
            .iter()
            .zip(&file.graphs)
        {
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
    for pad in ["0", "-1"] {
        let arguments = [
            "graph",
            "features",
            file.argument(),
            "--out",
            "features.npz",
            "--pad",
            pad,
        ];
        let report = command_line.json(&arguments);
        assert_eq!(
            report["configurations"],
            measurements(&file.graphs[0]).run_times.len()
        );
        assert_eq!(report["nodes"], file.graphs[0].graph.len());
    }
    assert_eq!(hash("features.npz"), hash(file.argument()));
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

#[test]
fn a_broken_text_is_refused_with_its_place() {
    let command_line = CommandLine::without_server();
    command_line.write("cut.txt", "HloModule m\n\nENTRY e {\n  p = f32[2");
    let (code, message) = command_line.failure(&["graph", "inspect", "cut.txt"]);
    assert_eq!(code, Some(2));
    assert!(
        message.starts_with("error: cut.txt: module 0: HLO text, line 4, column 12: "),
        "{message}"
    );
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
            let module = module.to_string();
            let options = ["--module", &module, "--out", &out, "--pad", "0"];
            command_line.text(&[&["graph", "features", file.argument()][..], &options].concat());
            let trained = command_line.read(&out, measured.graph.task());
            let cached = client
                .put_graph(&GraphHandle::from_measured(measured))
                .await
                .unwrap();

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
fn features_padded_with_zero_are_not_padded_anew() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    command_line.text(&["graph", "features", file.argument(), "--out", "zero.npz"]);
    let (code, message) = command_line.failure(&[
        "graph",
        "features",
        "zero.npz",
        "--out",
        "minus_one.npz",
        "--pad",
        "-1",
    ]);
    assert_eq!(code, Some(2));
    says!(message, "padded with 0");
}

#[test]
fn the_feature_digest_needs_no_file() {
    let command_line = CommandLine::without_server();
    let digest = command_line.text(&["graph", "features", "--digest"]);
    assert_eq!(digest, format!("{}\n", FeatureSet::TPUGRAPHS.digest()));
    for set in FeatureSet::ALL {
        let digest = command_line.text(&["graph", "features", "--digest", set.name()]);
        assert_eq!(digest, format!("{}\n", set.digest()));
    }
    let (code, message) = command_line.failure(&["graph", "features", "--digest", "tpugraphs-141"]);
    assert_eq!(code, Some(2));
    says!(message, "tpugraphs-140 or tpugraphs-140-loops");
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
    let graph = ["rank", "--module", "0", "--graph", file.argument()];
    for arguments in [
        &["graph", "inspect", "table.csv"][..],
        &[&graph[..], &["--measured", "table.csv"]].concat(),
        &[&graph[..], &["--configs", "table.csv"]].concat(),
    ] {
        let (code, message) = command_line.failure(arguments);
        assert_eq!(code, Some(2), "{arguments:?}");
        says!(
            message,
            "table.csv: this is a table whose columns are separated by semicolons"
        );
    }
}

#[test]
fn a_program_without_fusions_says_what_chooses_some() {
    let command_line = CommandLine::without_server();
    let program = "HloModule f\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  a = f32[8]{0} exponential(p)\n  \
                   ROOT b = f32[8]{0} negate(a)\n}\n";
    command_line.write("program.hlo.txt", program);
    let rank = ["rank", "--task", "fusion", "--graph", "program.hlo.txt"];
    let (code, message) = command_line.failure(&rank);
    assert_eq!(code, Some(2));
    says!(
        message,
        "--configs FILE",
        "`hlorank-tune xla PROGRAM --fusion`"
    );
}
