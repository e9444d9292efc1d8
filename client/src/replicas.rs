//! Several servers with the same models: which of them is asked about a graph, and which in its place.

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

use crate::{ClientError, Connection, Token};

/// The servers that a client was given.
#[derive(Debug)]
pub(crate) struct Replicas(Vec<Arc<Replica>>);

/// One of them.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) endpoint: String,
    /// `host:port`, by which it is picked.
    authority: String,
    channel: Channel,
    /// What its calls bring.
    pub(crate) token: Option<Token>,
    message_bytes: usize,
    /// How long a try of one that did not answer keeps others from trying it.
    connect_timeout: Duration,
    /// Where it did not answer, when it comes before the others again.
    absent_until: Mutex<Option<Instant>>,
}

/// The replicas in the order in which one call tries them, again and again.
#[derive(Debug)]
pub(crate) struct Turns {
    order: Vec<Arc<Replica>>,
    untried: Vec<Arc<Replica>>,
}

/// Keeps the weights of replicas apart from every other digest.
const REPLICA_PURPOSE: &str = "hlorank 2026-11 replica";

/// How long a replica that did not answer comes after the others.
const ABSENCE: Duration = Duration::from_secs(1);

impl Replicas {
    /// Connects to all of them at once; fails where none answers.
    pub(crate) async fn connect(endpoints: &[&str], connection: &Connection) -> Result<Self, ClientError> {
        let opened: Vec<Endpoint> =
            endpoints.iter().map(|endpoint| connection.endpoint(endpoint)).collect::<Result<_, _>>()?;
        let connected = join_all(opened.iter().map(Endpoint::connect)).await;
        if connected.iter().all(Result::is_err) {
            let source = connected.into_iter().find_map(Result::err).ok_or(ClientError::NoEndpoint)?;
            return Err(ClientError::no_connection(&endpoints.join(", "), source));
        }
        let replicas = endpoints.iter().zip(&opened).zip(connected).map(|((address, endpoint), channel)| {
            let is_absent = channel.is_err();
            let channel = channel.unwrap_or_else(|_| endpoint.connect_lazy());
            let replica = Replica::new(address, endpoint, channel, connection);
            if is_absent {
                replica.did_not_answer();
            }
            Arc::new(replica)
        });
        Ok(Self(replicas.collect()))
    }

    /// The turns of a call about the graph of a route key; the same for every client of the same servers, in any
    /// order. Without one of them the others keep their order (rendezvous hashing).
    pub(crate) fn turns(&self, route: &[u8]) -> Turns {
        let mut order = self.0.clone();
        order.sort_by_cached_key(|replica| Reverse(weight(route, &replica.authority)));
        Turns { untried: order.clone(), order }
    }
}

/// How much a replica is wanted for a graph, among the others.
fn weight(route: &[u8], authority: &str) -> Digest {
    Digest::of_parts(REPLICA_PURPOSE, [route, authority.as_bytes()])
}

impl Turns {
    /// The next replica to try: the first that was not, but for those that did not answer a moment ago, which come
    /// after the others.
    pub(crate) fn take(&mut self) -> Arc<Replica> {
        if self.untried.is_empty() {
            self.untried.clone_from(&self.order);
        }
        let next = self.untried.iter().position(|replica| replica.claim()).unwrap_or(0);
        self.untried.remove(next)
    }

    /// Whether there is a replica that was not tried, of all or since all were.
    pub(crate) fn is_one_left(&self) -> bool {
        !self.untried.is_empty()
    }
}

impl Replica {
    fn new(address: &str, endpoint: &Endpoint, channel: Channel, connection: &Connection) -> Self {
        Self {
            endpoint: address.to_owned(),
            authority: endpoint
                .uri()
                .authority()
                .map(|name| name.as_str().to_lowercase())
                .unwrap_or_default(),
            channel,
            token: connection.token.clone(),
            message_bytes: connection.message_bytes,
            connect_timeout: connection.connect_timeout,
            absent_until: Mutex::new(None),
        }
    }

