//! A stream of batches is scored as one call would score all of them, whatever its client does.

mod call;
mod cancel;
mod flow;
mod order;
mod scores;
