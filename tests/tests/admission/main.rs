//! A server that has enough to do says so at once, and when to come again; one client does not take the room of others.

mod clients;
mod full_queue;
