//! `hlorank bench`: sends load to a server and measures its latency.
//!
//! The load is open-loop: a call begins when it is due, even if earlier calls have no answer yet, and its latency
//! counts from that time. Latencies therefore include the effect of a stalled server on every call that was due meanwhile. A
//! closed loop, which waits for answers, would not send these calls (coordinated omission).

mod arguments;
mod arrivals;
mod draw;
mod groups;
mod load;
mod options;
mod plot;
mod report;
mod run;
mod tally;
mod text;

pub(crate) use self::arguments::Bench;
use self::{load::Load, run::Run};
use super::{error::CommandError, output::Format};

impl Bench {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let load = Load::of(&self)?;
        let report = Run::connect(&self, &load).await?.report(load).await?;
        if let Some(path) = &self.plot {
            plot::write(path, &report)?;
        }
        Ok(format.print(&report)?)
    }
}
