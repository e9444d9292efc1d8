//! Messages that claim more than they hold take only the memory of what they hold. This test has its own binary because
//! it measures its process.

use std::{
    process,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, future::ready, stream};
use hlorank_proto::v1::{
    DeltaLayoutConfigs, Graph, LayoutTable, PackedLayoutConfigs, PackedTileConfigs,
    RankConfigsRequest, Task, config_batch::Configs,
};
use hlorank_tests::{
    TestServer, graph_of_module, graph_of_text, kernel_graph,
    module::{operation, single, two_dots},
    rank_request, resident_bytes,
};
use http_body_util::StreamBody;
use prost::{Message as _, bytes::Bytes};
use tokio::task::JoinHandle;
use tonic::{Status, body::Body, transport::Channel};
use tonic_types::StatusExt;
use tower::ServiceExt as _;

/// Configurable nodes of the graph. With it, the maximum number of layouts of a batch fills `--max-config-entries`.
const SLOTS: usize = 134;
const CONFIGS: u32 = 500_000;

/// Allowance beside the messages for the allocator and other threads. The claims are far larger.
const SLACK_BYTES: usize = 24 << 20;

/// Maximum time of a rejection without computation, generous for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn layout_graph(module: Vec<u8>) -> Graph {
    Graph {
        task: Task::Layout.into(),
        ..graph_of_module(module)
    }
}

fn wide_graph() -> Graph {
    let dots = (2..2 + i64::try_from(SLOTS).unwrap()).map(|id| operation("dot", id, &[1, 1]));
    layout_graph(single(
        [operation("parameter", 1, &[])]
            .into_iter()
            .chain(dots)
            .collect(),
    ))
}

fn table() -> LayoutTable {
    LayoutTable {
        entries: vec![0; 3],
    }
}

fn layouts(config_count: u32, tables: usize) -> Configs {
    let tables = vec![table(); tables];
    Configs::PackedLayoutConfigs(PackedLayoutConfigs {
        config_count,
        tables,
        indices: vec![0; 7].into(),
    })
}

fn tiles(config_count: u32, bound_count: u32) -> Configs {
    Configs::PackedTileConfigs(PackedTileConfigs {
        config_count,
        kernel_bound_count: bound_count,
        output_bound_count: bound_count,
        input_bound_count: bound_count,
        bounds: vec![0; 8].into(),
    })
}

/// Returns the maximum number of configurations of a batch with change counts but without changes.
fn changes() -> Configs {
    Configs::DeltaLayoutConfigs(DeltaLayoutConfigs {
        tables: vec![table(); SLOTS],
        base: vec![0; SLOTS],
        change_counts: vec![u32::MAX; CONFIGS as usize],
        ..DeltaLayoutConfigs::default()
    })
}

/// Returns requests with the reasons of their rejections.
fn claims() -> Vec<(RankConfigsRequest, &'static str)> {
    let request = |graph: Graph, configs: Configs, reason| (rank_request(graph, configs), reason);
    let kernel = || kernel_graph(graph_of_module(two_dots()));
    let nested = |unit: &str| {
        graph_of_text(format!(
            "HloModule m\n\nENTRY e {{\n  n = {}",
            unit.repeat(1 << 20)
        ))
    };
    vec![
        request(kernel(), tiles(u32::MAX, 64), "TOO_MANY_CONFIGS"),
        request(kernel(), tiles(CONFIGS, 64), "WRONG_COUNT"),
        request(kernel(), tiles(1, u32::MAX), "LIST_TOO_LONG"),
        request(wide_graph(), layouts(u32::MAX, SLOTS), "TOO_MANY_CONFIGS"),
        request(wide_graph(), layouts(CONFIGS, SLOTS), "WRONG_COUNT"),
        request(wide_graph(), layouts(CONFIGS, SLOTS * 1000), "WRONG_COUNT"),
        request(wide_graph(), changes(), "WRONG_COUNT"),
        request(nested("("), layouts(1, 1), "HLO_MALFORMED"),
        request(
            nested("f32[] call(), to_apply={ n = "),
            layouts(1, 1),
            "NESTING_TOO_DEEP",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_claimed_takes_no_memory() {
    let server = TestServer::start().await;
    requests_take_what_they_hold(&server).await;
    lengths_of_messages_take_nothing(&server).await;
}

async fn requests_take_what_they_hold(server: &TestServer) {
    let mut service = server
        .cost_model()
        .await
        .max_encoding_message_size(usize::MAX);
    let sound = rank_request(layout_graph(two_dots()), layouts(1, 2));
    // Runs the models once, so that their buffers are allocated.
    let _ = service.rank_configs(sound).await;
    for (request, reason) in claims() {
        let (bytes, before) = (request.encoded_len(), resident_bytes(process::id()));
        let started = Instant::now();
        let call = tokio::spawn({
            let mut service = service.clone();
            async move { service.rank_configs(request).await.map(drop) }
        });
        let mut most = before;
        while !call.is_finished() {
            most = most.max(resident_bytes(process::id()));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let took = started.elapsed();
        println!(
            "{reason}: a message of {bytes} bytes took {} KiB and {took:?}",
            (most - before) >> 10
        );
        let refused = call.await.unwrap().unwrap_err();
        assert_eq!(
            refused.get_details_error_info().unwrap().reason,
            reason,
            "{refused}"
        );
        assert!(took < PATIENCE, "{reason}: {took:?}");
        // Room for the message as built, encoded, received and decoded.
        assert!(
            most < before + 8 * bytes + SLACK_BYTES,
            "{reason}: from {before} to {most} bytes"
        );
    }
}

/// Starts a call whose message claims a length but stops after its beginning.
fn begun(channel: Channel, claimed: u32) -> JoinHandle<Option<Status>> {
    let mut message = vec![0];
    message.extend(claimed.to_be_bytes());
    message.extend([0; 100]);
    let began = stream::once(ready(Ok::<_, Status>(http_body::Frame::data(Bytes::from(
        message,
    )))));
    let request = http::Request::post("/hlorank.v1.CostModelService/RankConfigs")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(StreamBody::new(began.chain(stream::pending()))))
        .unwrap();
    tokio::spawn(async move {
        Status::from_header_map(channel.oneshot(request).await.unwrap().headers())
    })
}

async fn lengths_of_messages_take_nothing(server: &TestServer) {
    let channel = server.channel().await;
    let refused = begun(channel.clone(), u32::MAX).await.unwrap().unwrap();
    assert_eq!(
        refused.get_details_error_info().unwrap().reason,
        "MESSAGE_TOO_LARGE",
        "{refused}"
    );
    let before = resident_bytes(process::id());
    // Each claims the maximum length of a message.
    let calls: Vec<_> = (0..64).map(|_| begun(channel.clone(), 64 << 20)).collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let most = resident_bytes(process::id());
    println!(
        "64 claims of 64 MiB took {} KiB",
        most.saturating_sub(before) >> 10
    );
    assert!(
        calls.iter().all(|call| !call.is_finished()),
        "the server waits for what was claimed"
    );
    assert!(most < before + SLACK_BYTES, "from {before} to {most} bytes");
    calls.iter().for_each(JoinHandle::abort);
}
