use std::collections::HashMap;

use hlorank_graph::{ConfigurationError, GraphError, LimitKind, TextError};

use crate::{engine::EngineError, memory::MemoryFull, store::StoreError};

/// A limit that a request exceeds.
pub(crate) struct Limit {
    /// The setting that raises it, if one does.
    setting: Option<&'static str>,
    /// What the request has, if it was counted to its end.
    found: Option<usize>,
    /// What is allowed.
    allowed: usize,
}

impl Limit {
    /// A limit that a setting of the server raises.
    pub(crate) fn of(setting: &'static str, found: Option<usize>, allowed: usize) -> Self {
        Self {
            setting: Some(setting),
            found,
            allowed,
        }
    }

    /// A limit that the crate `graph` checks.
    fn of_graph(kind: LimitKind, found: Option<usize>, allowed: usize) -> Self {
        let setting = match kind {
            LimitKind::Nodes | LimitKind::Edges => "--max-nodes",
            LimitKind::Configs => "--max-configs",
            LimitKind::ConfigEntries => "--max-config-entries",
        };
        Self::of(setting, found, allowed)
    }

    /// A limit that no setting raises.
    pub(crate) fn fixed(found: Option<usize>, allowed: usize) -> Self {
        Self {
            setting: None,
            found,
            allowed,
        }
    }

    /// Returns `limit`, `found` and `allowed`, as far as they are known, for the `ErrorInfo`.
    pub(crate) fn metadata(self) -> HashMap<String, String> {
        let entries = [
            ("limit", self.setting.map(str::to_owned)),
            ("found", self.found.map(|found| found.to_string())),
            ("allowed", Some(self.allowed.to_string())),
        ];
        entries
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect()
    }
}

/// Returns what a message of `graph` leaves out: the setting of the server that raises the exceeded limit.
pub(super) fn hint(limit: Option<Limit>) -> String {
    let setting = limit.and_then(|limit| limit.setting);
    setting.map_or_else(String::new, |setting| {
        format!(", or raise {setting} on the server")
    })
}

pub(super) fn graph_limit(error: &GraphError) -> Option<Limit> {
    match error {
        GraphError::TooMany { kind, limit, .. } => Some(Limit::of_graph(*kind, None, *limit)),
        GraphError::InstructionTooLarge { found, limit, .. } => {
            Some(Limit::fixed(Some(*found), *limit))
        }
        GraphError::Text {
            source: TextError::ListTooLong { limit } | TextError::TooDeep { limit },
            ..
        } => Some(Limit::fixed(None, *limit)),
        _ => None,
    }
}

pub(super) fn configuration_limit(error: &ConfigurationError) -> Option<Limit> {
    match error {
        ConfigurationError::TooMany { found, limit } => {
            Some(Limit::of_graph(LimitKind::Configs, Some(*found), *limit))
        }
        ConfigurationError::TooManyEntries {
            configs,
            slots,
            limit,
        } => {
            let found = configs.saturating_mul(*slots);
            Some(Limit::of_graph(
                LimitKind::ConfigEntries,
                Some(found),
                *limit,
            ))
        }
        ConfigurationError::TooLong { found, limit, .. } => {
            Some(Limit::fixed(Some(*found), *limit))
        }
        _ => None,
    }
}

pub(super) fn store_limit(error: &StoreError) -> Option<Limit> {
    let (found, allowed) = match error {
        StoreError::Full {
            held,
            needed,
            limit,
        } => (held.saturating_add(*needed), *limit),
        StoreError::ShareFull { found, allowed, .. } => (*found, *allowed),
        _ => return None,
    };
    let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let setting = "--max-measurements-bytes";
    Some(Limit::of(setting, Some(bytes(found)), bytes(allowed)))
}

pub(super) fn engine_limit(error: &EngineError) -> Option<Limit> {
    match error {
        // What the call needs was not counted to its end, or is a part of what all calls take.
        EngineError::QueueFull { limit, .. } => Some(Limit::of("--max-queued-nodes", None, *limit)),
        EngineError::MemoryFull(MemoryFull { limit, .. }) => {
            Some(Limit::of("--max-call-bytes", None, *limit))
        }
        EngineError::GraphTooLarge { bytes, limit, .. } => {
            Some(Limit::of("--max-call-bytes", Some(*bytes), *limit))
        }
        _ => None,
    }
}
