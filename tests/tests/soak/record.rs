//! Samples over time.

use std::fmt::Write as _;

use hlorank_tests::prelude::*;

use crate::calls::Answer;

/// All samples in order.
#[derive(Debug, Default)]
pub(crate) struct Record {
    samples: Vec<Sample>,
    /// Durations of all calls, in milliseconds.
    times: Vec<f32>,
    failed: Vec<String>,
}

/// Sample of the time since the one before.
#[derive(Debug)]
struct Sample {
    /// Time since the start.
    seconds: f64,
    /// Resident memory, in MiB.
    resident: f64,
    calls: usize,
    failed: usize,
    /// p50, p99 and maximum latency, in milliseconds.
    latency: [f64; 3],
}

impl Record {
    pub(crate) fn add(&mut self, at: Duration, resident: usize, answers: Vec<Answer>) {
        let mut times: Vec<f32> = answers
            .iter()
            .map(|answer| answer.took.as_secs_f32() * 1e3)
            .collect();
        let wrong: Vec<String> = answers
            .into_iter()
            .filter_map(|answer| answer.wrong)
            .collect();
        times.sort_by(f32::total_cmp);
        self.samples.push(Sample {
            seconds: at.as_secs_f64(),
            resident: resident as f64 / f64::from(1 << 20),
            calls: times.len(),
            failed: wrong.len(),
            latency: quantiles(&times),
        });
        self.times.extend(times);
        self.failed.extend(wrong);
    }

    /// Writes all samples.
    pub(crate) fn write(&self) {
        let mut table = "seconds,resident_mib,calls,failed,p50_ms,p99_ms,max_ms\n".to_owned();
        for Sample {
            seconds,
            resident,
            calls,
            failed,
            latency: [p50, p99, max],
        } in &self.samples
        {
            let row =
                format!("{seconds:.1},{resident:.2},{calls},{failed},{p50:.3},{p99:.3},{max:.3}");
            writeln!(table, "{row}").expect("a string");
        }
        let folder = repository("target/soak");
        fs::create_dir_all(&folder).expect("target can be written");
        fs::write(folder.join("soak.csv"), table).expect("target can be written");
    }

    pub(crate) fn calls(&self) -> usize {
        self.times.len()
    }

    pub(crate) fn failed(&self) -> &[String] {
        &self.failed
    }

    /// Returns the maximum resident memory, in MiB.
    pub(crate) fn most_resident(&self) -> f64 {
        self.samples
            .iter()
            .map(|sample| sample.resident)
            .fold(0.0, f64::max)
    }

    /// Returns the ratio of the resident memory at the end to that after a third of the time, on the line fitted to the
    /// samples between.
    pub(crate) fn growth(&self) -> f64 {
        let (start, slope) = self.line();
        let [first, last] = [
            self.settled()[0].seconds,
            self.samples[self.samples.len() - 1].seconds,
        ];
        (start + slope * last) / (start + slope * first)
    }

    /// Fits a line by least squares: MiB at the beginning, and MiB per second.
    fn line(&self) -> (f64, f64) {
        let samples = self.settled();
        let mean = |value: fn(&Sample) -> f64| {
            samples.iter().map(value).sum::<f64>() / samples.len() as f64
        };
        let (seconds, resident) = (
            mean(|sample| sample.seconds),
            mean(|sample| sample.resident),
        );
        let together = |sample: &Sample| (sample.seconds - seconds) * (sample.resident - resident);
        let alone = |sample: &Sample| (sample.seconds - seconds).powi(2);
        let slope =
            samples.iter().map(together).sum::<f64>() / samples.iter().map(alone).sum::<f64>();
        (resident - slope * seconds, slope)
    }

    fn settled(&self) -> &[Sample] {
        &self.samples[self.samples.len() / 3..]
    }

    pub(crate) fn summary(&self) -> String {
        let mut times = self.times.clone();
        times.sort_by(f32::total_cmp);
        let ([p50, p99, max], (_, slope)) = (quantiles(&times), self.line());
        let [first, last] = [
            self.settled()[0].resident,
            self.samples[self.samples.len() - 1].resident,
        ];
        format!(
            "p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.1} ms; {first:.0} MiB resident after a third, {last:.0} MiB at the \
             end, {:.2} MiB an hour",
            slope * 3600.0
        )
    }
}

/// Returns p50, p99 and maximum; 0 if there are no values.
fn quantiles(ascending: &[f32]) -> [f64; 3] {
    let Some(last) = ascending.len().checked_sub(1) else {
        return [0.0; 3];
    };
    [last / 2, last * 99 / 100, last].map(|place| ascending[place].into())
}
