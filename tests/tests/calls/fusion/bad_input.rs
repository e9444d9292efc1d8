use hlorank_proto::v1::{
    DeltaFusionConfigs, FusionConfig, FusionConfigs, PackedFusionConfigs, Task,
};
use hlorank_tests::prelude::*;

/// Two slots, 1 and 2: a fusible chain whose end is the result.
const CHAIN: &str = "p = f32[8,4] parameter(0)
 n = f32[8,4] negate(p)
 e = f32[8,4] exponential(n)
 ROOT t = f32[8,4] tanh(e)";

fn text(entry: &str) -> Graph {
    let text = format!("HloModule m\nENTRY e {{\n {entry}\n}}\n");
    Graph {
        task: Task::Fusion.into(),
        ..graph_of_text(text)
    }
}

fn packed(config_count: u32, fused: &[u8]) -> Configs {
    Configs::PackedFusionConfigs(PackedFusionConfigs {
        config_count,
        fused: fused.to_vec().into(),
    })
}

fn readable(fused_nodes: &[u32]) -> Configs {
    let configs = vec![FusionConfig {
        fused_nodes: fused_nodes.to_vec(),
    }];
    Configs::FusionConfigs(FusionConfigs { configs })
}

fn delta(base: &[u8], change_counts: &[u32], change_slots: &[u32]) -> Configs {
    Configs::DeltaFusionConfigs(DeltaFusionConfigs {
        base: base.to_vec().into(),
        change_counts: change_counts.to_vec(),
        change_slots: change_slots.to_vec(),
    })
}

fn sound() -> RankConfigsRequest {
    rank_request(text(CHAIN), readable(&[2]))
}

#[tokio::test]
async fn wrong_bits_are_refused() {
    let server = TestServer::start().await;
    let cases = vec![
        (
            packed(2, &[1]),
            invalid("WRONG_COUNT", &["1 entries", "expected 2"]),
        ),
        (
            packed(1, &[0b100]),
            invalid("VALUE_OUT_OF_RANGE", &["configuration 0", "2 slots"]),
        ),
        (packed(0, &[]), invalid("CONFIGS_EMPTY", &["at least one"])),
        (
            readable(&[3]),
            invalid(
                "NODE_NOT_CONFIGURABLE",
                &["configuration 0", "node 3", "slot"],
            ),
        ),
        (readable(&[1, 1]), invalid("NODE_SET_TWICE", &["node 1"])),
        (
            delta(&[1, 0], &[0], &[]),
            invalid("WRONG_COUNT", &["the base", "2 entries", "expected 1"]),
        ),
        (
            delta(&[1], &[1], &[2]),
            invalid(
                "NODE_NOT_CONFIGURABLE",
                &["configuration 0", "slot 2", "2 slots"],
            ),
        ),
        (
            delta(&[1], &[2], &[0, 0]),
            invalid("NODE_SET_TWICE", &["slot 0"]),
        ),
    ];
    let cases = cases
        .into_iter()
        .map(|(configs, refusal)| (rank_request(text(CHAIN), configs), refusal));
    server.refuses(&sound(), cases).await;
}

#[tokio::test]
async fn modules_that_are_not_prepared_are_refused() {
    let server = TestServer::start().await;
    let entry = |lines: &str| rank_request(text(lines), packed(1, &[0]));
    let scheduled = {
        let text = format!("HloModule m, is_scheduled=true\nENTRY e {{\n {CHAIN}\n}}\n");
        let graph = Graph {
            task: Task::Fusion.into(),
            ..graph_of_text(text)
        };
        rank_request(graph, packed(1, &[0]))
    };
    let features = GraphFeatures {
        node_opcode: vec![1].into(),
        node_feat: vec![0; 560].into(),
        ..Default::default()
    };
    let features = Graph {
        task: Task::Fusion.into(),
        ..graph_of(Source::Features(features))
    };
    let cases = [
        (scheduled, invalid("PROGRAM_NOT_PREPARED", &["schedule"])),
        (
            entry(
                "p = f32[8,4] parameter(0)\n n = f32[8,4]{0,1} negate(p)\n ROOT t = f32[8,4] tanh(n)",
            ),
            invalid("PROGRAM_NOT_PREPARED", &["node 1", "{0,1}", "row-major"]),
        ),
        (
            entry("p = f32[8,4] parameter(0)\n b = f32[32] bitcast(p)\n ROOT t = f32[32] tanh(b)"),
            invalid("PROGRAM_NOT_PREPARED", &["node 1", "bitcast"]),
        ),
        (
            entry("p = f32[8,4] parameter(0)\n ROOT t = f32[8,4] tanh(p)"),
            invalid("NOTHING_TO_CONFIGURE", &["slot"]),
        ),
        (
            rank_request(features, packed(1, &[0])),
            invalid("MODULE_REQUIRED", &["hlo_module"]),
        ),
    ];
    server.refuses(&sound(), cases).await;
}

#[tokio::test]
async fn what_does_not_fit_fusions_is_refused() {
    let server = TestServer::start().await;
    let tiles = || packed_tiles(&hlorank_tests::tiles(&[[8, 8]]));
    let explained = |graph, configs, explain_top| RankConfigsRequest {
        explain_top,
        ..rank_request(graph, configs)
    };
    let module = || Graph {
        task: Task::Tile.into(),
        ..graph_of_module(hlorank_tests::module::two_dots())
    };
    let cases = [
        (
            rank_request(text(CHAIN), tiles()),
            invalid("GRAPH_TASK_MISMATCH", &["tile configurations", "fusion"]),
        ),
        (
            rank_request(text(CHAIN), packed(1, &[0])).with_model("tile-iree-cpu"),
            invalid(
                "MODEL_TASK_MISMATCH",
                &["tile-iree-cpu", "fusion configurations"],
            ),
        ),
        (
            explained(module(), tiles(), 1),
            invalid("EXPLAIN_UNSUPPORTED", &["explain_top", "fusions"]),
        ),
        (
            explained(text(CHAIN), packed(1, &[0]), 17),
            invalid("FIELD_INVALID", &["explain_top", "17", "16"]),
        ),
    ];
    server.refuses(&sound(), cases).await;
}

#[tokio::test]
async fn opcodes_that_the_compiler_dies_on_are_no_slots() {
    let server = TestServer::start().await;
    let gathered = "p = f32[8,4] parameter(0)
 i = s32[2,1] parameter(1)
 n = f32[8,4] negate(p)
 g = f32[2,4] gather(n, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, \
                    slice_sizes={1,4}
 e = f32[2,4] exponential(g)
 ROOT t = f32[2,4] tanh(e)";
    let cases = [
        (
            rank_request(text(gathered), readable(&[3])),
            invalid(
                "NODE_NOT_CONFIGURABLE",
                &["node 3", "a loop fusion cannot compute it"],
            ),
        ),
        (
            rank_request(text(gathered), readable(&[2])),
            invalid("NODE_NOT_CONFIGURABLE", &["node 2", "no such user"]),
        ),
    ];
    server
        .refuses(&rank_request(text(gathered), readable(&[4])), cases)
        .await;
}