    /// Ranks there.
    pub(crate) fn cost_model(&self) -> CostModelServiceClient<Channel> {
        CostModelServiceClient::new(self.channel.clone())
            .max_decoding_message_size(self.message_bytes)
            .max_encoding_message_size(self.message_bytes)
    }

    /// Tells of the models there.
    pub(crate) fn models(&self) -> ModelServiceClient<Channel> {
        ModelServiceClient::new(self.channel.clone())
    }

    /// It is there: its graphs come to it.
    pub(crate) fn did_answer(&self) {
        *self.absent_until() = None;
    }

    /// For a moment, its graphs go to the others.
    pub(crate) fn did_not_answer(&self) {
        *self.absent_until() = Some(Instant::now() + ABSENCE);
    }

    /// Whether a call tries it before the others. After its absence one call does, and the rest wait for what comes of it:
    /// where packets are dropped, that takes as long as a connection may.
    fn claim(&self) -> bool {
        let (mut absent_until, now) = (self.absent_until(), Instant::now());
        match *absent_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                *absent_until = Some(now + self.connect_timeout);
                true
            }
        }
    }

    fn absent_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.absent_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["http://a:7070", "http://b:7070", "http://c:7070"];

    impl Replica {
        /// Nobody is there.
        pub(crate) fn unconnected(address: &str) -> Self {
            let endpoint = Connection::default().endpoint(address).unwrap();
            Self::new(address, &endpoint, endpoint.connect_lazy(), &Connection::default())
        }
    }

    fn replicas(addresses: &[&str]) -> Replicas {
        Replicas(addresses.iter().map(|address| Arc::new(Replica::unconnected(address))).collect())
    }

    /// Addresses in the order in which a call tries them.
    fn tried(replicas: &Replicas, route: u32) -> Vec<String> {
        let mut turns = replicas.turns(&route.to_le_bytes());
        replicas.0.iter().map(|_| turns.take().endpoint.clone()).collect()
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
        let first: Vec<String> = (0..3000).map(|route| tried(&replicas, route).swap_remove(0)).collect();
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
                let mut turns = replicas.turns(&[route]);
                NAMES.map(|_| turns.take().authority.clone())
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
            assert_eq!(order, tried(&fewer, route), "graphs of the others stay where they are");
        }
    }

    #[tokio::test]
    async fn a_replica_that_did_not_answer_comes_last_until_it_does() {
        let replicas = replicas(&NAMES);
        let order = tried(&replicas, 7);
        let first = replicas.0.iter().find(|replica| replica.endpoint == order[0]).unwrap();
        first.did_not_answer();
        assert_eq!(tried(&replicas, 7), [&order[1..], &order[..1]].concat());
        first.did_answer();
        assert_eq!(tried(&replicas, 7), order);
    }

    #[tokio::test]
    async fn after_its_absence_one_call_tries_a_replica_first() {
        let replicas = replicas(&NAMES);
        let order = tried(&replicas, 7);
        let first = replicas.0.iter().find(|replica| replica.endpoint == order[0]).unwrap();
        *first.absent_until() = Some(Instant::now());
        assert_eq!(replicas.turns(&7_u32.to_le_bytes()).take().endpoint, order[0]);
        assert_eq!(replicas.turns(&7_u32.to_le_bytes()).take().endpoint, order[1]);
    }

    #[tokio::test]
    async fn all_are_tried_before_one_is_again() {
        let replicas = replicas(&NAMES);
        let (order, mut turns) = (tried(&replicas, 7), replicas.turns(&7_u32.to_le_bytes()));
        let left = [(); 6].map(|()| (turns.take().endpoint.clone(), turns.is_one_left()));
        let is_left = left.iter().map(|(_, is_left)| *is_left).collect::<Vec<_>>();
        assert_eq!(is_left, [true, true, false, true, true, false]);
        assert_eq!(left.map(|(endpoint, _)| endpoint).to_vec(), [order.clone(), order].concat());
    }
}
