use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use futures::{StreamExt as _, stream};
use hlorank_graph::pace;
use tokio::sync::oneshot;

use super::{
    super::threads::{INTERACTIVE_PERIOD, NICE, yield_to_others},
    *,
};

fn pool(workers: usize) -> Arc<ComputePool> {
    Arc::new(ComputePool::new(NonZeroUsize::new(workers).unwrap()).unwrap())
}

/// Runs work that does not panic.
async fn run<T: Send + 'static>(
    pool: &ComputePool,
    class: Class,
    work: impl FnOnce(Worker) -> T + Send + 'static,
) -> T {
    pool.run(class, work).await.unwrap().value
}

#[tokio::test]
async fn work_spawned_by_work_is_queued_behind_earlier_work() {
    let pool = pool(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let (sender, receiver) = oneshot::channel::<()>();
    let [first, spawned, second] = ["first", "spawned by the first", "second"].map(|name| {
        let order = Arc::clone(&order);
        move || order.lock().unwrap().push(name)
    });
    let own = Arc::clone(&pool);
    pool.spawn(Class::Bulk, move |_| {
        // The second piece is queued by then.
        let _ = receiver.blocking_recv();
        first();
        own.spawn(Class::Bulk, move |_| spawned());
    });
    pool.spawn(Class::Bulk, move |_| second());
    sender.send(()).unwrap();
    for _ in 0..2 {
        run(&pool, Class::Bulk, |_| ()).await;
    }
    assert_eq!(
        *order.lock().unwrap(),
        ["first", "second", "spawned by the first"]
    );
}

#[tokio::test]
async fn a_computation_that_does_not_pause_holds_up_no_other() {
    let pool = pool(1);
    let (sender, receiver) = oneshot::channel::<usize>();
    let long = |_| {
        let heard = receiver.blocking_recv();
        // Its next turn.
        (0..10).for_each(|_| {
            thread::sleep(Duration::from_millis(2));
            pace::pause();
        });
        heard
    };
    let (long, other) = tokio::join!(pool.run(Class::Bulk, long), async {
        let other = run(&pool, Class::Bulk, |Worker(worker)| worker).await;
        sender.send(other).unwrap();
        other
    });
    assert_eq!(long.unwrap().value, Ok(other));
    // There is one worker afterwards. Nothing waits behind any of these, so none loses its place.
    let mut threads = HashSet::new();
    for _ in 0..4 {
        threads.insert(run(&pool, Class::Bulk, |_| thread::current().id()).await);
    }
    assert_eq!(threads.len(), 1);
}

#[tokio::test]
async fn a_worker_that_panicked_is_counted_and_replaced() {
    let pool = pool(1);
    let who = |Worker(worker)| {
        let thread = thread::current();
        (worker, thread.name().map(str::to_owned), thread.id())
    };
    let before = run(&pool, Class::Bulk, who).await;
    for panics in 1..=3 {
        let failed = pool.run(Class::Interactive, |_| panic!("on purpose"));
        assert!(failed.await.is_err());
        let after = run(&pool, Class::Bulk, who).await;
        assert_eq!(
            (after.0, &after.1),
            (before.0, &before.1),
            "with the same sessions"
        );
        assert_ne!(after.2, before.2, "on another thread");
        assert_eq!(pool.panics(), panics);
    }
}

#[tokio::test]
async fn the_replacement_of_a_background_worker_has_its_low_priority() {
    let pool = pool(2).background(Worker(7)).unwrap();
    pool.spawn(Class::Bulk, |_| yield_to_others());
    let failed = pool.run(Class::Bulk, |_| panic!("on purpose"));
    assert!(failed.await.is_err());
    let priority = |worker| (worker, rustix::process::getpriority_process(None).unwrap());
    assert_eq!(run(&pool, Class::Bulk, priority).await, (Worker(7), NICE));
}

/// Returns a pool of one worker that is blocked until the sender is used, and the order in which work was done.
fn blocked(
    class: Class,
) -> (
    Arc<ComputePool>,
    oneshot::Sender<()>,
    Arc<Mutex<Vec<Class>>>,
) {
    let pool = pool(1);
    let (sender, receiver) = oneshot::channel::<()>();
    pool.spawn(class, move |_| receiver.blocking_recv().unwrap());
    while pool.queued() > 0 {
        thread::yield_now();
    }
    (pool, sender, Arc::default())
}

fn note(pool: &ComputePool, class: Class, order: &Arc<Mutex<Vec<Class>>>) {
    let order = Arc::clone(order);
    pool.spawn(class, move |_| order.lock().unwrap().push(class));
}

#[tokio::test]
async fn interactive_work_comes_first_and_bulk_work_keeps_its_share() {
    let (pool, go, order) = blocked(Class::Interactive);
    (0..3).for_each(|_| note(&pool, Class::Bulk, &order));
    (0..20).for_each(|_| note(&pool, Class::Interactive, &order));
    go.send(()).unwrap();
    run(&pool, Class::Bulk, |_| ()).await;
    let order = order.lock().unwrap();
    let bulk: Vec<usize> = (0..order.len())
        .filter(|&place| order[place] == Class::Bulk)
        .collect();
    assert_eq!(bulk, [7, 15, 22], "{order:?}");
}

#[tokio::test]
async fn a_long_piece_of_bulk_work_is_not_soon_followed_by_another() {
    let (pool, go, order) = blocked(Class::Bulk);
    note(&pool, Class::Bulk, &order);
    (0..20).for_each(|_| note(&pool, Class::Interactive, &order));
    thread::sleep(Duration::from_millis(200));
    go.send(()).unwrap();
    run(&pool, Class::Bulk, |_| ()).await;
    let order = order.lock().unwrap();
    assert_eq!(
        order.iter().position(|&class| class == Class::Bulk),
        Some(20)
    );
}

/// A future that runs two pieces of work of a class after each other.
fn two_pieces(
    pool: &Arc<ComputePool>,
    class: Class,
) -> impl Future<Output = [thread::ThreadId; 2]> + use<> {
    let pool = Arc::clone(pool);
    async move {
        let id = |_| thread::current().id();
        [run(&pool, class, id).await, run(&pool, class, id).await]
    }
}

#[tokio::test]
async fn one_worker_does_a_small_call_before_what_was_queued_meanwhile() {
    let (pool, go, order) = blocked(Class::Bulk);
    let (own, driven) = (Arc::clone(&pool), two_pieces(&pool, Class::Interactive));
    let small = tokio::spawn(async move { own.drive(driven).await.unwrap().value });
    while pool.queued() == 0 {
        tokio::task::yield_now().await;
    }
    note(&pool, Class::Interactive, &order);
    let later = run(&pool, Class::Interactive, move |_| {
        order.lock().unwrap().len()
    });
    go.send(()).unwrap();
    let [one, other] = small.await.unwrap();
    assert_eq!(one, other);
    assert_eq!(later.await, 1);
}

#[tokio::test]
async fn a_small_call_that_waits_for_other_work_is_polled_by_its_task() {
    let pool = pool(2);
    let driven = two_pieces(&pool, Class::Bulk);
    let ids = pool.drive(driven).await.unwrap().value;
    assert!(ids.iter().all(|&id| id != thread::current().id()));
}

#[tokio::test]
async fn a_very_small_call_stays_on_its_thread_until_it_needs_a_worker() {
    let pool = pool(2);
    let own = Arc::clone(&pool);
    let call = async move {
        let id = || thread::current().id();
        let received = own.run_short(Class::Interactive, id).await.unwrap().value;
        own.need_worker().await;
        let later = own.run_short(Class::Interactive, id).await.unwrap().value;
        (received, later, own.at_once(Class::Interactive).is_some())
    };
    let (received, later, is_worker) = pool.drive_here(call).await.unwrap().value;
    assert_eq!(received, thread::current().id());
    assert_ne!(later, received);
    assert!(is_worker);
    // Other calls of the thread are not taken for very small ones.
    let id = pool
        .run_short(Class::Interactive, || thread::current().id())
        .await;
    assert_ne!(id.unwrap().value, received);
}

#[tokio::test]
async fn several_pieces_of_a_very_small_call_get_a_worker() {
    let pool = pool(2);
    let own = Arc::clone(&pool);
    let call = async move {
        let pieces = (0..3).map(|piece| {
            let own = Arc::clone(&own);
            async move {
                own.need_worker().await;
                piece
            }
        });
        stream::iter(pieces).buffered(2).collect::<Vec<_>>().await
    };
    assert_eq!(pool.drive_here(call).await.unwrap().value, [0, 1, 2]);
}

#[tokio::test]
async fn a_very_small_call_does_not_wait_for_busy_workers() {
    let (pool, go, _) = blocked(Class::Bulk);
    let own = Arc::clone(&pool);
    let call = async move { own.run_short(Class::Interactive, || 7).await.unwrap().value };
    assert_eq!(pool.drive_here(call).await.unwrap().value, 7);
    go.send(()).unwrap();
}

#[tokio::test]
async fn a_panic_in_a_very_small_call_fails_that_call_and_is_counted() {
    let pool = pool(2);
    let panics = async { "on purpose".parse::<u8>().unwrap() };
    assert!(pool.drive_here(panics).await.is_err());
    assert_eq!(pool.panics(), 1);
}

#[tokio::test]
async fn a_panic_in_a_small_call_fails_that_call_only() {
    let pool = pool(2);
    let own = Arc::clone(&pool);
    let panics = async move {
        own.run(Class::Interactive, |_| panic!("on purpose"))
            .await
            .is_ok()
    };
    assert!(pool.drive(panics).await.is_err());
    // The call fails while the stack of the worker is unwound; the panic is counted afterwards.
    while pool.panics() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(pool.panics(), 1);
    let driven = two_pieces(&pool, Class::Interactive);
    assert!(pool.drive(driven).await.is_ok());
}

#[tokio::test]
async fn queued_work_is_done_after_the_pool_is_dropped() {
    let (pool, go, order) = blocked(Class::Bulk);
    for class in [Class::Bulk, Class::Interactive, Class::Bulk] {
        note(&pool, class, &order);
    }
    drop(pool);
    go.send(()).unwrap();
    while order.lock().unwrap().len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_pool_is_interactive_for_a_while_after_an_interactive_call() {
    let pool = pool(2);
    run(&pool, Class::Interactive, |_| ()).await;
    assert!(!pool.is_interactive());
    pool.note_interactive();
    assert!(pool.is_interactive());
    tokio::time::sleep(2 * INTERACTIVE_PERIOD).await;
    assert!(!pool.is_interactive());
}

/// Pauses until a flag is set, and counts its pauses.
fn pause_until(is_over: &AtomicBool) -> usize {
    let mut pauses = 0;
    while !is_over.load(Ordering::Acquire) {
        pace::pause();
        pauses += 1;
    }
    pauses
}

/// Notes when it is dropped.
struct NotesEnd(Arc<AtomicBool>);

impl Drop for NotesEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[tokio::test]
async fn long_work_gives_way_to_work_that_comes_later() {
    let pool = pool(1);
    let is_over = Arc::new(AtomicBool::new(false));
    let (own, flag) = (Arc::clone(&is_over), Arc::clone(&is_over));
    let long = pool.run(Class::Bulk, move |_| pause_until(&own));
    let short = pool.run(Class::Bulk, |Worker(worker)| worker);
    let (long, ()) = tokio::join!(long, async {
        // The only worker is free for it, although the long work has begun and does not end.
        assert_eq!(short.await.unwrap().value, 0);
        assert_eq!(
            run(&pool, Class::Interactive, |Worker(worker)| worker).await,
            0
        );
        flag.store(true, Ordering::Release);
    });
    assert!(long.unwrap().value > 0);
    assert_eq!(pool.panics(), 0);
    assert_eq!(run(&pool, Class::Bulk, |_| 7).await, 7);
}

#[tokio::test]
async fn many_long_computations_take_turns_on_one_worker() {
    let pool = pool(1);
    let begun = Arc::new(AtomicUsize::new(0));
    let long = (0..20).map(|_| {
        let begun = Arc::clone(&begun);
        pool.run(Class::Bulk, move |_| {
            begun.fetch_add(1, Ordering::AcqRel);
            // Each ends only after all have begun.
            while begun.load(Ordering::Acquire) < 20 {
                pace::pause();
            }
        })
    });
    assert_eq!(futures::future::try_join_all(long).await.unwrap().len(), 20);
}

/// Work that does not end by itself, what is notified when it begins, and whether it has ended.
fn endless() -> (
    impl FnOnce(Worker) -> usize + Send + 'static,
    oneshot::Receiver<()>,
    Arc<AtomicBool>,
) {
    let ended = Arc::new(AtomicBool::new(false));
    let notes = NotesEnd(Arc::clone(&ended));
    let (begins, begun) = oneshot::channel();
    let work = move |_: Worker| {
        let _notes = notes;
        let _ = begins.send(());
        pause_until(&AtomicBool::new(false))
    };
    (work, begun, ended)
}

/// Waits until endless work of a pool has ended, whose only worker takes other work then.
async fn until_stopped(pool: &ComputePool, ended: &AtomicBool) {
    while !ended.load(Ordering::Acquire) {
        run(pool, Class::Bulk, |_| ()).await;
    }
    assert_eq!(pool.panics(), 0, "to be stopped is no panic");
}

#[tokio::test]
async fn long_work_ends_soon_after_nobody_waits_for_it() {
    let pool = pool(1);
    let (work, begun, ended) = endless();
    tokio::select! {
        _ = pool.run(Class::Bulk, work) => panic!("it does not end by itself"),
        _ = begun => {}
    }
    until_stopped(&pool, &ended).await;
}

#[tokio::test]
async fn the_long_work_of_a_small_call_gives_way_and_ends_with_the_call() {
    let pool = pool(1);
    let (work, begun, ended) = endless();
    let own = Arc::clone(&pool);
    let call = pool.drive(async move { own.run(Class::Interactive, work).await.is_ok() });
    tokio::select! {
        _ = call => panic!("it does not end by itself"),
        () = async {
            begun.await.unwrap();
            run(&pool, Class::Interactive, |_| ()).await;
        } => {}
    }
    until_stopped(&pool, &ended).await;
}
