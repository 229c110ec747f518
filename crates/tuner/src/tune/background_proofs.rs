//! Runs proofs on threads of their own, which a run can abandon.
//!
//! A proof cannot be interrupted, and may take as long as its limit of operations allows. So the
//! run waits for the threads instead of proving in its own thread. When the run has to end, proofs
//! that have begun continue unused, and the others never begin.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tilewright_ir::{LoopNest, Program};
use tilewright_polyhedral::Verdict;

use super::proofs::Prover;
use crate::parallel::cores;

/// The time between two checks whether the run has to end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The nests that no thread has taken yet, each with its schedule.
type Queue = Arc<Mutex<VecDeque<(String, LoopNest)>>>;

/// Proves nests on all cores, in this order. Returns the verdicts by schedule that are known when
/// all are done or `must_end` holds.
pub(super) fn prove_until(
    program: &Program,
    nests: Vec<(String, LoopNest)>,
    prover: Prover,
    must_end: &dyn Fn() -> bool,
) -> HashMap<String, Verdict> {
    let count = nests.len();
    let queue: Queue = Arc::new(Mutex::new(nests.into()));
    let verdicts = start_threads(program, &queue, prover, cores().min(count));
    let mut known = HashMap::new();
    while known.len() < count && !must_end() {
        match verdicts.recv_timeout(POLL_INTERVAL) {
            Ok((schedule, verdict)) => _ = known.insert(schedule, verdict),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
    known
}

/// Starts threads that prove the nests of a queue.
fn start_threads(
    program: &Program,
    queue: &Queue,
    prover: Prover,
    threads: usize,
) -> Receiver<(String, Verdict)> {
    let (sender, receiver) = channel();
    let program = Arc::new(program.clone());
    for _ in 0..threads {
        let (program, queue, sender) = (Arc::clone(&program), Arc::clone(queue), sender.clone());
        thread::spawn(move || prove_queue(&program, &queue, prover, &sender));
    }
    receiver
}

fn prove_queue(program: &Program, queue: &Queue, prover: Prover, sender: &Sender<(String, Verdict)>) {
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some((schedule, nest)) = next() {
        // If the receiver is gone, the queue is empty.
        let _ = sender.send((schedule, prover(program, &nest)));
    }
}
