//! The attacks, each at a rate that leaves processor time to the server and to the well-behaved client.

use std::time::Duration;

use hlorank_tests::attackers::{
    Aim, Attack, Bomb, Flood, RANK, RANK_STREAM, Shape, Stage, bombs, broken_uploads,
    deaf_connections, false_reports, flood, health_watches, huge_graphs, idle_connections,
    messages::fused_chain, rebound_names, silent_calls, silent_connections, slow_bombs, slow_calls,
    small_batches, unread_streams,
};
use hlorank_tests::{graph_of_module, kernel_graph, module::two_dots};
use tokio::runtime::Runtime;

use crate::{policies::PolicyChanges, site::Site, versions::PublishedVersion};

/// An attack.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    start: fn(&Site) -> Running,
}

/// An attack that runs until it is dropped.
pub(crate) enum Running {
    Clients(Attack),
    Policies(PolicyChanges),
    Version { _published: PublishedVersion },
}

/// Size of a bomb once it is decompressed: the default of `--max-message-bytes`.
const BOMB_BYTES: usize = (64 << 20) - 1024;

const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(1);

/// All attacks. Attackers that want the places of a client have its address; the others have one to three of their own.
pub(crate) const ATTACKS: [Named; 24] = [
    named("bombs, gzip", |site| {
        clients(bombs(&site.aim(), 4, all(Bomb::gzip), OFTEN))
    }),
    named("bombs, plain", |site| {
        clients(bombs(&site.aim(), 1, all(Bomb::plain), SELDOM))
    }),
    named("bombs, gzip, 1.4 KiB/s", |site| {
        clients(slow_bombs(
            &site.aim(),
            4,
            Bomb::gzip(Shape::EmptyTiles, BOMB_BYTES),
            1434,
        ))
    }),
    named("calls without a message", |site| {
        clients(silent_calls(&site.aim(), 4, 200, RANK))
    }),
    named("calls without a message, 3 addresses", |site| {
        clients(silent_calls(&elsewhere(site), 9, 200, RANK_STREAM))
    }),
    named("calls, a byte per second", |site| {
        clients(slow_calls(&site.aim(), 4, 200, SELDOM))
    }),
    named("connections that answer pings", |site| {
        clients(idle_connections(&elsewhere(site), 1_200))
    }),
    named("connections that say nothing", |site| {
        clients(silent_connections(&elsewhere(site), 1_200))
    }),
    named("connections that read nothing", |site| {
        clients(deaf_connections(&elsewhere(site), 100))
    }),
    named("streams that are not read", |site| {
        clients(unread_streams(&site.aim(), 16, 8))
    }),
    named("health watches", |site| {
        clients(health_watches(&site.aim(), 8, 200))
    }),
    named("metrics connections", |site| {
        clients(silent_connections(&Aim::at(site.metrics()), 600))
    }),
    named("resets, 8,000/s", |site| {
        clients(flood(&site.aim(), 4, Flood::Resets, 2_000))
    }),
    named("pings, 4,000/s", |site| {
        clients(flood(&site.aim(), 4, Flood::Pings, 1_000))
    }),
    named("graphs with huge numbers", |site| {
        clients(huge_graphs(&site.aim(), 4, OFTEN))
    }),
    named("graphs of 20,000 nodes in a chain", |site| {
        clients(bombs(&site.aim(), 4, vec![Bomb::chain(20_000)], SELDOM))
    }),
    named("streams of small batches", |site| {
        clients(small_batches(
            &site.aim(),
            4,
            50_000,
            &kernel_graph(graph_of_module(two_dots())),
        ))
    }),
    named("broken uploads", |site| {
        clients(broken_uploads(&site.aim(), 4, OFTEN))
    }),
    named("a web page's name", |site| {
        clients(rebound_names(&site.aim(), 4, OFTEN))
    }),
    named("fusions of a chain with many users", |site| {
        clients(bombs(
            &site.aim(),
            2,
            vec![Bomb::of(&fused_chain(400, 10_000, 60))],
            OFTEN,
        ))
    }),
    named("reports that fill the store", |site| {
        clients(false_reports(
            &elsewhere(site),
            4,
            "a full board",
            2_000,
            OFTEN,
        ))
    }),
    named("reports of false times", |site| {
        clients(false_reports(&elsewhere(site), 3, "a board", 30, OFTEN))
    }),
    named("policies by two servers", |site| {
        Running::Policies(PolicyChanges::start(site))
    }),
    named("endless model version", |site| Running::Version {
        _published: PublishedVersion::endless(site),
    }),
];

const fn named(name: &'static str, start: fn(&Site) -> Running) -> Named {
    Named { name, start }
}

fn clients(attack: Attack) -> Running {
    Running::Clients(attack)
}

fn elsewhere(site: &Site) -> Aim {
    site.aim().from_addresses(3)
}

fn all(bomb: fn(Shape, usize) -> Bomb) -> Vec<Bomb> {
    Shape::ALL.map(|shape| bomb(shape, BOMB_BYTES)).into()
}

impl Named {
    /// Starts the attack on the threads of the attackers.
    pub(crate) fn start(&self, site: &Site, attackers: &Runtime) -> Running {
        let _entered = attackers.enter();
        (self.start)(site)
    }
}

/// Starts the requests of a stage, two at a time.
pub(crate) fn start_stage(stage: &Stage, site: &Site, attackers: &Runtime) -> Running {
    let _entered = attackers.enter();
    clients(bombs(&site.aim(), 2, (stage.requests)(), OFTEN))
}
