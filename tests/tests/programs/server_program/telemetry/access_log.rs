//! Every call that has ended has a log line.

use hlorank_tests::prelude::*;

use super::calls::{KERNEL, MODEL, hex, putting, ranking, start, stream, streamed};

fn fields<'a>(line: &'a Value, names: &[&str]) -> Vec<&'a Value> {
    names.iter().map(|name| &line["fields"][name]).collect()
}

#[tokio::test]
async fn a_line_tells_what_the_call_was_about() {
    let server = start(&[]);
    let mut cost_model = server.cost_model().await;
    let ranked = server.rank(ranking(KERNEL, 5)).await.unwrap();
    server.rank(ranking(KERNEL, 5)).await.unwrap();
    cost_model.put_graph(putting("no HLO")).await.unwrap_err();
    stream(&mut cost_model, KERNEL, &[2, 3]).await.unwrap();

    let lines = server.lines(4, is_access).await;
    let [first, second, refused, streamed] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert_eq!(
        fields(first, &["method", "code", "model"]),
        ["RankConfigs", "OK", MODEL]
    );
    assert_eq!(first["fields"]["version"], ranked.model.unwrap().version);
    assert_eq!(first["fields"]["graph"], hex(&ranked.graph_hash));
    assert_eq!(
        fields(first, &["nodes", "configs", "rows", "evaluated", "batches"]),
        [2, 5, 5, 5, 1]
    );
    assert_eq!(first["fields"]["cached"], false);
    assert_eq!(second["fields"]["cached"], true);
    assert_eq!(second["fields"]["evaluated"], 0);
    let seconds = first["fields"]["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 60.0, "{seconds}");
    assert!(first["fields"]["request_bytes"].as_u64().unwrap() > KERNEL.len() as u64);
    assert!(first["fields"]["answer_bytes"].as_u64().unwrap() > 50);
    let peer = first["fields"]["peer"].as_str().unwrap();
    assert!(peer.starts_with("127.0.0.1:"), "{peer}");
    assert_eq!(first["span"]["trace_id"].as_str().unwrap().len(), 32);
    assert_eq!(first["level"], "INFO");
    assert!(first["timestamp"].is_string());

    assert_eq!(
        fields(refused, &["method", "code", "reason"]),
        ["PutGraph", "INVALID_ARGUMENT", "HLO_MALFORMED"]
    );
    assert!(refused["fields"].get("model").is_none(), "{refused}");
    assert_eq!(
        fields(streamed, &["method", "code"]),
        ["RankConfigsStream", "OK"]
    );
    assert_eq!(fields(streamed, &["configs", "batches"]), [5, 2]);

    let page = fs::read_to_string(repository("docs/logs-and-traces.md")).unwrap();
    let logged = lines
        .iter()
        .flat_map(|line| line["fields"].as_object().unwrap().keys());
    for field in logged.filter(|field| *field != "message") {
        says!(page, format!("`{field}`"));
    }
}

#[tokio::test]
async fn a_call_that_its_client_leaves_is_cancelled() {
    let server = start(&[]);
    let mut cost_model = server.cost_model().await;
    let call = cost_model.rank_configs(ranking(KERNEL, 60_000));
    let left = timeout(Duration::from_millis(300), call).await;
    assert!(left.is_err(), "the call was over before it was left");
    let messages = tokio_stream::iter(streamed(KERNEL, &[60_000]));
    drop(cost_model.rank_configs_stream(messages).await.unwrap());
    for line in server.lines(2, is_access).await {
        assert_eq!(line["fields"]["code"], "CANCELLED", "{line}");
    }
}
