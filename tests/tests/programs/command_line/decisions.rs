//! `hlorank decisions` shows what everybody uses, and supersedes it; `hlorank xla-cache` copies it around jobs of XLA.

use hlorank_proto::v1::{
    DecideRequest, DecisionEvidence, DecisionKey, Proposal, decide_request::Step,
};
use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, rows};

const TARGET: &str = "compiler=1.2;device=a";

/// Proposes a value of 2 ms for a key.
async fn propose(client: &Client, namespace: &str, key: &[u8]) {
    let request = DecideRequest {
        key: Some(DecisionKey {
            namespace: namespace.to_owned(),
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
    let (_folder, server, client) = storing_server(&[]).await;
    let command_line = CommandLine::new(&server);
    let none = command_line.text(&["decisions", "list"]);
    says!(none, "keeps no such decisions");
    propose(&client, "tvm", b"gemm 1024").await;
    propose(&client, "tvm", &[0, 255]).await;

    let text = command_line.text(&["decisions", "list", "--target=device=a; compiler=1.2"]);
    says!(text, "gemm 1024", TARGET, "2.00 ms", "2 decisions.");
    assert_eq!(rows(&text, "namespace").len(), 2, "{text}");
    let other = command_line.text(&["decisions", "list", "--namespace=space"]);
    says!(other, "keeps no such decisions");

    command_line.write("value.json", "[64]");
    let subject = [
        "--namespace=tvm",
        "--key=hex:00ff",
        "--target=device=a;compiler=1.2",
    ];
    let supersede = |generation: &'static str| {
        let given = [generation, "--value=value.json"];
        [&["decisions", "supersede"][..], &subject, &given].concat()
    };
    says!(
        command_line.text(&supersede("--generation=1")),
        "Generation 2: [64]"
    );
    says!(
        command_line.failure(3, &supersede("--generation=3")),
        "generation 3",
        "the latest one is 2"
    );

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
    let export = ["decisions", "export", "--after=1", "--out=after.jsonl"];
    command_line.text(&export);
    let after = fs::read_to_string(command_line.path("after.jsonl")).unwrap();
    assert_eq!(after.lines().count(), 1);
}

/// Writes files as XLA does, by their paths.
fn write_cache(folder: &Path, files: &[(&str, &[u8])]) {
    for (path, content) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_use_the_same_results_of_xla() {
    let (_folder, server, _) = storing_server(&[]).await;
    let command_line = CommandLine::new(&server);
    let [first, second, third] = ["first", "second", "third"].map(|host| command_line.path(host));
    let run = |step: &'static str, host: &Path, target: &str| {
        let target = format!("--target={target}");
        let output = command_line
            .command(&["xla-cache", step, host.to_str().unwrap(), &target])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let [text, warnings] = [output.stdout, output.stderr].map(String::from_utf8);
        (text.unwrap(), warnings.unwrap())
    };
    let target = "device=H100;xla=0.12";
    let old = "iG7Wx0rJbYvA3oXk-_q9.textproto";
    let new = "sm_90/2/8f1e.pb";
    let text = b"version: 3 results { device: \"sm_9.0\" }";
    write_cache(
        &first,
        &[
            (old, text),
            (new, b"\x0a\x02\xff\xfe"),
            // What XLA still writes, what was torn, and what is not XLA's.
            ("tmp/unfinished.textproto", text),
            ("sm_90/torn.pb", b"\x0a\x09\xff"),
            ("notes.txt", text),
        ],
    );
    let (text_of, warnings) = run("push", &first, target);
    says!(text_of, "2 files proposed, 0 known");
    says!(warnings, "1 file skipped");

    // The second host has tuned one of them as well, and something of its own.
    let own = b"version: 3 results { device: \"sm_9.0\" backend: 1 }";
    write_cache(&second, &[(old, own), ("sm_90/77aa.pb", b"\x0a\x01b")]);
    let (text_of, warnings) = run("push", &second, target);
    says!(text_of, "1 file proposed, 0 known");
    says!(warnings, "1 file not as decided");
    let (text_of, warnings) = run("stage", &second, "xla=0.12; device=H100");
    says!(text_of, "1 file written, 1 known");
    says!(warnings, "1 file not as decided");
    assert_eq!(fs::read(second.join(old)).unwrap(), own);
    assert_eq!(fs::read(second.join(new)).unwrap(), b"\x0a\x02\xff\xfe");

    says!(run("stage", &third, target).0, "3 files written, 0 known");
    says!(run("stage", &third, target).0, "0 files written, 3 known");
    says!(run("push", &third, target).0, "0 files proposed, 3 known");
    assert_eq!(fs::read(third.join(old)).unwrap(), text);
    let written = fs::read_dir(&third).unwrap().count();
    assert_eq!(written, 2, "no temporary file is left");
    says!(
        run("stage", &third, "device=H100;xla=0.13").0,
        "0 files written"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_is_no_file_of_xla_is_not_staged() {
    let (_folder, server, client) = storing_server(&[]).await;
    let long = format!("{}.textproto", "a".repeat(246));
    let keys = [
        "../outside.textproto",
        "/tmp/outside.textproto",
        "a",
        "\0.textproto",
        &long,
    ];
    for key in keys {
        propose(&client, "xla", key.as_bytes()).await;
    }
    let command_line = CommandLine::new(&server);
    let target = format!("--target={TARGET}");
    let report = command_line.json(&["xla-cache", "stage", "cache", &target]);
    assert_eq!(
        (&report["new"], &report["unreadable"]),
        (&json!(0), &json!(5))
    );
    assert!(!command_line.path("outside.textproto").exists());
}
