use std::{net::IpAddr, sync::Arc};

/// Name of the token that a call carries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenName(pub(crate) Arc<str>);

/// Mark of a call that may do what needs the scope `admin`: its token has that, or the server has no tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdminScope;

/// Mark of a call that may do what needs the scope `report`, likewise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportScope;

/// The client that a request counts for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// The holder of a token, if the server requires tokens.
    Token(TokenName),
    /// An address, if the server requires no tokens. All clients behind one proxy count as one.
    Address(IpAddr),
    /// A call that did not arrive over a connection.
    Unknown,
}

impl Caller {
    /// The name under which its measurements are kept.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Token(TokenName(name)) => name.to_string(),
            // A socket for both families shows an IPv4 client as an IPv6 address that maps it.
            Self::Address(address) => address.to_canonical().to_string(),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}
