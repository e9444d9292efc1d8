use super::{Reporter, StoreError};

/// How much of the store is taken before a report.
pub(super) struct Room<'a> {
    /// Maximum number of bytes.
    pub(super) limit: u64,
    /// Bytes that are held.
    pub(super) held: u64,
    /// Who reports, and how many bytes its earlier reports hold; `None` if it is not known.
    pub(super) reporter: Option<(&'a Reporter, u64)>,
}

/// One client may hold at most this many times the bytes that remain free. Alone it can hold three quarters of the store;
/// several clients together always leave some to others.
const MAX_CLIENT_TIMES_FREE: u64 = 3;

impl Room<'_> {
    /// Checks that this many more bytes fit into the store and into the share of the reporter.
    pub(super) fn check(&self, needed: u64) -> Result<(), StoreError> {
        let &Self { limit, held, .. } = self;
        let sum = held.checked_add(needed);
        let Some(free) = sum.and_then(|sum| limit.checked_sub(sum)) else {
            return Err(StoreError::Full {
                held,
                needed,
                limit,
            });
        };
        // Without a name there is no share to count in.
        let Some((reporter, of_reporter)) = self.reporter else {
            return Ok(());
        };
        // What remains free after the report decides the share, so it shrinks while the store fills
        // up.
        let found = of_reporter.saturating_add(needed);
        let allowed = free.saturating_mul(MAX_CLIENT_TIMES_FREE);
        if found <= allowed {
            return Ok(());
        }
        Err(StoreError::ShareFull {
            reporter: reporter.name().to_owned(),
            found,
            allowed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(held: u64, of_reporter: u64, needed: u64) -> Result<(), StoreError> {
        let reporter = Reporter::named("ci").unwrap();
        Room {
            limit: 1_000,
            held,
            reporter: Some((&reporter, of_reporter)),
        }
        .check(needed)
    }

    #[test]
    fn a_client_leaves_a_quarter_to_others() {
        assert_eq!(check(700, 700, 50), Ok(()));
        let refused = StoreError::ShareFull {
            reporter: "ci".to_owned(),
            found: 751,
            allowed: 747,
        };
        assert_eq!(check(700, 700, 51), Err(refused));
        assert_eq!(check(750, 0, 180), Ok(()), "another has room");
        assert_eq!(
            check(950, 0, 51),
            Err(StoreError::Full {
                held: 950,
                needed: 51,
                limit: 1_000
            })
        );
    }

    #[test]
    fn measurements_of_nobody_have_the_whole_store() {
        assert_eq!(
            Room {
                limit: 1_000,
                held: 0,
                reporter: None
            }
            .check(1_000),
            Ok(())
        );
    }
}
