use std::{iter::once, sync::Arc};

use hlorank_adaptation::{
    AdaptedModel, Measurements, Prior, RelatedList, RelatedModel, SourceKind, TaughtByLists, relate,
};
use hlorank_graph::Digest;
use quick_cache::{Weighter, sync::Cache};

use crate::metrics::CacheSizes;

/// What was learned from sets of measurements, so that the calls of a search learn once.
pub(super) struct LessonCache {
    /// What sets of measurements taught. That a set teaches nothing is remembered, too.
    adapted: Cache<Digest, Option<Arc<AdaptedModel>>, WeightInBytes>,
    /// What related lists taught.
    related: Cache<Digest, TaughtByLists, WeightInBytes>,
}

/// Maximum number of bytes of each.
const BYTES: u64 = 64 << 20;

/// Expected numbers of entries.
const ADAPTED: usize = 1_024;
const RELATED: usize = 64;

/// Bytes of an entry beside what was learned.
const ENTRY_BYTES: usize = 256;

#[derive(Clone)]
struct WeightInBytes;

impl Weighter<Digest, Option<Arc<AdaptedModel>>> for WeightInBytes {
    fn weight(&self, _: &Digest, adapted: &Option<Arc<AdaptedModel>>) -> u64 {
        (ENTRY_BYTES + adapted.as_ref().map_or(0, |adapted| adapted.bytes())) as u64
    }
}

impl Weighter<Digest, TaughtByLists> for WeightInBytes {
    fn weight(&self, _: &Digest, taught: &TaughtByLists) -> u64 {
        (ENTRY_BYTES + taught.0.as_ref().map_or(0, |model| model.bytes())) as u64
    }
}

impl Default for LessonCache {
    fn default() -> Self {
        Self {
            adapted: Cache::with_weighter(ADAPTED, BYTES, WeightInBytes),
            related: Cache::with_weighter(RELATED, BYTES, WeightInBytes),
        }
    }
}

impl LessonCache {
    /// Sets the gauges to the current state.
    pub(super) fn sample(&self, sizes: &CacheSizes) {
        let (adapted, related) = (&self.adapted, &self.related);
        sizes.learned.set(adapted.weight(), adapted.capacity());
        sizes
            .other_targets
            .set(related.weight(), related.capacity());
    }

    /// Learns from measurements, unless that was done before.
    pub(super) fn learn(
        &self,
        prior: Prior,
        measurements: Measurements,
    ) -> Option<Arc<AdaptedModel>> {
        let digest = measurements.digest(prior);
        if let Some(adapted) = self.adapted.get(&digest) {
            return adapted;
        }
        // Nobody waits for another call that learns the same, because learning pauses, and a waiting call would keep the
        // worker that the other one needs.
        let adapted = AdaptedModel::new(prior, measurements).map(Arc::new);
        self.adapted.insert(digest, adapted.clone());
        adapted
    }

    /// Returns what related lists say that the graph's own measurements do not contradict, and what became of each source.
    pub(super) fn relate(
        &self,
        kind: SourceKind,
        prior: Prior,
        lists: Vec<RelatedList>,
        own: &Measurements,
    ) -> TaughtByLists {
        relate(kind, lists, own, |lists| self.taught(kind, prior, lists))
    }

    /// Learns from related lists, unless that was done before.
    fn taught(&self, kind: SourceKind, prior: Prior, lists: &[RelatedList]) -> TaughtByLists {
        // The lists of a kind that are learned by call have no features.
        let of_lists = lists.iter().map(|list| {
            let target = format!("{:?}", list.other_target).into_bytes();
            [&list.measurements.digest(prior).0[..], &target].concat()
        });
        let parts: Vec<Vec<u8>> = once(format!("{kind:?}").into_bytes())
            .chain(of_lists)
            .collect();
        let parts = parts.iter().map(Vec::as_slice);
        let digest = Digest::of_parts("hlorank 2026 related lists", parts);
        if let Some(taught) = self.related.get(&digest) {
            return taught;
        }
        let taught = RelatedModel::learn(kind, prior, lists.to_vec());
        self.related.insert(digest, taught.clone());
        taught
    }
}

#[cfg(test)]
mod tests {
    use hlorank_adaptation::{Measurement, Point};

    use super::*;

    fn learned(cache: &LessonCache, seconds: [f64; 3]) -> Option<Arc<AdaptedModel>> {
        let measurement = |(score, seconds)| {
            let point = Point {
                score,
                bounds: [score].into(),
                ..Point::default()
            };
            Measurement {
                point,
                seconds: Some(seconds),
                repeats: 1,
            }
        };
        let measured = [1.0, 2.0, 4.0].into_iter().zip(seconds).map(measurement);
        let prior = Prior::of_model(0.076, 0.5);
        cache.learn(prior, Measurements::new(measured.collect()))
    }

    #[test]
    fn the_same_measurements_are_learned_once() {
        let cache = LessonCache::default();
        let first = learned(&cache, [1.0, 2.0, 3.0]).unwrap();
        assert!(Arc::ptr_eq(
            &first,
            &learned(&cache, [1.0, 2.0, 3.0]).unwrap()
        ));
        assert!(!Arc::ptr_eq(
            &first,
            &learned(&cache, [1.0, 2.0, 3.5]).unwrap()
        ));
        assert!(learned(&cache, [1.0; 3]).is_none());
    }
}
