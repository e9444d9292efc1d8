//! `/metrics` shows every series from the start, and counts what happened exactly; `/healthz` and `/readyz` tell the
//! state.

mod caches;
mod calls;
mod health;
mod table;
mod work;
