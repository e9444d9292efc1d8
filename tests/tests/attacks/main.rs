//! Strangers attack a server, and artifacts do: a well-behaved client beside them loses no call, the memory of the server
//! is bounded, and nothing remains afterwards. `walk` sends every field of every call, and the largest calls that the limits allow,
//! to a server in a process of 3 GiB. `make attack` walks for longer.
//!
//! Other attacks are tested beside what they attack: endless model versions and policies of several servers in `model_life`, the
//! metrics listener in `metrics`, and clients that delay a stop in `server_program`.

mod artifacts;
mod attacked;
mod bombs;
mod cases;
mod extremes;
mod fields;
mod files;
mod floods;
mod inputs;
mod places;
mod reports;
mod streams;
mod walk;
