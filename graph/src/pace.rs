//! Lets a long computation give way to others, or stop, without knowing who runs it.
//!
//! A loop that can run for long calls [`pause`] once per step of at most about a hundred microseconds. By default, this
//! does nothing. Within [`paced`], it calls a function, which may block the thread until the computation may go on, or
//! unwind the stack (`std::panic::resume_unwind`) because nobody needs the result any more. A step must not hold a lock
//! while it pauses.

use std::{cell::RefCell, rc::Rc};

thread_local! {
    static PAUSE: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
}

/// Number of steps of a nanosecond or so, such as elements of an array, between two pauses.
pub const STEPS: usize = 1 << 14;

/// Sets what a pause calls to what it was before when this is dropped.
struct PauseGuard(Option<Rc<dyn Fn()>>);

impl Drop for PauseGuard {
    fn drop(&mut self) {
        PAUSE.set(self.0.take());
    }
}

/// Runs `work`, whose calls of [`pause`] on this thread call `on_pause`.
pub fn paced<T>(on_pause: impl Fn() + 'static, work: impl FnOnce() -> T) -> T {
    let _before = PauseGuard(PAUSE.replace(Some(Rc::new(on_pause))));
    work()
}

/// Gives way to other computations, if the thread's [`paced`] computation should.
pub fn pause() {
    // The borrow ends before the call, which may unwind.
    let on_pause = PAUSE.with_borrow(Clone::clone);
    if let Some(on_pause) = on_pause {
        on_pause();
    }
}

/// Goes through `items`, and pauses after every `steps` of them.
pub fn in_steps<I: IntoIterator>(steps: usize, items: I) -> impl Iterator<Item = I::Item> {
    items.into_iter().enumerate().map(move |(number, item)| {
        if (number + 1) % steps == 0 {
            pause();
        }
        item
    })
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    };

    use super::*;

    #[test]
    fn only_a_paced_computation_calls_what_its_pauses_do() {
        let pauses = Rc::new(Cell::new(0));
        let count = Rc::clone(&pauses);
        let sum = || in_steps(10, 0..95).sum::<i32>();
        pause();
        assert_eq!(paced(move || count.set(count.get() + 1), sum), sum());
        assert_eq!(pauses.get(), 9, "one after each ten items");
    }

    #[test]
    fn a_pause_may_end_the_computation() {
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            paced(|| resume_unwind(Box::new("stopped")), pause);
        }));
        assert!(stopped.is_err());
        pause();
    }
}
