//! Counts a call, and the memory that it holds, from its headers until the last byte of its answer is sent. A client that
//! reads slowly therefore keeps both.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Extensions, HeaderValue, Request, Response};
use http_body::Frame;
use tonic::{Status, body::Body};
use tower::{Layer, Service};

use super::{
    ServiceError,
    compression::Compression,
    delivery::{DeliveredCall, DeliverySettings, Encoding, Kind, OpenedCall, deliver},
    json::{JsonMethod, answer_json},
};
use crate::{
    admission::{AdminScope, Admission, Caller},
    call::{CallError, Client},
    compute::ComputePool,
    store::Reporter,
};

/// Wraps services in [`AdmitCalls`].
#[derive(Clone)]
pub(crate) struct AdmitCallsLayer {
    /// The limits on calls.
    pub(crate) admission: Arc<Admission>,
    /// The threads that decompress and read messages.
    pub(crate) pool: Arc<ComputePool>,
    /// Limits of messages.
    pub(crate) settings: DeliverySettings,
}

/// Receives the messages of calls, and admits each call when its first message has arrived. A call that could not be
/// admitted is rejected before its messages are read.
#[derive(Clone)]
pub(crate) struct AdmitCalls<S> {
    inner: S,
    admission: Arc<Admission>,
    pool: Arc<ComputePool>,
    settings: DeliverySettings,
}

/// The body of an answer. Its call is in flight until the body is dropped.
struct AnswerBody {
    body: Body,
    /// The part of the last data frame that was not passed on yet.
    rest: Bytes,
    _call: Arc<DeliveredCall>,
}

/// Maximum size of the pieces of an answer that the transport receives. It asks for a piece as soon as the client
/// has room for a part of the previous one, so a call ends at most this many bytes before its answer is sent.
const PIECE_BYTES: usize = 16 << 10;

impl<S> Layer<S> for AdmitCallsLayer {
    type Service = AdmitCalls<S>;

    fn layer(&self, inner: S) -> Self::Service {
        AdmitCalls {
            inner,
            admission: Arc::clone(&self.admission),
            pool: Arc::clone(&self.pool),
            settings: self.settings,
        }
    }
}

impl<S> AdmitCalls<S> {
    /// Returns the call that a request begins.
    fn open<B>(&self, request: &Request<B>) -> Result<Arc<DeliveredCall>, ServiceError> {
        let kind = Kind::of(request.uri().path());
        let caller = caller(request.extensions());
        if let Some(calls) = kind.calls {
            self.admission.check(&caller, calls)?;
        }
        // What a stream has not read yet. Other calls read their message as it arrives.
        let window = if kind.is_stream {
            self.settings.stream_window_bytes as usize
        } else {
            0
        };
        let place = self.admission.open(&caller, window);
        Ok(Arc::new(DeliveredCall {
            kind,
            place: place.map_err(CallError::from)?,
            caller,
            admission: Arc::clone(&self.admission),
            pool: Arc::clone(&self.pool),
            connection: request.extensions().get().cloned(),
            working: OnceLock::new(),
        }))
    }
}

/// Returns the caller of the call with these extensions.
pub(super) fn caller(extensions: &Extensions) -> Caller {
    extensions.get().cloned().unwrap_or(Caller::Unknown)
}

/// Reads what the headers say about the messages.
fn encoding<B>(request: &Request<B>, is_json: bool) -> Result<Option<Encoding>, ServiceError> {
    if let Some(query) = request.uri().query() {
        let expected = "/SERVICE/METHOD without a query string";
        return Err(ServiceError::Header {
            name: ":path",
            found: format!("…?{query}"),
            expected,
        });
    }
    Encoding::of(request.headers(), is_json)
}

/// Rejects a call, and names the encodings that it may have.
fn unreadable(error: ServiceError) -> Response<Body> {
    let mut response = Status::from(error).into_http();
    let known = HeaderValue::from_static("identity,gzip,zstd");
    response.headers_mut().insert("grpc-accept-encoding", known);
    response
}

/// Returns who makes the call with these extensions.
pub(super) fn client(extensions: &Extensions) -> Client {
    let reporter = Reporter::named(&caller(extensions).name()).expect("callers have names");
    Client {
        reporter,
        is_admin: extensions.get::<AdminScope>().is_some(),
    }
}

impl<S> Service<Request<Body>> for AdmitCalls<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let json = request.extensions().get::<JsonMethod>().cloned();
        let encoding = match encoding(&request, json.is_some()) {
            Ok(encoding) => encoding,
            Err(error) => return Box::pin(async { Ok(unreadable(error)) }),
        };
        let call = match self.open(&request) {
            Ok(call) => call,
            Err(error) => return Box::pin(async { Ok(Status::from(error).into_http()) }),
        };
        let compression = Compression::like_request(encoding, request.headers(), &call);
        request.extensions_mut().insert(call.place.clone());
        let arrival = self.admission.arrive(call.caller.clone());
        let opened = OpenedCall {
            call: Arc::clone(&call),
            encoding,
            arrival,
        };
        let response = self.inner.call(deliver(request, opened, self.settings));
        Box::pin(async {
            let mut response = response.await?;
            if let Some(method) = json {
                response = answer_json(response, method, call.place.clone(), &call.pool).await;
            } else if let Some(compression) = compression {
                response = compression.apply(response);
            }
            let answer = |body| AnswerBody {
                body,
                rest: Bytes::new(),
                _call: call,
            };
            Ok(response.map(|body| Body::new(answer(body))))
        })
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(context)).transpose()?;
            match frame.map(Frame::into_data) {
                Some(Ok(data)) if data.len() > PIECE_BYTES => self.rest = data,
                Some(Ok(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Some(Err(trailers)) => return Poll::Ready(Some(Ok(trailers))),
                None => return Poll::Ready(None),
            }
        }
        let bytes = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(bytes);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
}
