//! `Decide`, which looks up, claims and proposes, and `ListDecisions`. Neither waits for anything but the store.

use std::time::Duration;

use hlorank_graph::to_hex;
use hlorank_proto::{
    methods::Scope,
    v1::{
        self, Claim, Claimed, DecideRequest, DecideResponse, DecisionEvidence, Held,
        ListDecisionsRequest, ListDecisionsResponse, NearDecision, Proposal, Undecided,
        decide_request::Step, decide_response::Outcome,
    },
};
use prost::Message as _;

use super::{
    CostModel,
    answer::written,
    decision_value::Namespace,
    leases::lease_worker,
    request::{MAX_TARGET_BYTES, PAGE_BYTES, check_length, check_scope, check_target, page_size},
};
use crate::{
    call::{Call, Client},
    clock,
    errors::ServiceError,
    leases::{ClaimRequest, ClaimState, LeaseWorker},
    store::{
        DecisionFilter, DecisionLookup, DecisionProposal, DecisionSubject, ReaderDecisions,
        StoredDecision, TargetFault, canonical_target, different_parts,
    },
    telemetry::CallRecord,
};

const MAX_KEY_BYTES: usize = 256;
const MAX_MACHINE_BYTES: usize = 64;

/// A held key is asked for again after this fraction of the time that it has been held, between these bounds.
const HELD_FRACTION: u32 = 8;
const RETRY_AFTER: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Maximum run time in seconds, as of measurements.
const MAX_SECONDS: f64 = 1e9;

impl CostModel {
    pub(super) async fn decide(
        &self,
        request: DecideRequest,
        client: &Client,
        record: &CallRecord,
    ) -> Result<DecideResponse, ServiceError> {
        let store = self.stored.store()?;
        let key = request.key.unwrap_or_default();
        let namespace = Namespace::named("key.namespace", &key.namespace)?;
        let subject = read_subject(key)?;
        let lookup = DecisionLookup {
            subject: subject.clone(),
            client: Some(client.reporter.clone()),
            snapshot: request.snapshot,
            strict: request.strict,
            with_near: request.step.is_none(),
        };
        let mut ttl = Duration::ZERO;
        let (view, claim) = match request.step {
            None => (store.decision(&lookup).await?, ClaimState::Free),
            Some(Step::Claim(claim)) => {
                let claim = self.read_claim(claim, client)?;
                ttl = Duration::from_millis(claim.worker.ttl);
                self.leases.claim_unless_decided(&lookup, &claim).await?
            }
            Some(Step::Propose(proposal)) => {
                namespace.check(&proposal.value)?;
                let proposal = self.read_proposal(proposal, &subject, client, record)?;
                let proposed = self.leases.propose(lookup, proposal).await?;
                if let Some(generation) = proposed.made {
                    record_change(record, &subject, generation);
                }
                (proposed.view, ClaimState::Free)
            }
        };
        let answers = store.series();
        let (answer, outcome) = match (view.decision, claim) {
            (Some(decision), _) => {
                let decided = message(decision, client);
                (&answers.decided, Outcome::Decided(decided))
            }
            (None, ClaimState::Granted) => {
                let expires_in = written(ttl);
                let claimed = Claimed { expires_in };
                (&answers.claimed, Outcome::Claimed(claimed))
            }
            (None, ClaimState::Held(since)) => (&answers.held, Outcome::Held(held(since))),
            (None, ClaimState::Free) => {
                let near = view.near.into_iter();
                let near = near.map(|decision| NearDecision {
                    different_parts: different_parts(&subject.target, &decision.subject.target),
                    decision: Some(message(decision, client)),
                });
                let near = near.collect();
                let undecided = Outcome::Undecided(Undecided { near });
                (&answers.undecided, undecided)
            }
        };
        answer.increment(1);
        Ok(DecideResponse {
            snapshot: match request.snapshot {
                0 => view.snapshot,
                snapshot => snapshot,
            },
            outcome: Some(outcome),
        })
    }

    pub(super) async fn list_decisions(
        &self,
        request: ListDecisionsRequest,
        call: &Call,
    ) -> Result<ListDecisionsResponse, ServiceError> {
        let store = self.stored.store()?;
        if !request.namespace.is_empty() {
            Namespace::named("namespace", &request.namespace)?;
        }
        check_length("key", &request.key, MAX_KEY_BYTES)?;
        let after = match &request.page_token[..] {
            [] => request.after_snapshot,
            token => u64::from_be_bytes(token.try_into().map_err(|_| {
                let found = format!("{} bytes long", token.len());
                ServiceError::invalid("page_token", found, "next_page_token of an answer")
            })?),
        };
        let chosen = DecisionFilter {
            subject: DecisionSubject {
                namespace: request.namespace,
                key: request.key.into(),
                target: read_target("target", &request.target)?,
            },
            client: call.client.reporter.clone(),
            all_generations: request.all_generations,
            after,
        };
        let size = page_size(request.page_size)?;
        // A page is counted before it is read, so by the size that it may have.
        call.place.hold(PAGE_BYTES)?;
        let page = store.decisions(&chosen, size).await?;
        let decisions = page.decisions.into_iter();
        Ok(ListDecisionsResponse {
            decisions: decisions.map(|each| message(each, &call.client)).collect(),
            next_page_token: page
                .next
                .map(|next| next.to_be_bytes().to_vec().into())
                .unwrap_or_default(),
            snapshot: page.snapshot,
        })
    }

