use hlorank_proto::xla::HloInstructionProto;

/// Maximum rank of an array whose dimensions are kept. They take at most as much memory as the features of the node.
const MAX_KEPT_RANK: usize = 64;

/// The shape of a node, as far as the checks of its users need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeShape<'a> {
    /// `xla.PrimitiveType`.
    pub(crate) element_type: i32,
    /// Number of elements, if it is a tuple.
    pub(crate) elements: usize,
    /// Dimensions, unless they are too many to be kept.
    pub(crate) dimensions: Option<&'a [i64]>,
}

/// The shapes of nodes.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    sizes: Vec<i64>,
    kept: Vec<Kept>,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    element_type: i32,
    elements: usize,
    is_known: bool,
    /// End of its dimensions in `sizes`.
    end: usize,
}

impl Shapes {
    /// Keeps the shape of the next node.
    pub(crate) fn push(&mut self, shape: NodeShape<'_>) {
        let dimensions = shape
            .dimensions
            .filter(|dimensions| dimensions.len() <= MAX_KEPT_RANK);
        self.sizes.extend_from_slice(dimensions.unwrap_or_default());
        self.kept.push(Kept {
            element_type: shape.element_type,
            elements: shape.elements,
            is_known: dimensions.is_some(),
            end: self.sizes.len(),
        });
    }

    /// Returns the shape of a node; `None` if the node has not been added.
    pub(crate) fn get(&self, node: usize) -> Option<NodeShape<'_>> {
        let kept = self.kept.get(node)?;
        let start = node
            .checked_sub(1)
            .map_or(0, |before| self.kept[before].end);
        Some(NodeShape {
            element_type: kept.element_type,
            elements: kept.elements,
            dimensions: kept.is_known.then(|| &self.sizes[start..kept.end]),
        })
    }
}

/// Returns the shape of an instruction.
pub(crate) fn shape_of(proto: &HloInstructionProto) -> NodeShape<'_> {
    let shape = proto.shape.as_ref();
    NodeShape {
        element_type: shape.map_or(0, |shape| shape.element_type),
        elements: shape.map_or(0, |shape| shape.tuple_shapes.len()),
        dimensions: Some(shape.map_or(&[][..], |shape| &shape.dimensions)),
    }
}
