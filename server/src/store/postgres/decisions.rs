//! Decisions in a database.

use prost::Message as _;
use tokio_postgres::{Client, IsolationLevel, Row, Transaction};

use super::{
    PostgresStore,
    link::{LinkError, Totals, latest_snapshot, within},
    read::{Values, number, page_of, unreadable},
};
use crate::store::{
    DecisionFilter, DecisionLookup, DecisionPage, DecisionProposal, DecisionView, StoreError,
    StoredDecision,
    decision::{MAX_NEAR_BYTES, MAX_NEAR_SCANNED, chosen, similar},
    measurement::MAX_PAGE_BYTES,
};

const GENERATIONS: &str = "
    SELECT snapshot FROM hlorank_decisions
    WHERE namespace = $1 AND audience = $2 AND key = $3 AND target = $4 ORDER BY generation DESC";

/// The latest generations of a key on every target.
const TARGETS: &str = "
    SELECT snapshot, target FROM hlorank_decisions
    WHERE namespace = $1 AND audience = $2 AND key = $3 ORDER BY target DESC, generation DESC LIMIT $4";

const LATEST: &str = "
    SELECT record FROM hlorank_decisions
    WHERE namespace = $1 AND audience = $2 AND key = $3 AND target = $4 ORDER BY generation DESC LIMIT 1";

const RECORD: &str = "SELECT record FROM hlorank_decisions WHERE snapshot = $1";

/// Records after a snapshot, as many as fit into a page, and the number of those that would do without that limit. Empty names
/// stand for all.
const PAGE: &str = "
    SELECT record, snapshot, available FROM (
        SELECT record, snapshot, count(*) OVER () AS available,
            sum(length(record)) OVER (ORDER BY snapshot) - length(record) AS before
        FROM (
            SELECT record, snapshot FROM hlorank_decisions AS decision
            WHERE snapshot > $1 AND ($2 = '' OR namespace = $2) AND (audience = '' OR audience = $3)
                AND ($4 = ''::bytea OR key = $4) AND ($5 = ''::bytea OR target = $5)
                AND ($6 OR NOT EXISTS (
                    SELECT FROM hlorank_decisions AS next
                    WHERE next.namespace = decision.namespace AND next.audience = decision.audience
                        AND next.key = decision.key AND next.target = decision.target
                        AND next.generation = decision.generation + 1
                ))
            ORDER BY snapshot LIMIT $7
        ) AS listed
    ) AS summed
    WHERE before < $8 ORDER BY snapshot";

const INSERT: &str = "
    INSERT INTO hlorank_decisions (namespace, audience, key, target, generation, snapshot, record)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

impl PostgresStore {
    /// Looks up a decision.
    pub(crate) async fn decision(
        &self,
        lookup: &DecisionLookup,
    ) -> Result<DecisionView, StoreError> {
        let mut client = self.reader.client().await?;
        Ok(within(look_up(&mut client, lookup)).await?)
    }

    /// Stores a decision, and returns it once it is on disk; nothing if another one answers.
    pub(crate) async fn propose(
        &self,
        proposal: DecisionProposal,
    ) -> Result<Option<StoredDecision>, StoreError> {
        let mut client = self.writer.client().await?;
        let made = within(decide(&mut client, proposal, self.limit)).await?;
        drop(client);
        self.sample().await;
        Ok(made)
    }

    /// Reads at most `count` of the chosen decisions.
    pub(crate) async fn decisions(
        &self,
        chosen: &DecisionFilter,
        count: usize,
    ) -> Result<DecisionPage, StoreError> {
        let mut client = self.reader.client().await?;
        Ok(within(list(&mut client, chosen, count)).await?)
    }
}

/// Begins a transaction whose statements all see the same decisions.
async fn begin_read(client: &mut Client) -> Result<Transaction<'_>, LinkError> {
    let begin = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true);
    Ok(begin.start().await?)
}

