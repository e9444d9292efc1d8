use std::fmt::Display;

use crate::{ConfigurationError, Limits};

/// Checks the size of a batch before memory is taken for it.
pub(super) fn check_size(
    configs: usize,
    slots: usize,
    limits: &Limits,
) -> Result<(), ConfigurationError> {
    if configs == 0 {
        return Err(ConfigurationError::Empty);
    }
    if configs > limits.configs {
        return Err(ConfigurationError::TooMany {
            found: configs,
            limit: limits.configs,
        });
    }
    // The product saturates, because both factors come from outside. Below the limit, callers
    // multiply freely.
    if configs.saturating_mul(slots) > limits.config_entries {
        return Err(ConfigurationError::TooManyEntries {
            configs,
            slots,
            limit: limits.config_entries,
        });
    }
    Ok(())
}

/// Checks that a list has as many values as configurations and slots ask for.
pub(super) fn check_count(
    what: &(impl Display + ?Sized),
    found: usize,
    expected: usize,
) -> Result<(), ConfigurationError> {
    if found != expected {
        return Err(ConfigurationError::WrongCount {
            what: what.to_string(),
            found,
            expected,
        });
    }
    Ok(())
}

/// Converts a count of a batch, which limits keep far below `u32::MAX`.
pub(super) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
