//! Each kind of invalid artifact is rejected with its own reason, and the old version continues to serve.

use std::os::unix::fs::symlink;

use hlorank_proto::onnx::{GraphProto, StringStringEntryProto, TensorProto};
use hlorank_tests::onnx::{FLOAT32, FLOAT64, HeadInput, SUM, append, head, node, overwrite_row};
use hlorank_tests::prelude::*;
use sha2::{Digest as _, Sha256};

/// An invalid version, and the reason of its rejection.
type Bad = (&'static str, &'static str, Box<dyn Fn(&Artifacts, &Path)>);

fn bad(
    what: &'static str,
    reason: &'static str,
    spoil: impl Fn(&Artifacts, &Path) + 'static,
) -> Bad {
    (what, reason, Box::new(spoil))
}

/// Returns a case with another head.
fn with_head(input: HeadInput<'static>) -> impl Fn(&Artifacts, &Path) {
    move |artifacts, folder| {
        artifacts.edit_file(folder, "head.onnx", |bytes| {
            *bytes = head(input).encode_to_vec();
        });
    }
}

/// Returns a case with a head that has another first operator.
fn with_operator(operator: &'static str, domain: &'static str) -> impl Fn(&Artifacts, &Path) {
    move |artifacts, folder| {
        let mut model = head(SUM);
        let first = &mut model.graph.as_mut().unwrap().node[0];
        (first.op_type, first.domain) = (operator.to_owned(), domain.to_owned());
        artifacts.edit_file(folder, "head.onnx", |bytes| *bytes = model.encode_to_vec());
    }
}

fn with_manifest(field: &'static str, value: serde_json::Value) -> impl Fn(&Artifacts, &Path) {
    move |artifacts, folder| {
        artifacts.edit_manifest(folder, |manifest| manifest[field] = value.clone());
    }
}

/// Copies a valid file to outside the folder of the version.
fn outside(folder: &Path) -> (PathBuf, String) {
    let path = folder.parent().unwrap().join("outside.onnx");
    fs::copy(folder.join("encoder.onnx"), &path).unwrap();
    let digest = Digest(Sha256::digest(fs::read(&path).unwrap()).into());
    (path, digest.to_string())
}

