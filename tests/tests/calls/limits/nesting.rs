//! Limits of the depth and the length of the parts of a module.

use hlorank_tests::prelude::*;
use prost::bytes::BufMut;
use prost::encoding::{WireType, encode_key};
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic_prost::ProstCodec;

use crate::limits::request::{Past, Servers, layout_graph, layouts_of, text};

/// Maximum bytes of the parts of one instruction that take more memory once decoded.
const NESTED_BYTES: usize = 4 << 20;
const LIST: usize = 1 << 16;
/// Maximum depth of nested groups that protobuf decoders accept.
const GROUPS: usize = 100;

/// Returns a request with a dot, a line below it, and layouts of the dot.
fn dot_and(line: String, dot: u32) -> RankConfigsRequest {
    let lines = [
        "p = f32[8,8] parameter(0)".to_owned(),
        "d = f32[8,8] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}".to_owned(),
        line,
    ];
    rank_request(graph_of(Source::HloText(text(&lines))), layouts_of(dot))
}

#[tokio::test]
async fn computations_inside_computations_of_a_text() {
    let servers = Servers::start(&[]).await;
    let nested = |depth: usize| {
        let open = "n = f32[] call(), to_apply={ ".repeat(depth - 1);
        // Nodes of inner computations come before the parameter and the dot.
        let dot = u32::try_from(depth).unwrap();
        dot_and(
            format!("{open}c = f32[] constant(0) {}", "}".repeat(depth - 1)),
            dot,
        )
    };
    servers.take(nested(64)).await;
    for depth in [65, 1 << 20] {
        let message = servers
            .refuse(nested(depth), Past::fixed("NESTING_TOO_DEEP", None, 64))
            .await;
        says!(message, "line 6");
    }
}

#[tokio::test]
async fn numbers_of_a_list_in_a_text() {
    let servers = Servers::start(&[]).await;
    let list = |numbers| {
        dot_and(
            format!(
                "c = f32[8,8] copy(p), dimensions={{{}}}",
                vec!["1"; numbers].join(",")
            ),
            1,
        )
    };
    servers.take(list(LIST)).await;
    servers
        .refuse(
            list(LIST + 1),
            Past::fixed("INSTRUCTION_TOO_LARGE", None, LIST),
        )
        .await;
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
        rank_request(graph_of(Source::HloModule(module.into())), layouts_of(1))
    };
    servers.take(of(NESTED_BYTES)).await;
    let past = Past::fixed("INSTRUCTION_TOO_LARGE", NESTED_BYTES + 1, NESTED_BYTES);
    let message = servers.refuse(of(NESTED_BYTES + 1), past).await;
    says!(message, "node 2");
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
        rank_request(graph_of(Source::HloModule(module.into())), layouts_of(3))
    };
    servers.take(of(GROUPS)).await;
    for depth in [GROUPS + 1, 1 << 20] {
        let status = servers.limited.rank(of(depth)).await.unwrap_err();
        let reason = reason(&status);
        assert_eq!(
            (status.code(), reason.as_str()),
            (Code::InvalidArgument, "HLO_MALFORMED"),
            "{status}"
        );
        says!(status.message(), "recursion limit");
    }
}

/// Codec that sends bytes unchanged.
#[derive(Clone, Copy, Default)]
struct Bare;

impl Encoder for Bare {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, bytes: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&bytes);
        Ok(())
    }
}

impl Codec for Bare {
    type Encode = Vec<u8>;
    type Decode = RankConfigsResponse;
    type Encoder = Self;
    type Decoder = <ProstCodec<RankConfigsRequest, RankConfigsResponse> as Codec>::Decoder;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<RankConfigsRequest, RankConfigsResponse>::default().decoder()
    }
}

#[tokio::test]
async fn groups_inside_groups_of_a_request() {
    let servers = Servers::start(&[]).await;
    let sound = rank_request(layout_graph(), layouts_of(3)).encode_to_vec();
    let rank = async |depth| {
        let mut client = tonic::client::Grpc::new(servers.limited.channel().await);
        client.ready().await.unwrap();
        let bytes = [sound.clone(), groups(depth)].concat();
        let path = "/hlorank.v1.CostModelService/RankConfigs".parse().unwrap();
        client.unary(tonic::Request::new(bytes), path, Bare).await
    };
    assert_eq!(
        rank(GROUPS)
            .await
            .expect("it is at the limit")
            .into_inner()
            .ranking
            .len(),
        2
    );
    // Very deep groups have too many fields before they are decoded.
    for (depth, words) in [(GROUPS + 1, "recursion limit"), (1 << 20, "60000 fields")] {
        let status = rank(depth).await.unwrap_err();
        let reason = reason(&status);
        assert_eq!(
            (status.code(), reason.as_str()),
            (Code::InvalidArgument, "REQUEST_MALFORMED"),
            "{status}"
        );
        assert!(status.message().contains(words), "{status}");
    }
}
