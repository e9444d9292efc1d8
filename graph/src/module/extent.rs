//! What reading a module takes, counted before it is read.

use hlorank_proto::xla::{ShapeProto, WindowDimension};

use super::reader::nested_bytes;
use crate::{
    GraphError, LimitKind, Limits, pace,
    recognize::inner_module,
    syntax::MAX_RANK,
    wire::{Fields, Payload},
};

/// What a module has before it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleExtent {
    /// Number of instructions. Text can imply more than it has.
    pub nodes: usize,
    /// Number of those without a shape, which may each get a long one.
    without_shapes: usize,
    /// Bytes of the largest instruction that unfold when it is decoded.
    unfolding: usize,
    /// Maximum number of operands and called computations of all instructions.
    references: usize,
}

/// Bytes of a node while a graph is read: its features as they are read, in their order, in the graph and in its segments.
const NODE_BYTES: usize = 4 * 640;

/// Bytes of a reference while a graph is read: its id, its edge and its number in the lists of operands, each in an array that takes
/// three times as much while it grows.
const REFERENCE_BYTES: usize = 3 * (size_of::<i64>() + size_of::<[u32; 2]>() + size_of::<u32>());

/// What a byte of an instruction becomes at most: a dimension of a window has two.
const UNFOLDED_BYTES: usize = size_of::<WindowDimension>() / 2;

/// Bytes of a shape that follows from those of the operands: the sizes and the order of its dimensions, and the shape itself.
const SHAPE_BYTES: usize = 2 * size_of::<i64>() * MAX_RANK + size_of::<ShapeProto>();

/// Bytes of text between two pauses.
const TEXT_BYTES: usize = 16 << 10;

impl ModuleExtent {
    /// A graph of this number of nodes.
    #[must_use]
    pub fn of_nodes(nodes: usize) -> Self {
        Self {
            nodes,
            ..Self::default()
        }
    }

    /// Counts the instructions of a serialized module.
    #[must_use]
    pub fn of_message(bytes: &[u8]) -> Self {
        let mut extent = Self::default();
        for computation in nested(inner_module(bytes), 3) {
            for instruction in pace::in_steps(16, nested(computation, 2)) {
                extent.nodes += 1;
                extent.unfolding = extent.unfolding.max(nested_bytes(instruction));
                extent.references += references(instruction);
            }
        }
        extent
    }

    /// Counts the instructions of HLO text.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let mut extent = Self::default();
        let (mut before, mut is_quoted, mut has_shape) = (b' ', false, false);
        for bytes in pace::in_steps(1, text.as_bytes().chunks(TEXT_BYTES)) {
            for &byte in bytes {
                is_quoted ^= byte == b'"';
                // The operands of an opcode stand directly behind it, and `%x#0` is an element that becomes an instruction.
                let is_opcode = matches!(before, b'a'..=b'z' | b'0'..=b'9' | b'-');
                if !is_quoted && (byte == b'(' && is_opcode || byte == b'#') {
                    extent.nodes += 1;
                    extent.without_shapes += usize::from(!has_shape);
                }
                // Every reference follows a comma or, as the first operand does, an opcode.
                extent.references += usize::from(!is_quoted && byte == b',');
                // A shape stands between the opcode and what begins its instruction.
                has_shape = match byte {
                    b']' | b')' | b'}' => true,
                    b'=' | b'(' | b',' => false,
                    _ => has_shape,
                };
                before = byte;
            }
        }
        extent.references += extent.nodes;
        extent
    }

    /// Bytes that reading it takes until its graph is in the cache.
    #[must_use]
    pub fn bytes(self, limits: &Limits) -> usize {
        self.nodes.min(limits.nodes) * NODE_BYTES
            + self.without_shapes.min(limits.nodes) * SHAPE_BYTES
            + self.unfolding * UNFOLDED_BYTES
            + self.references.min(limits.edges) * REFERENCE_BYTES
    }

    /// Returns the limits within which it takes no more than its [`bytes`](Self::bytes).
    #[must_use]
    pub fn limits(self, limits: &Limits) -> Limits {
        Limits {
            nodes: self.nodes.min(limits.nodes),
            ..*limits
        }
    }

    /// Returns whether reading within [`limits`](Self::limits) failed because text implies more instructions than it has.
    #[must_use]
    pub fn is_exceeded(self, error: &GraphError, limits: &Limits) -> bool {
        let is_of_nodes = matches!(
            error,
            GraphError::TooMany {
                kind: LimitKind::Nodes,
                ..
            }
        );
        self.nodes < limits.nodes && is_of_nodes
    }
}

