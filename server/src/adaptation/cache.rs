use std::sync::Arc;

use hlorank_graph::Digest;
use quick_cache::{Weighter, sync::Cache};

use super::{AdaptedModel, Measurements, Prior, StudiedTargets};
use crate::metrics::CacheSizes;

/// What was learned from sets of measurements, so that the calls of a search learn once.
pub(crate) struct LessonCache {
    /// Of sets of measurements. That a set teaches nothing is remembered, too.
    adapted: Cache<Digest, Option<Arc<AdaptedModel>>, WeightInBytes>,
    /// Of sets of other targets.
    studied: Cache<Digest, Arc<StudiedTargets>, WeightInBytes>,
}

/// Maximum number of bytes of each.
const BYTES: u64 = 64 << 20;

/// Expected numbers of entries.
const ADAPTED: usize = 1_024;
const STUDIED: usize = 64;

/// Bytes of an entry beside what was learned.
const ENTRY_BYTES: usize = 256;

#[derive(Clone)]
struct WeightInBytes;

impl Weighter<Digest, Option<Arc<AdaptedModel>>> for WeightInBytes {
    fn weight(&self, _: &Digest, adapted: &Option<Arc<AdaptedModel>>) -> u64 {
        (ENTRY_BYTES + adapted.as_ref().map_or(0, |adapted| adapted.bytes())) as u64
    }
}

impl Weighter<Digest, Arc<StudiedTargets>> for WeightInBytes {
    fn weight(&self, _: &Digest, studied: &Arc<StudiedTargets>) -> u64 {
        (ENTRY_BYTES + studied.bytes()) as u64
    }
}

impl Default for LessonCache {
    fn default() -> Self {
        Self {
            adapted: Cache::with_weighter(ADAPTED, BYTES, WeightInBytes),
            studied: Cache::with_weighter(STUDIED, BYTES, WeightInBytes),
        }
    }
}

impl LessonCache {
    /// Sets the gauges to the current state.
    pub(crate) fn sample(&self, sizes: &CacheSizes) {
        let (adapted, studied) = (&self.adapted, &self.studied);
        sizes.learned.set(adapted.weight(), adapted.capacity());
        sizes
            .other_targets
            .set(studied.weight(), studied.capacity());
    }

    /// Learns from measurements, unless that was done before.
    pub(crate) fn learn(
        &self,
        prior: Prior,
        measurements: Measurements,
    ) -> Option<Arc<AdaptedModel>> {
        let digest = digest(prior, &measurements);
        if let Some(adapted) = self.adapted.get(&digest) {
            return adapted;
        }
        // Nobody waits for another call that learns the same, because learning pauses, and a waiting call would keep the
        // worker that the other one needs.
        let adapted = AdaptedModel::new(prior, measurements).map(Arc::new);
        self.adapted.insert(digest, adapted.clone());
        adapted
    }

    /// Compares the measurements of other targets, unless that was done before.
    pub(crate) fn study(&self, prior: Prior, targets: &[Measurements]) -> Arc<StudiedTargets> {
        let digests: Vec<Digest> = targets.iter().map(|target| digest(prior, target)).collect();
        let parts = digests.iter().map(|digest| &digest.0[..]);
        let digest = Digest::of_parts("hlorank 2026 measurements of other targets", parts);
        if let Some(studied) = self.studied.get(&digest) {
            return studied;
        }
        let studied = Arc::new(StudiedTargets::new(prior, targets));
        self.studied.insert(digest, Arc::clone(&studied));
        studied
    }
}

/// Identifies all that learning depends on.
fn digest(prior: Prior, measurements: &Measurements) -> Digest {
    // The patterns have no `..`, so that a new field does not compile until it is part of the digest.
    let Measurements {
        points,
        times,
        counts,
        failed,
        own,
    } = measurements;
    let Prior {
        slope,
        spread,
        doubt,
    } = prior;
    let bytes = |values: &mut dyn Iterator<Item = u64>| -> Vec<u8> {
        values.flat_map(u64::to_le_bytes).collect()
    };
    let numbers = |values: &[f64]| bytes(&mut values.iter().map(|value| value.to_bits()));
    let mut parts = vec![
        numbers(&[slope, spread, doubt]),
        numbers(times),
        numbers(counts),
    ];
    let own = own.iter();
    parts.extend(own.map(|own| own.iter().map(|&is_own| is_own.into()).collect()));
    // The number of times says where the points with a time end and those that failed begin. There is a digest of each point,
    // because the bytes of all would be the dense form of a batch.
    parts.extend(points.iter().chain(failed).map(|point| {
        let score = [point.score.to_bits()];
        let bytes = bytes(&mut point.configuration().chain(score));
        let digest = Digest::of_parts("hlorank 2026 a point", [bytes.as_slice()]);
        digest.0.to_vec()
    }));
    let parts = parts.iter().map(Vec::as_slice);
    Digest::of_parts("hlorank 2026 measurements that teach", parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::{Measurement, Point};

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
