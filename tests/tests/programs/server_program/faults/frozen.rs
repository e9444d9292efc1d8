//! Clients that freeze in the middle of something, like a suspended process whose system still acknowledges bytes.

use std::{io::Write as _, net::TcpStream};

use hlorank_tests::{
    attackers::{
        frames::{HELLO, PING, frame, headers},
        messages::framed,
    },
    prelude::*,
};

use super::calls::Question;

/// Client that does nothing more. Dropping it closes the connection.
pub(crate) struct Frozen(TcpStream);

const DATA: u8 = 0;
const END_STREAM: u8 = 1;

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
        client.0.write_all(HELLO).unwrap();
        client
    }

    /// Sends half of a request.
    pub(crate) fn in_mid_request(server: &ServerProcess) -> Self {
        let mut client = Self::before_a_call(server);
        client.begin("RankConfigs");
        let message = framed(&Question::new(3, 100).request().encode_to_vec(), false);
        client.send(0, &message[..message.len() / 2]);
        client
    }

    /// Starts a stream and sends no batches.
    pub(crate) fn in_a_stream(server: &ServerProcess) -> Self {
        let mut client = Self::before_a_call(server);
        client.begin("RankConfigsStream");
        let start = Question::new(3, 1).streamed()[0].encode_to_vec();
        client.send(0, &framed(&start, false));
        client
    }

    /// Requests more than HTTP/2's initial window holds, and reads nothing.
    pub(crate) fn without_reading(server: &ServerProcess) -> Self {
        let mut client = Self::before_a_call(server);
        client.begin("RankConfigs");
        let message = framed(&Question::new(2, 20_000).request().encode_to_vec(), false);
        for part in message.chunks(LARGEST_FRAME) {
            client.send(0, part);
        }
        client.send(END_STREAM, &[]);
        client
    }

    /// Sends a ping. Returns whether the connection is open.
    pub(crate) fn ping(&mut self) -> bool {
        self.0.write_all(PING).is_ok()
    }

    fn begin(&mut self, method: &str) {
        let path = format!("/hlorank.v1.CostModelService/{method}");
        self.0.write_all(&headers(1, &path)).unwrap();
    }

    fn send(&mut self, flags: u8, payload: &[u8]) {
        self.0.write_all(&frame(DATA, flags, 1, payload)).unwrap();
    }
}
