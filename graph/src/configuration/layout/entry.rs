use std::iter::successors;

use crate::ConfigurationError;

/// Number of values of a layout entry: three tensors (output, first operand, second operand) of six dimensions.
pub const LAYOUT_VALUES: usize = TENSORS * DIMENSIONS;

const TENSORS: usize = 3;
const DIMENSIONS: usize = 6;
/// Number of values of one tensor, written as six digits to base 7, least significant first: 7⁶.
const NUMBERS: u32 = 117_649;
/// Number of bits of such a number.
const NUMBER_BITS: u32 = 17;

/// The layouts that a configuration sets at one node: 18 values of −1..5, stored as `TGraph`'s three base-7 numbers, of 17 bits each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayoutEntry(u64);

impl LayoutEntry {
    /// The entry that leaves everything to the compiler: 18 times −1.
    pub const DEFAULT: Self = Self(0);

    /// Packs 18 values; `what` names the entry in the error for one outside −1..5.
    pub fn from_values(
        values: &[i32; LAYOUT_VALUES],
        what: impl Fn() -> String,
    ) -> Result<Self, ConfigurationError> {
        let mut numbers = [0; TENSORS];
        for (number, tensor) in numbers.iter_mut().zip(values.chunks_exact(DIMENSIONS)) {
            // The last value is the most significant digit, so it comes first. The digit of the
            // compiler's choice, −1, is 0, which makes an entry of nothing else the number 0.
            for &value in tensor.iter().rev() {
                let digit = value.checked_add(1).map(u32::try_from);
                let Some(Ok(digit @ 0..7)) = digit else {
                    return Err(ConfigurationError::OutOfRange {
                        what: what(),
                        found: value.into(),
                        range: "-1..5",
                    });
                };
                *number = *number * 7 + digit;
            }
        }
        Ok(Self::pack(numbers))
    }

    fn pack(numbers: [u32; TENSORS]) -> Self {
        Self(numbers.into_iter().fold(0, |packed, number| {
            packed << NUMBER_BITS | u64::from(number)
        }))
    }

    /// Packs minor-to-major lists (output, first operand, second operand). Missing values are −1.
    pub fn from_tensors<T: AsRef<[i32]>>(
        tensors: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    ) -> Result<Self, ConfigurationError> {
        Self::from_tensors_of(tensors.into_iter(), || "the entry".to_owned())
    }

    /// Does the same; `what` names the entry in an error.
    pub(crate) fn from_tensors_of<T: AsRef<[i32]>>(
        tensors: impl ExactSizeIterator<Item = T>,
        what: impl Fn() -> String,
    ) -> Result<Self, ConfigurationError> {
        check_tensors(tensors.len(), &what)?;
        let mut values = [-1; LAYOUT_VALUES];
        for (tensor, slots) in tensors.zip(values.chunks_exact_mut(DIMENSIONS)) {
            let tensor = tensor.as_ref();
            check_dimensions(tensor.len(), &what)?;
            slots[..tensor.len()].copy_from_slice(tensor);
        }
        Self::from_values(&values, what)
    }

    /// Makes an entry of three base-7 numbers, each below 7⁶.
    pub fn from_numbers(
        numbers: [u32; TENSORS],
        what: impl Fn() -> String,
    ) -> Result<Self, ConfigurationError> {
        match numbers.iter().find(|number| **number >= NUMBERS) {
            None => Ok(Self::pack(numbers)),
            Some(&found) => Err(ConfigurationError::OutOfRange {
                what: what(),
                found: found.into(),
                range: "0..117648",
            }),
        }
    }

    /// The three numbers as one, of 17 bits each.
    pub(in crate::configuration) fn bits(self) -> u64 {
        self.0
    }

    /// Makes an entry of what [`Self::bits`] returned.
    pub(in crate::configuration) fn from_bits(
        bits: u64,
        what: impl Fn() -> String,
    ) -> Result<Self, ConfigurationError> {
        // The three numbers are the lower 51 bits. If others are set, packing the numbers again
        // gives another entry.
        let entry = Self::from_numbers(Self(bits).numbers(), &what)?;
        if entry.0 == bits {
            return Ok(entry);
        }
        Err(ConfigurationError::OutOfRange {
            what: what(),
            found: i64::try_from(bits).unwrap_or(i64::MAX),
            range: "0..2^51",
        })
    }

