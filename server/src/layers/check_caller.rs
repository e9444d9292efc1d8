use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::header::AUTHORIZATION;
use tonic::transport::server::TcpConnectInfo;

use crate::{
    caller::{AdminScope, Caller, ReportScope, TokenName},
    errors::{ServiceError, rejected},
    security::{AllowedHosts, TokenCheck, TokenError, TrustedProxies},
    telemetry::CallRecord,
};

/// What a listener requires of whoever calls it.
#[derive(Clone)]
pub(crate) struct CallerChecks {
    pub(crate) hosts: AllowedHosts,
    pub(crate) tokens: TokenCheck,
    pub(crate) proxies: Arc<TrustedProxies>,
}

/// Rejects calls that name a host which is not one of this server, and calls without a token that allows them, before their
/// messages are read. Adds the [`Caller`] to the extensions of the others, for the limits per client.
pub(crate) async fn check_caller(
    State(checks): State<CallerChecks>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Err(error) = checks.admit(&mut request) {
        return rejected(error);
    }
    next.run(request).await
}

impl CallerChecks {
    fn admit(&self, request: &mut Request) -> Result<(), ServiceError> {
        let hosts = &self.hosts;
        // The host comes first, so that a web page learns nothing about tokens.
        hosts.check(request.version(), request.uri(), request.headers())?;
        let permission = self.tokens.check(request.uri().path(), request.headers());
        let token = match &permission {
            Ok(permission) => permission.token.clone(),
            Err(TokenError::ScopeMissing { name, .. }) => Some(TokenName(name.as_str().into())),
            Err(_) => None,
        };
        let caller = caller(&self.proxies, token, request);
        // Rejected calls are logged, too.
        if let Some(record) = request.extensions().get::<CallRecord>() {
            record.called_by(caller.clone());
        }
        let permission = permission?;
        // No handler or log can disclose the token.
        request.headers_mut().remove(AUTHORIZATION);
        if permission.is_admin {
            request.extensions_mut().insert(AdminScope);
        }
        if permission.may_report {
            request.extensions_mut().insert(ReportScope);
        }
        request.extensions_mut().insert(caller);
        Ok(())
    }
}

/// Returns the caller: the token if calls require one, otherwise the address. The limits per client count the calls of a token
/// together, by its name.
fn caller(proxies: &TrustedProxies, token: Option<TokenName>, request: &Request) -> Caller {
    if let Some(name) = token {
        return Caller::Token(name);
    }
    let connection = request.extensions().get::<TcpConnectInfo>();
    let peer = connection.and_then(TcpConnectInfo::remote_addr);
    peer.map_or(Caller::Unknown, |peer| {
        Caller::Address(proxies.client(peer.ip(), request.headers()))
    })
}
