//! A partial ranking: as many scores as a deadline leaves time for.

use std::{future::ready, ops::Range, sync::Arc, time::Duration};

use futures::{StreamExt as _, TryFutureExt as _, TryStreamExt as _, stream};
use hlorank_graph::Configurations;
use tokio::time::{Instant, timeout_at};

use crate::{
    call::{CallError, Deadline},
    compute::Class,
    engine::{BatchPart, Terms},
    learning::{Evaluator, ScoredConfigs},
    model::{Model, ModelKind},
};

/// Number of configurations of a slice: few enough that some are scored before time is up, enough that every worker has
/// something to do.
const SLICE: usize = 128;

/// Number of slices in progress, so that one is planned while another is evaluated.
const AT_ONCE: usize = 2;

/// Maximum time that is kept for ranking and answering; otherwise a tenth of the time allowed.
const MAX_ANSWERING: Duration = Duration::from_millis(250);

/// Scores the first configurations of a batch, slice by slice, until there is just enough time left to answer. Fails if
/// not even one slice is scored by then. The best `top_k` of each slice get deviations, because any of them may be ranked.
pub(super) async fn score_in_time(
    evaluator: &Evaluator,
    all: Arc<Configurations>,
    deadline: Deadline,
    class: Class,
    top_k: u32,
) -> Result<ScoredConfigs, CallError> {
    let score = |range: Range<usize>| {
        let first = range.start;
        let slice = BatchPart::of_numbers(Arc::clone(&all), range.collect());
        // The deadline ends the slices, and refuses none of them.
        let terms = Terms {
            deadline: None,
            class,
            continues_request: first > 0,
        };
        let scored = evaluator.score(slice, terms, top_k);
        scored.map_err(move |error| error.numbered_after(first))
    };
    // What was scored before time is up stays here when the stream of slices is dropped.
    let mut scored: Option<ScoredConfigs> = None;
    let add = |slice: ScoredConfigs| {
        match &mut scored {
            Some(scored) => scored.append(slice),
            None => scored = Some(slice),
        }
        ready(Ok(()))
    };
    let slices = slices(all.len(), slice_size(&evaluator.model));
    // `buffered` keeps the order, because a partial ranking is one of the first configurations.
    let scored_slices = stream::iter(slices).map(score).buffered(AT_ONCE);
    match timeout_at(scoring_end(deadline), scored_slices.try_for_each(add)).await {
        Ok(Err(error)) => Err(error),
        Ok(Ok(())) | Err(_) => scored.ok_or(CallError::DeadlineExceeded {
            allowed: deadline.allowed,
        }),
    }
}

/// Returns when there is just enough time left to answer.
fn scoring_end(deadline: Deadline) -> Instant {
    deadline.end - (deadline.allowed / 10).min(MAX_ANSWERING)
}

/// Number of configurations of a slice: whole chunks of a model that takes chunks.
fn slice_size(model: &Model) -> usize {
    match &model.manifest().kind {
        ModelKind::Segment(_) | ModelKind::Absent => SLICE,
        ModelKind::WholeGraph(settings) => SLICE.next_multiple_of(settings.chunk_configs),
    }
}

fn slices(count: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count)
        .step_by(size)
        .map(move |start| start..count.min(start + size))
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
        let kept = |seconds| {
            end - scoring_end(Deadline {
                end,
                allowed: Duration::from_secs(seconds),
            })
        };
        assert_eq!(kept(1), Duration::from_millis(100));
        assert_eq!(kept(60), Duration::from_millis(250));
    }
}
