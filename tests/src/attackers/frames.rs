//! The few frames of HTTP/2 (RFC 9113, section 6) that attackers and frozen clients send, because no client library sends them so.

/// What a client sends first, including its empty settings.
pub const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Empty settings, which the server must acknowledge.
pub(super) const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

/// A ping, which the server must answer.
pub const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0 attack ";

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_HEADERS: u8 = 4;
const CANCEL: u32 = 8;

/// Returns a frame.
///
/// # Panics
/// If the payload has 4 GiB.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a short frame")
        .to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns the headers of a call of this path on this stream.
///
/// # Panics
/// If the path is long.
pub fn headers(stream: u32, path: &str) -> Vec<u8> {
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let block: Vec<u8> = headers
        .iter()
        .flat_map(|(name, value)| literal(name, value))
        .collect();
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// Returns a header that the receiver does not add to its table (RFC 7541, section 6.2.2).
fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        [
            &[u8::try_from(text.len()).expect("a short header")],
            text.as_bytes(),
        ]
        .concat()
    };
    [vec![0], text(name), text(value)].concat()
}

/// Returns the end of a stream by its client.
pub(super) fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}
