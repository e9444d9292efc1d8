//! What the server has to know about a method before it reads a message.

use std::fmt;

/// One method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Full name of the service, such as `hlorank.v1.CostModelService`.
    pub service: &'static str,
    /// Name of the method, such as `PutGraph`.
    pub name: &'static str,
    /// The scope that a token needs; `None` for a method that needs no token.
    pub scope: Option<Scope>,
    /// What its calls count as.
    pub class: CallClass,
    /// Whether a call selects a model.
    pub selects_model: bool,
    /// Whether every call changes what the server serves or keeps.
    pub changes: bool,
    /// Whether the client sends any number of messages instead of one.
    pub is_stream: bool,
}

/// A permission of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Ranking, and questions about models.
    Read,
    /// Reports of measurements, from which calls of other clients learn.
    Report,
    /// Changes of what serves, deletion and disclosure of what other clients sent, and calls that take much processor
    /// time. Includes [`Self::Report`].
    Admin,
}

/// What calls count as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallClass {
    /// Scores, or reads graphs: counts against the limits of requests in flight.
    Scoring,
    /// Stays open to be notified, or to ask about the services: counts against the same limits, but apart.
    Watching,
    /// Takes little: never rejected for the number of calls.
    Unlimited,
}

/// Every method of our services, as the options of the `.proto` files describe it.
pub static METHODS: &[Method] = &include!(concat!(env!("OUT_DIR"), "/methods.rs"));

/// The methods of health checks and reflection, whose `.proto` files are not ours. Health checks need no token.
static FOREIGN: &[Method] = &[
    health("Check", CallClass::Unlimited),
    health("Watch", CallClass::Watching),
    reflection("grpc.reflection.v1.ServerReflection"),
    reflection("grpc.reflection.v1alpha.ServerReflection"),
];

const fn reflection(service: &'static str) -> Method {
    Method {
        service,
        name: "ServerReflectionInfo",
        scope: Some(Scope::Read),
        class: CallClass::Watching,
        selects_model: false,
        changes: false,
        is_stream: true,
    }
}

const fn health(name: &'static str, class: CallClass) -> Method {
    Method {
        service: "grpc.health.v1.Health",
        name,
        scope: None,
        class,
        selects_model: false,
        changes: false,
        is_stream: false,
    }
}

impl Method {
    /// Returns the method at a path such as `/hlorank.v1.CostModelService/PutGraph`. Returns `None` for every method that
    /// is neither ours nor listed: the server does not offer it.
    #[must_use]
    pub fn at(path: &str) -> Option<&'static Self> {
        let (service, name) = path.strip_prefix('/')?.split_once('/')?;
        // The list is short, and nothing has to be set up before a search through it.
        let mut known = METHODS.iter().chain(FOREIGN);
        known.find(|method| method.service == service && method.name == name)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Read => "read",
            Self::Report => "report",
            Self::Admin => "admin",
        })
    }
}
