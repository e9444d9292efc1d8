//! Files of a feature set on the command line.

use hlorank_graph::FeatureFile;
use hlorank_tests::prelude::*;

use crate::command_line::running::CommandLine;

#[tokio::test(flavor = "multi_thread")]
async fn a_measured_file_is_ranked_evaluated_and_inspected() {
    let (models, model) = (Artifacts::copy(), FeatureSetModel::of_loops("loops-sum"));
    model.write(models.folder(), 1);
    let server = TestServer::start_with(&[&models.flag()]).await;
    let command_line = CommandLine::new(&server);
    let measured = Loops::measured(&model, 5, 30, &mut Rng::with_seed(3));
    FeatureFile::write(&command_line.path("loops.npz"), &measured, Pad::Zero).unwrap();

    let rank = ["rank", "--graph=loops.npz"];
    let ranked = command_line.json(&[&rank[..], &["--task=feature-set"]].concat());
    says!(ranked.to_string(), "loops-sum");
    let text = command_line.text(&[&rank[..], &["--top=3"]].concat());
    says!(text, "5 nodes; node 0: ");
    let evaluated = command_line.text(&["eval", "loops.npz"]);
    assert!(
        evaluated.contains("1.000"),
        "times follow the scores: {evaluated}"
    );
    let inspected = command_line.json(&["graph", "inspect", "loops.npz"]);
    let graph = &inspected["graphs"][0];
    assert_eq!(
        (&graph["kind"], &graph["nodes"]),
        (&"feature-set".into(), &5.into())
    );
    assert_eq!(graph["hash"], measured.graph.hash().to_string());
    says!(
        command_line.text(&["models"]),
        "loops-sum@1 takes the feature set loops: depth, iterations, flops; configurations: tile, unroll"
    );

    let columns = [[1.0, 2.0]; 5];
    let configurations = json!([{"node_features": columns}]);
    command_line.write("configs.json", &configurations.to_string());
    let given = command_line.text(&[&rank[..], &["--configs=configs.json"]].concat());
    says!(given, "5 nodes; node 0: 1 2");
}
