//! Access to the server: TLS, tokens, compression and silent connections.

mod client;
mod frames;
mod hosts;
mod protocol;
mod rotation;
mod secured;
mod tls;
mod tokens;
mod uploads;
mod wrong_files;
