//! A message takes at most four times its size while it is received and read, whatever it consists of. This test has its
//! own binary because its messages are large.

use hlorank_proto::v1::{
    LayoutConfig, LayoutConfigs, NodeLayout, TensorLayout, TileConfig, TileConfigs,
    config_batch::Configs,
};
use hlorank_tests::{
    ServerProcess, graph_of_module, kernel_graph, module::two_dots, patient, peak_bytes,
    rank_request, reset_peak, resident_bytes,
};
use tonic::Status;
use tonic_types::StatusExt as _;

/// Size of a message.
const BYTES: usize = 24 << 20;

/// Allowance for the transport's buffers and the allocator.
const SLACK_BYTES: usize = 16 << 20;

/// Limits that allow every message of this test.
const LIMITS: [&str; 2] = ["--max-configs=50000000", "--max-config-entries=50000000"];

/// Returns as many tiles as fill a message, and one that is refused.
fn tiles(tile: TileConfig) -> Configs {
    let refused = TileConfig {
        output_bounds: vec![1; 65],
        ..TileConfig::default()
    };
    let one = TileConfigs {
        configs: vec![tile.clone()],
    };
    let mut configs = vec![tile; BYTES / prost::Message::encoded_len(&one)];
    configs.push(refused);
    Configs::TileConfigs(TileConfigs { configs })
}

/// Returns as many layouts as fill a message, and one that is refused.
fn layouts(layout: impl Fn(usize) -> LayoutConfig) -> Configs {
    let nodes = vec![NodeLayout {
        node: 3,
        tensors: vec![TensorLayout::default(); 4],
    }];
    let one = LayoutConfigs {
        configs: vec![layout(usize::MAX)],
    };
    let count = BYTES / prost::Message::encoded_len(&one);
    let mut configs: Vec<LayoutConfig> = (0..count).map(layout).collect();
    configs.push(LayoutConfig { nodes });
    Configs::LayoutConfigs(LayoutConfigs { configs })
}

/// Returns a layout of two nodes, of which there are thousands of different ones.
fn layout(number: usize) -> LayoutConfig {
    let digit = |place: u32| i32::try_from(number / 6_usize.pow(place) % 6).unwrap();
    let tensors = vec![TensorLayout {
        minor_to_major: (0..5).map(digit).collect(),
    }];
    let node = |node| NodeLayout {
        node,
        tensors: tensors.clone(),
    };
    LayoutConfig {
        nodes: vec![node(3), node(4)],
    }
}

fn shapes() -> Vec<(&'static str, Configs)> {
    let list = |bounds| vec![1; bounds];
    let tile = |bounds| TileConfig {
        kernel_bounds: list(bounds),
        output_bounds: list(bounds),
        input_bounds: list(bounds),
    };
    vec![
        ("tiles without bounds", tiles(TileConfig::default())),
        ("tiles of four bounds of each kind", tiles(tile(4))),
        ("tiles of 64 bounds of each kind", tiles(tile(64))),
        (
            "layouts without nodes",
            layouts(|_| LayoutConfig::default()),
        ),
        ("layouts of two nodes", layouts(layout)),
    ]
}

async fn refused(server: &ServerProcess, configs: Configs) -> Status {
    let graph = graph_of_module(two_dots());
    let graph = if matches!(configs, Configs::TileConfigs(_)) {
        kernel_graph(graph)
    } else {
        graph
    };
    patient(&server.endpoint)
        .rank_configs(rank_request(graph, configs))
        .await
        .unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_takes_at_most_four_times_its_size() {
    for (name, configs) in shapes() {
        let server = ServerProcess::start(&LIMITS);
        // The graph is cached, and buffers of small calls are there.
        let small = Configs::TileConfigs(TileConfigs::default());
        refused(&server, small).await;
        reset_peak(server.id());
        let before = resident_bytes(server.id());
        let refusal = refused(&server, configs).await;
        let grown = peak_bytes(server.id()).saturating_sub(before);
        println!(
            "{name}: {} MiB for a message of {} MiB",
            grown >> 20,
            BYTES >> 20
        );
        let reason = refusal.get_details_error_info().unwrap().reason;
        assert_eq!(reason, "LIST_TOO_LONG", "{name}: {refusal}");
        assert!(grown <= 4 * BYTES + SLACK_BYTES, "{name}: {grown} bytes");
    }
}
