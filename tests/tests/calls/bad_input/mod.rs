//! Every kind of invalid input is rejected with its status, its `ErrorInfo` reason and a message that says where, and
//! the server continues to serve.

mod configurations;
mod graphs;
mod measurements;
mod mismatches;
mod optimized;
mod request;
