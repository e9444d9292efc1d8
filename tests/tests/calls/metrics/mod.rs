//! `/metrics` has every series from the start and counts exactly; `/healthz` and `/readyz` report the state.

mod caches;
mod calls;
mod listener;
mod table;
mod work;
