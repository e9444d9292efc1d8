//! Counts a call, and the memory that it holds, from its headers until the last byte of its answer is sent. A client that
//! reads slowly therefore keeps both.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use bytes::Bytes;
use http::HeaderValue;
use http_body::Frame;

use crate::{
    admission::Admission,
    caller::Caller,
    compute::ComputePool,
    errors::{ServiceError, rejected},
    security::ConnectionActivity,
    translations::{
        CallConnection, DeliveredCall, DeliverySettings, Gzip, JsonMethod, MethodKind, OpenedCall,
        answer_json, deliver,
    },
};

/// What admits calls, and receives their messages.
#[derive(Clone)]
pub(crate) struct CallAdmission {
    /// The limits on calls.
    pub(crate) admission: Arc<Admission>,
    /// The threads that decompress and read messages.
    pub(crate) pool: Arc<ComputePool>,
    /// Limits of messages.
    pub(crate) settings: DeliverySettings,
}

/// Receives the messages of a call, and admits the call when its first message has arrived. A call that could not be
/// admitted is rejected before its messages are read.
pub(crate) async fn admit(
    State(admission): State<CallAdmission>,
    mut request: Request,
    next: Next,
) -> Response {
    let opened = match admission.open(&request) {
        Ok(opened) => opened,
        Err(error) => return refused(error),
    };
    let json = request.extensions().get::<JsonMethod>().cloned();
    let call = Arc::clone(&opened.call);
    // The handler holds what it computes in the same place, so one limit bounds all of a call.
    request.extensions_mut().insert(call.place.clone());
    let mut answer = next.run(deliver(request, opened, admission.settings)).await;
    if let Some(method) = json {
        answer = answer_json(answer, method, call.place.clone(), &call.pool).await;
    }
    // The call stays in flight until its answer is sent.
    answer.map(|body| {
        Body::new(AnswerBody {
            body,
            rest: Bytes::new(),
            _call: call,
        })
    })
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

impl CallAdmission {
    /// Opens the call that a request begins.
    fn open(&self, request: &Request) -> Result<OpenedCall, ServiceError> {
        let encoding = encoding(request)?;
        let kind = MethodKind::from_path(request.uri().path());
        let caller = request.extensions().get().cloned();
        let caller = caller.unwrap_or(Caller::Unknown);
        // A full server rejects a call by its headers, so that the client need not send a message
        // of megabytes first. The place in flight is taken when the message has arrived.
        if let Some(calls) = kind.calls {
            self.admission.check(&caller, calls)?;
        }
        let window = if kind.is_stream {
            self.settings.stream_window_bytes as usize
        } else {
            // The message is read, and its bytes are counted, as it arrives.
            0
        };
        let connection = request.extensions().get::<ConnectionActivity>();
        let call = DeliveredCall {
            kind,
            place: self.admission.open(&caller, window)?,
            caller,
            admission: Arc::clone(&self.admission),
            pool: Arc::clone(&self.pool),
            connection: connection.map(CallConnection::from),
        };
        // Only a call that is not rejected counts as arriving, because it may displace another.
        let arrival = self.admission.arrive(call.caller.clone());
        Ok(OpenedCall {
            call: Arc::new(call),
            encoding,
            arrival,
        })
    }
}

/// Reads what the headers say about the messages.
fn encoding(request: &Request) -> Result<Option<Gzip>, ServiceError> {
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
    Gzip::from_headers(request.headers(), is_json)
}

/// Rejects a call. If its headers are wrong, the answer names the encodings that they may have.
fn refused(error: ServiceError) -> Response {
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

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(context)).transpose()?;
            match frame.map(Frame::into_data) {
                Some(Ok(data)) => self.rest = data,
                Some(Err(trailers)) => return Poll::Ready(Some(Ok(trailers))),
                None => return Poll::Ready(None),
            }
        }
        // The pieces share the memory of their frame, so splitting copies nothing.
        let bytes = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
}
