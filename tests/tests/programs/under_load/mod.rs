//! Under overload and faults no call hangs or has a wrong answer, failures stay isolated, memory is bounded, and
//! nothing remains of clients that have gone.

mod cache_churn;
mod failing_runs;
mod herd;
mod killed_clients;
mod overload;
mod requests;
mod slow_readers;
mod work_after_the_end;
mod worker_panics;
mod zero_deadlines;