    /// The three base-7 numbers.
    pub fn numbers(self) -> [u32; TENSORS] {
        #[expect(clippy::cast_possible_truncation, reason = "masked")]
        [2, 1, 0].map(|place| (self.0 >> (place * NUMBER_BITS)) as u32 & ((1 << NUMBER_BITS) - 1))
    }

    /// The 18 values of −1..5.
    pub fn values(self) -> [i8; LAYOUT_VALUES] {
        const POWERS: [u32; DIMENSIONS] = [1, 7, 49, 343, 2401, 16807];
        let numbers = self.numbers();
        std::array::from_fn(|value| {
            let digit = numbers[value / DIMENSIONS] / POWERS[value % DIMENSIONS] % 7;
            i8::try_from(digit).unwrap_or(0) - 1
        })
    }

    /// The dimensions that each tensor lists, without the places that it leaves to the compiler.
    pub(super) fn listed(self) -> [impl Iterator<Item = i8>; TENSORS] {
        // The rest of a number is 0 once all further values are −1, so the search ends there.
        self.numbers().map(|number| {
            successors(Some(number), |rest| Some(rest / 7))
                .take_while(|rest| *rest > 0)
                .map(|rest| i8::try_from(rest % 7).unwrap_or(0) - 1)
                .filter(|dimension| *dimension >= 0)
        })
    }

    /// The minor-to-major lists, without values of −1 at their ends and without empty lists at the end.
    pub fn tensors(self) -> Vec<Vec<i32>> {
        let values = self.values();
        let trimmed = |tensor: &[i8]| {
            let used = tensor.iter().rposition(|value| *value >= 0);
            let used = used.map_or(0, |last| last + 1);
            tensor[..used].iter().copied().map(i32::from).collect()
        };
        let mut tensors: Vec<Vec<i32>> = values.chunks_exact(DIMENSIONS).map(trimmed).collect();
        while tensors.pop_if(|tensor| tensor.is_empty()).is_some() {}
        tensors
    }
}

/// Checks the number of tensors of the entry that `what` names.
pub(super) fn check_tensors(
    found: usize,
    what: impl Fn() -> String,
) -> Result<(), ConfigurationError> {
    check_length(found, TENSORS, || {
        format!("the list of tensors of {}", what())
    })
}

/// Checks the number of dimensions of a tensor of the entry that `what` names.
pub(super) fn check_dimensions(
    found: usize,
    what: impl Fn() -> String,
) -> Result<(), ConfigurationError> {
    check_length(found, DIMENSIONS, || {
        format!("a minor_to_major of {}", what())
    })
}

fn check_length(
    found: usize,
    limit: usize,
    what: impl Fn() -> String,
) -> Result<(), ConfigurationError> {
    if found > limit {
        return Err(ConfigurationError::TooLong {
            what: what(),
            found,
            limit,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn somewhere() -> String {
        "configuration 3, node 7".to_owned()
    }

    #[test]
    fn values_pack_as_tgraph_does() {
        let mut values = [-1; LAYOUT_VALUES];
        values[0] = 4;
        values[1] = 0;
        values[17] = 5;
        let entry = LayoutEntry::from_values(&values, somewhere).unwrap();
        assert_eq!(entry.numbers(), [5 + 7, 0, 6 * 16807]);
        assert_eq!(entry.values().map(i32::from), values);
    }

    #[test]
    fn tensors_come_back() {
        let tensors = [vec![4, 0], vec![], vec![-1, 2]];
        let entry = LayoutEntry::from_tensors_of(tensors.iter(), somewhere).unwrap();
        assert_eq!(entry.tensors(), tensors);
        assert!(LayoutEntry::DEFAULT.tensors().is_empty());
        let listed = entry.listed().map(Vec::from_iter);
        assert_eq!(listed, [vec![4, 0], vec![], vec![2]]);
    }
}
