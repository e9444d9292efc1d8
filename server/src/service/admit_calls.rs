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
    delivery::{DeliveredCall, DeliverySettings, Gzip, Kind, OpenedCall, deliver},
    error::rejected,
    json::{JsonMethod, answer_json},
};
use crate::{
    admission::{AdminScope, Admission, Caller},
    call::{CallError, Client},
    compute::ComputePool,
    security::ConnectionActivity,
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

/// How the messages of an answer are sent.
enum AnswerForm {
    Json(JsonMethod),
    Compressed(Compression),
    Uncompressed,
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
    /// Opens the call that a request begins.
    fn open<B>(&self, request: &Request<B>) -> Result<OpenedCall, ServiceError> {
        let encoding = encoding(request)?;
        let kind = Kind::of(request.uri().path());
        let caller = caller(request.extensions());
        // A full server rejects a call by its headers, so that the client need not send a message
        // of megabytes first. The place in flight is taken when the message has arrived.
        if let Some(calls) = kind.calls {
            self.admission.check(&caller, calls)?;
        }
        let connection = request.extensions().get().cloned();
        let call = self.call_of(kind, caller, connection)?;
        // Only a call that is not rejected counts as arriving, because it may displace another.
        let arrival = self.admission.arrive(call.caller.clone());
        Ok(OpenedCall {
            call,
            encoding,
            arrival,
        })
    }

    fn call_of(
        &self,
        kind: Kind,
        caller: Caller,
        connection: Option<ConnectionActivity>,
    ) -> Result<Arc<DeliveredCall>, CallError> {
        let place = self.admission.open(&caller, self.window(kind));
        Ok(Arc::new(DeliveredCall {
            kind,
            place: place?,
            caller,
            admission: Arc::clone(&self.admission),
            pool: Arc::clone(&self.pool),
            connection,
            working: OnceLock::new(),
        }))
    }

    /// Maximum number of bytes that a call has received and not read yet.
    fn window(&self, kind: Kind) -> usize {
        if kind.is_stream {
            self.settings.stream_window_bytes as usize
        } else {
            // The message is read, and its bytes are counted, as it arrives.
            0
        }
    }
}

impl AnswerForm {
    /// Returns the form of the answer to a request.
    fn of<B>(request: &Request<B>, opened: &OpenedCall) -> Self {
        if let Some(method) = request.extensions().get::<JsonMethod>() {
            return Self::Json(method.clone());
        }
        let headers = request.headers();
        let compression = Compression::like_request(opened.encoding, headers, &opened.call);
        compression.map_or(Self::Uncompressed, Self::Compressed)
    }

    async fn write(self, response: Response<Body>, call: &DeliveredCall) -> Response<Body> {
        match self {
            Self::Json(method) => {
                answer_json(response, method, call.place.clone(), &call.pool).await
            }
            Self::Compressed(compression) => compression.apply(response),
            Self::Uncompressed => response,
        }
    }
}

/// Returns the caller of the call with these extensions.
pub(super) fn caller(extensions: &Extensions) -> Caller {
    extensions.get().cloned().unwrap_or(Caller::Unknown)
}

/// Reads what the headers say about the messages.
fn encoding<B>(request: &Request<B>) -> Result<Option<Gzip>, ServiceError> {
    // To ignore a query would be to answer another question than the client asked.
    if let Some(query) = request.uri().query() {
        let expected = "/SERVICE/METHOD without a query string";
        return Err(ServiceError::Header {
            name: ":path",
            found: format!("…?{query}"),
            expected,
        });
    }
    let is_json = request.extensions().get::<JsonMethod>().is_some();
    Gzip::of(request.headers(), is_json)
}

/// Rejects a call. If its headers are wrong, the answer names the encodings that they may have.
fn refused(error: ServiceError) -> Response<Body> {
    let is_unreadable = matches!(
        error,
        ServiceError::Header { .. } | ServiceError::Delivery(_)
    );
    let mut response = rejected(error);
    if is_unreadable {
        let known = HeaderValue::from_static("identity,gzip");
        response.headers_mut().insert("grpc-accept-encoding", known);
    }
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
        let opened = match self.open(&request) {
            Ok(opened) => opened,
            Err(error) => return Box::pin(async { Ok(refused(error)) }),
        };
        let form = AnswerForm::of(&request, &opened);
        let call = Arc::clone(&opened.call);
        // The handler holds what it computes in the same place, so one limit bounds all of a call.
        request.extensions_mut().insert(call.place.clone());
        let answer = self.inner.call(deliver(request, opened, self.settings));
        Box::pin(async {
            let answer = form.write(answer.await?, &call).await;
            Ok(counted(answer, call))
        })
    }
}

/// Keeps a call in flight until its answer is sent.
fn counted(answer: Response<Body>, call: Arc<DeliveredCall>) -> Response<Body> {
    let body = |body| AnswerBody {
        body,
        rest: Bytes::new(),
        _call: call,
    };
    answer.map(|inner| Body::new(body(inner)))
}

impl AnswerBody {
    fn next_piece(&mut self) -> Frame<Bytes> {
        // The pieces share the memory of their frame, so splitting copies nothing.
        let bytes = self.rest.len().min(PIECE_BYTES);
        Frame::data(self.rest.split_to(bytes))
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
                Some(Ok(data)) => self.rest = data,
                Some(Err(trailers)) => return Poll::Ready(Some(Ok(trailers))),
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(Some(Ok(self.next_piece())))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
}
