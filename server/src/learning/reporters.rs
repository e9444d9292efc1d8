//! Whose measurements a call learns from, and by how much they differ.

use std::{cmp::Reverse, collections::BTreeMap};

use hlorank_graph::pace;

use super::measured::MeasuredPoints;
use crate::store::Reporter;

/// What one reporter measured of the call's graph on its target.
pub(crate) struct ReporterShare {
    pub(crate) reporter: Reporter,
    /// Number of distinct configurations that have a time.
    pub(crate) measured: usize,
    /// `[shared configurations]` the absolute differences between its mean ln(seconds) and that of the other reporters.
    differences: Vec<f64>,
}

/// Compares reporters by what several of them measured. The call's client comes first, then those with the most configurations.
pub(super) fn reporter_shares(measured: &MeasuredPoints) -> Vec<ReporterShare> {
    let MeasuredPoints { configs, points } = measured;
    let timed = (0..points.len()).filter(|&number| configs.outcomes[number].failure == 0);
    let mut timed: Vec<usize> = timed.collect();
    timed.sort_by(|&one, &other| points[one].compare(&points[other]));
    let mut shares = BTreeMap::<_, ReporterShare>::new();
    for same in pace::in_steps(
        64,
        timed.chunk_by(|&one, &other| points[one] == points[other]),
    ) {
        // The sums of the logarithms of times and of the runs of each reporter.
        let mut sums = BTreeMap::<_, [f64; 2]>::new();
        for &number in same {
            let outcome = configs.outcomes[number];
            let runs = f64::from(outcome.repeats);
            let sum = sums.entry(&configs.reporters[number]).or_default();
            sum[0] += runs * libm::log(outcome.seconds);
            sum[1] += runs;
        }
        let all = sums
            .values()
            .fold([0.0; 2], |[log, runs], own| [log + own[0], runs + own[1]]);
        for (&reporter, [log, runs]) in &sums {
            let share = shares.entry(reporter).or_insert_with(|| ReporterShare {
                reporter: reporter.clone(),
                measured: 0,
                differences: Vec::new(),
            });
            share.measured += 1;
            if sums.len() > 1 {
                let others = (all[0] - log) / (all[1] - runs);
                share.differences.push((log / runs - others).abs());
            }
        }
    }
    let mut shares: Vec<ReporterShare> = shares.into_values().collect();
    // Sorting is stable, so that reporters with equally many configurations keep the order of names.
    shares.sort_by_key(|share| (share.reporter != configs.client, Reverse(share.measured)));
    shares
}

impl ReporterShare {
    /// Number of its configurations that other reporters measured, too.
    pub(crate) fn shared(&self) -> usize {
        self.differences.len()
    }

    /// By what factor its times of these differ from those of the others, as a median; 0 if there are none.
    pub(crate) fn times_differ_by(&self) -> f64 {
        let mut sorted = self.differences.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
            .get(sorted.len() / 2)
            .map_or(0.0, |&median| libm::exp(median))
    }
}