fn files() -> Vec<Bad> {
    vec![
        bad("a missing file", "FILE_MISSING", |_, folder| {
            fs::remove_file(folder.join("encoder.onnx")).unwrap();
        }),
        bad(
            "a file that is not listed",
            "FILE_UNLISTED",
            with_manifest("files", serde_json::json!({})),
        ),
        bad("a wrong digest", "DIGEST_MISMATCH", |_, folder| {
            let path = folder.join("head.onnx");
            let mut bytes = fs::read(&path).unwrap();
            bytes[100] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        bad(
            "a half-written folder",
            "MANIFEST_UNREADABLE",
            |_, folder| {
                let path = folder.join("manifest.json");
                let bytes = fs::read(&path).unwrap();
                fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
            },
        ),
        bad(
            "a calibration without lists",
            "CALIBRATION_INVALID",
            |artifacts, folder| {
                fs::write(folder.join("calibration.json"), "{}").unwrap();
                artifacts.edit_file(folder, "calibration.json", |_| {});
            },
        ),
        bad(
            "a calibration of another kind of configurations",
            "CALIBRATION_INVALID",
            |artifacts, folder| {
                let list = serde_json::json!({"spread": 1.0, "columns": [1.0], "tau": 0.5});
                let lists = serde_json::json!({"lists": vec![list; 8]}).to_string();
                fs::write(folder.join("calibration.json"), lists).unwrap();
                artifacts.edit_file(folder, "calibration.json", |_| {});
            },
        ),
        bad(
            "a path that escapes",
            "FILE_OUTSIDE_FOLDER",
            |artifacts, folder| {
                let (_, digest) = outside(folder);
                artifacts.edit_manifest(folder, |manifest| {
                    manifest["files"]["../outside.onnx"] = digest.into();
                });
            },
        ),
        bad("a link that escapes", "FILE_OUTSIDE_FOLDER", |_, folder| {
            let (path, _) = outside(folder);
            fs::remove_file(folder.join("encoder.onnx")).unwrap();
            symlink(path, folder.join("encoder.onnx")).unwrap();
        }),
    ]
}

fn manifests() -> Vec<Bad> {
    vec![
        bad(
            "a manifest of a newer format",
            "MANIFEST_NEWER",
            with_manifest("schema", 2.into()),
        ),
        bad(
            "a target without a compiler",
            "MANIFEST_INVALID",
            with_manifest("targets", serde_json::json!([{"hardware": "a board"}])),
        ),
        bad(
            "a bucket of no size",
            "MANIFEST_INVALID",
            with_manifest("buckets", serde_json::json!([0])),
        ),
        bad(
            "another place",
            "MISPLACED",
            with_manifest("name", "another".into()),
        ),
        bad(
            "another featurization",
            "FEATURE_DIGEST_MISMATCH",
            with_manifest("feature_digest", "00".repeat(32).into()),
        ),
        bad(
            "another task",
            "INTERFACE_NAMES",
            with_manifest("task", "layout".into()),
        ),
    ]
}

fn onnx_models() -> Vec<Bad> {
    vec![
        bad(
            "a truncated model",
            "ONNX_MALFORMED",
            |artifacts, folder| {
                artifacts.edit_file(folder, "encoder.onnx", |bytes| {
                    bytes.truncate(bytes.len() / 2);
                });
            },
        ),
        bad(
            "a wrong input name",
            "INTERFACE_NAMES",
            with_head(HeadInput {
                name: "total",
                ..SUM
            }),
        ),
        bad(
            "a wrong type",
            "INTERFACE_TYPE",
            with_head(HeadInput {
                element: FLOAT64,
                ..SUM
            }),
        ),
        bad(
            "a wrong rank",
            "INTERFACE_RANK",
            with_head(HeadInput { rank: 3, ..SUM }),
        ),
        bad(
            "a fixed number of configurations",
            "INTERFACE_SHAPE",
            with_head(HeadInput { configs: 4, ..SUM }),
        ),
        bad("NaN weights", "WEIGHT_NOT_A_NUMBER", |artifacts, folder| {
            artifacts.edit_file(folder, "segment.onnx", |bytes| {
                overwrite_row(bytes, "opcode.weight", 0, f32::NAN);
            });
        }),
        bad(
            "weights in another file",
            "EXTERNAL_DATA",
            |artifacts, folder| {
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
                artifacts.edit_file(folder, "encoder.onnx", |bytes| {
                    append(
                        bytes,
                        GraphProto {
                            initializer: vec![tensor],
                            ..GraphProto::default()
                        },
                    );
                });
            },
        ),
        bad(
            "a custom operator",
            "CUSTOM_OPERATOR",
            with_operator("Frobnicate", "com.example"),
        ),
        bad(
            "an operator that does not exist",
            "SESSION_FAILED",
            with_operator("Frobnicate", ""),
        ),
    ]
}

fn answers() -> Vec<Bad> {
    vec![
        bad(
            "other scores than the golden ones",
            "GOLDEN_MISMATCH",
            with_head(SUM),
        ),
        bad(
            "infinite scores",
            "SCORE_NOT_FINITE",
            |artifacts, folder| {
                let mut model = head(SUM);
                let graph = model.graph.as_mut().unwrap();
                graph.node[0] = node("Sub", &["sum", "sum"], "zero", vec![]);
                graph
                    .node
                    .insert(1, node("Reciprocal", &["zero"], "numbers", vec![]));
                artifacts.edit_file(folder, "head.onnx", |bytes| *bytes = model.encode_to_vec());
            },
        ),
        bad(
            "golden cases that are cut",
            "GOLDEN_UNREADABLE",
            |artifacts, folder| {
                artifacts.edit_file(folder, "golden.npz", |bytes| bytes.truncate(100));
            },
        ),
        bad(
            "the golden cases of the other task",
            "TASK_MISMATCH",
            |artifacts, folder| {
                let other = fixture("registry/layout-whole-graph/1/golden.npz");
                artifacts.edit_file(folder, "golden.npz", |bytes| {
                    *bytes = fs::read(other).unwrap();
                });
            },
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_bad_artifact_is_rejected_with_its_reason_and_no_call_fails() {
    let subject = Subject::start().await;
    let (before, load) = (subject.ask(MODEL, 12).await, subject.load().await);
    let kinds = [files(), manifests(), onnx_models(), answers()]
        .into_iter()
        .flatten();
    for (version, (what, reason, spoil)) in (100..).zip(kinds) {
        subject
            .artifacts
            .publish(MODEL, version, |folder| spoil(&subject.artifacts, folder));
        let rejected = subject
            .server
            .until(MODEL, version, ModelState::Rejected)
            .await
            .rejection
            .unwrap();
        assert_eq!(rejected.reason, reason, "{what}: {}", rejected.message);
        assert!(!rejected.message.is_empty());
        // The next version is a copy of the newest, so this one is removed.
        fs::remove_dir_all(
            subject
                .artifacts
                .folder()
                .join(MODEL)
                .join(version.to_string()),
        )
        .unwrap();
    }
    for ranking in rankings(load.finish().await) {
        assert_eq!(ranking.model, before.model);
    }
    assert_eq!(subject.ask(MODEL, 12).await.scores, before.scores);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_too_slow_is_rejected() {
    // No version takes less than half the time of another.
    const FAST: &str = SMALL_TILE_MODEL;
    let subject = Subject::start_with(Artifacts::tiles(), &["--max-slowdown=0.5"]).await;
    let serving = subject
        .server
        .client()
        .await
        .get_model(FAST, None)
        .await
        .unwrap()
        .version;
    let (slow, version) = (fixture("models/tile-xla-cpu/5"), serving + 1);
    subject.artifacts.publish(FAST, version, |folder| {
        for file in ["segment.onnx", "encoder.onnx", "head.onnx", "golden.npz"] {
            let bytes = fs::read(slow.join(file)).unwrap();
            subject
                .artifacts
                .edit_file(folder, file, |old| *old = bytes);
        }
    });
    let rejected = subject
        .server
        .until(FAST, version, ModelState::Rejected)
        .await
        .rejection
        .unwrap();
    assert_eq!(rejected.reason, "TOO_SLOW", "{}", rejected.message);
    says!(rejected.message, format!("version {serving}"));

    // A restart, when nothing serves yet, has the same results.
    let Subject {
        artifacts, server, ..
    } = subject;
    server.stop().await;
    let subject = Subject::start_with(artifacts, &["--max-slowdown=0.5"]).await;
    let client = subject.server.client().await;
    assert_eq!(client.get_model(FAST, None).await.unwrap().version, serving);
    let rejected = client
        .get_model(FAST, Some(version))
        .await
        .unwrap()
        .rejection
        .unwrap();
    assert_eq!(rejected.reason, "TOO_SLOW", "{}", rejected.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_version_is_tried_again_once_its_files_are_mended() {
    let subject = Subject::start().await;
    let version = subject.first + 1;
    let folder = subject.artifacts.publish(MODEL, version, |folder| {
        fs::rename(folder.join("head.onnx"), folder.join("head.part")).unwrap();
    });
    let rejected = subject
        .server
        .until(MODEL, version, ModelState::Rejected)
        .await
        .rejection
        .unwrap();
    assert_eq!(rejected.reason, "FILE_MISSING");
    fs::rename(folder.join("head.part"), folder.join("head.onnx")).unwrap();
    subject
        .server
        .until(MODEL, version, ModelState::Serving)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_a_manifest_is_no_version_yet() {
    let subject = Subject::start().await;
    let version = subject.first + 1;
    let folder = subject.artifacts.publish(MODEL, version, |folder| {
        fs::rename(folder.join("manifest.json"), folder.join("manifest.part")).unwrap();
    });
    subject.server.admin().await.reload().await.unwrap();
    assert_eq!(
        subject.states().await,
        [(subject.first, ModelState::Serving)]
    );
    fs::rename(folder.join("manifest.part"), folder.join("manifest.json")).unwrap();
    subject
        .server
        .until(MODEL, version, ModelState::Serving)
        .await;
}
