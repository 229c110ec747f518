//! Runs parallel loops on a persistent pool of threads, for generated code and for Rust code.
//!
//! The pool divides a loop over `0..extent` into one share for each thread. A thread takes a
//! quarter of the remaining iterations of its own share at a time. When its own share is empty, the
//! thread takes from the shares of other threads in the same way. This is *affinity scheduling*
//! (Markatos and LeBlanc, IEEE TPDS 5(4), 1994, section 3). A loop that runs again therefore finds
//! its data in the caches of the same core, and threads that run at different speeds still finish
//! together. The calling thread takes part.
//!
//! The caller starts a loop with one store to a word that waiting workers poll. A worker polls for
//! some microseconds after its last loop before it sleeps. A worker joins a loop only if the loop
//! is still open when the worker arrives. A short loop that the caller finished alone therefore
//! does not wait for a worker to wake up. One atomic word, `State`, holds all of this.
//!
//! The pool runs one loop at a time. A caller that finds the pool busy runs its loop alone, on its
//! own thread, because the cores are busy anyway. No caller ever waits for the loop of another
//! caller, so nested calls cannot deadlock.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tilewright_codegen::ParallelBody;

use crate::memory::{Block, OutOfMemory};

/// How long a thread with a core of its own polls for work before it sleeps. This is longer than
/// the usual serial part between two parallel loops of a kernel, and about the cost of waking a
/// thread.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// A thread takes `1 / FRACTION` of the remaining iterations of a share at a time.
const FRACTION: i64 = 4;

/// Threads that run parallel loops together.
///
/// Threads can share a pool; the module's documentation says what happens when two of them call it
/// at once. Dropping the pool ends its threads.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held by the caller whose loop the workers are running.
    busy: AtomicBool,
    /// Scratch memory of callers; workers have their own.
    scratch: Mutex<Vec<Block>>,
}

impl Pool {
    /// A pool that runs loops on this many threads, the caller's included; at least 1.
    ///
    /// One thread needs no workers: its loops run on the calling thread. If the system refuses to
    /// start a thread, the pool has fewer; [`Pool::threads`] returns the actual number.
    pub fn new(threads: usize) -> Pool {
        let threads = threads.clamp(1, State::MAX_JOINED);
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        // Without a core for each thread, polling only takes time from the thread that it waits
        // for.
        let spin_time = if threads <= cores { SPIN_TIME } else { Duration::ZERO };
        let shared = Arc::new(Shared::new(threads, spin_time));
        let mut workers = Vec::new();
        for slot in 1..threads {
            let shared = Arc::clone(&shared);
            let worker = thread::Builder::new().name(format!("tilewright-{slot}"));
            match worker.spawn(move || shared.work(slot)) {
                Ok(handle) => workers.push(handle),
                Err(_) => break,
            }
        }
        Pool { shared, workers, busy: AtomicBool::new(false), scratch: Mutex::new(Vec::new()) }
    }

    /// The number of threads that run a loop together, the caller's included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `body` on all threads, for disjoint ranges that together cover `0..extent`.
    ///
    /// A panic in `body` ends the process, because the other threads have no caller to unwind to.
    pub fn for_each<F: Fn(Range<i64>) + Sync>(&self, extent: i64, body: F) {
        extern "C" fn call<F: Fn(Range<i64>) + Sync>(env: *const c_void, from: i64, to: i64, _: *mut u8) {
            // SAFETY: `env` is the closure of `for_each`, which outlives the loop and is `Sync`.
            let body = unsafe { &*env.cast::<F>() };
            body(from..to);
        }
        let work = Loop { body: call::<F>, env: (&raw const body).cast(), extent, scratch_bytes: 0 };
        self.run(work).expect("no scratch memory is asked for");
    }

    /// Runs a loop, together with the workers if they are free.
    fn run(&self, work: Loop) -> Result<(), OutOfMemory> {
        if work.extent < 1 {
            return Ok(());
        }
        let mut scratch = self.take_scratch(work.scratch_bytes)?;
        let alone = work.extent == 1 || self.workers.is_empty() || self.busy.swap(true, Ordering::Acquire);
        if alone {
            (work.body)(work.env, 0, work.extent, scratch.as_mut_ptr());
        } else {
            self.shared.run_as_caller(work, scratch.as_mut_ptr());
            self.busy.store(false, Ordering::Release);
        }
        self.return_scratch(scratch);
        Ok(())
    }

