//! Attackers: small clients that misbehave in one way each, as a stranger would. Each attack runs until it is dropped,
//! starts over if the server closes its connection, and counts what it has sent.

mod attack;
mod attacker;
mod bombs;
mod bystander;
mod calls;
mod connections;
mod floods;
pub mod frames;
pub mod graphs;
pub mod messages;
mod reports;
mod sent;
mod small_batches;
mod unread_streams;

pub use attack::{Aim, Attack};
pub use attacker::{Attacker, Broken, Client, WINDOW_BYTES};
pub use bombs::slow_bombs;
pub use bystander::Bystander;
pub use calls::{RANK, RANK_STREAM, health_watches, huge_graphs, silent_calls, slow_calls};
pub use connections::{deaf_connections, idle_connections, silent_connections};
pub use floods::{Flood, flood};
pub use reports::{REPORTED_KERNEL, false_reports, report_of};
pub use sent::Sent;
pub use small_batches::send_small_batches;
pub use unread_streams::unread_streams;
