//! The client library: deadlines, retries, graph hashes, and the replica that is called for a graph.

mod deadlines;
mod graph_hash;
mod replica;
mod replicas;
mod retries;
mod unanswering;
