//! Every kind of bad input has its status, its `ErrorInfo` reason and a message that says where, and the server
//! goes on.

mod configurations;
mod graphs;
mod mismatches;
mod request;
