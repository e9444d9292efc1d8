use crate::{
    ModuleFault,
    module::shapes::NodeShape,
    syntax::{BUFFER, OPAQUE, TOKEN, TUPLE, UNBOUNDED},
};

/// Maximum number of dimensions in a message.
const MAX_SHOWN: usize = 16;

/// An array: its element type and its dimensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Array<'a> {
    pub(super) element_type: i32,
    pub(super) dimensions: &'a [i64],
}

impl Array<'_> {
    pub(super) fn rank(&self) -> usize {
        self.dimensions.len()
    }

    /// Returns the number of elements, unless a dimension is unbounded or there are too many to count.
    pub(super) fn elements(&self) -> Option<i64> {
        self.dimensions.iter().try_fold(1_i64, |product, &size| {
            if size == UNBOUNDED {
                None
            } else {
                product.checked_mul(size)
            }
        })
    }
}

/// Returns a shape as an array; `None` if it is too large to be kept, or a type that is no plain array.
pub(super) fn array(
    shape: NodeShape<'_>,
    what: impl FnOnce() -> String,
) -> Result<Option<Array<'_>>, ModuleFault> {
    match shape.element_type {
        TUPLE | OPAQUE | TOKEN => Err(ModuleFault::NotArray { what: what() }),
        // A buffer may hold anything, and so may a type that is newer than this reader.
        BUFFER.. => Ok(None),
        element_type => Ok(shape.dimensions.map(|dimensions| Array {
            element_type,
            dimensions,
        })),
    }
}

/// Returns whether two sizes can be equal. An unbounded dimension has any size.
fn is_same_size(left: i64, right: i64) -> bool {
    left == right || left == UNBOUNDED || right == UNBOUNDED
}

/// Checks that two sizes can be equal. `what` names them for the error.
pub(super) fn expect_size(
    what: impl FnOnce() -> String,
    left: i64,
    right: i64,
) -> Result<(), ModuleFault> {
    if is_same_size(left, right) {
        return Ok(());
    }
    Err(ModuleFault::Sizes {
        what: what(),
        left,
        right,
    })
}

/// Returns whether two lists of dimensions can be equal.
pub(super) fn is_same(left: &[i64], right: &[i64]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|(&left, &right)| is_same_size(left, right))
}

/// Checks that a result has the dimensions that follow from the operands.
pub(super) fn expect(
    found: &[i64],
    expected: impl Iterator<Item = i64> + Clone,
) -> Result<(), ModuleFault> {
    // The expected dimensions are compared as they are computed. Nearly all modules are valid, so
    // only a message collects them.
    let mut sizes = found.iter();
    let is_prefix = expected
        .clone()
        .all(|size| sizes.next().is_some_and(|&found| is_same_size(found, size)));
    if is_prefix && sizes.next().is_none() {
        return Ok(());
    }
    // One more than is shown, so that the message ends in an ellipsis.
    let expected: Vec<i64> = expected.take(MAX_SHOWN + 1).collect();
    Err(ModuleFault::Shape {
        expected: shown(&expected),
        found: shown(found),
    })
}

/// Checks that element types are equal, apart from the precision of floating-point numbers, which XLA allows to differ.
pub(super) fn expect_types(what: &'static str, left: i32, right: i32) -> Result<(), ModuleFault> {
    if is_same_type(left, right) {
        Ok(())
    } else {
        Err(ModuleFault::ElementTypes { what, left, right })
    }
}

/// Returns whether element types are equal, apart from precision.
pub(super) fn is_same_type(left: i32, right: i32) -> bool {
    left == right || (is_float(left) && is_float(right))
}

fn is_float(element_type: i32) -> bool {
    // `F16` to `F64`, `BF16`, and the types of 8 and 4 bits.
    matches!(element_type, 10..=12 | 16 | 19 | 20 | 23..=25 | 28 | 29 | 32 | 33)
}

/// Returns dimensions for a message.
pub(super) fn shown(dimensions: &[i64]) -> String {
    let names = dimensions.iter().take(MAX_SHOWN).map(|&size| match size {
        UNBOUNDED => "?".to_owned(),
        size => size.to_string(),
    });
    let names: Vec<String> = names.collect();
    let is_whole = dimensions.len() <= MAX_SHOWN;
    let rest = if is_whole { "" } else { ",…" };
    format!("[{}{rest}]", names.join(","))
}
