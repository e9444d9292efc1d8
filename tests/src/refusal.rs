//! Reasons of refusals, and what texts say.

use hlorank_client::ClientError;
use tonic::Status;
use tonic_types::StatusExt as _;

/// Returns the reason of a refusal.
pub fn reason(status: &Status) -> String {
    let info = status.get_details_error_info();
    info.unwrap_or_else(|| panic!("{status} has no ErrorInfo"))
        .reason
}

/// Asserts that a server refused a call for this reason.
pub fn assert_reason(error: &ClientError, reason: &str) {
    let found = error.refusal().and_then(|refusal| refusal.reason());
    assert_eq!(found, Some(reason), "{error}");
}

/// Returns the bits of scores, which are equal only for equal numbers.
pub fn bits(scores: &[f32]) -> Vec<u32> {
    scores.iter().map(|score| score.to_bits()).collect()
}

/// Asserts that a text contains all of some words.
#[macro_export]
macro_rules! says {
    ($text:expr, $($word:expr),+ $(,)?) => {
        match &$text {
            text => {$(
                match &$word {
                    word => {
                        let (text, word): (&str, &str) = (text.as_ref(), word.as_ref());
                        assert!(text.contains(word), "{text:?} does not say {word:?}");
                    }
                }
            )+}
        }
    };
}
