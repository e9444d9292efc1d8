//! Parses arguments that are more than a plain number.

use std::str::FromStr;

/// A number of configurations per call, and its relative frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) configs: usize,
    pub(super) weight: f64,
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (configs, weight) = text.split_once(':').map_or((text, "1"), |parts| parts);
        let configs = configs.parse().ok().filter(|configs| *configs > 0);
        let configs = configs
            .ok_or("expected a whole number of configurations above 0, such as 100 or 100:9")?;
        Ok(Self {
            configs,
            weight: positive(weight)?,
        })
    }
}

/// Parses a number above 0.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    // `parse` accepts `inf` and `nan`, too.
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "expected a number above 0, such as 0.5".to_owned())
}

/// Parses a number from 0 to 1.
pub(super) fn part(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1, such as 0.2".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_weight_of_a_share_is_one() {
        assert_eq!(
            "10".parse(),
            Ok(Share {
                configs: 10,
                weight: 1.0
            })
        );
        assert_eq!(
            "1000:0.5".parse(),
            Ok(Share {
                configs: 1000,
                weight: 0.5
            })
        );
        for text in ["0", "10:0", "10:", "a", "-1"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
