//! Every limit: what is at it is taken, and answered as without it; what is one past is refused with a reason of its
//! own, in words and for programs.

mod bytes;
mod client_requests;
mod configurations;
mod connections;
mod graph;
mod memory;
mod nesting;
mod request;
mod requests;
mod servers;
mod streams;
