/// The loops of a kernel, and the tensors that they write and read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopNest {
    /// Number of iterations of each loop: first those of the result, major loop first, then those of reductions.
    pub(super) extents: Vec<f64>,
    /// Number of loops of the result.
    pub(super) rank: usize,
    /// The loops of each reduction, major loop first. Reductions of equal extents share their loops.
    pub(super) reductions: Vec<Vec<usize>>,
    /// The tensors, of which the first is the result.
    pub(super) accesses: Vec<Access>,
    /// Number of instructions of the entry computation.
    pub(super) nodes: usize,
    /// Number of instructions of each counted opcode.
    pub(super) opcodes: Vec<usize>,
    /// Whether the graph says how its instructions read their operands.
    pub(super) is_exact: bool,
}

/// The loops that each dimension of a tensor follows. One that follows none is read at one place.
pub(super) type Index = Vec<Vec<Term>>;

/// A loop, and the distance in a dimension that one of its iterations moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Term {
    pub(super) of: usize,
    pub(super) step: i64,
}

/// A tensor that the loops write or read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Access {
    pub(super) is_output: bool,
    pub(super) index: Index,
    pub(super) sizes: Vec<f64>,
    /// Bytes of an element.
    pub(super) element: f64,
    /// Bytes of the tensor.
    pub(super) bytes: f64,
    /// Distance in elements that an iteration of each loop moves, in row-major order; `None` for loops that it does not follow.
    strides: Vec<Option<f64>>,
}

impl LoopNest {
    /// Returns whether the loops were followed exactly. Without the dimensions of dots and the order of operands, which
    /// arrays from elsewhere lack, these are guessed by equal sizes.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Returns the number of bytes that this holds.
    pub fn bytes(&self) -> usize {
        let access = |access: &Access| {
            size_of_val(access)
                + size_of_val(&*access.strides)
                + size_of_val(&*access.sizes)
                + size_of_val(&*access.index)
                + access
                    .index
                    .iter()
                    .map(|terms| size_of_val(&**terms))
                    .sum::<usize>()
        };
        let reduction = |loops: &Vec<usize>| size_of_val(loops) + size_of_val(&**loops);
        size_of_val(&*self.extents)
            + size_of_val(&*self.opcodes)
            + self.reductions.iter().map(reduction).sum::<usize>()
            + self.accesses.iter().map(access).sum::<usize>()
    }
}

impl Access {
    pub(super) fn new(is_output: bool, index: Index, sizes: Vec<f64>, element: f64) -> Self {
        let bytes = sizes.iter().product::<f64>() * element;
        let mut strides = Vec::new();
        let mut distance = 1.0;
        for (terms, size) in index.iter().zip(&sizes).rev() {
            for &Term { of, step } in terms {
                if strides.len() <= of {
                    strides.resize(of + 1, None);
                }
                #[expect(clippy::cast_precision_loss, reason = "columns are f32")]
                let moved = step as f64 * distance;
                *strides[of].get_or_insert(0.0) += moved;
            }
            distance *= size;
        }
        Self {
            is_output,
            index,
            sizes,
            element,
            bytes,
            strides,
        }
    }

    /// Distance in elements that an iteration of a loop moves; `None` if it moves nothing.
    pub(super) fn stride(&self, of: usize) -> Option<f64> {
        self.strides.get(of).copied().flatten()
    }
}
