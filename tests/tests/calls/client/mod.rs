//! The client library: deadlines, retries, graph hashes, invalid answers, and the replica that is called for a graph.

mod deadlines;
mod graph_hash;
mod invalid_answers;
mod replica;
mod replicas;
mod retries;
mod unanswering;
