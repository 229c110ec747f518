//! Proofs on threads of their own, which a run can leave behind.
//!
//! A proof cannot be interrupted, and may take as long as its limit of operations lets it. So the run waits for the threads, and not in
//! them: when it has to end, proofs that were begun go on for nobody, and the others are not begun.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tilewright_ir::{LoopNest, Program};
use tilewright_polyhedral::Verdict;

use super::proofs::Prover;
use crate::parallel::cores;

/// Between two looks at whether the run has to end.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Nests that nobody has begun with, each with its schedule.
type Queue = Arc<Mutex<VecDeque<(String, LoopNest)>>>;

/// The verdicts on nests by their schedules, in this order and on all cores, as far as they are there when it is `over`.
pub(super) fn prove_until(
    program: &Program,
    nests: Vec<(String, LoopNest)>,
    prover: Prover,
    over: &dyn Fn() -> bool,
) -> HashMap<String, Verdict> {
    let count = nests.len();
    let queue: Queue = Arc::new(Mutex::new(nests.into()));
    let verdicts = start(program, &queue, prover, cores().min(count));
    let mut known = HashMap::new();
    while known.len() < count && !over() {
        match verdicts.recv_timeout(BETWEEN_LOOKS) {
            Ok((schedule, verdict)) => _ = known.insert(schedule, verdict),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
    known
}

/// Starts threads that prove what is in a queue.
fn start(program: &Program, queue: &Queue, prover: Prover, threads: usize) -> Receiver<(String, Verdict)> {
    let (sender, receiver) = channel();
    let program = Arc::new(program.clone());
    for _ in 0..threads {
        let (program, queue, sender) = (Arc::clone(&program), Arc::clone(queue), sender.clone());
        thread::spawn(move || work(&program, &queue, prover, &sender));
    }
    receiver
}

fn work(program: &Program, queue: &Queue, prover: Prover, sender: &Sender<(String, Verdict)>) {
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some((schedule, nest)) = next() {
        // Where nobody listens any more, the queue is empty.
        let _ = sender.send((schedule, prover(program, &nest)));
    }
}
