//! Model versions are loaded, take over, are rolled back and removed while requests are answered.

mod bad_artifacts;
mod canary;
mod kinds;
mod pinning;
mod reloading;
mod several_servers;
mod signed;
mod targets;
