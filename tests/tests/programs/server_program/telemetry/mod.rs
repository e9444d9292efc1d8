//! What a server reports about its calls: ids, log lines and spans, but no payloads.

mod access_log;
mod audit;
mod calls;
mod collector;
mod payloads;
mod request_ids;
mod secured_collector;
mod spans;
