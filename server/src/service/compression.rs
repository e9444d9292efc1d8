//! Which answers are compressed.

use http::Request;

const ENCODING: &str = "grpc-encoding";
const ACCEPT_ENCODING: &str = "grpc-accept-encoding";

/// Has an answer compressed only where its request is. Most clients tell with every call that they could read gzip,
/// and compressing scores costs more than to send them on any network that a tuner would use.
#[must_use]
pub fn answer_as_asked<B>(mut request: Request<B>) -> Request<B> {
    let is_compressed = request.headers().get(ENCODING).is_some_and(|encoding| encoding != "identity");
    if !is_compressed {
        request.headers_mut().remove(ACCEPT_ENCODING);
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_compressed_where_its_request_is() {
        let accepted = |encoding: Option<&str>| {
            let mut request = Request::builder().header(ACCEPT_ENCODING, "gzip");
            if let Some(encoding) = encoding {
                request = request.header(ENCODING, encoding);
            }
            answer_as_asked(request.body(()).unwrap()).headers().contains_key(ACCEPT_ENCODING)
        };
        assert!(accepted(Some("zstd")));
        assert!(!accepted(Some("identity")) && !accepted(None));
    }
}
