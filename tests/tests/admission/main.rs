//! A server at its capacity rejects calls immediately and says when to retry.

mod full_queue;
