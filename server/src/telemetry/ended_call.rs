use std::{net::SocketAddr, time::Duration};

use tonic::Code;

use super::request_id::RequestId;
use crate::metrics::Method;

/// How a call to one of our services ended.
pub(super) struct EndedCall<'a> {
    pub(super) method: &'a Method,
    pub(super) code: Code,
    /// The reason in the `ErrorInfo` of a failed call.
    pub(super) reason: Option<&'a str>,
    pub(super) duration: Duration,
    pub(super) id: &'a RequestId,
    /// The address that the client connected to.
    pub(super) server: Option<SocketAddr>,
    pub(super) peer: Option<SocketAddr>,
    pub(super) request_bytes: u64,
    pub(super) answer_bytes: u64,
}
