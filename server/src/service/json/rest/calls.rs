use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::{
    HeaderValue, Method, Request, Response, Uri,
    header::{CONTENT_TYPE, ORIGIN},
};
use http_body_util::Full;
use serde_json::json;
use tonic::{Status, body::Body};
use tower::Service;

use super::path::{INFER, RestPath};

/// Gives calls in the REST form the path of their method and the HTTP method of every call, and errors the form that the
/// protocol has. Other calls pass unchanged.
#[derive(Clone)]
pub struct RestCalls<S>(pub S);

const SERVICE: &str = "/inference.GRPCInferenceService";

impl<S, Incoming> Service<Request<Incoming>> for RestCalls<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Incoming>) -> Self::Future {
        let path = request.uri().path();
        if path != "/v2" && !path.starts_with("/v2/") {
            return Box::pin(self.0.call(request));
        }
        // An unknown path passes, too. The layers inside refuse it, and their error gets the form
        // of the protocol on its way back.
        if let Some(path) = RestPath::of(request.method(), path) {
            translate(&mut request, path);
        }
        let response = self.0.call(request);
        Box::pin(async move { Ok(with_error(response.await?)) })
    }
}

/// Makes a request one of JSON to the method of gRPC.
fn translate<B>(request: &mut Request<B>, path: RestPath) {
    let Some(uri) = uri_of(request.uri(), path.method) else {
        return;
    };
    let headers = request.headers();
    // Clients of Triton send no content type. A page in a browser that sends none, for which it would need no permission of
    // this server, sends its origin.
    let is_json = path.method != INFER
        || !headers.contains_key(CONTENT_TYPE) && !headers.contains_key(ORIGIN);
    if is_json {
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
    }
    *request.uri_mut() = uri;
    *request.method_mut() = Method::POST;
    request.extensions_mut().insert(path);
}

/// Returns the URI of a method of gRPC on the same host.
fn uri_of(uri: &Uri, method: &str) -> Option<Uri> {
    // The query is kept, so that it is refused like that of any other call.
    let query = uri.query().map(|query| format!("?{query}"));
    let query = query.unwrap_or_default();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = format!("{SERVICE}/{method}{query}").parse().ok();
    Uri::from_parts(parts).ok()
}

/// Replaces the body of an error by the form that the protocol has.
fn with_error(response: Response<Body>) -> Response<Body> {
    let Some(status) = response.extensions().get::<Status>() else {
        return response;
    };
    let json = json!({ "error": status.message() }).to_string();
    response.map(|_| Body::new(Full::from(json)))
}
