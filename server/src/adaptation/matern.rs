/// The Matérn 5/2 function of a squared distance.
#[inline]
pub(super) fn matern(squared: f64) -> f64 {
    let distance = (5.0 * squared).sqrt();
    (1.0 + distance + 5.0 / 3.0 * squared) * exp_of_minus(distance)
}

/// How the function falls with the squared distance, per unit.
#[inline]
pub(super) fn matern_slope(squared: f64) -> f64 {
    let distance = (5.0 * squared).sqrt();
    -5.0 / 6.0 * (1.0 + distance) * exp_of_minus(distance)
}

/// What larger exponents count as. Its result is as good as 0.
const LARGEST: f64 = 700.0;

/// A number to whose neighbours the distance is 1, so that adding it rounds: 1.5 · 2^52.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

/// The exponent's place in the bits of a number, and the bits of 1.
const EXPONENT: u32 = 52;
const ONE: u64 = 1.0_f64.to_bits();

/// The coefficients of e^x around 0, from that of x^9 to that of x.
const SERIES: [f64; 9] = [
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
];

/// Returns e^−x of a number that is not negative, to 11 digits.
///
/// That of a library takes one number at a time. This one has no branch, so that a processor computes several in a loop, and the
/// same bits on every processor.
#[inline]
fn exp_of_minus(x: f64) -> f64 {
    // e^−x = 2^−halvings = 2^−whole · e^rest, where the rest is so small that a short series gives it.
    let halvings = x.min(LARGEST) * std::f64::consts::LOG2_E;
    // The sum has no digits after the point, and its last bits are the whole number. Shifted to the
    // place of the exponent and taken from the bits of 1, they are a power of 2.
    let shifted = halvings + ROUNDING;
    let whole = shifted - ROUNDING;
    let rest = (whole - halvings) * std::f64::consts::LN_2;
    let series = SERIES
        .iter()
        .fold(0.0, |sum, coefficient| sum * rest + coefficient);
    let power = f64::from_bits(ONE.wrapping_sub(shifted.to_bits() << EXPONENT));
    (series * rest + 1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_that_of_a_library() {
        for step in 0..7_000_u32 {
            let x = f64::from(step) / 10.0;
            let relative = exp_of_minus(x) / libm::exp(-x) - 1.0;
            assert!(relative.abs() < 1e-11, "{x}: {relative}");
        }
        assert_eq!(exp_of_minus(0.0), 1.0);
        assert!(exp_of_minus(1e300) < 1e-300);
    }

    #[test]
    fn a_configuration_is_like_itself() {
        assert_eq!(matern(0.0), 1.0);
        assert!(matern(1.0) < matern(0.5));
    }

    #[test]
    fn the_slope_is_how_the_function_falls() {
        for squared in [0.1, 1.0, 4.0] {
            let fall = (matern(squared + 1e-6) - matern(squared - 1e-6)) / 2e-6;
            assert!((fall - matern_slope(squared)).abs() < 1e-6);
        }
    }
}
