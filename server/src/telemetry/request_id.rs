//! The id of a call, which its client and its log lines share.

use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::{Status, metadata::MetadataMap};
use tonic_types::StatusExt as _;
use uuid::Uuid;

/// Identifies one call in log lines, in spans and in its answer.
#[derive(Clone, Debug)]
pub(super) struct RequestId(HeaderValue);

/// The header in which a client may send an id, and which holds the id in the answer.
const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of a client's id, in bytes.
const MAX_BYTES: usize = 128;

impl RequestId {
    /// Returns the id that the client sent, if it is visible ASCII and not too long, and a new id otherwise.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let sent = headers.get(HEADER).filter(|id| is_valid(id.as_bytes()));
        Self(sent.cloned().unwrap_or_else(new_id))
    }

    pub(super) fn as_str(&self) -> &str {
        // Ids are visible ASCII.
        self.0.to_str().unwrap_or_default()
    }

    /// Adds the id to the headers of an answer.
    pub(super) fn add_to_headers(&self, headers: &mut HeaderMap) {
        headers.insert(HEADER, self.0.clone());
    }

    /// Adds the id to the details of a failed status in headers or trailers, as `google.rpc.RequestInfo`.
    pub(super) fn add_to_status(&self, status: &Status, headers: &mut HeaderMap) {
        // A status has one encoded list of details, so adding one means to encode all again.
        let mut details = status.get_error_details();
        details.set_request_info(self.as_str(), "");
        let metadata = MetadataMap::new();
        let status = Status::with_error_details_and_metadata(
            status.code(),
            status.message(),
            details,
            metadata,
        );
        // The message was a valid header before, so it still is.
        let _ = status.add_header(headers);
    }
}

fn is_valid(id: &[u8]) -> bool {
    (1..=MAX_BYTES).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

fn new_id() -> HeaderValue {
    let mut text = Uuid::encode_buffer();
    let text = Uuid::new_v4().hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).expect("a UUID is hexadecimal digits and hyphens")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[u8]) -> String {
        let headers = HeaderMap::from_iter([(HEADER, HeaderValue::from_bytes(given).unwrap())]);
        RequestId::from_headers(&headers).as_str().to_owned()
    }

    #[test]
    fn a_valid_id_is_kept() {
        for id in ["a", "4f9c-17", &"x".repeat(MAX_BYTES)] {
            assert_eq!(of(id.as_bytes()), id);
        }
    }

    #[test]
    fn an_invalid_id_is_replaced() {
        let long = "x".repeat(MAX_BYTES + 1);
        for id in [
            &b""[..],
            b"two words",
            b"caf\xc3\xa9",
            b"tab\there",
            long.as_bytes(),
        ] {
            assert!(Uuid::parse_str(&of(id)).is_ok(), "{id:?}");
        }
        let made = RequestId::from_headers(&HeaderMap::new());
        assert_ne!(
            made.as_str(),
            RequestId::from_headers(&HeaderMap::new()).as_str()
        );
    }
}
