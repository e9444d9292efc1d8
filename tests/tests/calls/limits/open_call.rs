//! Calls whose messages are sent byte by byte.

use futures::{
    StreamExt as _,
    channel::mpsc::{UnboundedSender, unbounded},
};
use hlorank_tests::{attackers::messages::framed, prelude::*};
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
            let answer = answer.await.unwrap();
            if let Some(status) = Status::from_header_map(answer.headers()) {
                return status;
            }
            let body = answer.into_body().collect().await.unwrap();
            Status::from_header_map(body.trailers().unwrap()).unwrap()
        });
        Self { messages, status }
    }

    /// Sends some bytes.
    pub(crate) fn send(&self, bytes: impl Into<Bytes>) {
        // An error means that the server has ended the call.
        let _ = self.messages.unbounded_send(bytes.into());
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.status.is_finished()
    }

    /// Waits until the server has ended the call.
    pub(crate) async fn ended(self) -> Status {
        self.status.await.unwrap()
    }
}

/// Makes a call with one message of these bytes, and returns its status.
pub(crate) async fn status_of(channel: &Channel, path: &str, message: &[u8]) -> Status {
    let call = OpenCall::open(channel, path);
    call.send(framed(message, false));
    call.ended().await
}
