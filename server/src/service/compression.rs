//! Compression of answers.

use http::Request;

const ENCODING: &str = "grpc-encoding";
const ACCEPT_ENCODING: &str = "grpc-accept-encoding";

/// Makes the server compress an answer only if the request is compressed. Most clients offer to read gzip with every
/// call, and compressing scores costs more than sending them on any network that a tuner would use.
#[must_use]
pub fn compress_like_request<B>(mut request: Request<B>) -> Request<B> {
    let is_compressed = request
        .headers()
        .get(ENCODING)
        .is_some_and(|encoding| encoding != "identity");
    if !is_compressed {
        request.headers_mut().remove(ACCEPT_ENCODING);
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_compressed_if_its_request_is() {
        let accepted = |encoding: Option<&str>| {
            let mut request = Request::builder().header(ACCEPT_ENCODING, "gzip");
            if let Some(encoding) = encoding {
                request = request.header(ENCODING, encoding);
            }
            compress_like_request(request.body(()).unwrap())
                .headers()
                .contains_key(ACCEPT_ENCODING)
        };
        assert!(accepted(Some("zstd")));
        assert!(!accepted(Some("identity")) && !accepted(None));
    }
}
