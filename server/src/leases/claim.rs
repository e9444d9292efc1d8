//! Claims: leases of keys instead of configurations. The leases of a key are a search with one configuration, so that claims expire,
//! are adopted and wait after a start as all leases do.

use std::time::Duration;

use hlorank_graph::Digest;

use super::{
    LeaseError, Leases,
    search::{LEASE_ID_BYTES, LeaseWorker, LeasedSearch, MAX_CLAIMS, renewals},
};
use crate::store::{DecisionLookup, DecisionProposal, DecisionSubject, DecisionView};

/// A claim that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct ClaimRequest {
    /// The worker, with its client.
    pub(crate) worker: LeaseWorker,
    /// Whether the claim is for the client alone, as its decision will be.
    pub(crate) for_itself: bool,
    /// Whether the worker makes its claim again.
    pub(crate) renew: bool,
    /// Whether the claim ends.
    pub(crate) give_back: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimState {
    /// It is the worker's.
    Granted,
    /// Another worker has had it for this time, or nobody may have one yet.
    Held(Duration),
    /// It was given back.
    Free,
}

/// What came of a proposal.
#[derive(Clone, Debug)]
pub(crate) struct ProposedDecision {
    pub(crate) view: DecisionView,
    /// The generation that the proposal made; `None` if another decision answers.
    pub(crate) made: Option<u64>,
}

/// What stands for the configuration.
const KEY: Digest = Digest([0; 32]);

impl ClaimRequest {
    /// The id of the lease, which a server that was started anew finds out, too.
    fn id(&self) -> [u8; LEASE_ID_BYTES] {
        let LeaseWorker { client, name, .. } = &self.worker;
        let Digest(digest) =
            Digest::of_parts("hlorank 2026 claim", [client.as_bytes(), name.as_bytes()]);
        *digest.first_chunk().expect("a digest is longer")
    }
}

impl LeasedSearch {
    /// Makes or ends a claim. `in_grace` says for how long the server runs, if it grants no new ones yet, and `claims` how many the
    /// client has.
    fn claim(
        &mut self,
        request: &ClaimRequest,
        in_grace: Option<Duration>,
        claims: usize,
        now: u64,
    ) -> Result<ClaimState, LeaseError> {
        // A key takes no worker with it.
        self.settle(KEY);
        let id = request.id();
        let live = self.live.first();
        if let Some(other) = live.filter(|claim| claim.id != id) {
            let since = Duration::from_millis(now.saturating_sub(other.since));
            return Ok(ClaimState::Held(since));
        }
        if request.give_back {
            *self = Self::default();
            return Ok(ClaimState::Free);
        }
        if live.is_none() {
            if let Some(running) = in_grace.filter(|_| !request.renew) {
                return Ok(ClaimState::Held(running));
            }
            if claims >= MAX_CLAIMS {
                return Err(LeaseError::TooManyClaims);
            }
        }
        self.renew(&request.worker, &id, KEY, Some(false), now);
        Ok(ClaimState::Granted)
    }
}

impl Leases {
    /// Looks up a decision and, if there is none, makes or ends a claim.
    pub(crate) async fn claim_unless_decided(
        &self,
        lookup: &DecisionLookup,
        request: &ClaimRequest,
    ) -> Result<(DecisionView, ClaimState), LeaseError> {
        let store = self.store()?;
        let view = store.decision(lookup).await?;
        if view.decision.is_some() {
            return Ok((view, ClaimState::Free));
        }
        let key = claim_key(&lookup.subject, request.for_itself, &request.worker.client);
        let state = self.claim(key, request).await?;
        if state != ClaimState::Granted {
            return Ok((view, state));
        }
        // Another worker may have proposed in between, which ends its claim: the key would be tuned twice.
        let view = store.decision(lookup).await?;
        if view.decision.is_some() {
            self.forget(key).await?;
        }
        Ok((view, state))
    }

