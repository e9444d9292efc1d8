use std::sync::Arc;

use hlorank_graph::Digest;
use quick_cache::{Weighter, sync::Cache};

use super::{AdaptedModel, Measurements, Point, Prior, StudiedSources};

/// What was learned from sets of measurements, so that the calls of a search learn once.
pub(crate) struct AdaptedCache(Cache<Digest, Option<Arc<AdaptedModel>>, WeightInBytes>);

/// Maximum number of bytes.
const BYTES: u64 = 64 << 20;

/// Expected number of entries.
const ENTRIES: usize = 1_024;

/// Expected number of sets of other targets.
const SOURCES: usize = 64;

/// Bytes of an entry beside what was learned.
const ENTRY_BYTES: usize = 256;

#[derive(Clone)]
struct WeightInBytes;

impl Weighter<Digest, Option<Arc<AdaptedModel>>> for WeightInBytes {
    fn weight(&self, _: &Digest, adapted: &Option<Arc<AdaptedModel>>) -> u64 {
        (ENTRY_BYTES + adapted.as_ref().map_or(0, |adapted| adapted.bytes())) as u64
    }
}

impl Default for AdaptedCache {
    fn default() -> Self {
        Self(Cache::with_weighter(ENTRIES, BYTES, WeightInBytes))
    }
}

impl AdaptedCache {
    /// Learns from measurements, unless that was done before.
    pub(crate) fn learn(
        &self,
        prior: Prior,
        measurements: Measurements,
    ) -> Option<Arc<AdaptedModel>> {
        let digest = digest(prior, &measurements);
        // That a set teaches nothing is remembered, too.
        if let Some(adapted) = self.0.get(&digest) {
            return adapted;
        }
        // Nobody waits for another call that learns the same, because learning pauses, and a waiting call would keep the
        // worker that the other one needs.
        let adapted = AdaptedModel::of(prior, measurements).map(Arc::new);
        self.0.insert(digest, adapted.clone());
        adapted
    }
}

/// What sets of other targets' measurements say, so that the calls of a search compare them once.
pub(crate) struct SourcesCache(Cache<Digest, Arc<StudiedSources>, SourceBytes>);

#[derive(Clone)]
struct SourceBytes;

impl Weighter<Digest, Arc<StudiedSources>> for SourceBytes {
    fn weight(&self, _: &Digest, studied: &Arc<StudiedSources>) -> u64 {
        (ENTRY_BYTES + studied.bytes()) as u64
    }
}

impl Default for SourcesCache {
    fn default() -> Self {
        Self(Cache::with_weighter(SOURCES, BYTES, SourceBytes))
    }
}

impl SourcesCache {
    /// Compares the measurements of other targets, unless that was done before.
    pub(crate) fn study(&self, prior: Prior, sources: &[Measurements]) -> Arc<StudiedSources> {
        let digests: Vec<Digest> = sources.iter().map(|source| digest(prior, source)).collect();
        let parts = digests.iter().map(|digest| &digest.0[..]);
        let digest = Digest::of_parts("hlorank 2026 measurements of other targets", parts);
        if let Some(studied) = self.0.get(&digest) {
            return studied;
        }
        let studied = Arc::new(StudiedSources::of(prior, sources));
        self.0.insert(digest, Arc::clone(&studied));
        studied
    }
}

/// Identifies all that learning depends on.
fn digest(prior: Prior, measurements: &Measurements) -> Digest {
    // The pattern has no `..`, so that a new field does not compile until it is part of the digest.
    let Measurements {
        points,
        times,
        counts,
        failed,
        own,
    } = measurements;
    let numbers = |values: &[f64]| bytes(values.iter().map(|value| value.to_bits()));
    let mut parts = vec![numbers(&prior.numbers()), numbers(times), numbers(counts)];
    parts.extend(
        own.iter()
            .map(|own| own.iter().map(|&is_own| is_own.into()).collect()),
    );
    // The number of times says where the points with a time end and those that failed begin.
    let of_point = |point: &Point| {
        // A digest of each, because the bytes of all would be the dense form of a batch.
        let bytes = bytes_of_point(point);
        Digest::of_parts("hlorank 2026 a point", [bytes.as_slice()])
            .0
            .to_vec()
    };
    parts.extend(points.iter().chain(failed).map(of_point));
    Digest::of_parts(
        "hlorank 2026 measurements that teach",
        parts.iter().map(Vec::as_slice),
    )
}

fn bytes_of_point(point: &Point) -> Vec<u8> {
    let score = [point.score.to_bits()];
    bytes(point.configuration().chain(score))
}

fn bytes(values: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::Measurement;

    fn learned(cache: &AdaptedCache, seconds: [f64; 3]) -> Option<Arc<AdaptedModel>> {
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
        cache.learn(prior, Measurements::of(measured.collect()))
    }

    #[test]
    fn the_same_measurements_are_learned_once() {
        let cache = AdaptedCache::default();
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
