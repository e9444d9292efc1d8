//! Counts the calls of each connection.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body};
use tower::Service;

use super::activity::{ConnectionActivity, CountedCall};

/// Counts every call as one of its connection until its answer is sent.
#[derive(Clone)]
pub(crate) struct CountCalls<S>(pub(crate) S);

/// A call, which counts for its connection until its answer is sent.
struct Call {
    connection: ConnectionActivity,
    is_work: bool,
    working: OnceLock<CountedCall>,
    _open: CountedCall,
}

/// The messages of the client.
struct RequestBody {
    inner: Body,
    first: FirstMessage,
    call: Arc<Call>,
}

/// How much of the first message has arrived.
#[derive(Default)]
struct FirstMessage {
    prefix: [u8; PREFIX_BYTES],
    received: usize,
}

/// The answer.
struct AnswerBody {
    inner: Body,
    _call: Arc<Call>,
}

/// Size of what comes before each message: a flag, and the length of the message in four bytes.
const PREFIX_BYTES: usize = 5;

impl Call {
    fn new<B>(request: &Request<B>) -> Option<Arc<Self>> {
        let connection = request.extensions().get::<ConnectionActivity>()?.clone();
        // Health checks and reflection may last as long as the connection.
        let is_work = request.uri().path().starts_with("/hlorank.v1.");
        let open = connection.open();
        Some(Arc::new(Self {
            connection,
            is_work,
            working: OnceLock::new(),
            _open: open,
        }))
    }

    /// Notes that a message of the client has been delivered.
    fn delivered(&self) {
        if self.is_work {
            self.working.get_or_init(|| self.connection.begin());
        }
    }
}

impl<S> Service<Request<Body>> for CountCalls<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Some(call) = Call::new(&request) else {
            return Box::pin(self.0.call(request));
        };
        // Both bodies hold the call, because either may end last.
        let of_request = |inner, call| {
            Body::new(RequestBody {
                inner,
                first: FirstMessage::default(),
                call,
            })
        };
        let response = self
            .0
            .call(request.map(|inner| of_request(inner, Arc::clone(&call))));
        let of_answer = |inner| Body::new(AnswerBody { inner, _call: call });
        Box::pin(async move { Ok(response.await?.map(of_answer)) })
    }
}

impl FirstMessage {
    fn add(&mut self, data: &[u8]) {
        let missing = &mut self.prefix[self.received.min(PREFIX_BYTES)..];
        let bytes = missing.len().min(data.len());
        missing[..bytes].copy_from_slice(&data[..bytes]);
        self.received = self.received.saturating_add(data.len());
    }

    fn is_complete(&self) -> bool {
        let [_, length @ ..] = self.prefix;
        let length = u32::from_be_bytes(length) as usize;
        // Until the whole prefix has arrived, the length is that of its zeros, so the bytes of the
        // prefix are checked first.
        self.received
            .checked_sub(PREFIX_BYTES)
            .is_some_and(|received| received >= length)
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
            && !self.first.is_complete()
        {
            self.first.add(data);
            if self.first.is_complete() {
                self.call.delivered();
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_complete_with_its_last_byte() {
        let bytes = [0, 0, 0, 0, 3, 1, 2, 3, 0, 0];
        for size in 1..=bytes.len() {
            let mut message = FirstMessage::default();
            for data in bytes.chunks(size) {
                message.add(data);
                assert_eq!(
                    message.is_complete(),
                    message.received >= 8,
                    "in steps of {size}"
                );
            }
        }
        assert!(!FirstMessage::default().is_complete());
    }
}
