//! Sizes and durations as people write them: a number alone, or a number with a unit.
//!
//! `tests/data/units.json` has what is read, and what is refused.

use std::{ops::RangeInclusive, time::Duration};

/// Maximum duration in seconds, about 31 years, so that adding one to a time cannot overflow.
pub const MAX_SECONDS: u64 = 1_000_000_000;

/// Units of sizes, in bytes.
const SIZES: [(&str, u128); 8] = [
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

/// Units of durations, in milliseconds.
const DURATIONS: [(&str, u128); 7] = [
    ("", 1_000),
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Maximum number of decimal places that are read.
const MAX_DECIMALS: usize = 9;

const NO_SIZE: &str = "expected a number of bytes, alone or with B, kB, KiB, MB, MiB, GB or GiB, such as 67108864 or 64MiB";
const NO_DURATION: &str = "expected a number of seconds, or a number with ms, s, m, min, h or d, such as 30, 0.5 or 500ms";

/// A decimal number: `digits` divided by 10 to the power of `decimals`.
struct Decimal {
    digits: u128,
    decimals: u32,
}

/// Reads a size: a whole number of bytes, alone or as a decimal number with a unit. Blanks may precede the unit.
pub fn bytes<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let size = whole_bytes(text)?;
    N::try_from(size).map_err(|_| format!("expected fewer bytes; {size} do not fit"))
}

/// Returns a function that reads a size within limits, both of which are allowed.
pub fn bytes_within<N: TryFrom<u64>>(
    allowed: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let size = whole_bytes(text)?;
        if allowed.contains(&size) {
            bytes(text)
        } else {
            Err(format!(
                "expected {} to {} bytes, found {size}",
                allowed.start(),
                allowed.end()
            ))
        }
    }
}

/// Reads a duration of at most [`MAX_SECONDS`]: a decimal number of seconds, or of another unit that follows it.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text, &DURATIONS).ok_or(NO_DURATION)?;
    let too_long = || format!("expected at most {MAX_SECONDS} seconds");
    // A unit is a whole number of milliseconds, so a million of its parts are a whole number of nanoseconds.
    let scaled = number
        .digits
        .checked_mul(unit * 1_000_000)
        .ok_or_else(too_long)?;
    let nanoseconds = scaled / 10u128.pow(number.decimals);
    let nanoseconds = u64::try_from(nanoseconds).map_err(|_| too_long())?;
    let duration = Duration::from_nanos(nanoseconds);
    if duration > Duration::from_secs(MAX_SECONDS) {
        Err(too_long())
    } else {
        Ok(duration)
    }
}

/// Reads a duration above zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("expected more than 0 seconds".to_owned()),
        duration => Ok(duration),
    }
}

fn whole_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text, &SIZES).ok_or(NO_SIZE)?;
    let too_large = || format!("expected at most {} bytes", u64::MAX);
    let scaled = number.digits.checked_mul(unit).ok_or_else(too_large)?;
    let divisor = 10u128.pow(number.decimals);
    if !scaled.is_multiple_of(divisor) {
        return Err(format!(
            "expected a whole number of bytes, and `{text}` is none"
        ));
    }
    u64::try_from(scaled / divisor).map_err(|_| too_large())
}

/// Splits a text into a number and the size of its unit.
fn split(text: &str, units: &[(&str, u128)]) -> Option<(Decimal, u128)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let named = unit.trim_start_matches(' ');
    let is_blank_without_unit = named.is_empty() && !unit.is_empty();
    let (_, size) = units
        .iter()
        .find(|(name, _)| *name == named && !is_blank_without_unit)?;
    Some((decimal(number)?, *size))
}

fn decimal(text: &str) -> Option<Decimal> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (text, ""),
    };
    if whole.is_empty() || fraction.len() > MAX_DECIMALS || fraction.contains('.') {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some(Decimal {
        digits,
        decimals: u32::try_from(fraction.len()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn vectors(name: &str) -> Vec<Value> {
        let file: Value =
            serde_json::from_str(include_str!("../../../tests/data/units.json")).unwrap();
        file[name].as_array().unwrap().clone()
    }

    #[test]
    fn sizes_and_durations_are_read_as_the_shared_vectors_say() {
        for case in vectors("sizes") {
            let size = bytes(case[0].as_str().unwrap());
            assert_eq!(size, Ok(case[1].as_u64().unwrap()), "{case}");
        }
        for case in vectors("durations") {
            let seconds = duration(case[0].as_str().unwrap()).unwrap().as_secs_f64();
            assert_eq!(seconds, case[1].as_f64().unwrap(), "{case}");
        }
    }

    #[test]
    fn what_is_no_size_or_duration_is_an_error_that_says_what_is_expected() {
        for case in vectors("no_sizes") {
            let error = bytes::<u64>(case.as_str().unwrap()).unwrap_err();
            assert!(error.starts_with("expected "), "{case}: {error}");
        }
        for case in vectors("no_durations") {
            let error = duration(case.as_str().unwrap()).unwrap_err();
            assert!(error.starts_with("expected "), "{case}: {error}");
        }
    }

    #[test]
    fn limits_belong_to_what_they_allow() {
        let within = bytes_within::<u32>(1_024..=2_048);
        assert_eq!(within("1KiB"), Ok(1_024));
        assert_eq!(within("2KiB"), Ok(2_048));
        assert_eq!(
            within("3KiB"),
            Err("expected 1024 to 2048 bytes, found 3072".to_owned())
        );
        assert!(
            bytes::<u32>("4GiB")
                .unwrap_err()
                .contains("4294967296 do not fit")
        );
        assert!(positive_duration("0ms").is_err());
    }
}
