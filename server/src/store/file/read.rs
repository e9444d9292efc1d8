//! What is read from the file, each in one transaction.

use std::ops::Bound;

use hlorank_graph::{Digest, Task};
use prost::Message as _;
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable as _};

use super::tables::{
    DECISION_KEYS, DECISIONS, GRAPHS, MAX_SCANNED, MEASUREMENTS, REPORTERS_KEYS, STRUCTURES,
    SUBJECTS, under, unreadable,
};
use crate::store::{
    DecisionFilter, DecisionLookup, DecisionPage, DecisionView, GraphKind, KeptGraph, Measurement,
    MeasurementFilter, Page, Reporter, StoredDecision, Subject,
    decision::{MAX_NEAR_BYTES, MAX_NEAR_SCANNED, chosen, generation_key, similar, target_of_key},
    key::{DIGEST_BYTES, end_of_prefix, key_of_reporter_key},
    measurement::MAX_PAGE_BYTES,
};

/// Draws the keys of at most `count` measurements of a graph, of all reporters or of one: the first of every configuration, then
/// the second of every configuration that has one, and so on. Configurations come in the order of their digests, which is a
/// fixed draw, so that no configuration takes the place of another, however often it was measured.
pub(crate) fn draw(
    read: &ReadTransaction,
    subject: &Subject,
    reporter: Option<&Reporter>,
    count: usize,
) -> Result<Vec<Vec<u8>>, redb::Error> {
    let prefix = subject.prefix();
    let Some(reporter) = reporter else {
        return turns(&read.open_table(MEASUREMENTS)?, &prefix, count);
    };
    let keys = read.open_table(REPORTERS_KEYS)?;
    let drawn = turns(&keys, &subject.reporter_prefix(reporter), count)?;
    let keys = drawn
        .iter()
        .map(|key| key_of_reporter_key(prefix.len(), key));
    Ok(keys.collect())
}

/// Draws keys with a prefix, which the digest of a configuration follows, turn by turn.
fn turns<V: redb::Value + 'static>(
    table: &ReadOnlyTable<&'static [u8], V>,
    prefix: &[u8],
    count: usize,
) -> Result<Vec<Vec<u8>>, redb::Error> {
    let next = |start: Bound<&[u8]>, prefix: &[u8]| {
        let mut range = table.range::<&[u8]>((start, Bound::Unbounded))?;
        let key = range
            .next()
            .transpose()?
            .map(|(key, _)| key.value().to_vec());
        Ok::<_, redb::Error>(key.filter(|key| key.starts_with(prefix)))
    };
    let of_config = prefix.len() + DIGEST_BYTES;
    let mut drawn: Vec<Vec<u8>> = Vec::new();
    let mut start = Some(prefix.to_vec());
    // Configurations are looked up one by one, so that the measurements between them are not read.
    while let Some(from) = start.filter(|_| drawn.len() < count) {
        let Some(key) = next(Bound::Included(&from), prefix)? else {
            break;
        };
        start = key.get(..of_config).and_then(end_of_prefix);
        drawn.push(key);
    }
    let mut turn = 0..drawn.len();
    while !turn.is_empty() {
        let begin = drawn.len();
        for place in turn {
            if drawn.len() == count {
                return Ok(drawn);
            }
            let key = &drawn[place];
            drawn.extend(next(Bound::Excluded(key), &key[..of_config])?);
        }
        turn = begin..drawn.len();
    }
    Ok(drawn)
}

/// Returns the digests of the configurations that have measurements of a graph.
pub(crate) fn measured(
    read: &ReadTransaction,
    subject: &Subject,
) -> Result<Vec<Digest>, redb::Error> {
    let table = read.open_table(MEASUREMENTS)?;
    let mut measured = Vec::new();
    for entry in under(&table, &subject.prefix())? {
        let (key, _) = entry?;
        let config = Subject::config_of_key(key.value()).ok_or_else(unreadable)?;
        if measured.last() != Some(&config) {
            measured.push(config);
        }
    }
    Ok(measured)
}

