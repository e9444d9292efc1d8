//! Each kind of invalid artifact is rejected with its own reason, and the old version continues to serve.

use std::os::unix::fs::symlink;

use hlorank_proto::onnx::{GraphProto, ModelProto, StringStringEntryProto, TensorProto};
use hlorank_tests::onnx::{FLOAT32, FLOAT64, HeadInput, SUM, append, head, node, overwrite_row};
use hlorank_tests::prelude::*;
use sha2::{Digest as _, Sha256};

/// Makes the version in a folder invalid.
type Spoil = Box<dyn Fn(&Artifacts, &Path)>;

/// An invalid version.
struct Bad {
    what: &'static str,
    /// The reason of its rejection.
    reason: &'static str,
    spoil: Spoil,
}

impl Bad {
    fn new(
        what: &'static str,
        reason: &'static str,
        spoil: impl Fn(&Artifacts, &Path) + 'static,
    ) -> Self {
        Self {
            what,
            reason,
            spoil: Box::new(spoil),
        }
    }

    /// A field of the manifest has another value.
    fn manifest(
        what: &'static str,
        reason: &'static str,
        field: &'static str,
        value: impl Into<Value>,
    ) -> Self {
        let value = value.into();
        Self::new(what, reason, move |artifacts, folder| {
            artifacts.edit_manifest(folder, |manifest| manifest[field] = value.clone());
        })
    }

    /// A file has another content, of which the manifest has the digest.
    fn file(
        what: &'static str,
        reason: &'static str,
        file: &'static str,
        edit: impl Fn(&mut Vec<u8>) + 'static,
    ) -> Self {
        Self::new(what, reason, move |artifacts, folder| {
            artifacts.edit_file(folder, file, &edit);
        })
    }

    fn head(what: &'static str, reason: &'static str, head: &ModelProto) -> Self {
        let head = head.encode_to_vec();
        Self::file(what, reason, "head.onnx", move |bytes| {
            bytes.clone_from(&head);
        })
    }

    fn calibration(what: &'static str, text: String) -> Self {
        Self::new(what, "CALIBRATION_INVALID", move |artifacts, folder| {
            fs::write(folder.join("calibration.json"), &text).unwrap();
            artifacts.edit_file(folder, "calibration.json", |_| {});
        })
    }
}

/// Copies a valid file to outside the folder of the version.
fn outside(folder: &Path) -> PathBuf {
    let path = folder.parent().unwrap().join("outside.onnx");
    fs::copy(folder.join("encoder.onnx"), &path).unwrap();
    path
}

