use crate::ModuleFault;

/// Returns the position of a dimension that a tensor of `rank` dimensions must have.
pub(super) fn position(what: &'static str, found: i64, rank: usize) -> Result<usize, ModuleFault> {
    let position = usize::try_from(found)
        .ok()
        .filter(|&position| position < rank);
    position.ok_or(ModuleFault::NoSuchDimension { what, found, rank })
}

/// Distinct dimensions of a tensor of at most 64 dimensions, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Distinct(u64);

impl Distinct {
    /// Adds dimensions that the tensor must have, each once.
    pub(super) fn add(
        &mut self,
        what: &'static str,
        found: &[i64],
        rank: usize,
    ) -> Result<(), ModuleFault> {
        for &dimension in found {
            // Operands of more than 64 dimensions are not kept, so every dimension of an operand
            // has a bit.
            let bit = bit(position(what, dimension, rank)?);
            if self.0 & bit != 0 {
                return Err(ModuleFault::Repeated {
                    what,
                    found: dimension,
                });
            }
            self.0 |= bit;
        }
        Ok(())
    }

    /// Returns the sizes of the other dimensions.
    pub(super) fn others<'a>(&self, sizes: &'a [i64]) -> impl Iterator<Item = i64> + Clone + 'a {
        let Self(bits) = *self;
        let is_other = move |(position, _): &(usize, &i64)| bits & bit(*position) == 0;
        sizes
            .iter()
            .enumerate()
            .filter(is_other)
            .map(|(_, &size)| size)
    }
}

/// Returns the bit of a dimension; 0 past the dimensions of any operand.
fn bit(position: usize) -> u64 {
    u32::try_from(position)
        .ok()
        .and_then(|position| 1_u64.checked_shl(position))
        .unwrap_or(0)
}

/// Checks the length of a list.
pub(super) fn expect_count(
    what: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), ModuleFault> {
    if found == expected {
        Ok(())
    } else {
        Err(ModuleFault::Count {
            what,
            found,
            expected,
        })
    }
}

/// Returns an error about a number out of its range.
pub(super) fn value(
    what: impl Into<String>,
    found: i64,
    expected: impl Into<String>,
) -> ModuleFault {
    ModuleFault::Value {
        what: what.into(),
        found,
        expected: expected.into(),
    }
}
