//! Names what a field of a request contains instead of a module.

use super::{
    formats::known,
    modules::{headers, with_header},
    protobuf::holds_module,
};
use crate::{Found, GraphError, TextError, syntax::is_hlo_text};

/// Returns the error of a field `hlo_module`, and names its content if that is of another known format.
pub(crate) fn named_module(bytes: &[u8], error: GraphError) -> GraphError {
    // A module with a fault of its own keeps its error, which says more than the name of its
    // format.
    if holds_module(bytes) || !matches!(error, GraphError::Malformed { .. } | GraphError::Empty) {
        return error;
    }
    let found = if is_hlo_text(bytes) {
        Some(named("HLO text", "send it as hlo_text"))
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
    let Some(first) = lines.next() else {
        return without_module(text);
    };
    if let Some(second) = lines.next() {
        let name = format!("text with several HLO modules (lines {first} and {second})");
        return Some(named(name, "send one of them"));
    }
    // Text that begins with its only module is what was asked for, so the error is inside the
    // module.
    (!is_hlo_text(text.as_bytes())).then(|| {
        named(
            format!("text around an HLO module, which begins in line {first}"),
            "send the module alone, without what a logger wrote in front of its lines",
        )
    })
}

/// Names text in which no line is the header of a module.
fn without_module(text: &str) -> Option<Found> {
    let unmarked = text.trim_start_matches('\u{feff}');
    if is_hlo_text(unmarked.as_bytes()) {
        // To `headers`, the mark is text in front of the header that no logger writes.
        return (unmarked != text).then(|| {
            named(
                "HLO text after a byte order mark",
                "send it without the mark",
            )
        });
    }
    if with_header(text).is_none() {
        return known(text.as_bytes());
    }
    Some(named(
        "HLO text without the header of a module",
        "put a line such as `HloModule name` in front, and `ENTRY` in front of the entry computation",
    ))
}

fn named(name: impl Into<String>, advice: &str) -> Found {
    Found {
        name: name.into(),
        advice: advice.to_owned(),
    }
}
