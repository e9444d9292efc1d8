//! Attackers of one kind, and the count of what they send.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};

use super::{
    attacker::{Attacker, Broken},
    sent::Sent,
};

/// Attackers of one kind. They stop when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Attack {
    sent: Arc<Sent>,
    _attackers: JoinSet<()>,
}

/// The listener that is attacked, and the loopback addresses that the attackers have.
#[derive(Clone, Debug)]
pub struct Aim {
    target: SocketAddr,
    from: Vec<Ipv4Addr>,
}

/// Pause of an attacker before it starts over.
const PAUSE: Duration = Duration::from_millis(100);

impl Aim {
    /// Aims at a listener from 127.0.0.1, the address of well-behaved clients.
    pub fn at(target: SocketAddr) -> Self {
        Self {
            target,
            from: vec![Ipv4Addr::LOCALHOST],
        }
    }

    /// Attacks from this number of addresses instead, none of which is that of well-behaved clients.
    pub fn from_addresses(self, addresses: u8) -> Self {
        Self {
            from: (2..)
                .take(addresses.into())
                .map(|last| Ipv4Addr::new(127, 0, 0, last))
                .collect(),
            ..self
        }
    }
}

impl Attack {
    /// Starts this number of attackers, each of which starts over whenever it ends.
    pub fn start<F>(
        aim: &Aim,
        attackers: usize,
        attack: impl Fn(Attacker) -> F + Clone + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), Broken>> + Send + 'static,
    {
        let (sent, mut running) = (Arc::new(Sent::default()), JoinSet::new());
        for from in aim.from.iter().cycle().take(attackers) {
            let attacker = Attacker::new(aim.target, *from, Arc::clone(&sent));
            running.spawn(again_and_again(attacker, attack.clone()));
        }
        Self {
            sent,
            _attackers: running,
        }
    }

    /// Returns what the attackers have sent so far.
    pub fn sent(&self) -> &Sent {
        &self.sent
    }
}

async fn again_and_again<F: Future<Output = Result<(), Broken>>>(
    attacker: Attacker,
    attack: impl Fn(Attacker) -> F,
) {
    loop {
        // An attacker does not care why the server has closed its connection.
        let _ = attack(attacker.clone()).await;
        sleep(PAUSE).await;
    }
}
