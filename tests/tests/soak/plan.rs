use std::env;

use hlorank_tests::prelude::*;

/// Duration and rates of a soak.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) length: Duration,
    pub(crate) reload_every: Duration,
    pub(crate) sample_every: Duration,
    /// Calls per second.
    pub(crate) rate: f64,
}

const SECONDS: f64 = 20.0;
const RATE: f64 = 5.0;
const RELOADS: u32 = 5;
const SAMPLES: u32 = 360;
/// Shortest length after a third of which caches and allocators have settled.
const LONG: Duration = Duration::from_mins(10);

impl Plan {
    /// Reads `HLORANK_SOAK_SECONDS`, and `HLORANK_SOAK_RATE` in calls per second.
    pub(crate) fn of_environment() -> Self {
        let length = Duration::from_secs_f64(variable("HLORANK_SOAK_SECONDS").unwrap_or(SECONDS));
        Self {
            length,
            reload_every: (length / RELOADS).min(Duration::from_mins(1)),
            sample_every: (length / SAMPLES).max(Duration::from_millis(500)),
            rate: variable("HLORANK_SOAK_RATE").unwrap_or(RATE),
        }
    }

    pub(crate) fn is_long(&self) -> bool {
        self.length >= LONG
    }
}

fn variable(name: &str) -> Option<f64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|error| panic!("{name}: {error}")),
    )
}
