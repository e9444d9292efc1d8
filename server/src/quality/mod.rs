//! Live quality: how well model versions rank what clients measured.
//!
//! When reports arrive, or another version comes into use, the measured configurations of each graph are scored anew by the
//! versions in use, behind all other work and within a share of the compute threads' time. Scores that calls got earlier are
//! not kept: most measured configurations were never ranked by the version that serves now, and ranked ones would have to
//! be looked for in every batch. A replay judges each version on the same measurements, also one that serves only some
//! graphs, and after a restart.

mod compare;
mod live_quality;
mod replays;

pub(crate) use compare::{Comparison, Verdict};
pub(crate) use live_quality::LiveQuality;
pub(crate) use replays::{Replays, RunningReplays};
