//! `hlorank models`: what a server has loaded.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, rows};

/// Returns the manifest that a model was loaded from.
fn manifest(model: &Value) -> Value {
    let versions = all_models().join(model["name"].as_str().unwrap());
    let folder = versions.join(model["version"].to_string());
    let text = fs::read_to_string(folder.join("manifest.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_models_are_listed() {
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let report = CommandLine::new(&server).json(&["models"]);
    let defaults = report["models"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|model| model["default_for_task"] == true);
    let defaults: Vec<(&str, &str)> = defaults
        .map(|model| {
            (
                model["task"].as_str().unwrap(),
                model["name"].as_str().unwrap(),
            )
        })
        .collect();
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
async fn a_model_is_listed_as_its_manifest_describes_it() {
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    for model in CommandLine::new(&server).json(&["models"])["models"]
        .as_array()
        .unwrap()
    {
        let manifest = manifest(model);
        let of_kind: &[&str] = match manifest["kind"].as_str() {
            // Features of a named set are not padded.
            Some("graph") if manifest["task"] == "feature-set" => {
                &["chunk_configs", "batch_dependent"]
            }
            Some("graph") => &["chunk_configs", "batch_dependent", "pad_value"],
            _ => &["embedding_size", "buckets", "pad_value"],
        };
        for field in ["task", "architecture", "kind", "licence"]
            .iter()
            .chain(of_kind)
        {
            assert_eq!(model[field], manifest[field], "{field}");
        }
        for digest in ["feature_digest", "training_data_digest"] {
            assert_eq!(model[digest], manifest[digest]);
        }
        assert_eq!(
            model["measured_quality"]["kendall_tau"].as_f64(),
            manifest["measured_quality"]["kendall_tau"].as_f64()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_models_agrees_with_the_json_document() {
    let server = TestServer::start_with(&[&Artifacts::all().flag()]).await;
    let command_line = CommandLine::new(&server);
    let (table, report) = (
        rows(&command_line.text(&["models"]), "name"),
        command_line.json(&["models"]),
    );
    let models = report["models"].as_array().unwrap();
    assert_eq!(table.len(), models.len());
    assert!(models.iter().any(|model| model["kind"] == "graph"));
    for (cells, model) in table.iter().zip(models) {
        let yes = |field: &str| if model[field] == true { "yes" } else { "-" }.to_owned();
        let text = |field: &str| model[field].as_str().unwrap().to_owned();
        let expected = [
            text("name"),
            model["version"].to_string(),
            text("state"),
            yes("default_for_task"),
        ];
        assert_eq!(cells[..4], expected);
        assert_eq!(cells[4..6], [text("task"), text("architecture")]);
        let whole_graph = model["kind"] == "graph";
        let size = if whole_graph {
            "-".to_owned()
        } else {
            model["embedding_size"].to_string()
        };
        assert_eq!(cells[6..8], [size, text("licence")]);
        assert_eq!(model["chunk_configs"] != 0, whole_graph);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_tries_pins_and_takes_back_a_version() {
    const MODEL: &str = TILE_MODEL;
    let artifacts = Artifacts::copy();
    let server = TestServer::start_with(&[&artifacts.flag(), "--admin-listen=127.0.0.1:0"]).await;
    let command_line = CommandLine::new(&server);
    let first = server
        .client()
        .await
        .get_model(MODEL, None)
        .await
        .unwrap()
        .version;
    let (old, new) = (format!("{MODEL}@{first}"), format!("{MODEL}@{}", first + 1));
    // Pinned, because otherwise the new version serves as soon as it is loaded.
    command_line.text(&["models", "pin", &old]);
    artifacts.publish(MODEL, first + 1, |_| ());

    let states = |arguments: &[&str]| -> Vec<String> {
        let table = rows(&command_line.text(arguments), "name");
        table
            .into_iter()
            .filter(|cells| cells[0] == MODEL)
            .map(|cells| cells[2].clone())
            .collect()
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

    let (code, message) = command_line.failure(&["models", "pin", MODEL]);
    assert!(
        code == Some(2) && message.contains("NAME@VERSION"),
        "{message}"
    );
    for (name, reason) in [
        ("another", "MODEL_NOT_FOUND"),
        ("layout-xla-cpu", "NO_OLDER_VERSION"),
    ] {
        let (code, message) = command_line.failure(&["models", "rollback", name]);
        assert!(code == Some(3) && message.contains(reason), "{message}");
    }
}
