//! Clients that freeze in the middle of something, like a suspended process whose system still acknowledges bytes.

use std::{io::Write as _, net::TcpStream};

use hlorank_tests::prelude::*;

use super::calls::Question;

/// Client that does nothing more. Dropping it closes the connection.
pub(crate) struct Frozen(TcpStream);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Maximum bytes of a frame that every server accepts.
const LARGEST_FRAME: usize = 1 << 14;

impl Frozen {
    /// Connects and sends nothing.
    pub(crate) fn before_it_spoke(server: &ServerProcess) -> Self {
        Self(TcpStream::connect(server.address()).unwrap())
    }

    /// Starts HTTP/2 and makes no call.
    pub(crate) fn before_a_call(server: &ServerProcess) -> Self {
        let mut client = Self::before_it_spoke(server);
        client.0.write_all(PREFACE).unwrap();
        client.send(SETTINGS, 0, 0, &[]);
        client
    }

    /// Sends half of a request.
    pub(crate) fn in_mid_request(server: &ServerProcess) -> Self {
        let mut client = Self::before_a_call(server);
        client.begin("RankConfigs");
        let message = message(&Question::new(3, 100).request());
        client.send(DATA, 0, 1, &message[..message.len() / 2]);
        client
    }

    /// Starts a stream and sends no batches.
    pub(crate) fn in_a_stream(server: &ServerProcess) -> Self {
        let mut client = Self::before_a_call(server);
        client.begin("RankConfigsStream");
        client.send(DATA, 0, 1, &message(&Question::new(3, 1).streamed()[0]));
        client
    }

    /// Requests more than HTTP/2's initial window holds, and reads nothing.
    pub(crate) fn without_reading(server: &ServerProcess) -> Self {
        let mut client = Self::before_a_call(server);
        client.begin("RankConfigs");
        let message = message(&Question::new(2, 20_000).request());
        for part in message.chunks(LARGEST_FRAME) {
            client.send(DATA, 0, 1, part);
        }
        client.send(DATA, END_STREAM, 1, &[]);
        client
    }

    /// Sends a ping. Returns whether the connection is open.
    pub(crate) fn ping(&mut self) -> bool {
        let frame = [&[0, 0, 8, PING, 0, 0, 0, 0, 0][..], &[7; 8]].concat();
        self.0.write_all(&frame).is_ok()
    }

    fn begin(&mut self, method: &str) {
        let path = format!("/hlorank.v1.CostModelService/{method}");
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", &path),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ];
        // Literal fields without indexing, with new names (RFC 7541, section 6.2.2).
        let field = |(name, value): (&str, &str)| {
            let text =
                |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
            [vec![0], text(name), text(value)].concat()
        };
        let fields: Vec<u8> = fields.into_iter().flat_map(field).collect();
        self.send(HEADERS, END_HEADERS, 1, &fields);
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat();
        self.0.write_all(&frame).unwrap();
    }
}

/// Returns a message in gRPC framing: uncompressed flag, length, bytes.
fn message(message: &impl Message) -> Vec<u8> {
    let bytes = message.encode_to_vec();
    [
        &[0],
        &u32::try_from(bytes.len()).unwrap().to_be_bytes()[..],
        &bytes,
    ]
    .concat()
}
