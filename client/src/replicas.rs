//! Replicas: servers with the same models. Selects the one to call about a graph, and the ones to try after it.

use std::{
    cmp::Reverse,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use hlorank_graph::Digest;
use hlorank_proto::v1::{
    cost_model_service_client::CostModelServiceClient, model_service_client::ModelServiceClient,
};
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};

use crate::{Address, ClientError, Connection, Token};

/// The servers of a client.
#[derive(Debug)]
pub(crate) struct Replicas(Vec<Arc<Replica>>);

/// One server.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) endpoint: String,
    pub(crate) address: Address,
    /// `host:port`, which determines the weight of the replica.
    authority: String,
    channel: Channel,
    /// Token of its calls.
    pub(crate) token: Option<Token>,
    message_bytes: usize,
    /// How long an attempt to reach an unavailable replica keeps other calls from trying it.
    connect_timeout: Duration,
    /// Until then the replica is tried last; `None` if it is available.
    unavailable_until: Mutex<Option<Instant>>,
}

/// The order in which one call tries the replicas. It starts over after the last.
#[derive(Debug)]
pub(crate) struct ReplicaOrder {
    order: Vec<Arc<Replica>>,
    untried: Vec<Arc<Replica>>,
}

/// Context of the digest, which makes the weights of replicas differ from all other digests.
const REPLICA_PURPOSE: &str = "hlorank 2026-11 replica";

/// How long a replica that did not answer is tried last.
const UNAVAILABLE_TIME: Duration = Duration::from_secs(1);

impl Replicas {
    /// Connects to all servers concurrently. Fails if none accepts the connection.
    pub(crate) async fn connect(
        addresses: &[Address],
        connection: &Connection,
    ) -> Result<Self, ClientError> {
        let opened = addresses.iter().map(|address| connection.endpoint(address));
        let opened: Vec<Endpoint> = opened.collect::<Result<_, _>>()?;
        let connected = join_all(opened.iter().map(Endpoint::connect)).await;
        if connected.iter().all(Result::is_err) {
            let first = connected.into_iter().find_map(Result::err);
            let source = first.ok_or(ClientError::NoEndpoint)?;
            let all: Vec<String> = addresses.iter().map(Address::to_string).collect();
            return Err(ClientError::no_connection(&all.join(", "), &source));
        }
        let replicas = addresses.iter().zip(&opened).zip(connected);
        let replicas = replicas.map(|((address, endpoint), channel)| {
            Arc::new(Replica::new(address, endpoint, channel.ok(), connection))
        });
        Ok(Self(replicas.collect()))
    }

    /// Returns the order for a call about the graph of a route key. It depends only on the set of servers, and removing
    /// one keeps the order of the others (rendezvous hashing).
    pub(crate) fn order(&self, route: &[u8]) -> ReplicaOrder {
        let mut order = self.0.clone();
        // Each replica has a weight of its own for every graph, so adding or removing one changes
        // no other weight.
        order.sort_by_cached_key(|replica| Reverse(weight(route, &replica.authority)));
        ReplicaOrder {
            untried: order.clone(),
            order,
        }
    }
}

/// Connects to each of several servers by itself, and returns their addresses and connections.
pub(crate) async fn each<C>(
    endpoints: impl IntoIterator<Item = impl AsRef<str>>,
    connect: impl AsyncFn(&Address) -> Result<C, ClientError>,
) -> Result<Vec<(String, Result<C, ClientError>)>, ClientError> {
    let addresses = endpoints.into_iter().map(|text| text.as_ref().parse());
    let addresses: Vec<Address> = addresses.collect::<Result<_, _>>()?;
    let resolved = join_all(addresses.into_iter().map(Address::resolve)).await;
    let servers: Vec<Address> = resolved.into_iter().flatten().collect();
    let connections = join_all(servers.iter().map(|address| connect(address))).await;
    let names = servers.iter().map(Address::to_string);
    Ok(names.zip(connections).collect())
}