    /// Stores a decision, or returns the one that is stored. Ends the claim of the key.
    pub(crate) async fn propose(
        &self,
        lookup: DecisionLookup,
        proposal: DecisionProposal,
    ) -> Result<ProposedDecision, LeaseError> {
        let store = self.store()?;
        let is_first = proposal.supersede == 0;
        // Whoever has tuned takes what is stored, however young it is.
        let lookup = DecisionLookup {
            strict: false,
            snapshot: if is_first { lookup.snapshot } else { 0 },
            ..lookup
        };
        if is_first {
            // The common case of all but the first costs no write.
            let view = store.decision(&lookup).await?;
            if view.decision.is_some() {
                return Ok(ProposedDecision { view, made: None });
            }
        }
        let key = claim_key(
            &proposal.subject,
            proposal.for_itself,
            proposal.reporter.name(),
        );
        let Some(decision) = store.propose(proposal).await? else {
            let view = store.decision(&lookup).await?;
            return Ok(ProposedDecision { view, made: None });
        };
        // It is decided even if that fails, and then the claim expires.
        if let Err(error) = self.forget(key).await {
            tracing::warn!(%error, "the claim of a decided key did not end; it will expire");
        }
        Ok(ProposedDecision {
            made: Some(decision.generation),
            view: DecisionView {
                snapshot: decision.snapshot,
                decision: Some(decision),
                ..DecisionView::default()
            },
        })
    }

    /// Makes or ends the claim of a key, which is not checked to be undecided.
    async fn claim(&self, key: Digest, request: &ClaimRequest) -> Result<ClaimState, LeaseError> {
        let ttl = Duration::from_millis(request.worker.ttl);
        let grace = self.grace(ttl)?;
        let in_grace = (!grace.is_zero()).then(|| renewals(ttl).saturating_sub(grace));
        let client = &request.worker.client;
        let claim =
            |search: &mut LeasedSearch, claims, now| search.claim(request, in_grace, claims, now);
        self.change(key, client, claim).await?
    }

    /// Ends whatever is leased under a key.
    async fn forget(&self, key: Digest) -> Result<(), LeaseError> {
        self.change(key, "", |search, _, _| *search = LeasedSearch::default())
            .await
    }
}

/// What names the leases of a key of a tuner, of all clients or of one.
fn claim_key(subject: &DecisionSubject, for_itself: bool, client: &str) -> Digest {
    let DecisionSubject {
        namespace,
        key,
        target,
    } = subject;
    let audience = if for_itself { client } else { "" };
    let parts = [
        namespace.as_bytes(),
        key,
        target.as_bytes(),
        audience.as_bytes(),
    ];
    Digest::of_parts("hlorank 2026 claimed key", parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_has_so_many_claims_and_gives_them_back() {
        let folder = tempfile::tempdir().unwrap();
        let leases = Leases::in_file(&folder.path().join("measurements"));
        let request = |name: &str| ClaimRequest {
            worker: LeaseWorker {
                client: "ci".to_owned(),
                name: name.to_owned(),
                machine: String::new(),
                ttl: 5_000,
            },
            for_itself: false,
            renew: false,
            give_back: false,
        };
        let give_back = |name| ClaimRequest {
            give_back: true,
            ..request(name)
        };
        let key = |number: usize| Digest::of_parts("test", [&number.to_be_bytes()[..]]);
        for number in 0..MAX_CLAIMS {
            let granted = leases.claim(key(number), &request("a")).await;
            assert_eq!(granted, Ok(ClaimState::Granted));
        }
        let last = key(MAX_CLAIMS);
        let refused = leases.claim(last, &request("a")).await;
        assert_eq!(refused, Err(LeaseError::TooManyClaims));
        let held = leases.claim(key(0), &give_back("b")).await;
        assert!(matches!(held, Ok(ClaimState::Held(_))), "{held:?}");
        let free = leases.claim(key(0), &give_back("a")).await;
        assert_eq!(free, Ok(ClaimState::Free));
        let granted = leases.claim(last, &request("a")).await;
        assert_eq!(granted, Ok(ClaimState::Granted));
    }
}
