use tokio::task::JoinHandle;

use super::budget::Budget;
use crate::session::Sessions;

/// Shadows that score what stable versions scored, until this is dropped.
pub(crate) struct RunningShadows(JoinHandle<()>);

impl RunningShadows {
    /// Starts to have shadows score calls, for at most a share of the time of the compute threads; for none, if it is 0.
    pub(crate) fn start(sessions: Sessions, share: f64) -> Self {
        let shadowed = sessions.take_shadowed().filter(|_| share > 0.0);
        Self(tokio::spawn(async move {
            let Some(mut shadowed) = shadowed else { return };
            let budget = Budget::new(share);
            while let Some(batch) = shadowed.recv().await {
                budget.spend(sessions.compare_with_shadow(batch)).await;
            }
        }))
    }
}

impl Drop for RunningShadows {
    fn drop(&mut self) {
        self.0.abort();
    }
}
