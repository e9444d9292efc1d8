use hlorank_proto::v1::RankConfigsRequest;
use hlorank_server::service::{Bounds, REASONS, ReadRequest, ServiceError, read_request};
use prost::Message as _;
use tonic::{Code, Status, metadata::MetadataMap};
use tonic_types::StatusExt as _;

use crate::{
    Target,
    mutate::mutate_message,
    reading::{LIMITS, check_forms, check_graph, refused},
};

/// A serialized `RankConfigsRequest`, up to where a model would score: a refusal is a status that blames the client
/// and fits the headers of an answer; what is read holds together.
pub const REQUEST: Target = Target { name: "request", mutate: mutate_message, read };

const BOUNDS: Bounds =
    Bounds { limits: LIMITS, graph_bytes: 1 << 15, requests: 1, stream_configs: 1000, client_requests: 1 };

/// Bytes of headers that every client takes.
const MAX_HEADERS: usize = 8 << 10;

fn read(input: &[u8]) -> String {
    let request = match RankConfigsRequest::decode(input) {
        Ok(request) => request,
        Err(error) => return refused(&error),
    };
    let written = request.encode_to_vec();
    assert_eq!(RankConfigsRequest::decode(&written[..]).as_ref(), Ok(&request), "written again");
    match read_request(request, &BOUNDS) {
        Ok(ReadRequest { source, configurations }) => {
            assert_eq!(source.nodes.len(), source.graph.configurable.len());
            let graph = check_graph(&source.graph.whole);
            format!("{graph}; {}; {} warnings", check_forms(&configurations), source.warnings.len())
        }
        Err(error) => check_refusal(error),
    }
}

fn check_refusal(error: ServiceError) -> String {
    let outcome = refused(&error);
    let status = Status::from(error);
    assert!(matches!(status.code(), Code::InvalidArgument | Code::FailedPrecondition), "{status:?}");
    let reason = status.get_error_details().error_info().expect("a reason").reason.clone();
    assert!(REASONS.contains(&reason.as_str()), "{reason}");
    let mut headers = MetadataMap::new().into_headers();
    status.add_header(&mut headers).expect("a status that can be sent");
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
    assert!(bytes <= MAX_HEADERS, "{bytes} bytes of headers");
    format!("{reason}: {outcome}")
}
