use std::{fmt::Display, str::FromStr};

/// A value of a setting, or `off`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrOff<T>(pub Option<T>);

impl<T: FromStr<Err: Display>> FromStr for OrOff<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(None));
        }
        let value = text.parse().map(|value| Self(Some(value)));
        value.map_err(|error: T::Err| format!("{error}; `off` disables it"))
    }
}
