//! Compared systems.

use crate::wire::Wire;

/// System under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Hlorank,
    PythonGrpc(Mode),
    MlServer(Mode),
}

/// Rows that a system in Python evaluates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every segment of every configuration.
    Plain,
    /// Distinct rows within one request, by `np.unique` per segment.
    Deduplicated,
}

impl System {
    /// All systems. hlorank is first because its scores are the reference.
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

    /// Returns the name for files.
    pub(crate) fn key(self) -> String {
        self.name()
            .to_lowercase()
            .replace(", ", "_")
            .replace(' ', "_")
    }

    pub(crate) fn wire(self) -> Wire {
        match self {
            Self::Hlorank | Self::PythonGrpc(_) => Wire::Hlorank,
            Self::MlServer(_) => Wire::V2,
        }
    }
}

impl Mode {
    /// Returns the value that the systems accept.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Deduplicated => "deduplicated",
        }
    }
}
