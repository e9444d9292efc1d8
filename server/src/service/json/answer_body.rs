use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body};

/// The body of an answer in JSON: that of an answer of gRPC, without its trailers.
pub(super) struct AnswerBody(pub(super) Body);

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        // The layers inside have read the status of gRPC from the trailers, which are the last
        // frame. The body ends in their place.
        let frame = Pin::new(&mut self.0).poll_frame(context);
        frame.map(|frame| frame.filter(|frame| !frame.as_ref().is_ok_and(Frame::is_trailers)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
