//! Calls whose messages are sent byte by byte.

use futures::{
    StreamExt as _,
    channel::mpsc::{UnboundedSender, unbounded},
};
use hlorank_tests::prelude::*;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tonic::body::Body;
use tower::ServiceExt as _;

/// Call whose headers were sent. Dropping it cancels the call.
pub(crate) struct OpenCall {
    messages: UnboundedSender<Bytes>,
    status: JoinHandle<Status>,
}

impl OpenCall {
    pub(crate) fn open(channel: &Channel, path: &str) -> Self {
        Self::open_with(channel, path, "identity")
    }

    /// Opens a call whose messages have this encoding.
    pub(crate) fn open_with(channel: &Channel, path: &str, encoding: &str) -> Self {
        let (messages, received) = unbounded::<Bytes>();
        let body = StreamBody::new(received.map(|bytes| Ok::<_, Status>(Frame::data(bytes))));
        let request = http::Request::post(path)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("grpc-encoding", encoding)
            .body(Body::new(body))
            .unwrap();
        let answer = channel.clone().oneshot(request);
        let status = tokio::spawn(async {
            let answer = match answer.await {
                Ok(answer) => answer,
                Err(error) => return Status::from_error(error.into()),
            };
            match Status::from_header_map(answer.headers()) {
                Some(status) => status,
                None => in_trailers(answer.into_body()).await,
            }
        });
        Self { messages, status }
    }

    /// Sends some bytes.
    pub(crate) fn send(&self, bytes: impl Into<Bytes>) {
        // An error means that the server has ended the call.
        let _ = self.messages.unbounded_send(bytes.into());
    }

    /// Sends a message.
    pub(crate) fn send_message(&self, message: &impl Message) {
        self.send(framed(0, &message.encode_to_vec()));
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.status.is_finished()
    }

    /// Waits until the server has ended the call.
    pub(crate) async fn ended(self) -> Status {
        self.status.await.unwrap()
    }
}

/// Returns the bytes of a message with this compression flag.
pub(crate) fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[flag], &length.to_be_bytes()[..], message].concat()
}

/// Reads an answer to its end.
async fn in_trailers(mut body: Body) -> Status {
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_trailers) {
            Ok(Ok(trailers)) => return Status::from_header_map(&trailers).unwrap(),
            Ok(Err(_)) => {}
            Err(status) => return status,
        }
    }
    panic!("the answer has no status")
}
