use std::collections::BTreeMap;

use super::{KeptGraph, Measurement, ReportOutcome, Reporter, StoreError, Subject};

/// A key and its record.
type Record = (Vec<u8>, Vec<u8>);

/// Measurements of one reporter to add, all or none.
pub(super) struct Report {
    pub(super) subject: Subject,
    pub(super) reporter: Reporter,
    pub(super) records: Vec<Record>,
    /// The graph that they are of, if it may not be kept yet.
    pub(super) graph: Option<KeptGraph>,
}

/// What the store does not have yet of a report.
pub(super) struct Additions<'a> {
    /// New records by key.
    pub(super) records: BTreeMap<&'a [u8], &'a [u8]>,
    pub(super) graph: Option<&'a KeptGraph>,
    /// Bytes that they take.
    pub(super) bytes: u64,
    pub(super) reported: ReportOutcome,
}

impl Report {
    /// Returns nothing if there are no measurements.
    pub(super) fn new(
        subject: Subject,
        measurements: &[Measurement],
        graph: Option<KeptGraph>,
    ) -> Option<Self> {
        let record = |each: &Measurement| (each.key(&subject), each.record());
        Some(Self {
            reporter: measurements.first()?.reporter.clone(),
            records: measurements.iter().map(record).collect(),
            subject,
            graph,
        })
    }

    /// Returns what is to be added, or refuses the report. `kept` says of each record whether its key is kept, and if so,
    /// whether of this measurement; `has_graph` whether the graph is kept.
    pub(super) fn additions(
        &self,
        room: &Room,
        has_graph: bool,
        kept: &[Option<bool>],
    ) -> Result<Additions<'_>, StoreError> {
        // A report may have a measurement twice, so a record is also compared with the new ones
        // before it.
        let mut records = BTreeMap::<&[u8], &[u8]>::new();
        for (index, ((key, record), kept)) in self.records.iter().zip(kept).enumerate() {
            let is_same = kept.unwrap_or_else(|| {
                Measurement::is_same(records.entry(key).or_insert(record), record)
            });
            if !is_same {
                return Err(StoreError::Changed { index });
            }
        }
        let graph = self.graph.as_ref().filter(|_| !has_graph);
        let bytes = records
            .iter()
            .map(|(key, record)| bytes_of_record(key, record));
        let of_graph = graph.map_or(0, |graph| {
            graph.kind.bytes(&self.subject, graph.message.len())
        });
        let accepted = records.len() as u64;
        let additions = Additions {
            bytes: bytes.sum::<u64>() + of_graph,
            reported: ReportOutcome {
                accepted,
                known: self.records.len() as u64 - accepted,
            },
            records,
            graph,
        };
        match room.check(&self.reporter, additions.bytes) {
            Ok(()) => Ok(additions),
            // A report without new measurements is not refused for its graph.
            Err(_) if accepted == 0 => Ok(Additions {
                graph: None,
                bytes: 0,
                ..additions
            }),
            Err(refused) => Err(refused),
        }
    }
}

/// Bytes that a record takes, with its key and the key by reporter.
pub(super) fn bytes_of_record(key: &[u8], record: &[u8]) -> u64 {
    (2 * key.len() + record.len()) as u64
}

/// How much of the store is taken before a report.
pub(super) struct Room {
    /// Maximum number of bytes.
    pub(super) limit: u64,
    /// Bytes that are held.
    pub(super) held: u64,
    /// Bytes that earlier reports of the reporter hold.
    pub(super) of_reporter: u64,
}

/// One client may hold at most this many times the bytes that remain free. Alone it can hold three quarters of the store;
/// several clients together always leave some to others.
const MAX_CLIENT_TIMES_FREE: u64 = 3;

impl Room {
    /// Checks that this many more bytes fit into the store and into the share of the reporter.
    pub(super) fn check(&self, reporter: &Reporter, needed: u64) -> Result<(), StoreError> {
        let &Self { limit, held, .. } = self;
        let sum = held.checked_add(needed);
        let Some(free) = sum.and_then(|sum| limit.checked_sub(sum)) else {
            return Err(StoreError::Full {
                held,
                needed,
                limit,
            });
        };
        // What remains free after the report decides the share, so it shrinks while the store fills
        // up.
        let found = self.of_reporter.saturating_add(needed);
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
            of_reporter,
        }
        .check(&reporter, needed)
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
}
