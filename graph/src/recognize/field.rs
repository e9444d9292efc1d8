//! Names what a field of a request contains instead of a module.

use super::{modules::headers, naming::known, protobuf::holds_module, without_header::with_header};
use crate::{Found, GraphError, TextError, syntax::is_hlo_text};

/// Returns the error of a field `hlo_module`, and names its content if that is of another known format.
pub(crate) fn named_module(bytes: &[u8], error: GraphError) -> GraphError {
    if holds_module(bytes) || !matches!(error, GraphError::Malformed { .. } | GraphError::Empty) {
        return error;
    }
    let found = if is_hlo_text(bytes) {
        Some(Found {
            name: "HLO text".to_owned(),
            advice: "send it as hlo_text".to_owned(),
        })
    } else {
        known(bytes)
    };
    found.map_or(error, |found| GraphError::OtherFormat {
        field: "hlo_module",
        found,
    })
}

/// Returns the error of a field `hlo_text`, and names its content if that is not one module.
pub(crate) fn named_text(text: &str, error: GraphError) -> GraphError {
    if !matches!(
        error,
        GraphError::Text {
            source: TextError::Unexpected { .. } | TextError::Unclosed { .. },
            ..
        }
    ) {
        return error;
    }
    let found = other_than_module(text);
    found.map_or(error, |found| GraphError::OtherFormat {
        field: "hlo_text",
        found,
    })
}

fn other_than_module(text: &str) -> Option<Found> {
    let mut lines = headers(text).map(|line| line + 1);
    match (lines.next(), lines.next()) {
        (Some(first), Some(second)) => Some(Found {
            name: format!("text with several HLO modules (lines {first} and {second})"),
            advice: "send one of them".to_owned(),
        }),
        (Some(_), None) if is_hlo_text(text.as_bytes()) => None,
        (Some(line), None) => Some(Found {
            name: format!("text around an HLO module, which begins in line {line}"),
            advice: "send the module alone, without what a logger wrote in front of its lines".to_owned(),
        }),
        (None, _) if is_hlo_text(text.trim_start_matches('\u{feff}').as_bytes()) => {
            let is_marked = text.starts_with('\u{feff}');
            is_marked.then(|| Found {
                name: "HLO text after a byte order mark".to_owned(),
                advice: "send it without the mark".to_owned(),
            })
        }
        (None, _) if with_header(text).is_some() => Some(Found {
            name: "HLO text without the header of a module".to_owned(),
            advice:
                "put a line such as `HloModule name` in front, and `ENTRY` in front of the entry computation"
                    .to_owned(),
        }),
        (None, _) => known(text.as_bytes()),
    }
}
