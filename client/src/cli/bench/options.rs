//! Parses arguments that are more than a plain number.

use std::{str::FromStr, time::Duration};

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
        let configs: usize = configs.parse().map_err(|error| format!("{configs}: {error}"))?;
        if configs == 0 {
            return Err("a call must have at least one configuration".to_owned());
        }
        Ok(Self { configs, weight: positive(weight)? })
    }
}

/// Parses a number above 0.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|error| format!("{text}: {error}"))?;
    if number.is_finite() && number > 0.0 { Ok(number) } else { Err(format!("{text}: must be above 0")) }
}

/// Parses a number from 0 to 1.
pub(super) fn part(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|error| format!("{text}: {error}"))?;
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(format!("{text}: must be from 0 to 1")) }
}

const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Parses a number with a unit of time.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, seconds)| *seconds);
    let seconds = seconds.ok_or_else(|| format!("{text}: needs a unit: ms, s, m or h, as in 30s"))?;
    Duration::try_from_secs_f64(positive(number)? * seconds).map_err(|error| format!("{text}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, milliseconds) in [("500ms", 500), ("30s", 30_000), ("1.5m", 90_000), ("1h", 3_600_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["30", "s", "-1s", "0s", "1d", "1e30h", ""] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_default_weight_of_a_share_is_one() {
        assert_eq!("10".parse(), Ok(Share { configs: 10, weight: 1.0 }));
        assert_eq!("1000:0.5".parse(), Ok(Share { configs: 1000, weight: 0.5 }));
        for text in ["0", "10:0", "10:", "a", "-1"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