/// Reads the measurements of the first of some keys, as many as fit a page. Returns also the number of keys that were read;
/// those of measurements that were deleted meanwhile are left out.
pub(crate) fn measurements(
    read: &ReadTransaction,
    keys: &[Vec<u8>],
) -> Result<(Vec<Measurement>, usize), redb::Error> {
    let table = read.open_table(MEASUREMENTS)?;
    let mut measurements = Vec::new();
    let mut bytes = 0;
    for (place, key) in keys.iter().enumerate() {
        if bytes >= MAX_PAGE_BYTES {
            return Ok((measurements, place));
        }
        if let Some(record) = table.get(key.as_slice())? {
            let found = Measurement::read(key, record.value()).ok_or_else(unreadable)?;
            bytes += key.len() + record.value().len();
            measurements.push(found.1);
        }
    }
    Ok((measurements, keys.len()))
}

/// Reads at most `count` of the chosen measurements, from the first one after the key `after`.
pub(crate) fn page(
    read: &ReadTransaction,
    chosen: &MeasurementFilter,
    after: Option<&[u8]>,
    count: usize,
) -> Result<Page, redb::Error> {
    let table = read.open_table(MEASUREMENTS)?;
    let prefix = chosen.prefix();
    let prefix = prefix.as_slice();
    // A key before the chosen ones is no place among them, so the page begins with the
    // first.
    let after = after.filter(|after| *after >= prefix);
    let start = after.map_or(Bound::Included(prefix), Bound::Excluded);
    let mut page = Page::default();
    let mut last = None;
    let mut bytes = 0;
    for (scanned, entry) in table.range::<&[u8]>((start, Bound::Unbounded))?.enumerate() {
        let (key, record) = entry?;
        let key = key.value();
        let record = record.value();
        if !key.starts_with(prefix) {
            return Ok(page);
        }
        // Only another key shows that a page is not the last one, so the check comes after
        // it. The next page begins behind the last key of this one, whether that was chosen
        // or not.
        let is_full = page.measurements.len() >= count || bytes >= MAX_PAGE_BYTES;
        if is_full || scanned >= MAX_SCANNED {
            page.next = last;
            return Ok(page);
        }
        last = Some(key.to_vec());
        if chosen.includes(key, record) {
            let measurement = Measurement::read(key, record).ok_or_else(unreadable)?;
            page.measurements.push(measurement);
            bytes += key.len() + record.len();
        }
    }
    Ok(page)
}

/// Returns the graph of a subject, if it is kept.
pub(crate) fn graph(
    read: &ReadTransaction,
    subject: &Subject,
) -> Result<Option<KeptGraph>, redb::Error> {
    let key = subject.prefix();
    let kinds = read.open_table(SUBJECTS)?;
    let graphs = read.open_table(GRAPHS)?;
    let Some(kind) = kinds.get(&key[..])? else {
        return Ok(None);
    };
    let kind = GraphKind::of_record(kind.value()).ok_or_else(unreadable)?;
    let message = graphs.get(&key[..])?.ok_or_else(unreadable)?;
    Ok(Some(KeptGraph {
        kind,
        message: message.value().to_vec(),
    }))
}

/// Returns whether the graph of a subject is kept.
pub(crate) fn has_graph(read: &ReadTransaction, subject: &Subject) -> Result<bool, redb::Error> {
    let subjects = read.open_table(SUBJECTS)?;
    Ok(subjects.get(subject.prefix().as_slice())?.is_some())
}

/// Returns at most `count` subjects whose graphs are kept and their tasks, from the first one after `after`.
pub(crate) fn subjects(
    read: &ReadTransaction,
    after: Option<&Subject>,
    count: usize,
) -> Result<Vec<(Subject, Task)>, redb::Error> {
    let subjects = read.open_table(SUBJECTS)?;
    let after = after.map(Subject::prefix);
    let start = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let some = subjects
        .range::<&[u8]>((start, Bound::Unbounded))?
        .take(count);
    let found = some.map(|entry| {
        let (key, kind) = entry?;
        let subject = Subject::of_prefix(key.value()).ok_or_else(unreadable)?;
        let kind = GraphKind::of_record(kind.value()).ok_or_else(unreadable)?;
        Ok((subject, kind.task))
    });
    found.collect()
}

/// Returns at most `count` other subjects on the target of one whose graphs have this structure: those with the lowest
/// hashes.
pub(crate) fn alike(
    read: &ReadTransaction,
    subject: &Subject,
    structure: Digest,
    count: usize,
) -> Result<Vec<Subject>, redb::Error> {
    let structures = read.open_table(STRUCTURES)?;
    let prefix = subject.structure_prefix(structure);
    let mut alike = Vec::new();
    for entry in under(&structures, &prefix)? {
        let (key, _) = entry?;
        let graph = key.value()[prefix.len()..].try_into();
        let graph = Digest(graph.map_err(|_| unreadable())?);
        if graph != subject.graph {
            alike.push(Subject {
                target: subject.target.clone(),
                graph,
            });
        }
        if alike.len() == count {
            break;
        }
    }
    Ok(alike)
}

