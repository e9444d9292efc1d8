//! `hlorank decisions` shows what everybody uses, and supersedes it.

use hlorank_proto::v1::{
    DecideRequest, DecisionEvidence, DecisionKey, Proposal, decide_request::Step,
};
use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, rows};

const TARGET: &str = "compiler=1.2;device=a";

/// Proposes a value of 2 ms for a key.
async fn propose(client: &Client, key: &[u8]) {
    let request = DecideRequest {
        key: Some(DecisionKey {
            namespace: "tvm".to_owned(),
            key: key.to_vec().into(),
            target: TARGET.to_owned(),
        }),
        step: Some(Step::Propose(Proposal {
            value: "{\"tile\": 32}".into(),
            evidence: Some(DecisionEvidence {
                seconds: 0.002,
                runs: 5,
                ..DecisionEvidence::default()
            }),
            ..Proposal::default()
        })),
        ..DecideRequest::default()
    };
    client.decide(&request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_are_listed_shown_superseded_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start_with(&[&store_flag(folder.path())]).await;
    let command_line = CommandLine::new(&server);
    let none = command_line.text(&["decisions", "list"]);
    says!(none, "keeps no such decisions");
    let client = server.client().await;
    propose(&client, b"gemm 1024").await;
    propose(&client, &[0, 255]).await;

    let text = command_line.text(&["decisions", "list", "--target=device=a; compiler=1.2"]);
    says!(text, "gemm 1024", TARGET, "2.00 ms", "2 decisions.");
    assert_eq!(rows(&text, "namespace").len(), 2, "{text}");
    let other = command_line.text(&["decisions", "list", "--namespace=space"]);
    says!(other, "keeps no such decisions");

    let value = command_line.write("value.json", "[64]");
    let subject = [
        "--namespace=tvm",
        "--key=hex:00ff",
        "--target=device=a;compiler=1.2",
    ];
    let value = format!("--value={}", value.display());
    let supersede = |generation: &'static str| {
        let given = [generation, &*value];
        [&["decisions", "supersede"][..], &subject, &given].concat()
    };
    says!(
        command_line.text(&supersede("--generation=1")),
        "Generation 2: [64]"
    );
    let (code, message) = command_line.failure(&supersede("--generation=3"));
    assert_eq!(code, Some(3), "{message}");
    says!(message, "generation 3", "the latest one is 2");

    let show = [&["decisions", "show"][..], &subject].concat();
    let shown = command_line.json(&show);
    let shown = shown["decisions"].as_array().unwrap();
    let generations: Vec<&Value> = shown.iter().map(|each| &each["generation"]).collect();
    assert_eq!(generations, [2, 1]);
    assert_eq!(shown[0]["value"], "[64]");

    let lines = command_line.text(&["decisions", "export", "--all-generations"]);
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    let keys: Vec<&Value> = lines.iter().map(|line| &line["key"]).collect();
    assert_eq!(keys, ["gemm 1024", "hex:00ff", "hex:00ff"]);
    for (line, snapshot) in lines.iter().zip(1..) {
        assert_eq!(line["snapshot"], snapshot);
        assert!(line["decided_at"].as_u64().unwrap() > 0);
    }
    assert_eq!(
        (&lines[0]["seconds"], &lines[0]["runs"]),
        (&json!(0.002), &json!(5))
    );
    let out = command_line.write("decisions.jsonl", "");
    let out_flag = format!("--out={}", out.display());
    command_line.text(&["decisions", "export", "--after=1", &out_flag]);
    assert_eq!(fs::read_to_string(out).unwrap().lines().count(), 1);
}
