//! The server keeps its promises under overload and faults: no call hangs or has a wrong answer, what fails fails
//! alone, memory is bounded, and nothing is left of those who have gone.

mod asking;
mod cache_churn;
mod failing_runs;
mod herd;
mod killed_clients;
mod mass_cancellation;
mod overload;
mod slow_readers;
mod work_after_the_end;
mod worker_panics;
mod zero_deadlines;
