use std::time::Duration;

/// The reason why a call was not admitted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The server has too many requests in flight.
    #[error(
        "the server has {limit} requests in flight, its maximum; try again later, or raise --max-requests on the \
         server"
    )]
    Overloaded {
        /// Maximum number of requests in flight.
        limit: u32,
        /// Estimated time for half of the queued work.
        half_done_in: Duration,
    },
    /// The client has too many requests in flight.
    #[error(
        "this client has {limit} requests in flight, the maximum per client; wait for some of them, or raise \
         --max-client-requests on the server"
    )]
    ClientLimit {
        /// Maximum number of requests in flight per client.
        limit: u32,
    },
    /// The message of a call did not arrive, and the call made room for others.
    #[error(
        "the call made room for another: its message had not arrived, and {limit} calls waited for theirs, the maximum \
         {whose}; send messages with their headers, or raise {setting} on the server",
        limit = .0.number(), whose = .0.whose(), setting = .0.setting()
    )]
    Displaced(AdmissionLimit),
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
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Self::Server(_) => "--max-requests",
            Self::Client(_) => "--max-client-requests",
        }
    }

    /// Maximum number of requests.
    pub(crate) fn number(self) -> u32 {
        let (Self::Server(limit) | Self::Client(limit)) = self;
        limit
    }

    /// Whose maximum it is.
    fn whose(self) -> &'static str {
        match self {
            Self::Server(_) => "of the server",
            Self::Client(_) => "per client",
        }
    }
}

impl AdmissionError {
    /// The limit that is reached.
    pub(crate) fn limit(&self) -> AdmissionLimit {
        match *self {
            Self::Overloaded { limit, .. } => AdmissionLimit::Server(limit),
            Self::ClientLimit { limit } => AdmissionLimit::Client(limit),
            Self::Displaced(limit) => limit,
        }
    }

    /// Estimated time until the server has room; zero if it is not known.
    pub(crate) fn room_in(&self) -> Duration {
        match self {
            Self::Overloaded { half_done_in, .. } => *half_done_in,
            Self::ClientLimit { .. } | Self::Displaced(_) => Duration::ZERO,
        }
    }
}
