//! The types of numbers that arrays may have.

/// The type of the numbers of an array, such as `<f4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element {
    kind: Kind,
    /// Bytes of a number: 1, 2, 4 or 8.
    width: usize,
    is_big_endian: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Also bool.
    Unsigned,
    Signed,
    Float,
}

impl Element {
    /// Reads a type as numpy writes it; `None` if it is not one of numbers of at most 64 bits.
    pub(super) fn of(descr: &str) -> Option<Self> {
        let (order, descr) = descr.split_at_checked(1)?;
        let (kind, width) = descr.split_at_checked(1)?;
        let kind = match (kind, width) {
            ("b", "1") | ("u", "1" | "2" | "4" | "8") => Kind::Unsigned,
            ("i", "1" | "2" | "4" | "8") => Kind::Signed,
            ("f", "2" | "4" | "8") => Kind::Float,
            _ => return None,
        };
        let width = width.parse().ok()?;
        matches!(order, "<" | ">" | "|" | "=").then_some(Self {
            kind,
            width,
            is_big_endian: order == ">",
        })
    }

    pub(super) fn width(self) -> usize {
        self.width
    }

    /// Returns a number as f32.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "as numpy converts it"
    )]
    pub(super) fn float(self, bytes: [u8; 8]) -> f32 {
        match self.number(bytes) {
            Number::Unsigned(value) => value as f32,
            Number::Signed(value) => value as f32,
            Number::Float(value) => value as f32,
        }
    }

    /// Returns a number as an integer; fails if it is none that fits 64 bits.
    pub(super) fn integer(self, bytes: [u8; 8]) -> Result<i64, String> {
        match self.number(bytes) {
            Number::Signed(value) => Ok(value),
            Number::Unsigned(value) => {
                i64::try_from(value).map_err(|_| format!("{value} does not fit 64 bits"))
            }
            Number::Float(value) => {
                whole(value).ok_or_else(|| format!("{value} is not a whole number"))
            }
        }
    }

    /// Returns a number from its bytes, which are followed by zeros.
    fn number(self, mut bytes: [u8; 8]) -> Number {
        // With its bytes in little-endian order and zeros behind them, a number of any width is
        // read as one of 64 bits.
        if self.is_big_endian {
            bytes[..self.width].reverse();
        }
        let value = u64::from_le_bytes(bytes);
        let [first, second, third, fourth, ..] = bytes;
        match (self.kind, self.width) {
            (Kind::Unsigned, _) => Number::Unsigned(value),
            (Kind::Signed, width) => Number::Signed(signed(value, width)),
            (Kind::Float, 2) => Number::Float(half([first, second])),
            (Kind::Float, 4) => {
                Number::Float(f32::from_le_bytes([first, second, third, fourth]).into())
            }
            (Kind::Float, _) => Number::Float(f64::from_le_bytes(bytes)),
        }
    }
}

enum Number {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

/// Returns a number of `width` bytes in two's complement.
fn signed(value: u64, width: usize) -> i64 {
    let unused = 64 - 8 * width;
    // The shift back is arithmetic, so it fills the upper bits with the sign.
    (value << unused).cast_signed() >> unused
}

/// Returns the value of an IEEE number of 16 bits.
fn half(bytes: [u8; 2]) -> f64 {
    let bits = u16::from_le_bytes(bytes);
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    sign * match exponent {
        // A subnormal number has no implicit leading bit, and the exponent of the smallest normal
        // one.
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        // 1024 is the implicit leading bit; 25 is the bias of the exponent, 15, and the 10 bits of
        // the fraction.
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

/// Returns a whole number that is stored as a float.
fn whole(value: f64) -> Option<i64> {
    // 2^63. No `f64` equals the largest `i64`, so the range ends in front of the next power of two.
    const END: f64 = 9_223_372_036_854_775_808.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and within the range"
    )]
    (value.fract() == 0.0 && (-END..END).contains(&value)).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded<const N: usize>(number: [u8; N]) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(&number);
        bytes
    }

    #[test]
    fn numbers_of_every_type_are_read() {
        let integer = |descr, bytes| Element::of(descr).unwrap().integer(bytes);
        assert_eq!(integer("<i2", padded((-7_i16).to_le_bytes())), Ok(-7));
        assert_eq!(integer(">i4", padded((-7_i32).to_be_bytes())), Ok(-7));
        assert_eq!(integer("<f8", padded(3.0_f64.to_le_bytes())), Ok(3));
        assert!(integer("<f4", padded(0.5_f32.to_le_bytes())).is_err());
        assert!(integer("<u8", u64::MAX.to_le_bytes()).is_err());
        assert!(integer("<f8", padded(f64::NAN.to_le_bytes())).is_err());
        let half = |bits: u16| {
            Element::of("<f2")
                .unwrap()
                .float(padded(bits.to_le_bytes()))
        };
        assert_eq!(
            [half(0x3c00), half(0xc000), half(1), half(0x7bff)],
            [1.0, -2.0, 2f32.powi(-24), 65504.0]
        );
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
        assert_eq!(
            Element::of("|O")
                .or(Element::of("<c8"))
                .or(Element::of("<U4")),
            None
        );
    }
}
