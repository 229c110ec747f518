//! What suits a machine: how many candidates at a time, and how well they are measured.

use tilewright_target::Machine;

use super::Reference;
use crate::bench::Plan;
use crate::parallel;

/// A call that takes so many times as long as the best is not worth a second one.
pub(super) const HOPELESS: f64 = 2.0;
/// A call that takes longer than this times the best is not worth a third.
const PROMISING: f64 = 1.1;
/// What others are compared with is measured well, however long it takes.
pub(crate) const THOROUGHLY: Plan =
    Plan { rival: None, best: 0.0, hopeless: 600.0, promising: 600.0, samples: 10, time: 0.05, within: None };

/// What suits a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Points that a strategy is asked for at a time.
    pub batch: usize,
    /// Of these, so many at least, if it can say as many.
    pub together: usize,
    /// Candidates that take no longer together than one alone.
    pub at_once: usize,
    /// Samples of a candidate that comes near the best.
    samples: usize,
    /// And the seconds of its calls, at least. Where compiling a candidate takes tens of
    /// milliseconds and others use the machine too, short kernels are worth a few.
    time: f64,
    /// What is so many times as fast as what candidates are compared with takes its place. On shared cores kernels that are
    /// alike are disturbed alike; where compiling both again takes long, it must be worth it.
    pub clearly: f64,
    /// Samples of every finalist.
    pub final_samples: f64,
}

impl Habits {
    pub fn on(machine: &Machine) -> Habits {
        match machine {
            Machine::Cpu(_) => Habits {
                batch: 16,
                together: 1,
                at_once: 1,
                samples: 6,
                time: 1e-3,
                clearly: 1.1,
                final_samples: 40.0,
            },
            // Compiling takes longest, on all cores, and goes on while others are measured; and a GPU is quiet.
            Machine::Gpu(_) => Habits {
                batch: 48,
                together: 48,
                at_once: parallel::cores(),
                samples: 4,
                time: 0.0,
                clearly: 1.4,
                final_samples: 20.0,
            },
        }
    }

    /// How candidates are measured where the best so far takes so many seconds, in so many seconds at most.
    pub fn plan(&self, reference: &Reference, best: f64, within: Option<f64>) -> Plan {
        Plan {
            rival: Some(reference.rival()),
            best,
            hopeless: HOPELESS * best,
            promising: PROMISING * best,
            samples: self.samples,
            time: self.time,
            within,
        }
    }
}
