use hlorank_graph::{GraphError, HloModule, Limits};
use hlorank_proto::xla::HloModuleProto;
use prost::{
    Message as _,
    encoding::{DecodeContext, decode_key, skip_field},
};

use crate::{
    Target,
    mutate::mutate_bytes,
    reading::{LIMITS, check_error, check_module},
};

/// A serialized `HloModuleProto` or `HloProto`. The node limit holds exactly, and reading field by field is the same
/// as decoding the whole message.
pub const HLO_MODULE: Target = Target {
    name: "hlo_module",
    mutate: mutate_bytes,
    read,
};

fn read(input: &[u8]) {
    check_written_again(input);
    match HloModule::read(input, &LIMITS) {
        Ok(module) => {
            let nodes = module.len();
            let read = |nodes| {
                HloModule::read(input, &Limits { nodes, ..LIMITS }).map(|module| module.len())
            };
            // The limit holds for computations too, including empty ones.
            let few = |error| {
                matches!(
                    error,
                    GraphError::TooMany {
                        what: "computations",
                        ..
                    }
                )
                .then_some(nodes)
            };
            assert_eq!(
                read(nodes).or_else(|error| few(error).ok_or("refused")),
                Ok(nodes),
                "at the limit"
            );
            assert!(read(nodes - 1).is_err(), "one past the limit");
            check_module(module);
        }
        Err(error) => check_error(&error),
    }
}

/// Checks that reading field by field is the same as decoding the whole message and encoding it again.
fn check_written_again(input: &[u8]) {
    // If an `HloProto` has several modules, one is read, but a decoder merges them.
    if modules(input).is_none_or(|modules| modules > 1) {
        return;
    }
    let Ok(whole) = HloModuleProto::decode(input) else {
        return;
    };
    let written = whole.encode_to_vec();
    let [read, again] = [input, &written].map(|bytes| HloModule::read(bytes, &LIMITS));
    match (read, again) {
        (Ok(read), Ok(again)) => {
            assert_eq!(read.arrays, again.arrays, "written again");
            assert_eq!(read.node_splits, again.node_splits, "written again");
            assert_eq!(read.unknown_opcodes, again.unknown_opcodes, "written again");
        }
        // What bytes without a module are taken for depends on unknown fields too, which are not written again.
        (
            Err(GraphError::OtherFormat { .. }),
            Err(GraphError::Empty | GraphError::OtherFormat { .. }),
        ) => {}
        (read, again) => assert_eq!(read.err(), again.err(), "written again"),
    }
}

/// Returns how often a message has the field of the module in an `HloProto`, or `None` if it is no message.
fn modules(mut message: &[u8]) -> Option<usize> {
    let mut modules = 0;
    while !message.is_empty() {
        let (number, wire_type) = decode_key(&mut message).ok()?;
        skip_field(wire_type, number, &mut message, DecodeContext::default()).ok()?;
        modules += usize::from(number == 1);
    }
    Some(modules)
}