    /// Returns a block of at least this size with undefined content, for a calling thread to use
    /// during one call.
    pub(crate) fn take_scratch(&self, bytes: usize) -> Result<Block, OutOfMemory> {
        if bytes == 0 {
            return Ok(Block::empty());
        }
        let mut scratch = lock(&self.scratch).pop().unwrap_or(Block::empty());
        scratch.grow(bytes)?;
        Ok(scratch)
    }

    /// Returns a block to the pool for the next call.
    pub(crate) fn return_scratch(&self, scratch: Block) {
        if !scratch.is_empty() {
            lock(&self.scratch).push(scratch);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.end();
        for worker in self.workers.drain(..) {
            // A worker cannot panic: a panic in a loop's body ends the process.
            let _ = worker.join();
        }
    }
}

/// One call of a kernel, as its parallel loops see it: the pool to run on, and the failure if there
/// was one.
///
/// A pointer to a `ParallelCall` is the `pool` that generated code passes to [`parallel`]. A
/// `ParallelCall` belongs to one calling thread, so calls that share a pool do not see each other's
/// failures.
#[derive(Debug)]
pub(crate) struct ParallelCall<'p> {
    pool: &'p Pool,
    failure: Cell<Option<OutOfMemory>>,
}

impl<'p> ParallelCall<'p> {
    /// A call whose parallel loops run on this pool.
    pub(crate) fn new(pool: &'p Pool) -> ParallelCall<'p> {
        ParallelCall { pool, failure: Cell::new(None) }
    }

    /// The failure of the first loop of this call that did not run. After a failure, later loops of
    /// the call do not run either.
    pub(crate) fn into_failure(self) -> Option<OutOfMemory> {
        self.failure.into_inner()
    }

    /// The pointer that generated code takes as its pool.
    pub(crate) fn as_ptr(&self) -> *const c_void {
        (&raw const *self).cast()
    }

    fn run(&self, work: Loop) {
        if self.failure.get().is_none() {
            self.failure.set(self.pool.run(work).err());
        }
    }
}

/// Runs a parallel loop for generated code. This function is a [`tilewright_codegen::Parallel`].
///
/// Calls `body` for disjoint ranges that together cover `0..extent`, and returns when all of them
/// are done. Each call of `body` gets `scratch_bytes` bytes of memory with undefined content,
/// aligned to a cache line. No other call of `body` uses this memory at the same time. This
/// function never unwinds: if there is no scratch memory, the loop does not run, and the
/// [`ParallelCall`] reports the failure afterwards.
///
/// Only generated code calls this function, and its type does not allow it to be `unsafe`. It
/// relies on two facts. First, `call` comes from [`ParallelCall::as_ptr`] of a live `ParallelCall`
/// that was made on this thread. Second, several threads may call `body` with `env` at once.
pub(crate) extern "C" fn parallel(
    call: *const c_void,
    body: ParallelBody,
    env: *const c_void,
    extent: i64,
    scratch_bytes: i64,
) {
    // SAFETY: generated code passes on the `pool` of its `Call`, which `kernel.rs` makes from a
    // `ParallelCall` on this thread.
    let call = unsafe { &*call.cast::<ParallelCall<'_>>() };
    call.run(Loop { body, env, extent, scratch_bytes: usize::try_from(scratch_bytes).unwrap_or(0) });
}

/// The body of a parallel loop with its environment, trip count and scratch size.
#[derive(Clone, Copy, Debug)]
struct Loop {
    body: ParallelBody,
    env: *const c_void,
    extent: i64,
    scratch_bytes: usize,
}

/// The state of the pool in one word: the number of the loop, whether workers can join it, whether
/// its caller sleeps until it ends, whether the pool ends, and how many workers have joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State(u64);

impl State {
    const JOINED: u64 = 0xffff;
    /// The largest number of workers that the word can count.
    const MAX_JOINED: usize = State::JOINED as usize;
    const OPEN: u64 = 1 << 16;
    const CALLER_SLEEPS: u64 = 1 << 17;
    const END: u64 = 1 << 18;
    const NUMBER: u64 = 1 << 19;

    fn joined(self) -> u64 {
        self.0 & State::JOINED
    }

    fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    fn number(self) -> u64 {
        self.0 / State::NUMBER
    }

    /// The state of the next loop, open to all workers.
    fn next(self) -> State {
        State(((self.number() + 1) << State::NUMBER.trailing_zeros()) | State::OPEN)
    }

    /// Checks whether a worker whose last loop was `last` has something to do: join a loop, or end.
    fn has_work_after(self, last: u64) -> bool {
        self.has(State::END) || (self.has(State::OPEN) && self.number() != last)
    }
}

/// The remaining iterations of one thread's share of a loop. Each share has two cache lines of its
/// own, because cache lines are fetched in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Share {
    next: AtomicI64,
    end: AtomicI64,
}

impl Share {
    /// Takes a part of the remaining iterations.
    fn take(&self) -> Option<Range<i64>> {
        let end = self.end.load(Ordering::Relaxed);
        let mut from = self.next.load(Ordering::Relaxed);
        while from < end {
            let to = from + ((end - from) / FRACTION).max(1);
            match self.next.compare_exchange_weak(from, to, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(from..to),
                Err(now) => from = now,
            }
        }
        None
    }
}

/// The state that the caller and the workers share.
///
/// The protocol: the caller that holds [`Pool::busy`] writes `work` and `shares` while no worker
/// has joined, and then opens the loop. A worker joins by adding one to the state, and only while
/// the loop is open. A worker reads `work` and `shares` only between joining and leaving. When the
/// caller finds no iterations left to take, it closes the loop, and waits until all workers that
/// joined have left. From then on no worker reads `work`, and everything that the workers wrote is
/// visible.
#[derive(Debug)]
struct Shared {
    state: AtomicU64,
    work: UnsafeCell<Option<Loop>>,
    shares: Box<[Share]>,
    spin_time: Duration,
    /// Workers that sleep, or are about to.
    sleepers: AtomicUsize,
    sleep_lock: Mutex<()>,
    /// Sleeping workers wait here for a loop.
    wake: Condvar,
    /// A sleeping caller waits here for its workers.
    done: Condvar,
}

// SAFETY: only the caller that holds `Pool::busy` writes `work`, while no worker has joined. Only
// workers that have joined read it, and joining acquires what opening released. The pointers in
// `work` are used under the contract of `parallel` that several threads may call the body.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    fn new(threads: usize, spin_time: Duration) -> Shared {
        Shared {
            state: AtomicU64::new(0),
            work: UnsafeCell::new(None),
            shares: (0..threads).map(|_| Share::default()).collect(),
            spin_time,
            sleepers: AtomicUsize::new(0),
            sleep_lock: Mutex::new(()),
            wake: Condvar::new(),
            done: Condvar::new(),
        }
    }

    fn state(&self) -> State {
        State(self.state.load(Ordering::Acquire))
    }

    /// Runs a loop to its end, as the caller. The caller must hold [`Pool::busy`].
    fn run_as_caller(&self, work: Loop, scratch: *mut u8) {
        self.divide(work.extent);
        // SAFETY: no worker has joined, and the loop is closed, so no thread reads `work`.
        unsafe { *self.work.get() = Some(work) };
        let state = self.state().next();
        // Sequentially consistent with `sleep`: either a worker that goes to sleep sees the new
        // loop, or this thread sees the worker among the sleepers.
        self.state.store(state.0, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.sleep_lock));
            self.wake.notify_all();
        }
        self.run_parts(&work, 0, scratch);
        self.finish();
    }

    /// Gives every thread its share. Must only be called while no worker has joined.
    fn divide(&self, extent: i64) {
        let threads = self.shares.len() as i128;
        let bound = |slot: usize| (extent as i128 * slot as i128 / threads) as i64;
        for (slot, share) in self.shares.iter().enumerate() {
            share.next.store(bound(slot), Ordering::Relaxed);
            share.end.store(bound(slot + 1), Ordering::Relaxed);
        }
    }

    /// Runs parts of the loop until no iterations are left: of this thread's own share first, then
    /// of the shares of other threads.
    fn run_parts(&self, work: &Loop, slot: usize, scratch: *mut u8) {
        let (before, from_mine) = self.shares.split_at(slot);
        for share in from_mine.iter().chain(before) {
            while let Some(part) = share.take() {
                (work.body)(work.env, part.start, part.end, scratch);
            }
        }
    }

    /// Closes the loop, and waits for the workers that joined it.
    fn finish(&self) {
        let closed = State(self.state.fetch_and(!State::OPEN, Ordering::AcqRel));
        if closed.joined() == 0 || self.spin_until(|state| state.joined() == 0).is_some() {
            return;
        }
        let mut guard = lock(&self.sleep_lock);
        let mut state = State(self.state.fetch_or(State::CALLER_SLEEPS, Ordering::AcqRel));
        while state.joined() > 0 {
            guard = self.done.wait(guard).unwrap_or_else(PoisonError::into_inner);
            state = self.state();
        }
    }

    /// The main loop of a worker.
    fn work(&self, slot: usize) {
        let mut scratch = Block::empty();
        let mut last = 0;
        loop {
            let state =
                self.spin_until(|state| state.has_work_after(last)).unwrap_or_else(|| self.sleep(last));
            if state.has(State::END) {
                return;
            }
            if self.join(state) {
                last = state.number();
                self.run_as_worker(slot, &mut scratch);
                self.leave();
            }
        }
    }

    /// Joins the loop that was open in the state `seen`; fails if the state has changed since.
    fn join(&self, seen: State) -> bool {
        self.state.compare_exchange(seen.0, seen.0 + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Runs parts of the loop as a worker that has joined. A worker that gets no scratch memory
    /// leaves the iterations to the other threads: the caller has scratch memory of its own.
    fn run_as_worker(&self, slot: usize, scratch: &mut Block) {
        // SAFETY: this worker has joined, so no thread writes `work`.
        let work = unsafe { *self.work.get() }.expect("an open loop has work");
        if scratch.grow(work.scratch_bytes).is_ok() {
            self.run_parts(&work, slot, scratch.as_mut_ptr());
        }
    }

    /// Leaves a loop. The last worker to leave wakes the caller, if the caller sleeps.
    fn leave(&self) {
        let before = State(self.state.fetch_sub(1, Ordering::AcqRel));
        if before.joined() == 1 && before.has(State::CALLER_SLEEPS) {
            drop(lock(&self.sleep_lock));
            self.done.notify_all();
        }
    }

    /// Polls for `spin_time` until `wanted` accepts the state, and returns that state. Returns
    /// `None` when the time is over.
    fn spin_until(&self, wanted: impl Fn(State) -> bool) -> Option<State> {
        /// Polls of the state between two readings of the clock.
        const POLLS_PER_CLOCK_READ: usize = 16;
        let mut started = None;
        loop {
            for _ in 0..POLLS_PER_CLOCK_READ {
                let state = self.state();
                if wanted(state) {
                    return Some(state);
                }
                std::hint::spin_loop();
            }
            if started.get_or_insert_with(Instant::now).elapsed() >= self.spin_time {
                return None;
            }
        }
    }

    /// Sleeps until a worker whose last loop was `last` has something to do, and returns the state.
    fn sleep(&self, last: u64) -> State {
        let mut guard = lock(&self.sleep_lock);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let state = loop {
            // Sequentially consistent with `run_as_caller`.
            let state = State(self.state.load(Ordering::SeqCst));
            if state.has_work_after(last) {
                break state;
            }
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        state
    }

    /// Ends the workers.
    fn end(&self) {
        self.state.fetch_or(State::END, Ordering::SeqCst);
        drop(lock(&self.sleep_lock));
        self.wake.notify_all();
    }
}

/// Locks a mutex. No thread panics while it holds a lock, so a poisoned lock guards no broken
/// state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// Fewer repetitions under Miri, which interprets every one of them.
    const REPEATS: usize = if cfg!(miri) { 20 } else { 5000 };

    /// How often each iteration of a loop ran.
    fn counts(pool: &Pool, extent: i64) -> Vec<u32> {
        let counts: Vec<AtomicU32> = (0..extent).map(|_| AtomicU32::new(0)).collect();
        pool.for_each(extent, |part| {
            assert!(part.start < part.end);
            for at in part {
                counts[at as usize].fetch_add(1, Ordering::Relaxed);
            }
        });
        counts.into_iter().map(AtomicU32::into_inner).collect()
    }

    #[test]
    fn every_iteration_runs_once() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads);
            assert_eq!(pool.threads(), threads);
            for extent in [0, 1, 2, 3, 7, 8, 9, 100, 1001] {
                assert_eq!(counts(&pool, extent), vec![1; extent as usize], "{threads} threads");
            }
        }
    }

    #[test]
    fn an_extent_below_one_runs_nothing() {
        Pool::new(2).for_each(-3, |part| panic!("{part:?}"));
    }

    #[test]
    fn loops_one_after_the_other_see_each_others_writes() {
        for threads in [2, 5] {
            let pool = Pool::new(threads);
            let mut values = vec![0u64; 37];
            for _ in 0..REPEATS {
                let start = values.as_mut_ptr() as usize;
                pool.for_each(37, |part| {
                    for at in part {
                        // SAFETY: each element belongs to one iteration.
                        unsafe { *(start as *mut u64).add(at as usize) += 1 };
                    }
                });
            }
            assert_eq!(values, vec![REPEATS as u64; 37]);
        }
    }

    #[test]
    fn several_callers_share_a_pool() {
        let pool = Pool::new(3);
        thread::scope(|scope| {
            for caller in 0..4 {
                let pool = &pool;
                scope.spawn(move || {
                    for at in 0..REPEATS / 10 {
                        let extent = 1 + (at * 7 + caller) as i64 % 50;
                        assert_eq!(counts(pool, extent), vec![1; extent as usize]);
                    }
                });
            }
        });
    }

    #[test]
    fn a_loop_inside_a_loop_runs_on_its_thread() {
        let pool = Pool::new(2);
        let total = AtomicI64::new(0);
        pool.for_each(10, |outer| {
            for _ in outer {
                pool.for_each(10, |inner| {
                    total.fetch_add(inner.end - inner.start, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(total.into_inner(), 100);
    }

    #[test]
    fn sleeping_workers_come_when_called() {
        let pool = Pool::new(2);
        for pause in [0, 1, 5] {
            thread::sleep(Duration::from_millis(pause));
            // Each of the two iterations waits for the other, so two threads must run them.
            let (arrived, deadline) = (AtomicU32::new(0), Instant::now() + Duration::from_secs(60));
            pool.for_each(2, |_| {
                arrived.fetch_add(1, Ordering::Relaxed);
                while arrived.load(Ordering::Relaxed) < 2 {
                    assert!(Instant::now() < deadline, "the worker did not come");
                    thread::yield_now();
                }
            });
        }
    }

    #[test]
    fn pools_end_their_threads() {
        for at in 0..REPEATS / 20 {
            let pool = Pool::new(1 + at % 4);
            if at % 2 == 0 {
                assert_eq!(counts(&pool, 5), [1; 5]);
            }
            let shared = Arc::downgrade(&pool.shared);
            drop(pool);
            assert!(shared.upgrade().is_none(), "a worker is still alive");
        }
    }

    /// Fills the scratch memory with the number of the iteration, and counts the iteration if no
    /// other thread has overwritten the memory.
    extern "C" fn fill_scratch(env: *const c_void, from: i64, to: i64, scratch: *mut u8) {
        assert_eq!(scratch as usize % 64, 0);
        // SAFETY: `env` is the counter of the test, and the scratch memory has the 256 bytes that
        // the test asks for.
        let (done, scratch) =
            unsafe { (&*env.cast::<AtomicI64>(), std::slice::from_raw_parts_mut(scratch, 256)) };
        for at in from..to {
            scratch.fill(at as u8);
            std::hint::black_box(&mut *scratch);
            done.fetch_add(scratch.iter().all(|byte| *byte == at as u8) as i64, Ordering::Relaxed);
        }
    }

    #[test]
    fn scratch_memory_belongs_to_one_thread() {
        let pool = Pool::new(4);
        let done = AtomicI64::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let launch = ParallelCall::new(&pool);
                    for _ in 0..REPEATS / 10 {
                        parallel(launch.as_ptr(), fill_scratch, (&raw const done).cast(), 100, 256);
                    }
                    assert_eq!(launch.into_failure(), None);
                });
            }
        });
        assert_eq!(done.into_inner(), 2 * 100 * (REPEATS / 10) as i64);
        assert!(lock(&pool.scratch).len() <= 2, "scratch memory is used again");
    }

    #[test]
    fn a_loop_without_scratch_memory_does_not_run_and_says_so() {
        for threads in [1, 2] {
            let pool = Pool::new(threads);
            let launch = ParallelCall::new(&pool);
            let done = AtomicI64::new(0);
            for bytes in [i64::MAX / 2, 256] {
                parallel(launch.as_ptr(), fill_scratch, (&raw const done).cast(), 4, bytes);
            }
            assert_eq!(done.load(Ordering::Relaxed), 0);
            assert_eq!(launch.into_failure(), Some(OutOfMemory { bytes: (i64::MAX / 2) as usize }));
            assert_eq!(counts(&pool, 9), [1; 9]);
        }
    }

    #[test]
    fn a_share_is_taken_in_shrinking_parts() {
        let share = Share { next: AtomicI64::new(10), end: AtomicI64::new(26) };
        let parts: Vec<_> = std::iter::from_fn(|| share.take()).collect();
        assert_eq!(parts[..4], [10..14, 14..17, 17..19, 19..20]);
        assert_eq!(parts.last(), Some(&(25..26)));
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
    }
}
