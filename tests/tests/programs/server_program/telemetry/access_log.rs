//! Every call that has ended has a log line.

use hlorank_tests::prelude::*;

use super::calls::{KERNEL, MODEL, hex, is_access, putting, ranking, start, streamed};

fn fields<'a>(line: &'a Value, names: &[&str]) -> Vec<&'a Value> {
    names.iter().map(|name| &line["fields"][name]).collect()
}

#[tokio::test]
async fn a_line_tells_what_the_call_was_about() {
    let server = start(&[]);
    let mut cost_model = server.cost_model().await;
    let headers = [("x-request-id", "tune-1")];
    let ranked = cost_model
        .rank_configs(with_headers(ranking(KERNEL, 5), &headers))
        .await
        .unwrap()
        .into_inner();
    cost_model.rank_configs(ranking(KERNEL, 5)).await.unwrap();
    cost_model.put_graph(putting("no HLO")).await.unwrap_err();
    let messages = tokio_stream::iter(streamed(KERNEL, &[2, 3]));
    let mut answers = cost_model
        .rank_configs_stream(messages)
        .await
        .unwrap()
        .into_inner();
    while answers.message().await.unwrap().is_some() {}

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
    assert_eq!(
        (&first["fields"]["cached"], &second["fields"]["cached"]),
        (&false.into(), &true.into())
    );
    assert_eq!(second["fields"]["evaluated"], 0);
    let seconds = first["fields"]["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 60.0, "{seconds}");
    assert!(first["fields"]["request_bytes"].as_u64().unwrap() > KERNEL.len() as u64);
    assert!(first["fields"]["answer_bytes"].as_u64().unwrap() > 50);
    assert!(
        first["fields"]["peer"]
            .as_str()
            .unwrap()
            .starts_with("127.0.0.1:")
    );
    assert_eq!(first["span"]["request_id"], "tune-1");
    assert_eq!(first["span"]["trace_id"].as_str().unwrap().len(), 32);
    assert_eq!(
        (&first["level"], &first["target"]),
        (&"INFO".into(), &"access".into())
    );
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
        assert!(
            page.contains(&format!("`{field}`")),
            "{field} is not in the table of docs/logs-and-traces.md"
        );
    }
}

#[tokio::test]
async fn a_call_that_its_client_leaves_is_cancelled() {
    let server = start(&[]);
    let mut cost_model = server.cost_model().await;
    let left = tokio::time::timeout(
        Duration::from_millis(300),
        cost_model.rank_configs(ranking(KERNEL, 60_000)),
    );
    assert!(left.await.is_err(), "the call was over before it was left");
    let messages = tokio_stream::iter(streamed(KERNEL, &[60_000]));
    drop(cost_model.rank_configs_stream(messages).await.unwrap());
    let lines = server.lines(2, is_access).await;
    assert!(
        lines
            .iter()
            .all(|line| line["fields"]["code"] == "CANCELLED"),
        "{lines:?}"
    );
}