    /// Whether what a client decides answers this client alone; refused if it may decide nothing.
    fn decides_for_itself(&self, client: &Client) -> Result<bool, ServiceError> {
        if client.may_report {
            return Ok(false);
        }
        match self.reader_decisions {
            ReaderDecisions::Off => check_scope(client, Scope::Report).map(|()| false),
            ReaderDecisions::Own => Ok(true),
            ReaderDecisions::All => Ok(false),
        }
    }

    fn read_claim(&self, claim: Claim, client: &Client) -> Result<ClaimRequest, ServiceError> {
        let worker = lease_worker("claim.worker", claim.worker, "claim.ttl", claim.ttl)?;
        Ok(ClaimRequest {
            worker: LeaseWorker {
                client: client.reporter.name().to_owned(),
                ..worker
            },
            for_itself: self.decides_for_itself(client)?,
            renew: claim.renew,
            give_back: claim.give_back,
        })
    }

    fn read_proposal(
        &self,
        proposal: Proposal,
        subject: &DecisionSubject,
        client: &Client,
        record: &CallRecord,
    ) -> Result<DecisionProposal, ServiceError> {
        let evidence = proposal.evidence.unwrap_or_default();
        check_evidence(&evidence)?;
        let for_itself = self.decides_for_itself(client)?;
        if proposal.supersede > 0 {
            // The audit log has a line about refused ones, too.
            record_change(record, subject, proposal.supersede.saturating_add(1));
            check_scope(client, Scope::Admin)?;
        }
        Ok(DecisionProposal {
            subject: subject.clone(),
            for_itself,
            reporter: client.reporter.clone(),
            supersede: proposal.supersede,
            value: proposal.value.into(),
            evidence: evidence.encode_to_vec(),
            decided_at: clock::seconds().unwrap_or_default(),
        })
    }
}

/// Records for the audit log what a call decides.
fn record_change(record: &CallRecord, subject: &DecisionSubject, generation: u64) {
    let DecisionSubject {
        namespace,
        key,
        target,
    } = subject;
    let key = match std::str::from_utf8(key) {
        Ok(text) => text.to_owned(),
        Err(_) => to_hex(key),
    };
    record.changes(|change| {
        change.decision = Some(format!("{namespace} {key}"));
        change.target = Some(target.clone());
        change.version = Some(generation);
    });
}

fn read_subject(key: v1::DecisionKey) -> Result<DecisionSubject, ServiceError> {
    if key.key.is_empty() {
        let hint = "send the tuner's key of what is tuned, or a graph hash";
        return Err(ServiceError::missing("key.key", hint));
    }
    check_length("key.key", &key.key, MAX_KEY_BYTES)?;
    let target = read_target("key.target", &key.target)?;
    check_target("key.target", &target)?;
    Ok(DecisionSubject {
        namespace: key.namespace,
        key: key.key.into(),
        target,
    })
}

/// Reads a target in parts.
fn read_target(field: &'static str, target: &str) -> Result<String, ServiceError> {
    check_length(field, target, MAX_TARGET_BYTES)?;
    canonical_target(target).map_err(|fault| match fault {
        TargetFault::Twice(name) => {
            let found = format!("a text with two parts `{name}`");
            ServiceError::invalid(field, found, "each part once")
        }
        TargetFault::Unnamed(part) => {
            let found = format!("a text with the part `{part}`");
            ServiceError::invalid(field, found, "NAME=VALUE for each part, separated by `;`")
        }
    })
}

fn check_evidence(evidence: &DecisionEvidence) -> Result<(), ServiceError> {
    let ranges = [
        ("propose.evidence.seconds", evidence.seconds, MAX_SECONDS),
        ("propose.evidence.tie_band", evidence.tie_band, 1.0),
    ];
    for (field, found, most) in ranges {
        if !(0.0..=most).contains(&found) {
            let expected = format!("a number from 0 to {most}");
            return Err(ServiceError::invalid(field, found.to_string(), expected));
        }
    }
    let machine = &evidence.machine;
    check_length("propose.evidence.machine", machine, MAX_MACHINE_BYTES)
}

fn held(since: Duration) -> Held {
    let [least, most] = RETRY_AFTER;
    Held {
        retry_after: written((since / HELD_FRACTION).clamp(least, most)),
        since: written(since),
    }
}

/// Writes a decision for a client.
fn message(decision: StoredDecision, client: &Client) -> v1::Decision {
    let is_shown = client.is_admin || decision.reporter == client.reporter.name();
    let subject = decision.subject;
    v1::Decision {
        key: Some(v1::DecisionKey {
            namespace: subject.namespace,
            key: subject.key.into(),
            target: subject.target,
        }),
        generation: decision.generation,
        snapshot: decision.snapshot,
        value: decision.value.into(),
        evidence: DecisionEvidence::decode(&*decision.evidence).ok(),
        // A reporter is a token's name or an address, which other clients must not learn.
        reporter: if is_shown {
            decision.reporter
        } else {
            String::new()
        },
        decided_at: decision.decided_at,
    }
}
