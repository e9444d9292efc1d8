//! Attackers: small clients that misbehave in one way each, as a stranger would. Each attack runs until it is dropped,
//! starts over if the server closes its connection, and counts what it has sent.

mod attack;
mod attacker;
mod bombs;
mod bystander;
mod calls;
mod connections;
mod floods;
mod frames;
pub mod messages;
mod reports;
mod sent;
mod small_batches;
mod stages;
mod unread_streams;
mod versions;
mod web;

pub use attack::{Aim, Attack};
pub use attacker::{Attacker, Broken, Client};
pub use bombs::{Bomb, bombs, slow_bombs};
pub use bystander::{Bystander, DEADLINE, Seen};
pub use calls::{
    HEALTH_WATCH, RANK, RANK_STREAM, health_watches, huge_graphs, silent_calls, slow_calls,
};
pub use connections::{deaf_connections, half_handshakes, idle_connections, silent_connections};
pub use floods::{Flood, flood};
pub use messages::Shape;
pub use reports::{REPORT, REPORTED_KERNEL, false_reports, report_of};
pub use sent::Sent;
pub use small_batches::{send_small_batches, small_batches};
pub use stages::{STAGES, Stage};
pub use unread_streams::unread_streams;
pub use versions::{publish_endless, publish_zip_bomb};
pub use web::{broken_uploads, rebound_names};
