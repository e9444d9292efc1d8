//! Limits of the depth and the length of the parts of a module.

use hlorank_tests::{attackers::RANK, prelude::*};
use prost::encoding::{WireType, encode_key};

use crate::limits::{
    open_call::status_of,
    request::{Past, Servers, dot_and, layout_graph, layouts_of},
};

/// Maximum bytes of the parts of one instruction that take more memory once decoded.
const NESTED_BYTES: usize = 4 << 20;
const LIST: usize = 1 << 16;
/// Maximum depth of nested groups that protobuf decoders accept.
const GROUPS: usize = 100;

#[tokio::test]
async fn computations_inside_computations_of_a_text() {
    let servers = Servers::start(&[]).await;
    let nested = |depth: usize| {
        let open = "n = f32[] call(), to_apply={ ".repeat(depth - 1);
        let line = format!("{open}c = f32[] constant(0) {}", "}".repeat(depth - 1));
        // Nodes of inner computations come before the parameter and the dot.
        let dot = u32::try_from(depth).unwrap();
        rank_request(graph_of_text(dot_and([line])), layouts_of(dot))
    };
    let past = Past::fixed("NESTING_TOO_DEEP", None, 64).saying("line 6");
    let too_deep = [65, 1 << 20].map(nested);
    servers.check([nested(64)], too_deep, past).await;
}

#[tokio::test]
async fn numbers_of_a_list_in_a_text() {
    let servers = Servers::start(&[]).await;
    let list = |numbers| {
        let numbers = vec!["1"; numbers].join(",");
        let line = format!("c = f32[8,8] copy(p), dimensions={{{numbers}}}");
        [rank_request(graph_of_text(dot_and([line])), layouts_of(1))]
    };
    let past = Past::fixed("INSTRUCTION_TOO_LARGE", None, LIST);
    servers.check(list(LIST), list(LIST + 1), past).await;
}

#[tokio::test]
async fn bytes_of_an_instruction_that_unfold() {
    let servers = Servers::start(&[]).await;
    // Each number takes one byte, the list takes one more, and the shape three.
    let of = |bytes: usize| {
        let long = HloInstructionProto {
            dimensions: vec![1; bytes - 4],
            ..instruction(9, &[])
        };
        let module = single(vec![
            operation("parameter", 1, &[]),
            operation("dot", 2, &[1, 1]),
            long,
        ]);
        [rank_request(graph_of_module(module), layouts_of(1))]
    };
    let past = Past::fixed("INSTRUCTION_TOO_LARGE", NESTED_BYTES + 1, NESTED_BYTES);
    let past = past.saying("node 2");
    servers
        .check(of(NESTED_BYTES), of(NESTED_BYTES + 1), past)
        .await;
}

/// Returns an unknown field of nested groups.
fn groups(depth: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for wire_type in [WireType::StartGroup, WireType::EndGroup] {
        (0..depth).for_each(|_| encode_key(1000, wire_type, &mut bytes));
    }
    bytes
}

#[tokio::test]
async fn groups_inside_groups_of_a_module() {
    let servers = Servers::start(&[]).await;
    let of = |depth| {
        let module = [two_dots(), groups(depth)].concat();
        rank_request(graph_of_module(module), layouts_of(3))
    };
    servers.take(of(GROUPS)).await;
    for depth in [GROUPS + 1, 1 << 20] {
        let status = servers.limited.rank(of(depth)).await.unwrap_err();
        assert_eq!(reason(&status), "HLO_MALFORMED", "{status}");
        says!(status.message(), "recursion limit");
    }
}

#[tokio::test]
async fn groups_inside_groups_of_a_request() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    let sound = rank_request(layout_graph(), layouts_of(3)).encode_to_vec();
    let rank = async |depth| {
        let bytes = [sound.clone(), groups(depth)].concat();
        status_of(&channel, RANK, &bytes).await
    };
    let status = rank(GROUPS).await;
    assert_eq!(status.code(), Code::Ok, "{status}");
    // Very deep groups have too many fields before they are decoded.
    for (depth, words) in [(GROUPS + 1, "recursion limit"), (1 << 20, "60000 fields")] {
        let status = rank(depth).await;
        assert_eq!(reason(&status), "REQUEST_MALFORMED", "{status}");
        says!(status.message(), words);
    }
}
