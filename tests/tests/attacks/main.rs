//! Strangers attack a server, and artifacts do: a well-behaved client beside them loses no call, the memory of the server
//! is bounded, and nothing remains afterwards. `make attack` measures the same for longer.
//!
//! Other attacks are tested beside what they attack: endless model versions and policies of several servers in
//! `model_life`, large artifacts in `artifact_bombs.rs`, the metrics listener in `metrics`, and clients that delay a stop in
//! `server_program`.

mod attacked;
mod bombs;
mod floods;
mod inputs;
mod places;
mod reports;
mod unread;
