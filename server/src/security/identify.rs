use std::{
    sync::Arc,
    task::{Context, Poll},
};

use http::Request;
use tonic::transport::server::TcpConnectInfo;
use tower::{Layer, Service};

use super::TrustedProxies;
use crate::admission::{Caller, TokenName};

/// Wraps services in [`Identify`].
#[derive(Clone)]
pub(crate) struct IdentifyLayer(Arc<TrustedProxies>);

/// Adds the [`Caller`] to the extensions of every call, for the limits per client.
#[derive(Clone)]
pub(crate) struct Identify<S> {
    proxies: Arc<TrustedProxies>,
    inner: S,
}

impl IdentifyLayer {
    pub(super) fn new(proxies: TrustedProxies) -> Self {
        Self(Arc::new(proxies))
    }
}

impl<S> Layer<S> for IdentifyLayer {
    type Service = Identify<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Identify {
            proxies: Arc::clone(&self.0),
            inner,
        }
    }
}

impl<S, Incoming> Service<Request<Incoming>> for Identify<S>
where
    S: Service<Request<Incoming>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Incoming>) -> Self::Future {
        // The layer is inside that of tokens, which has put the name of the token among the
        // extensions.
        let caller = caller(&self.proxies, &request);
        request.extensions_mut().insert(caller);
        self.inner.call(request)
    }
}

/// Returns the caller: the token if calls require one, otherwise the address.
fn caller<B>(proxies: &TrustedProxies, request: &Request<B>) -> Caller {
    if let Some(name) = request.extensions().get::<TokenName>() {
        return Caller::Token(name.clone());
    }
    let peer = request
        .extensions()
        .get::<TcpConnectInfo>()
        .and_then(TcpConnectInfo::remote_addr);
    peer.map_or(Caller::Unknown, |peer| {
        Caller::Address(proxies.client(peer.ip(), request.headers()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_its_token_or_its_address() {
        let proxies = TrustedProxies::default();
        let mut request = Request::new(());
        assert_eq!(caller(&proxies, &request), Caller::Unknown);
        let peer = |port| TcpConnectInfo {
            local_addr: None,
            remote_addr: Some(([192, 0, 2, 7], port).into()),
        };
        request.extensions_mut().insert(peer(1000));
        let one = caller(&proxies, &request);
        request.extensions_mut().insert(peer(2000));
        assert_eq!(caller(&proxies, &request), one, "whatever its port");
        request.extensions_mut().insert(TokenName("ci".into()));
        assert_eq!(
            caller(&proxies, &request),
            Caller::Token(TokenName("ci".into()))
        );
    }
}
