//! Reads a serialized module in one pass. Instructions are counted, decoded and featurized one at a time, so memory
//! grows with the limit on nodes and not with the counts that a hostile message claims.

use hlorank_proto::xla::HloInstructionProto;
use prost::Message as _;

use super::{builder::ModuleBuilder, hlo_module::HloModule, nodes::Origin};
use crate::{
    GraphError, Limits,
    recognize::{inner_module, named_module},
    wire::{Fields, Payload},
};

/// Maximum bytes of those fields of one instruction that decode to more memory than they take on the wire: shape,
/// window, slices, padding, dimension numbers and lists of numbers. The largest known instructions are tuples of thousands of arrays.
const MAX_NESTED_BYTES: usize = 4 << 20;

impl<'a> HloModule<'a> {
    /// Reads a serialized `HloModuleProto`, `HloProto` or `HloSnapshot`. The error for another known format names it.
    pub fn read(bytes: &'a [u8], limits: &Limits) -> Result<Self, GraphError> {
        Self::read_message(bytes, limits).map_err(|error| named_module(bytes, error))
    }

    fn read_message(bytes: &'a [u8], limits: &Limits) -> Result<Self, GraphError> {
        let module = inner_module(bytes);
        // The other fields of a message around a module are not read, but a message that is cut off
        // would otherwise be read as a shorter module.
        if module.len() < bytes.len()
            && let Some(error) = Fields::new(bytes).find_map(Result::err)
        {
            return Err(malformed("the HloProto".to_owned(), &error));
        }
        let mut builder = ModuleBuilder::new(limits);
        builder.module(module)?;
        builder.finish()
    }
}

/// Reads the messages of a module.
impl<'a> ModuleBuilder<'a, '_> {
    fn module(&mut self, bytes: &'a [u8]) -> Result<(), GraphError> {
        for field in Fields::new(bytes) {
            match field.map_err(|error| malformed("the module".to_owned(), &error))? {
                (3, Payload::Bytes(computation)) => self.computation(computation)?,
                (3, _) => {
                    return Err(malformed(
                        "the module".to_owned(),
                        "field 3 is not a computation",
                    ));
                }
                (6, Payload::Varint(id)) => self.set_entry(id.cast_signed()),
                // The schedule, of which it matters only whether there is one.
                (7, Payload::Bytes([_, ..])) => self.set_scheduled(),
                _ => {}
            }
        }
        Ok(())
    }

    fn computation(&mut self, bytes: &'a [u8]) -> Result<(), GraphError> {
        self.check_computations()?;
        let header = ComputationHeader::read(bytes)
            .map_err(|detail| malformed(self.computation_place(), &detail))?;
        self.begin(header.name, header.id, header.root_id)?;
        // The header has read every field, so none of them is an error any more.
        let fields = Fields::new(bytes).map_while(Result::ok);
        for (_, payload) in fields.filter(|(number, _)| *number == 2) {
            let Payload::Bytes(instruction) = payload else {
                let place = self.computation_place();
                return Err(malformed(place, "field 2 is not an instruction"));
            };
            self.instruction(instruction, header.root_id)?;
        }
        self.end(header.name)
    }

    fn instruction(&mut self, bytes: &'a [u8], root_id: i64) -> Result<(), GraphError> {
        if self.len() >= self.limits().nodes {
            return Err(GraphError::too_many_nodes(self.limits()));
        }
        let found = nested_bytes(bytes);
        if found > MAX_NESTED_BYTES {
            return Err(GraphError::InstructionTooLarge {
                place: self.instruction_place(),
                found,
                limit: MAX_NESTED_BYTES,
            });
        }
        let instruction = HloInstructionProto::decode(bytes)
            .map_err(|error| malformed(self.instruction_place(), &error))?;
        self.push(
            &instruction,
            instruction.id == root_id,
            Origin::Message(bytes),
        )
    }

    fn computation_place(&self) -> String {
        format!("computation {}", self.computations())
    }

    fn instruction_place(&self) -> String {
        format!(
            "node {} (in computation {})",
            self.len(),
            self.computations()
        )
    }
}

/// Returns the bytes of an instruction that decode to more memory than they take on the wire. They are counted before they are
/// decoded, because a decoded element of a list takes many times the two bytes that it may have on the wire.
pub(super) fn nested_bytes(instruction: &[u8]) -> usize {
    let fields = Fields::new(instruction).map_while(Result::ok);
    let bytes = fields.map(|field| match field {
        // One byte more for each message, so that many empty ones count.
        (3 | 14..=17 | 20 | 21 | 30 | 36 | 38, Payload::Bytes(message)) => message.len() + 1,
        // Lists of numbers need not be packed.
        (14 | 20 | 36 | 38, Payload::Varint(_)) => 1,
        _ => 0,
    });
    bytes.sum()
}

/// Name and ids of a computation. They are read before its instructions, wherever they stand in the message.
struct ComputationHeader<'a> {
    name: &'a str,
    id: i64,
    root_id: i64,
}

impl<'a> ComputationHeader<'a> {
    fn read(computation: &'a [u8]) -> Result<Self, String> {
        let mut header = Self {
            name: "",
            id: 0,
            root_id: 0,
        };
        for field in Fields::new(computation) {
            match field.map_err(|error| error.to_string())? {
                (1, Payload::Bytes(name)) => {
                    header.name = std::str::from_utf8(name).map_err(|error| error.to_string())?;
                }
                (5, Payload::Varint(id)) => header.id = id.cast_signed(),
                (6, Payload::Varint(id)) => header.root_id = id.cast_signed(),
                _ => {}
            }
        }
        Ok(header)
    }
}

fn malformed(place: String, detail: &(impl ToString + ?Sized)) -> GraphError {
    GraphError::Malformed {
        place,
        detail: detail.to_string(),
    }
}
