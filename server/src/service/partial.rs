//! As many scores as a deadline leaves time for, where a request takes some for all.

use std::{future::ready, ops::Range, sync::Arc, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use hlorank_graph::{Configurations, SegmentedGraph};
use tokio::time::{Instant, timeout_at};

use super::{CostModel, Deadline, ServiceError, answer::numbered_after};
use crate::{
    compute::Class,
    engine::Terms,
    model::{Model, ModelKind},
    outcome::Evaluation,
};

/// Candidates that are scored at a time: few enough that time is not up before any are, enough that every worker has
/// something to do.
const SLICE: usize = 128;

/// Slices that are in progress at the same time, so that one is planned while another is evaluated.
const AT_ONCE: usize = 2;

/// What ranking and answering may take of the time allowed: a tenth, and not more than this.
const ANSWERING: Duration = Duration::from_millis(250);

impl CostModel {
    /// Scores the first candidates that `read` gives, as many as there is time for: at least one slice.
    pub(super) async fn score_in_time(
        &self,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        read: impl FnOnce() -> Result<Configurations, ServiceError> + Send + 'static,
        deadline: Deadline,
        class: Class,
    ) -> Result<Evaluation, ServiceError> {
        let read = self.pool.run(class, move |_| read()).await?;
        let all = Arc::new(read.value?);
        let score = |range: Range<usize>| {
            let (all, first) = (Arc::clone(&all), range.start);
            let terms = Terms { deadline: None, class, goes_on: first > 0 };
            async move {
                let slice = move || Ok::<_, ServiceError>(all.slice(range));
                let scored = self.engine.score(model, graph, slice, terms).await;
                scored.map_err(|error| numbered_after(first, error))
            }
        };
        let mut scored: Option<Evaluation> = None;
        let add = |slice: Evaluation| {
            match &mut scored {
                Some(scored) => scored.append(slice),
                None => scored = Some(slice),
            }
            ready(Ok(()))
        };
        let slices = stream::iter(slices(all.len(), slice_size(model))).map(score).buffered(AT_ONCE);
        match timeout_at(until(deadline), slices.try_for_each(add)).await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) | Err(_) => scored.ok_or(ServiceError::DeadlineExceeded { allowed: deadline.allowed }),
        }
    }
}

/// When there is just enough time left to answer.
fn until(deadline: Deadline) -> Instant {
    deadline.end - (deadline.allowed / 10).min(ANSWERING)
}

/// Candidates of a slice: whole chunks of a model whose scores depend on them.
fn slice_size(model: &Model) -> usize {
    match model.manifest().kind() {
        ModelKind::Segment => SLICE,
        ModelKind::WholeGraph { chunk_configs } => SLICE.next_multiple_of(chunk_configs),
    }
}

fn slices(count: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(size).map(move |start| start..count.min(start + size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_all_there_is_in_order() {
        let ranges: Vec<_> = slices(300, 128).collect();
        assert_eq!(ranges, [0..128, 128..256, 256..300]);
        assert_eq!(slices(128, 128).count(), 1);
    }

    #[test]
    fn some_of_the_time_is_kept_for_the_answer() {
        let end = Instant::now() + Duration::from_hours(1);
        let kept = |seconds| end - until(Deadline { end, allowed: Duration::from_secs(seconds) });
        assert_eq!(kept(1), Duration::from_millis(100));
        assert_eq!(kept(60), Duration::from_millis(250));
    }
}
