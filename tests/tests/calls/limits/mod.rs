//! Every limit: a request at the limit is accepted and answered as without it; a request one past it is rejected with
//! its own reason, in words and for programs.

mod bytes;
mod client_requests;
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
mod ratio;
mod request;
mod requests;
mod run_memory;
mod servers;
mod streams;
mod watches;
