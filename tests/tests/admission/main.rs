//! A server that has enough to do says so at once, and when to come again.

mod full_queue;
