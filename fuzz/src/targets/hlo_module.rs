use hlorank_graph::{GraphError, HloModule, Limits};
use hlorank_proto::xla::HloModuleProto;
use prost::Message as _;

use crate::{
    Target,
    mutate::{field_count, mutate_message},
    reading::{LIMITS, check_module, refused},
};

/// A serialized `HloModuleProto` or `HloProto`: what is read holds together and holds the limits exactly, and is
/// what a reader of whole messages makes of it.
pub const HLO_MODULE: Target = Target { name: "hlo_module", mutate: mutate_message, read };

fn read(input: &[u8]) -> String {
    check_written_again(input);
    match HloModule::read(input, &LIMITS) {
        Ok(module) => {
            let nodes = module.len();
            let read = |nodes| HloModule::read(input, &Limits { nodes, ..LIMITS }).map(|module| module.len());
            // There may be as many computations as nodes, and empty ones count.
            let few =
                |error| matches!(error, GraphError::TooMany { what: "computations", .. }).then_some(nodes);
            assert_eq!(read(nodes).or_else(|error| few(error).ok_or("refused")), Ok(nodes), "at the limit");
            assert!(read(nodes - 1).is_err(), "one past the limit");
            check_module(module)
        }
        Err(error) => refused(&error),
    }
}

/// Reading field by field is like decoding the whole message, and writing it again.
fn check_written_again(input: &[u8]) {
    // Of several modules in an `HloProto` one is read; a decoder would merge them.
    if field_count(input, 1).is_none_or(|names| names > 1) {
        return;
    }
    let Ok(whole) = HloModuleProto::decode(input) else { return };
    let written = whole.encode_to_vec();
    let [read, again] = [input, &written].map(|bytes| HloModule::read(bytes, &LIMITS));
    match (read, again) {
        (Ok(read), Ok(again)) => {
            assert_eq!(read.arrays, again.arrays, "written again");
            assert_eq!(read.node_splits, again.node_splits, "written again");
            assert_eq!(read.unknown_opcodes, again.unknown_opcodes, "written again");
        }
        (read, again) => assert_eq!(read.err(), again.err(), "written again"),
    }
}
