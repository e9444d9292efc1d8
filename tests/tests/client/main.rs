//! The client library: deadlines, retries, and the replica that is asked about a graph.

mod deadlines;
mod replica;
mod replicas;
mod retries;
mod unanswering;
