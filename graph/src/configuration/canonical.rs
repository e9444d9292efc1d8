//! One configuration as bytes, for whoever keeps configurations.

use prost::encoding::decode_varint;

use crate::ConfigurationError;

/// Reads the next number from the bytes of a configuration.
pub(super) fn number(bytes: &mut &[u8]) -> Result<u64, ConfigurationError> {
    decode_varint(bytes).map_err(|error| malformed(&error.to_string()))
}

pub(super) fn malformed(detail: &str) -> ConfigurationError {
    ConfigurationError::Malformed {
        detail: detail.to_owned(),
    }
}