/// The number of operands and called computations of an instruction. Their ids need not be packed.
fn references(instruction: &[u8]) -> usize {
    let fields = Fields::new(instruction).map_while(Result::ok);
    let counts = fields.map(|field| match field {
        (36 | 38, Payload::Bytes(ids)) => ids.iter().filter(|byte| **byte < 0x80).count(),
        (36 | 38, Payload::Varint(_)) => 1,
        _ => 0,
    });
    counts.sum()
}

/// The messages of a field, up to the first error.
fn nested(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    let fields = Fields::new(message).map_while(Result::ok);
    fields.filter_map(move |field| match field {
        (found, Payload::Bytes(bytes)) if found == number => Some(bytes),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HloModule;

    #[test]
    fn every_instruction_of_a_text_is_counted_once() {
        let text = "HloModule m\n\nc (a: f32[], b: f32[]) -> f32[] {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
                    ROOT s = f32[] add(a, b), metadata={op_name=\"jit(f)/add(x)\"}\n}\n\nENTRY e {\n  \
                    p = (f32[2]{0:T(8,128)}, f32[2]) parameter(0)\n  q = f32[2] negate(f32[2] abs(%p#0))\n  \
                    z = f32[] constant(0)\n  ROOT r = f32[] reduce(q, z), dimensions={0}, to_apply=c\n}\n";
        let read = HloModule::read_text(text, &Limits::default()).unwrap();
        let extent = ModuleExtent::of_text(text);
        assert_eq!((extent.nodes, extent.without_shapes), (read.len(), 1));
    }

    #[test]
    fn every_operand_of_a_kernel_is_counted() {
        const OPERANDS: usize = 1_000;
        let limits = Limits::default();
        let operands = vec!["p"; OPERANDS].join(", ");
        let text = format!(
            "HloModule m\n\nENTRY e {{\n  p = f32[] parameter(0)\n  ROOT t = f32[{OPERANDS}] concatenate({operands}), dimensions={{0}}\n}}\n"
        );
        let module = HloModule::read_text(&text, &limits).unwrap();
        let lists = module.operand_lists().unwrap();
        let held = size_of_val(lists.numbers()) + OPERANDS * size_of::<i64>();
        let by_nodes = ModuleExtent::of_nodes(2).bytes(&limits);
        let of_text = ModuleExtent::of_text(&text);
        assert!(of_text.bytes(&limits) - by_nodes >= held);
        // In a message, an id takes a byte, and the first id of some instruction another field.
        let mut instruction = vec![36 << 3 & 0x7f | 0x80, 2, 1];
        instruction.extend([36 << 3 & 0x7f | 2 | 0x80, 2, 3, 1, 0x80, 1]);
        assert_eq!(references(&instruction), 3);
    }

    #[test]
    fn empty_messages_unfold_too() {
        const WINDOW: u8 = 15 << 3 | 2;
        assert_eq!(nested_bytes(&[WINDOW, 0, WINDOW, 0]), 2);
        assert_eq!(nested_bytes(&[WINDOW, 2, 0x0a, 0]), 3);
    }

    #[test]
    fn a_module_exceeds_its_extent_if_more_nodes_are_allowed() {
        let limits = Limits {
            nodes: 3,
            ..Limits::default()
        };
        let error = GraphError::too_many_nodes(&limits);
        assert!(ModuleExtent::of_nodes(2).is_exceeded(&error, &limits));
        assert!(!ModuleExtent::of_nodes(3).is_exceeded(&error, &limits));
        assert!(!ModuleExtent::of_nodes(2).is_exceeded(&GraphError::Empty, &limits));
    }
}
