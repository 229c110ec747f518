//! Tuning parameters of a kind of machine: the sizes of batches, and how well candidates are
//! measured.

use tilewright_target::Target;

use super::Reference;
use crate::bench::Plan;
use crate::parallel;

/// A call that takes longer than this times the best time is not worth a second call.
pub(super) const HOPELESS: f64 = 2.0;
/// A call that takes longer than this times the best time is not worth a third call.
const PROMISING: f64 = 1.1;
/// The plan for reference kernels, which are measured well however long that takes.
pub(crate) const REFERENCE_PLAN: Plan =
    Plan { rival: None, best: 0.0, hopeless: 600.0, promising: 600.0, samples: 10, time: 0.05, within: None };

/// The tuning parameters of a kind of machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineParameters {
    /// The number of points that a strategy is asked for at a time.
    pub batch: usize,
    /// The number of these points that a strategy should propose at least, if it can.
    pub together: usize,
    /// The number of candidates that together take no longer than one alone.
    pub at_once: usize,
    /// The number of samples of a candidate that comes near the best.
    samples: usize,
    /// The least total time of these samples, in seconds. If compiling a candidate takes tens of
    /// milliseconds and others use the machine too, short kernels are worth a few milliseconds.
    time: f64,
    /// A candidate becomes the new reference kernel when it is this many times as fast as the old
    /// one. On shared cores, similar kernels are disturbed alike, so the reference should be
    /// similar to the candidates. If compiling both again takes long, the gain must be worth it.
    pub clearly: f64,
    /// The planned number of samples of every finalist.
    pub final_samples: f64,
    /// The largest effort to compile a candidate. Where candidates are compiled together, all
    /// others would wait for a larger one, for seconds each.
    pub most_effort: u64,
}

impl MachineParameters {
    pub fn on(target: Target<'_>) -> MachineParameters {
        match target {
            Target::Cpu(_) => MachineParameters {
                batch: 16,
                together: 1,
                at_once: 1,
                samples: 6,
                time: 1e-3,
                clearly: 1.1,
                final_samples: 40.0,
                most_effort: u64::MAX,
            },
            // Compilation takes longest. It uses all cores and continues while other candidates are
            // measured, and a GPU has little noise.
            Target::Gpu(_) => MachineParameters {
                batch: 48,
                together: 48,
                at_once: parallel::cores(),
                samples: 4,
                time: 0.0,
                clearly: 1.4,
                final_samples: 20.0,
                most_effort: 8000,
            },
        }
    }

    /// The plan for candidates when the best time so far is `best` seconds. The batch may take
    /// `within` seconds.
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
