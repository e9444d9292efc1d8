//! The systems that are compared.

use crate::wire::Wire;

/// A system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Hlorank,
    PythonGrpc(Mode),
    MlServer(Mode),
}

/// What a system in Python evaluates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every segment of every configuration.
    Plain,
    /// What `np.unique` leaves of them, segment by segment, within one request.
    Deduplicated,
}

impl System {
    /// hlorank first: its scores are what the others' are held against.
    pub(crate) const ALL: [Self; 5] = [
        Self::Hlorank,
        Self::PythonGrpc(Mode::Plain),
        Self::PythonGrpc(Mode::Deduplicated),
        Self::MlServer(Mode::Plain),
        Self::MlServer(Mode::Deduplicated),
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hlorank => "hlorank",
            Self::PythonGrpc(Mode::Plain) => "Python gRPC, plain",
            Self::PythonGrpc(Mode::Deduplicated) => "Python gRPC, deduplicated",
            Self::MlServer(Mode::Plain) => "MLServer, plain",
            Self::MlServer(Mode::Deduplicated) => "MLServer, deduplicated",
        }
    }

    /// For names of files.
    pub(crate) fn key(self) -> String {
        self.name().to_lowercase().replace(", ", "_").replace(' ', "_")
    }

    pub(crate) fn wire(self) -> Wire {
        match self {
            Self::Hlorank | Self::PythonGrpc(_) => Wire::Hlorank,
            Self::MlServer(_) => Wire::V2,
        }
    }
}

impl Mode {
    /// As the systems take it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Deduplicated => "deduplicated",
        }
    }
}
