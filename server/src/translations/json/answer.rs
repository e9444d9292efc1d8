//! Writes the answer of a call as JSON.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use prost_reflect::DynamicMessage;
use tonic::{Code, Status};

use super::request::JsonMethod;
use crate::{admission::Place, call::work_on, compute::ComputePool, translations::header::PREFIX};

/// Maximum number of bytes that a byte of an answer takes while it is written: a number in a list takes one byte at least,
/// and a value and its digits here.
const BYTES_TO_WRITE: usize = 80;

/// Maximum size of an answer that is written on the thread that takes calls. The rest is left to the compute threads.
const INLINE_BYTES: usize = 8 << 10;

/// Returns an answer whose message is JSON instead of protobuf. A failure, which has no message, stays as it is.
pub(crate) async fn answer_json(
    response: Response,
    method: JsonMethod,
    place: Place,
    pool: &ComputePool,
) -> Response {
    if Status::from_header_map(response.headers()).is_some() {
        return response;
    }
    let (head, body) = response.into_parts();
    match json_body(body, method, place, pool).await {
        Ok(body) => Response::from_parts(head, body),
        Err(status) => status.into_http(),
    }
}

async fn json_body(
    body: Body,
    method: JsonMethod,
    place: Place,
    pool: &ComputePool,
) -> Result<Body, Status> {
    // JSON is one text, so it is written only after the whole answer is known.
    let collected = body.collect().await;
    let collected = collected.map_err(|error| Status::from_error(error.into()))?;
    let trailers = collected.trailers().cloned().unwrap_or_default();
    // A call can fail after its headers were written.
    let status = Status::from_header_map(&trailers);
    if let Some(failure) = status.filter(|status| status.code() != Code::Ok) {
        return Err(failure);
    }
    let message = collected.to_bytes().slice(PREFIX..);
    let bytes = message.len() * BYTES_TO_WRITE;
    place.hold(bytes)?;
    let written = work_on(pool, message.len(), INLINE_BYTES, move || {
        write(message, &method)
    });
    let json = written.await?;
    let json = json.map_err(|error| Status::internal(error.to_string()))?;
    // The text is held until it is sent.
    place.release(bytes.saturating_sub(json.len()));
    // The layers that observe calls read the trailers of gRPC.
    let frames = [Frame::data(json), Frame::trailers(trailers)];
    let frames = stream::iter(frames.map(Ok::<_, Status>));
    Ok(Body::new(StreamBody::new(frames)))
}

/// Writes a message in the canonical form of proto3.
fn write(
    message: Bytes,
    method: &JsonMethod,
) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    let message = DynamicMessage::decode(method.method.output(), message)?;
    let mut json = serde_json::to_vec(&message)?;
    // Clients such as `curl` print the answer to a terminal, whose next prompt needs a new line.
    json.push(b'\n');
    Ok(json.into())
}

#[cfg(test)]
mod tests {
    use hlorank_proto::v1::RankConfigsResponse;
    use prost::Message as _;

    use super::*;

    #[test]
    fn an_answer_has_the_canonical_form() {
        let answer = RankConfigsResponse {
            ranking: vec![1, 0],
            ranking_scores: vec![-1.5, f32::INFINITY],
            graph_hash: vec![1, 2, 3].into(),
            ..RankConfigsResponse::default()
        };
        let method = JsonMethod::at_path("/hlorank.v1.CostModelService/RankConfigs").unwrap();
        let json = write(answer.encode_to_vec().into(), &method).unwrap();
        let expected = r#"{"ranking":[1,0],"rankingScores":[-1.5,"Infinity"],"graphHash":"AQID"}"#;
        assert_eq!(json, format!("{expected}\n"));
    }
}
