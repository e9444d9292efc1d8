use hlorank_graph::{ConfigurationError, EncodedBatch, Graph, decode_graph};
use hlorank_proto::{received, v1::RankConfigsRequest};
use hlorank_server::{
    call::CallError,
    errors::{REASONS, ServiceError},
};
use prost::Message as _;
use prost::bytes::Bytes;
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
    if let Err(error) = read_parts(request) {
        check_status(error);
    }
}

/// Reads the graph, and both batches against it.
fn read_parts(request: received::RankConfigsRequest) -> Result<(), ServiceError> {
    let Some(batch) = encoded("batch", &request.batch.unwrap_or_default())? else {
        return Ok(());
    };
    let graph = decode_graph(request.graph.unwrap_or_default(), &LIMITS)?;
    let graph = Graph::of_message(&graph, batch.task(), &LIMITS)?;
    check_graph(&graph);
    read_batch(batch.field(), &batch, &graph)?;
    let measured = request.adapt.and_then(|adapt| adapt.batch);
    let measured = encoded("adapt.batch", &measured.unwrap_or_default())?;
    measured.map_or(Ok(()), |batch| read_batch("adapt.batch", &batch, &graph))
}

fn encoded(field: &'static str, batch: &Bytes) -> Result<Option<EncodedBatch>, ServiceError> {
    EncodedBatch::parse(batch).map_err(|source| refused(field, source))
}

fn read_batch(
    field: &'static str,
    batch: &EncodedBatch,
    graph: &Graph,
) -> Result<(), ServiceError> {
    let read = batch.read(graph.task(), graph.configurable(), &LIMITS);
    let read = read.and_then(|read| read.check(graph).map(|()| read));
    check_forms(&read.map_err(|source| refused(field, source))?);
    Ok(())
}

fn refused(field: &'static str, source: ConfigurationError) -> ServiceError {
    CallError::Configuration { field, source }.into()
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
