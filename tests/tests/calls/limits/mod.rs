//! Every limit: a request at the limit is accepted and answered as without it; a request one past it is rejected with
//! its own reason, in words and for programs.

mod bytes;
mod configurations;
mod connections;
mod delivery;
mod full_queue;
mod graph;
mod maxima;
mod memory;
mod nesting;
mod open_call;
mod places;
pub(crate) mod request;
mod requests;
mod streams;
