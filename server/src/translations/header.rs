//! Headers of calls and of messages. One that cannot be read is an error, so that nothing that a client asks for is dropped silently.

use http::{HeaderMap, HeaderValue};

use crate::errors::ServiceError;

/// Bytes before a message: whether it is compressed, and its length.
pub(super) const PREFIX: usize = 5;

/// Reads a header; `None` if the call has none.
pub(crate) fn read_header<T>(
    headers: &HeaderMap,
    name: &'static str,
    read: impl Fn(&str) -> Option<T>,
    expected: &'static str,
) -> Result<Option<T>, ServiceError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let invalid = |found| ServiceError::Header {
        name,
        found,
        expected,
    };
    if let Some(another) = values.next() {
        return Err(invalid(format!("{} and {}", shown(value), shown(another))));
    }
    let text = value.to_str().ok();
    text.and_then(read)
        .map(Some)
        .ok_or_else(|| invalid(shown(value)))
}

/// Longest part of a value that an error repeats.
const SHOWN_BYTES: usize = 100;

fn shown(value: &HeaderValue) -> String {
    let bytes = &value.as_bytes()[..value.len().min(SHOWN_BYTES)];
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_once_or_refused() {
        let mut headers = HeaderMap::new();
        let read = |headers: &HeaderMap| {
            read_header(
                headers,
                "a",
                |text| text.parse::<u8>().ok(),
                "a small number",
            )
        };
        assert_eq!(read(&headers).unwrap(), None);
        headers.append("a", HeaderValue::from_static("7"));
        assert_eq!(read(&headers).unwrap(), Some(7));
        headers.append("a", HeaderValue::from_static("8"));
        let twice = read(&headers).unwrap_err().to_string();
        assert_eq!(
            twice,
            r#"the header a is "7 and 8", expected a small number"#
        );
        headers.insert("a", HeaderValue::from_bytes(&[b'x'; 5000]).unwrap());
        assert!(read(&headers).unwrap_err().to_string().len() < 200);
    }
}