/// Looks up a decision.
pub(crate) fn decision(
    read: &ReadTransaction,
    lookup: &DecisionLookup,
) -> Result<DecisionView, redb::Error> {
    let (keys, decisions) = (read.open_table(DECISION_KEYS)?, read.open_table(DECISIONS)?);
    let newest_first = |prefix: &[u8]| {
        let range = under(&keys, prefix)?;
        Ok::<_, redb::Error>(range.rev().map(|entry| {
            let (key, snapshot) = entry?;
            Ok::<_, redb::Error>((key.value().to_vec(), snapshot.value()))
        }))
    };
    let DecisionLookup {
        subject,
        snapshot,
        strict,
        ..
    } = lookup;
    let mut view = DecisionView {
        snapshot: latest_snapshot(&decisions)?,
        ..DecisionView::default()
    };
    for audience in lookup.audiences() {
        let rows = newest_first(&subject.prefix(audience))?;
        let rows: Vec<(Vec<u8>, u64)> = rows.collect::<Result<_, _>>()?;
        let made = rows.iter().map(|(_, snapshot)| (*snapshot, *snapshot));
        if let Some(made) = chosen(made, *snapshot, *strict) {
            view.decision = Some(decision_at(&decisions, made)?);
            return Ok(view);
        }
    }
    if !lookup.with_near {
        return Ok(view);
    }
    let mut bytes = 0;
    for audience in lookup.audiences() {
        let prefix = subject.key_prefix(audience);
        let rows = newest_first(&prefix)?.take(MAX_NEAR_SCANNED);
        let rows: Vec<(Vec<u8>, u64)> = rows.collect::<Result<_, _>>()?;
        let targets = rows
            .iter()
            .filter_map(|(key, made)| Some((target_of_key(key, prefix.len())?, *made)));
        for made in similar(subject, *snapshot, targets) {
            let near = decision_at(&decisions, made)?;
            bytes += near.value.len();
            if bytes > MAX_NEAR_BYTES {
                return Ok(view);
            }
            view.near.push(near);
        }
    }
    Ok(view)
}

/// Returns the number of the latest decision; 0 without one.
fn latest_snapshot(decisions: &ReadOnlyTable<u64, &'static [u8]>) -> Result<u64, redb::Error> {
    Ok(decisions
        .last()?
        .map_or(0, |(snapshot, _)| snapshot.value()))
}

fn decision_at(
    decisions: &ReadOnlyTable<u64, &'static [u8]>,
    snapshot: u64,
) -> Result<StoredDecision, redb::Error> {
    let record = decisions.get(snapshot)?.ok_or_else(unreadable)?;
    StoredDecision::decode(record.value()).map_err(|_| unreadable())
}

/// Reads at most `count` of the chosen decisions.
pub(crate) fn decisions(
    read: &ReadTransaction,
    chosen: &DecisionFilter,
    count: usize,
) -> Result<DecisionPage, redb::Error> {
    let (keys, decisions) = (read.open_table(DECISION_KEYS)?, read.open_table(DECISIONS)?);
    let mut page = DecisionPage {
        snapshot: latest_snapshot(&decisions)?,
        ..DecisionPage::default()
    };
    let mut last = chosen.after;
    let mut bytes = 0;
    let after = (Bound::Excluded(chosen.after), Bound::Unbounded);
    for (scanned, entry) in decisions.range::<u64>(after)?.enumerate() {
        let (snapshot, record) = entry?;
        let is_full = page.decisions.len() >= count || bytes >= MAX_PAGE_BYTES;
        if is_full || scanned >= MAX_SCANNED {
            page.next = Some(last);
            return Ok(page);
        }
        last = snapshot.value();
        let decision = StoredDecision::decode(record.value()).map_err(|_| unreadable())?;
        let prefix = decision.subject.prefix(&decision.audience);
        let next = generation_key(prefix, decision.generation + 1);
        if chosen.includes(&decision) && (chosen.all_generations || keys.get(&next[..])?.is_none())
        {
            bytes += record.value().len();
            page.decisions.push(decision);
        }
    }
    Ok(page)
}
