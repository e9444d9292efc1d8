use hlorank_proto::{received, v1::RankConfigsRequest};
use hlorank_server::{
    call::Bounds,
    errors::{REASONS, ServiceError},
    handlers::{ReadRequest, read_request},
};
use prost::Message as _;
use tonic::{Code, Status, metadata::MetadataMap};
use tonic_types::StatusExt as _;

use crate::{
    Target,
    mutate::mutate_bytes,
    reading::{LIMITS, check_error, check_forms, check_graph},
};

/// A serialized `RankConfigsRequest`, read up to where a model would score. An error becomes a status that blames the
/// client and fits into the headers of an answer.
pub const REQUEST: Target = Target {
    name: "request",
    mutate: mutate_bytes,
    read,
};

const BOUNDS: Bounds = Bounds {
    limits: LIMITS,
    graph_bytes: 1 << 15,
    stream_configs: 1000,
};

/// Size of headers that every client accepts, in bytes.
const MAX_HEADERS: usize = 8 << 10;

fn read(input: &[u8]) {
    let request = match received::RankConfigsRequest::decode(input) {
        Ok(request) => request,
        Err(error) => return check_error(&error),
    };
    if let Ok(request) = RankConfigsRequest::decode(input) {
        let written = request.encode_to_vec();
        assert_eq!(
            RankConfigsRequest::decode(&written[..]).as_ref(),
            Ok(&request),
            "written again"
        );
    }
    match read_request(request, &BOUNDS) {
        Ok(ReadRequest {
            source,
            configurations,
        }) => {
            let has_names = source.graph.whole.feature_graph().is_none();
            let described = if has_names {
                source.graph.configurable.len()
            } else {
                0
            };
            assert_eq!(source.nodes.len(), described);
            check_graph(&source.graph.whole);
            check_forms(&configurations);
        }
        Err(error) => check_status(error),
    }
}

fn check_status(error: ServiceError) {
    check_error(&error);
    let status = Status::from(error);
    assert!(
        matches!(
            status.code(),
            Code::InvalidArgument | Code::FailedPrecondition
        ),
        "{status:?}"
    );
    let reason = status
        .get_error_details()
        .error_info()
        .expect("a reason")
        .reason
        .clone();
    assert!(REASONS.contains(&reason.as_str()), "{reason}");
    let mut headers = MetadataMap::new().into_headers();
    status
        .add_header(&mut headers)
        .expect("a status that can be sent");
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 32)
        .sum();
    assert!(bytes <= MAX_HEADERS, "{bytes} bytes of headers");
}