async fn look_up(client: &mut Client, lookup: &DecisionLookup) -> Result<DecisionView, LinkError> {
    let DecisionLookup {
        subject,
        snapshot,
        strict,
        ..
    } = lookup;
    let (key, target) = (&subject.key, subject.target.as_bytes());
    let transaction = begin_read(client).await?;
    let latest = latest_snapshot(&transaction).await?;
    let mut found = Vec::new();
    for audience in lookup.audiences().map(str::as_bytes) {
        let values: Values<'_> = &[&subject.namespace, &audience, key, &target];
        let rows = transaction.query(GENERATIONS, values).await?;
        let made = rows.iter().map(|row| (snapshot_of(row), snapshot_of(row)));
        found.extend(chosen(made, *snapshot, *strict));
        if !found.is_empty() {
            break;
        }
    }
    let is_decided = !found.is_empty();
    if !is_decided && lookup.with_near {
        for audience in lookup.audiences().map(str::as_bytes) {
            let some = number(MAX_NEAR_SCANNED);
            let values: Values<'_> = &[&subject.namespace, &audience, key, &some];
            let rows = transaction.query(TARGETS, values).await?;
            let targets = rows.iter().filter_map(|row| {
                let target = std::str::from_utf8(row.get("target")).ok()?;
                Some((target, snapshot_of(row)))
            });
            found.extend(similar(subject, *snapshot, targets));
        }
    }
    let mut decisions = Vec::new();
    let mut bytes = 0;
    for made in found {
        let row = transaction.query_one(RECORD, &[&number(made)]).await?;
        let decision = decision_of(&row)?;
        bytes += decision.value.len();
        if bytes > MAX_NEAR_BYTES {
            break;
        }
        decisions.push(decision);
    }
    let mut view = DecisionView {
        snapshot: latest,
        ..DecisionView::default()
    };
    if is_decided {
        view.decision = decisions.pop();
    } else {
        view.near = decisions;
    }
    Ok(view)
}

async fn list(
    client: &mut Client,
    chosen: &DecisionFilter,
    count: usize,
) -> Result<DecisionPage, LinkError> {
    let subject = &chosen.subject;
    let transaction = begin_read(client).await?;
    let snapshot = latest_snapshot(&transaction).await?;
    let values: Values<'_> = &[
        &number(chosen.after),
        &subject.namespace,
        &chosen.client.name().as_bytes(),
        &subject.key,
        &subject.target.as_bytes(),
        &chosen.all_generations,
        // One more than asked for shows whether there are more.
        &number(count.saturating_add(1)),
        &number(MAX_PAGE_BYTES),
    ];
    let rows = transaction.query(PAGE, values).await?;
    let (some, last) = page_of(&rows, count);
    Ok(DecisionPage {
        decisions: some.iter().map(decision_of).collect::<Result<_, _>>()?,
        next: last.map(snapshot_of),
        snapshot,
    })
}

/// Decides in one transaction. The totals are locked first, so that the decisions of all servers come one after the other.
async fn decide(
    client: &mut Client,
    proposal: DecisionProposal,
    limit: u64,
) -> Result<Option<StoredDecision>, LinkError> {
    let transaction = client.transaction().await?;
    let totals = Totals::lock(&transaction).await?;
    let reporter = proposal.reporter.clone();
    let subject = &proposal.subject;
    let mut latest = None;
    for audience in proposal.audiences().map(str::as_bytes) {
        let target = subject.target.as_bytes();
        let values: Values<'_> = &[&subject.namespace, &audience, &subject.key, &target];
        if let Some(row) = transaction.query_opt(LATEST, values).await? {
            latest = Some(decision_of(&row)?);
            break;
        }
    }
    let snapshot = latest_snapshot(&transaction).await?;
    let Some(decision) = proposal.after(latest.as_ref(), snapshot)? else {
        return Ok(None);
    };
    let bytes = decision.bytes();
    let room = totals.room(&transaction, &reporter, limit).await?;
    room.check(&reporter, bytes)?;
    let values: Values<'_> = &[
        &decision.subject.namespace,
        &decision.audience.as_bytes(),
        &decision.subject.key,
        &decision.subject.target.as_bytes(),
        &number(decision.generation),
        &number(decision.snapshot),
        &decision.encode_to_vec(),
    ];
    transaction.execute(INSERT, values).await?;
    totals.add(&transaction, &reporter, 0, bytes).await?;
    transaction.commit().await?;
    Ok(Some(decision))
}

fn snapshot_of(row: &Row) -> u64 {
    row.get::<_, i64>("snapshot").unsigned_abs()
}

fn decision_of(row: &Row) -> Result<StoredDecision, StoreError> {
    StoredDecision::decode(row.get::<_, &[u8]>("record")).map_err(|_| unreadable())
}
