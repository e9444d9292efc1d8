//! `hlorank models`: what a server has loaded.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, rows};

#[tokio::test(flavor = "multi_thread")]
async fn models_are_listed_as_their_manifests_describe_them() {
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let report = CommandLine::new(&server).json(&["models"]);
    let mut defaults = Vec::new();
    for model in report["models"].as_array().unwrap() {
        let name = model["name"].as_str().unwrap();
        let folder = all_models().join(name).join(model["version"].to_string());
        let manifest = fs::read_to_string(folder.join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        let of_kind: &[&str] = match manifest["kind"].as_str() {
            // Features of a named set are not padded.
            Some("graph") if manifest["task"] == "feature-set" => {
                &["chunk_configs", "batch_dependent"]
            }
            Some("graph") => &["chunk_configs", "batch_dependent", "pad_value"],
            _ => &["embedding_size", "buckets", "pad_value"],
        };
        let of_all = [
            "task",
            "architecture",
            "kind",
            "licence",
            "feature_digest",
            "training_data_digest",
        ];
        for field in of_all.iter().chain(of_kind) {
            assert_eq!(model[field], manifest[field], "{field} of {name}");
        }
        assert_eq!(
            model["measured_quality"]["kendall_tau"].as_f64(),
            manifest["measured_quality"]["kendall_tau"].as_f64()
        );
        if model["default_for_task"] == true {
            defaults.push((model["task"].as_str().unwrap(), name));
        }
    }
    let expected = [
        ("fusion", "fusion-xla-cpu"),
        ("feature-set", "halide-adams2019"),
        ("layout", "layout-xla-cpu"),
        ("tile", TILE_MODEL),
        ("feature-set", "tvm-llvm-cpu"),
    ];
    assert_eq!(defaults, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_models_agrees_with_the_json_document() {
    let server = TestServer::start_with(&[&Artifacts::all().flag()]).await;
    let command_line = CommandLine::new(&server);
    let table = rows(&command_line.text(&["models"]), "name");
    let report = command_line.json(&["models"]);
    let models = report["models"].as_array().unwrap();
    assert_eq!(table.len(), models.len());
    assert!(models.iter().any(|model| model["kind"] == "graph"));
    for (cells, model) in table.iter().zip(models) {
        let text = |field: &str| model[field].as_str().unwrap().to_owned();
        let or_dash = |is_shown, text: &str| if is_shown { text } else { "-" }.to_owned();
        let is_whole_graph = model["kind"] == "graph";
        let expected = [
            text("name"),
            model["version"].to_string(),
            text("state"),
            or_dash(model["default_for_task"] == true, "yes"),
            text("task"),
            text("architecture"),
            or_dash(!is_whole_graph, &model["embedding_size"].to_string()),
            text("licence"),
        ];
        assert_eq!(cells[..8], expected);
        assert_eq!(model["chunk_configs"] != 0, is_whole_graph);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_tries_pins_and_takes_back_a_version() {
    let artifacts = Artifacts::copy();
    let server = TestServer::start_with(&[&artifacts.flag(), "--admin-listen=127.0.0.1:0"]).await;
    let command_line = CommandLine::new(&server);
    let client = server.client().await;
    let first = client.get_model(MODEL, None).await.unwrap().version;
    let (old, new) = (format!("{MODEL}@{first}"), format!("{MODEL}@{}", first + 1));
    // Pinned, because otherwise the new version serves as soon as it is loaded.
    command_line.text(&["models", "pin", &old]);
    artifacts.publish(MODEL, first + 1, |_| ());

    let states = |arguments: &[&str]| -> Vec<String> {
        let mut table = rows(&command_line.text(arguments), "name");
        table.retain(|cells| cells[0] == MODEL);
        table.into_iter().map(|cells| cells[2].clone()).collect()
    };
    let canary = states(&["models", "canary", &new, "--percent", "10"]);
    assert_eq!(canary, ["serving (pinned)", "serving (canary, 10 %)"]);
    assert_eq!(
        states(&["models", "pin", &new]),
        ["retained", "serving (pinned)"]
    );
    assert_eq!(
        states(&["models", "rollback", MODEL]),
        ["serving (pinned)", "retained"]
    );
    assert_eq!(states(&["models", "unpin", MODEL]), ["retained", "serving"]);

    artifacts.publish(MODEL, first + 2, |folder| {
        fs::remove_file(folder.join("head.onnx")).unwrap();
    });
    let text = command_line.text(&["models", "reload"]);
    says!(
        text,
        format!("{MODEL}@{} was rejected, FILE_MISSING:", first + 2)
    );

    says!(
        command_line.failure(2, &["models", "pin", MODEL]),
        "NAME@VERSION"
    );
}