fn files() -> Vec<Bad> {
    let list = json!({"spread": 1.0, "columns": [1.0], "tau": 0.5});
    let lists = json!({"lists": vec![list; 8]}).to_string();
    vec![
        Bad::new("a missing file", "FILE_MISSING", |_, folder| {
            fs::remove_file(folder.join("encoder.onnx")).unwrap();
        }),
        Bad::manifest(
            "a file that is not listed",
            "FILE_UNLISTED",
            "files",
            json!({}),
        ),
        Bad::new("a wrong digest", "DIGEST_MISMATCH", |_, folder| {
            let path = folder.join("head.onnx");
            let mut bytes = fs::read(&path).unwrap();
            bytes[100] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        Bad::new(
            "a half-written folder",
            "MANIFEST_UNREADABLE",
            |_, folder| {
                let path = folder.join("manifest.json");
                let bytes = fs::read(&path).unwrap();
                fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
            },
        ),
        Bad::calibration("a calibration without lists", "{}".to_owned()),
        Bad::calibration("a calibration of another kind of configurations", lists),
        Bad::new(
            "a path that escapes",
            "FILE_OUTSIDE_FOLDER",
            |artifacts, folder| {
                let digest = Digest(Sha256::digest(fs::read(outside(folder)).unwrap()).into());
                artifacts.edit_manifest(folder, |manifest| {
                    manifest["files"]["../outside.onnx"] = digest.to_string().into();
                });
            },
        ),
        Bad::new("a link that escapes", "FILE_OUTSIDE_FOLDER", |_, folder| {
            let path = outside(folder);
            fs::remove_file(folder.join("encoder.onnx")).unwrap();
            symlink(path, folder.join("encoder.onnx")).unwrap();
        }),
    ]
}

fn manifests() -> Vec<Bad> {
    let targets = json!([{"hardware": "a board"}]);
    let digest = "00".repeat(32);
    vec![
        Bad::manifest(
            "a manifest of a newer format",
            "MANIFEST_NEWER",
            "schema",
            2,
        ),
        Bad::manifest(
            "a target without a compiler",
            "MANIFEST_INVALID",
            "targets",
            targets,
        ),
        Bad::manifest(
            "a bucket of no size",
            "MANIFEST_INVALID",
            "buckets",
            json!([0]),
        ),
        Bad::manifest("another place", "MISPLACED", "name", "another"),
        Bad::manifest(
            "other features",
            "FEATURE_DIGEST_MISMATCH",
            "feature_digest",
            digest,
        ),
        Bad::manifest("another task", "INTERFACE_NAMES", "task", "layout"),
    ]
}

/// Returns a head whose first operator is another one.
fn head_with_operator(operator: &str, domain: &str) -> ModelProto {
    let mut model = head(SUM);
    let first = &mut model.graph.as_mut().unwrap().node[0];
    operator.clone_into(&mut first.op_type);
    domain.clone_into(&mut first.domain);
    model
}

/// Returns a graph that has weights in another file.
fn external_weights() -> GraphProto {
    let location = StringStringEntryProto {
        key: "location".into(),
        value: "../../secret".into(),
    };
    let tensor = TensorProto {
        dims: vec![1],
        data_type: FLOAT32,
        name: "secret".to_owned(),
        external_data: vec![location],
        data_location: 1,
        ..TensorProto::default()
    };
    GraphProto {
        initializer: vec![tensor],
        ..GraphProto::default()
    }
}

fn onnx_models() -> Vec<Bad> {
    let [name, element, rank, configs] = [
        HeadInput {
            name: "total",
            ..SUM
        },
        HeadInput {
            element: FLOAT64,
            ..SUM
        },
        HeadInput { rank: 3, ..SUM },
        HeadInput { configs: 4, ..SUM },
    ]
    .map(head);
    let custom = head_with_operator("Frobnicate", "com.example");
    let unknown = head_with_operator("Frobnicate", "");
    vec![
        Bad::file(
            "a truncated model",
            "ONNX_MALFORMED",
            "encoder.onnx",
            |bytes| {
                bytes.truncate(bytes.len() / 2);
            },
        ),
        Bad::head("a wrong input name", "INTERFACE_NAMES", &name),
        Bad::head("a wrong type", "INTERFACE_TYPE", &element),
        Bad::head("a wrong rank", "INTERFACE_RANK", &rank),
        Bad::head(
            "a fixed number of configurations",
            "INTERFACE_SHAPE",
            &configs,
        ),
        Bad::file(
            "NaN weights",
            "WEIGHT_NOT_A_NUMBER",
            "segment.onnx",
            |bytes| {
                overwrite_row(bytes, "opcode.weight", 0, f32::NAN);
            },
        ),
        Bad::file(
            "weights in another file",
            "EXTERNAL_DATA",
            "encoder.onnx",
            |bytes| {
                append(bytes, external_weights());
            },
        ),
        Bad::head("a custom operator", "CUSTOM_OPERATOR", &custom),
        Bad::head(
            "an operator that does not exist",
            "SESSION_FAILED",
            &unknown,
        ),
    ]
}

fn answers() -> Vec<Bad> {
    let mut infinite = head(SUM);
    let nodes = &mut infinite.graph.as_mut().unwrap().node;
    nodes[0] = node("Sub", &["sum", "sum"], "zero", vec![]);
    nodes.insert(1, node("Reciprocal", &["zero"], "numbers", vec![]));
    let other = fs::read(fixture("registry/layout-whole-graph/1/golden.npz")).unwrap();
    vec![
        Bad::head(
            "other scores than the golden ones",
            "GOLDEN_MISMATCH",
            &head(SUM),
        ),
        Bad::head("infinite scores", "SCORE_NOT_FINITE", &infinite),
        Bad::file(
            "golden cases that are cut",
            "GOLDEN_UNREADABLE",
            "golden.npz",
            |bytes| {
                bytes.truncate(100);
            },
        ),
        Bad::file(
            "golden cases of another task",
            "TASK_MISMATCH",
            "golden.npz",
            move |bytes| {
                bytes.clone_from(&other);
            },
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_bad_artifact_is_rejected_with_its_reason_and_no_call_fails() {
    let subject = Subject::start().await;
    let artifacts = &subject.artifacts;
    let (before, load) = (subject.ask(MODEL, 12).await, subject.load().await);
    let kinds = [files(), manifests(), onnx_models(), answers()].into_iter();
    for (version, bad) in (100..).zip(kinds.flatten()) {
        artifacts.publish(MODEL, version, |folder| (bad.spoil)(artifacts, folder));
        let rejected = subject.rejection(version).await;
        let message = rejected.message;
        assert_eq!(rejected.reason, bad.reason, "{}: {message}", bad.what);
        assert!(!message.is_empty());
        // The next version is a copy of the newest, so this one is removed.
        subject.remove(version);
    }
    for ranking in rankings(load.finish().await) {
        assert_eq!(ranking.model, before.model);
    }
    assert_eq!(subject.ask(MODEL, 12).await.scores, before.scores);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_too_slow_is_rejected_also_after_a_restart() {
    // No version takes less than half the time of another.
    const FLAGS: [&str; 1] = ["--max-slowdown=0.5"];
    const FAST: &str = SMALL_TILE_MODEL;
    let subject = Subject::start_with(Artifacts::tiles(), &FLAGS).await;
    let serving = async |subject: &Subject| {
        let client = subject.server.client().await;
        client.get_model(FAST, None).await.unwrap().version
    };
    let first = serving(&subject).await;
    let (slow, version) = (fixture("models/tile-xla-cpu/5"), first + 1);
    let artifacts = &subject.artifacts;
    artifacts.publish(FAST, version, |folder| {
        for file in ["segment.onnx", "encoder.onnx", "head.onnx", "golden.npz"] {
            let bytes = fs::read(slow.join(file)).unwrap();
            artifacts.edit_file(folder, file, |old| *old = bytes);
        }
    });
    let server = &subject.server;
    let rejected = server.until(FAST, version, ModelState::Rejected).await;
    let rejection = rejected.rejection.unwrap();
    assert_eq!(rejection.reason, "TOO_SLOW", "{}", rejection.message);
    says!(rejection.message, format!("version {first}"));

    // Nothing serves yet when it is checked again.
    let subject = subject.restart(&FLAGS).await;
    assert_eq!(serving(&subject).await, first);
    let client = subject.server.client().await;
    let rejected = client.get_model(FAST, Some(version)).await.unwrap();
    assert_eq!(rejected.rejection.unwrap().reason, "TOO_SLOW");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_version_is_tried_again_once_its_files_are_mended() {
    let subject = Subject::start().await;
    let version = subject.first + 1;
    let folder = subject.artifacts.publish(MODEL, version, |folder| {
        fs::rename(folder.join("head.onnx"), folder.join("head.part")).unwrap();
    });
    assert_eq!(subject.rejection(version).await.reason, "FILE_MISSING");
    fs::rename(folder.join("head.part"), folder.join("head.onnx")).unwrap();
    subject.until(version, ModelState::Serving).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_a_manifest_is_no_version_yet() {
    let subject = Subject::start().await;
    let version = subject.first + 1;
    let folder = subject.artifacts.publish(MODEL, version, |folder| {
        fs::rename(folder.join("manifest.json"), folder.join("manifest.part")).unwrap();
    });
    subject.admin().await.reload().await.unwrap();
    assert_eq!(
        subject.states().await,
        [(subject.first, ModelState::Serving)]
    );
    fs::rename(folder.join("manifest.part"), folder.join("manifest.json")).unwrap();
    subject.until(version, ModelState::Serving).await;
}
