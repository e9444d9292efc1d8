//! Who reaches the server, over what, and how much of it a connection may take.

mod client;
mod compression;
mod rotation;
mod secured;
mod silence;
mod tls;
mod tokens;
