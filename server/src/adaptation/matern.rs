/// The Matérn 5/2 function of a squared distance.
pub(super) fn matern(squared: f64) -> f64 {
    let distance = (5.0 * squared).sqrt();
    (1.0 + distance + 5.0 / 3.0 * squared) * libm::exp(-distance)
}

/// How the function falls with the squared distance, per unit.
pub(super) fn matern_slope(squared: f64) -> f64 {
    let distance = (5.0 * squared).sqrt();
    -5.0 / 6.0 * (1.0 + distance) * libm::exp(-distance)
}

#[cfg(test)]
mod tests {
    use super::*;

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
