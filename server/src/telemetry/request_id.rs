//! The id of a call: what its client and its log lines have in common.

use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::{Status, metadata::MetadataMap};
use tonic_types::StatusExt as _;
use uuid::Uuid;

/// Names one call in log lines, in spans, and in what is answered.
#[derive(Clone, Debug)]
pub(super) struct RequestId(HeaderValue);

/// Where a client gives an id and finds it in the answer.
const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken, in bytes.
const MAX_BYTES: usize = 128;

impl RequestId {
    /// The id that a client gave: visible ASCII, not too long. Otherwise a new one.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(HEADER).filter(|id| is_sane(id.as_bytes()));
        Self(given.cloned().unwrap_or_else(new_id))
    }

    pub(super) fn as_str(&self) -> &str {
        // Visible ASCII.
        self.0.to_str().unwrap_or_default()
    }

    /// Adds the id to the headers of an answer.
    pub(super) fn tell(&self, headers: &mut HeaderMap) {
        headers.insert(HEADER, self.0.clone());
    }

    /// Adds the id to the details of a failure that headers or trailers give, as `google.rpc.RequestInfo`.
    pub(super) fn explain(&self, status: &Status, headers: &mut HeaderMap) {
        let mut details = status.get_error_details();
        details.set_request_info(self.as_str(), "");
        let metadata = MetadataMap::new();
        let status =
            Status::with_error_details_and_metadata(status.code(), status.message(), details, metadata);
        // A message that is no header was none before, either.
        let _ = status.add_header(headers);
    }
}

fn is_sane(id: &[u8]) -> bool {
    (1..=MAX_BYTES).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

fn new_id() -> HeaderValue {
    let mut text = Uuid::encode_buffer();
    let text = Uuid::new_v4().hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).expect("hexadecimal digits and hyphens")
}

#[cfg(test)]
mod tests {
    use tonic::Code;
    use tonic_types::ErrorDetails;

    use super::*;

    fn of(given: &[u8]) -> String {
        let headers = HeaderMap::from_iter([(HEADER, HeaderValue::from_bytes(given).unwrap())]);
        RequestId::of(&headers).as_str().to_owned()
    }

    #[test]
    fn a_sane_id_is_kept() {
        for id in ["a", "4f9c-17", &"x".repeat(MAX_BYTES)] {
            assert_eq!(of(id.as_bytes()), id);
        }
    }

    #[test]
    fn another_id_is_replaced() {
        let long = "x".repeat(MAX_BYTES + 1);
        for id in [&b""[..], b"two words", b"caf\xc3\xa9", b"tab\there", long.as_bytes()] {
            assert!(Uuid::parse_str(&of(id)).is_ok(), "{id:?}");
        }
        let made = RequestId::of(&HeaderMap::new());
        assert_ne!(made.as_str(), RequestId::of(&HeaderMap::new()).as_str());
    }

    #[test]
    fn the_id_joins_what_a_failure_tells() {
        let mut details = ErrorDetails::with_error_info("OVERLOADED", "hlorank", []);
        details.set_retry_info(Some(std::time::Duration::from_millis(200)));
        let status = Status::with_error_details(Code::ResourceExhausted, "full", details);
        let mut headers = HeaderMap::new();
        status.add_header(&mut headers).unwrap();
        RequestId(HeaderValue::from_static("seven")).explain(&status, &mut headers);
        let told = Status::from_header_map(&headers).unwrap();
        assert_eq!((told.code(), told.message()), (Code::ResourceExhausted, "full"));
        let details = told.get_error_details();
        assert_eq!(details.request_info().unwrap().request_id, "seven");
        assert_eq!(details.error_info().unwrap().reason, "OVERLOADED");
        assert!(details.retry_info().is_some());
    }
}