/// Returns the weight of a replica for a graph. The replica with the largest weight is tried first.
fn weight(route: &[u8], authority: &str) -> Digest {
    Digest::of_parts(REPLICA_PURPOSE, [route, authority.as_bytes()])
}

impl ReplicaOrder {
    /// Returns the next replica to try: the first untried one that is available, otherwise the first untried one.
    pub(crate) fn next_replica(&mut self) -> Arc<Replica> {
        if self.untried.is_empty() {
            self.untried.clone_from(&self.order);
        }
        let next = self
            .untried
            .iter()
            .position(|replica| replica.may_be_tried())
            // If none is available, the first is the one that has the graph cached once it comes
            // back.
            .unwrap_or(0);
        self.untried.remove(next)
    }

    /// Returns whether the current pass over the replicas has untried ones.
    pub(crate) fn has_untried(&self) -> bool {
        !self.untried.is_empty()
    }
}

impl Replica {
    /// Returns a replica that accepted the connection, or one without a channel that did not.
    fn new(
        address: &Address,
        endpoint: &Endpoint,
        channel: Option<Channel>,
        connection: &Connection,
    ) -> Self {
        let is_available = channel.is_some();
        let replica = Self {
            endpoint: address.to_string(),
            address: address.clone(),
            // Two spellings of one host must have the same weights in every client.
            authority: address.authority().to_lowercase(),
            // The next call that tries it connects again.
            channel: channel.unwrap_or_else(|| endpoint.connect_lazy()),
            token: connection.token.clone(),
            message_bytes: connection.message_bytes,
            connect_timeout: connection.connect_timeout,
            unavailable_until: Mutex::new(None),
        };
        if !is_available {
            replica.set_unavailable();
        }
        replica
    }

    /// Returns a client of the service that ranks.
    pub(crate) fn cost_model(&self) -> CostModelServiceClient<Channel> {
        CostModelServiceClient::new(self.channel.clone())
            .max_decoding_message_size(self.message_bytes)
            .max_encoding_message_size(self.message_bytes)
    }

    /// Returns a client of the service that lists models.
    pub(crate) fn models(&self) -> ModelServiceClient<Channel> {
        ModelServiceClient::new(self.channel.clone()).max_decoding_message_size(self.message_bytes)
    }

    /// Marks the replica as available.
    pub(crate) fn set_available(&self) {
        *self.unavailable_until() = None;
    }

    /// Marks the replica as unavailable, so that it is tried last for [`UNAVAILABLE_TIME`].
    pub(crate) fn set_unavailable(&self) {
        *self.unavailable_until() = Some(Instant::now() + UNAVAILABLE_TIME);
    }

