use std::time::Duration;

use crate::refusal::{Reason, refusals};

refusals! {
    /// The reason why a call was not admitted.
    #[derive(Clone, Debug, thiserror::Error)]
    pub enum AdmissionError {
        #[error(
            "the server has {limit} requests in flight, its maximum; try again later, or raise --max-requests on the server"
        )]
        Overloaded { limit: u32, half_done_in: Duration }
            => OVERLOADED.limit("--max-requests").allowed(limit).room_in(*half_done_in),
        #[error(
            "this client has {limit} requests in flight, the maximum per client; wait for some of them, or raise \
             --max-client-requests on the server"
        )]
        ClientLimit { limit: u32 } => CLIENT_LIMIT.limit("--max-client-requests").allowed(limit),
        #[error(
            "the call made room for another: its message had not arrived, and {limit} calls waited for theirs, the maximum \
             {whose}; send messages with their headers, or raise {setting} on the server",
            limit = .0.number(), whose = .0.whose(), setting = .0.setting()
        )]
        Displaced(error: AdmissionLimit) => error.reason().limit(error.setting()).allowed(error.number()),
    }
}

/// A limit on requests is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionLimit {
    /// The limit of the server.
    Server(u32),
    /// The limit per client.
    Client(u32),
}

impl AdmissionLimit {
    /// The setting that raises it.
    fn setting(self) -> &'static str {
        match self {
            Self::Server(_) => "--max-requests",
            Self::Client(_) => "--max-client-requests",
        }
    }

    /// Maximum number of requests.
    fn number(self) -> u32 {
        let (Self::Server(limit) | Self::Client(limit)) = self;
        limit
    }

    fn reason(self) -> Reason {
        match self {
            Self::Server(_) => Reason::OVERLOADED,
            Self::Client(_) => Reason::CLIENT_LIMIT,
        }
    }

    /// Whose maximum it is.
    fn whose(self) -> &'static str {
        match self {
            Self::Server(_) => "of the server",
            Self::Client(_) => "per client",
        }
    }
}
