//! `RenewLeases`, and what other methods say about leases.

use std::time::Duration;

use bytes::Bytes;
use hlorank_graph::Digest;
use hlorank_proto::v1::{
    Lease, LeaseRequest, LeaseState, MeasurementFailure, RenewLeasesRequest, RenewLeasesResponse,
};

use super::{
    CostModel,
    answer::written,
    request::{check_length, check_target, read_hash},
};
use crate::{
    errors::ServiceError,
    leases::{
        GrantedLease, LEASE_ID_BYTES, LeaseBudget, LeaseWorker, MAX_LEASES, Renewal, SearchKey,
        WantedLeases, millis,
    },
    store::{Outcome, Subject},
};

/// Maximum length of the name of a worker, and of a search.
const MAX_NAME_BYTES: usize = 64;

/// Maximum length of the name of a machine.
pub(super) const MAX_MACHINE_BYTES: usize = 256;

/// How long a lease or a claim lasts: by default, at least and at most.
const DEFAULT_TTL: prost_types::Duration = prost_types::Duration {
    seconds: 60,
    nanos: 0,
};
const MIN_TTL: Duration = Duration::from_secs(5);
const MAX_TTL: Duration = Duration::from_hours(1);

impl CostModel {
    pub(super) async fn renew(
        &self,
        request: RenewLeasesRequest,
    ) -> Result<RenewLeasesResponse, ServiceError> {
        self.leases.store()?;
        let key = search_key(
            read_hash("graph_hash", &request.graph_hash)?,
            "target",
            request.target,
            "search",
            request.search,
        )?;
        let worker = lease_worker("worker", request.worker, "ttl", request.ttl)?;
        if request.ids.len() > MAX_LEASES {
            let found = format!("{} long", request.ids.len());
            let expected = format!("at most {MAX_LEASES} leases");
            return Err(ServiceError::invalid("ids", found, expected));
        }
        let ids = lease_ids("ids", &request.ids)?;
        if request.give_back {
            self.leases.end(&key, &ids, None).await?;
            let states = vec![LeaseState::Ended.into(); ids.len()];
            return Ok(RenewLeasesResponse { states });
        }
        if request.configs.len() != ids.len() {
            let found = format!("{} long", request.configs.len());
            let expected = format!("as long as ids, {}", ids.len());
            return Err(ServiceError::invalid("configs", found, expected));
        }
        let configs = request
            .configs
            .iter()
            .map(|config| read_hash("configs", config));
        let configs: Vec<Digest> = configs.collect::<Result<_, _>>()?;
        let leases: Vec<(Vec<u8>, Digest)> = ids.into_iter().zip(configs).collect();
        let renewed = self.leases.renew(&key, &worker, &leases).await?;
        let states = renewed.into_iter().map(LeaseState::from);
        Ok(RenewLeasesResponse {
            states: states.map(i32::from).collect(),
        })
    }

    /// Ends the leases of a report. It is stored, and so counts even if that fails.
    pub(super) async fn end_leases(&self, key: SearchKey, ids: &[Vec<u8>], configs: &[Digest]) {
        if let Err(error) = self.leases.end(&key, ids, Some(configs)).await {
            tracing::warn!(%error, "leases of a report did not end; they will expire");
        }
    }
}

/// Reads what a request asks to be leased, without its graph, which is not known yet.
pub(super) fn wanted_leases(
    lease: LeaseRequest,
    target: String,
) -> Result<WantedLeases, ServiceError> {
    check_length("lease.machine", &lease.machine, MAX_MACHINE_BYTES)?;
    let budget = lease.budget.unwrap_or_default();
    let time = budget.time.map_or(Ok(Duration::MAX), |time| {
        Duration::try_from(time).map_err(|_| {
            let expected = "a duration that is not negative";
            ServiceError::invalid("lease.budget.time", time.to_string(), expected)
        })
    });
    Ok(WantedLeases {
        key: search_key(
            Digest([0; 32]),
            "adapt.target",
            target,
            "lease.search",
            lease.search,
        )?,
        worker: LeaseWorker {
            machine: lease.machine,
            ..lease_worker("lease.worker", lease.worker, "lease.ttl", lease.ttl)?
        },
        budget: LeaseBudget {
            measurements: match budget.measurements {
                0 => usize::MAX,
                measurements => measurements as usize,
            },
            time: time?,
        },
        crash: Outcome {
            seconds: 0.0,
            repeats: 1,
            failure: MeasurementFailure::Crash.into(),
        },
        is_listed: true,
    })
}

pub(super) fn search_key(
    graph: Digest,
    target_field: &'static str,
    target: String,
    field: &'static str,
    name: String,
) -> Result<SearchKey, ServiceError> {
    check_target(target_field, &target)?;
    check_length(field, &name, MAX_NAME_BYTES)?;
    let subject = Subject { target, graph };
    Ok(SearchKey { subject, name })
}

/// Reads who asks for leases or for a claim, and for how long.
pub(super) fn lease_worker(
    field: &'static str,
    name: String,
    ttl_field: &'static str,
    ttl: Option<prost_types::Duration>,
) -> Result<LeaseWorker, ServiceError> {
    if name.is_empty() {
        let hint = "name the worker, as HOST/PROCESS";
        return Err(ServiceError::missing(field, hint));
    }
    check_length(field, &name, MAX_NAME_BYTES)?;
    let ttl = ttl.unwrap_or(DEFAULT_TTL);
    let read = Duration::try_from(ttl).ok();
    let read = read.filter(|ttl| (MIN_TTL..=MAX_TTL).contains(ttl));
    let lasts =
        read.ok_or_else(|| ServiceError::invalid(ttl_field, ttl.to_string(), "from 5 s to 1 h"))?;
    Ok(LeaseWorker {
        client: String::new(),
        name,
        machine: String::new(),
        ttl: millis(lasts),
    })
}

/// Reads the ids of leases.
pub(super) fn lease_ids(field: &'static str, ids: &[Bytes]) -> Result<Vec<Vec<u8>>, ServiceError> {
    if let Some(id) = ids.iter().find(|id| id.len() != LEASE_ID_BYTES) {
        let found = format!("{} bytes long", id.len());
        return Err(ServiceError::invalid(field, found, "16 bytes"));
    }
    Ok(ids.iter().map(|id| id.to_vec()).collect())
}

impl From<Renewal> for LeaseState {
    fn from(renewed: Renewal) -> Self {
        match renewed {
            Renewal::Held => Self::Held,
            Renewal::Adopted => Self::Adopted,
            Renewal::Ended => Self::Ended,
            Renewal::Taken => Self::Taken,
        }
    }
}

impl From<&GrantedLease> for Lease {
    fn from(lease: &GrantedLease) -> Self {
        Self {
            id: lease.id.clone().into(),
            expires_in: written(lease.lasts),
            attempt: lease.attempt,
            config: lease.config.0.to_vec().into(),
        }
    }
}