    /// Returns whether a call may try this replica before unavailable ones. Once [`UNAVAILABLE_TIME`] has passed, one
    /// call tries it, and the others wait for the result. If packets are dropped, that takes the connection timeout.
    fn may_be_tried(&self) -> bool {
        let mut unavailable_until = self.unavailable_until();
        let now = Instant::now();
        match *unavailable_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                // This call tries it. Further ones keep away until the attempt must have ended.
                *unavailable_until = Some(now + self.connect_timeout);
                true
            }
        }
    }

    fn unavailable_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.unavailable_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["http://a:7070", "http://b:7070", "http://c:7070"];

    impl Replica {
        /// Returns a replica without a connection.
        pub(crate) fn unconnected(address: &str) -> Self {
            let address = address.parse().unwrap();
            let endpoint = Connection::default().endpoint(&address).unwrap();
            let channel = Some(endpoint.connect_lazy());
            Self::new(&address, &endpoint, channel, &Connection::default())
        }
    }

    fn replicas(addresses: &[&str]) -> Replicas {
        Replicas(
            addresses
                .iter()
                .map(|address| Arc::new(Replica::unconnected(address)))
                .collect(),
        )
    }

    /// Returns the addresses in the order in which a call tries them.
    fn tried(replicas: &Replicas, route: u32) -> Vec<String> {
        let mut order = replicas.order(&route.to_le_bytes());
        replicas
            .0
            .iter()
            .map(|_| order.next_replica().endpoint.clone())
            .collect()
    }

    #[test]
    fn the_choice_is_the_same_in_every_version() {
        let weight = weight("0".repeat(64).as_bytes(), "127.0.0.1:7070");
        let digits = "99797556d38fb20be68738075ca9a8cb7ac69ea4f99674331cf7c77e18ed677c";
        assert_eq!(weight.to_string(), digits);
    }

    #[tokio::test]
    async fn every_replica_has_its_share_of_the_graphs() {
        let replicas = replicas(&NAMES);
        let first: Vec<String> = (0..3000)
            .map(|route| tried(&replicas, route).swap_remove(0))
            .collect();
        for name in NAMES {
            let share = first.iter().filter(|first| *first == name).count();
            assert!((900..1100).contains(&share), "{name} has {share}");
        }
    }

    #[tokio::test]
    async fn the_order_of_the_list_does_not_matter() {
        let listed = replicas(&NAMES);
        let otherwise = replicas(&["http://c:7070/", "HTTP://A:7070", "http://b:7070"]);
        for route in 0..100 {
            let authorities = |replicas: &Replicas| {
                let mut order = replicas.order(&[route]);
                NAMES.map(|_| order.next_replica().authority.clone())
            };
            assert_eq!(authorities(&listed), authorities(&otherwise));
        }
    }

    #[tokio::test]
    async fn without_a_replica_the_others_keep_their_order() {
        let (all, fewer) = (replicas(&NAMES), replicas(&NAMES[..2]));
        for route in 0..300 {
            let mut order = tried(&all, route);
            order.retain(|endpoint| endpoint != NAMES[2]);
            assert_eq!(
                order,
                tried(&fewer, route),
                "graphs of the others stay where they are"
            );
        }
    }

    #[tokio::test]
    async fn a_replica_that_did_not_answer_comes_last_until_it_does() {
        let replicas = replicas(&NAMES);
        let order = tried(&replicas, 7);
        let first = replicas
            .0
            .iter()
            .find(|replica| replica.endpoint == order[0])
            .unwrap();
        first.set_unavailable();
        assert_eq!(tried(&replicas, 7), [&order[1..], &order[..1]].concat());
        first.set_available();
        assert_eq!(tried(&replicas, 7), order);
    }

    #[tokio::test]
    async fn one_call_tries_a_replica_first_once_its_unavailable_time_has_passed() {
        let replicas = replicas(&NAMES);
        let order = tried(&replicas, 7);
        let first = replicas
            .0
            .iter()
            .find(|replica| replica.endpoint == order[0])
            .unwrap();
        *first.unavailable_until() = Some(Instant::now());
        assert_eq!(
            replicas.order(&7_u32.to_le_bytes()).next_replica().endpoint,
            order[0]
        );
        assert_eq!(
            replicas.order(&7_u32.to_le_bytes()).next_replica().endpoint,
            order[1]
        );
    }

    #[tokio::test]
    async fn all_replicas_are_tried_before_one_is_tried_again() {
        let replicas = replicas(&NAMES);
        let (order, mut next) = (tried(&replicas, 7), replicas.order(&7_u32.to_le_bytes()));
        let left = [(); 6].map(|()| (next.next_replica().endpoint.clone(), next.has_untried()));
        let is_left = left.iter().map(|(_, is_left)| *is_left).collect::<Vec<_>>();
        assert_eq!(is_left, [true, true, false, true, true, false]);
        assert_eq!(
            left.map(|(endpoint, _)| endpoint).to_vec(),
            [order.clone(), order].concat()
        );
    }
}
