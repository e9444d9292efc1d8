use std::fs;

use metrics::{Counter, Gauge};
use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
};

use super::recorder::{Recorder, series, set};

series! {
    /// [The standard metrics of a process](https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics), as Linux
    /// shows them in `/proc`. They stay zero elsewhere.
    pub(super) struct ProcessSeries {
        /// Total user and system CPU time spent in seconds.
        cpu_seconds: Counter = "process_cpu_seconds_total",
        /// Number of OS threads in the process.
        threads: Gauge = "process_threads",
        /// Start time of the process since unix epoch in seconds.
        start_time: Gauge = "process_start_time_seconds",
        /// Virtual memory size in bytes.
        virtual_memory: Gauge = "process_virtual_memory_bytes",
        /// Maximum amount of virtual memory available in bytes.
        max_virtual_memory: Gauge = "process_virtual_memory_max_bytes",
        /// Resident memory size in bytes.
        resident_memory: Gauge = "process_resident_memory_bytes",
        /// Number of open file descriptors.
        open_files: Gauge = "process_open_fds",
        /// Maximum number of open file descriptors.
        max_open_files: Gauge = "process_max_fds",
    }
}

impl ProcessSeries {
    /// Reads the current values. A value that cannot be read stays as it was.
    pub(super) fn update(&self) {
        if let Some(stat) = ProcessStat::read() {
            let ticks = clock_ticks_per_second();
            self.cpu_seconds.absolute(stat.cpu_ticks / ticks);
            set(&self.threads, stat.threads);
            set(&self.virtual_memory, stat.virtual_bytes);
            set(
                &self.resident_memory,
                stat.resident_pages * page_size() as u64,
            );
            if let Some(boot) = boot_time() {
                set(&self.start_time, boot + stat.start_ticks / ticks);
            }
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            // The listing itself is one of them.
            set(&self.open_files, files.count().saturating_sub(1) as u64);
        }
        // 0 stands for no limit.
        let limit = |resource| getrlimit(resource).current.unwrap_or(0);
        set(&self.max_open_files, limit(Resource::Nofile));
        set(&self.max_virtual_memory, limit(Resource::As));
    }
}

/// Fields of `/proc/self/stat`, by their numbers in `proc_pid_stat(5)`.
struct ProcessStat {
    /// 14 and 15, user and system time.
    cpu_ticks: u64,
    /// 20.
    threads: u64,
    /// 22, since the machine started.
    start_ticks: u64,
    /// 23.
    virtual_bytes: u64,
    /// 24.
    resident_pages: u64,
}

impl ProcessStat {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program, the second field, is in parentheses and may have spaces.
        let (_, after_name) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = after_name.split(' ').collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)? + field(15)?,
            threads: field(20)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// Returns when the machine started, in seconds since the epoch.
fn boot_time() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "));
    line?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn a_process_on_linux_is_described() {
        let stat = ProcessStat::read().unwrap();
        assert!(stat.threads > 0 && stat.resident_pages > 0);
        assert!(stat.virtual_bytes > stat.resident_pages * page_size() as u64);
        let started = boot_time().unwrap() + stat.start_ticks / clock_ticks_per_second();
        let made = fs::metadata("/proc/self").unwrap().modified().unwrap();
        let made = made.duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(started.abs_diff(made) < 3600, "{started} {made}");
    }
}
