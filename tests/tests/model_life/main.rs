//! Models come, take over, are taken back and go while requests are answered.

mod asking;
mod bad_artifacts;
mod canary;
mod counting;
mod pinning;
mod reloading;
mod removing;
