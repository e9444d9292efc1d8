//! Expected refusals of requests, and what texts say.

use hlorank_proto::v1::RankConfigsRequest;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::{Reach, TestServer};

/// Expected refusal of a request.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// Status.
    pub code: Code,
    /// Reason of the `ErrorInfo`.
    pub reason: &'static str,
    /// Words that the message contains, such as the place and the limit.
    pub words: &'static [&'static str],
}

/// Returns the expected refusal of invalid input.
pub const fn invalid(reason: &'static str, words: &'static [&'static str]) -> Refusal {
    Refusal {
        code: Code::InvalidArgument,
        reason,
        words,
    }
}

impl Refusal {
    /// Asserts that a status is this refusal.
    ///
    /// # Panics
    /// If it is another.
    pub fn check(&self, status: &Status) {
        let details = status.get_error_details();
        let info = details
            .error_info()
            .unwrap_or_else(|| panic!("{status} has no ErrorInfo"));
        assert_eq!(
            (status.code(), info.reason.as_str()),
            (self.code, self.reason),
            "{status}"
        );
        assert_eq!(info.domain, "hlorank");
        let to_blame = details
            .bad_request()
            .is_some_and(|request| !request.field_violations.is_empty());
        // A message that cannot be read may have no field to blame.
        assert!(
            to_blame == (self.code == Code::InvalidArgument) || self.reason == "REQUEST_MALFORMED",
            "{status}"
        );
        assert!(details.retry_info().is_none(), "trying again does not help");
        for word in self.words {
            crate::says!(status.message(), word);
        }
    }
}

impl TestServer {
    /// Asserts that requests are refused, and that a sound request is answered after each.
    ///
    /// # Panics
    /// If it is not so.
    pub async fn refuses(
        &self,
        sound: &RankConfigsRequest,
        cases: impl IntoIterator<Item = (RankConfigsRequest, Refusal)>,
    ) {
        for (request, refusal) in cases {
            let status = self.rank(request).await.expect_err(refusal.reason);
            refusal.check(&status);
            self.rank(sound.clone()).await.expect("the server goes on");
        }
    }
}

/// Returns the reason of a refusal.
///
/// # Panics
/// If the status has none.
pub fn reason(status: &Status) -> String {
    let info = status.get_details_error_info();
    info.unwrap_or_else(|| panic!("{status} has no ErrorInfo"))
        .reason
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
