//! Sets the tuning parameters of a kind of machine, CPU or GPU: the sizes of batches, and how
//! well candidates are measured. Makes the [`Plan`] of a batch from them.

use tilewright_target::Target;

use super::ReferenceKernel;
use crate::bench::Plan;
use crate::parallel;

/// A call that takes longer than this times the best time is not worth a second call.
pub(super) const FIRST_CALL_FACTOR: f64 = 2.0;
/// A call that takes longer than this times the best time is not worth a third call.
const CALL_FACTOR: f64 = 1.1;
/// The plan for reference kernels, which are measured well however long that takes.
pub(crate) const REFERENCE_PLAN: Plan = Plan {
    reference: None,
    best_seconds: 0.0,
    first_call_limit: 600.0,
    call_limit: 600.0,
    samples: 10,
    time: 0.05,
    batch_limit: None,
};

/// The tuning parameters of a kind of machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineParameters {
    /// The number of points that a strategy is asked for at a time.
    pub batch: usize,
    /// The number of these points that a strategy should propose at least, if it can.
    pub least_proposals: usize,
    /// The number of candidates that together take no longer than one alone.
    pub parallel_candidates: usize,
    /// The number of samples of a candidate that comes near the best.
    samples: usize,
    /// The least total time of these samples, in seconds. If compiling a candidate takes tens of
    /// milliseconds and others use the machine too, short kernels are worth a few milliseconds.
    time: f64,
    /// A candidate becomes the new reference kernel when it is this many times as fast as the old
    /// one. On shared cores, similar kernels are disturbed alike, so the reference should be
    /// similar to the candidates. If compiling both again takes long, the gain must be worth it.
    pub reference_gain: f64,
    /// The planned number of samples of every finalist.
    pub final_samples: f64,
    /// The largest effort to compile a candidate. Where candidates are compiled together, all
    /// others would wait for a larger one, for seconds each.
    pub largest_compile_effort: u64,
}

impl MachineParameters {
    pub fn for_target(target: Target<'_>) -> MachineParameters {
        match target {
            Target::Cpu(_) => MachineParameters {
                batch: 16,
                least_proposals: 1,
                parallel_candidates: 1,
                samples: 6,
                time: 1e-3,
                reference_gain: 1.1,
                final_samples: 40.0,
                largest_compile_effort: u64::MAX,
            },
            // Compilation takes longest. It uses all cores and continues while other candidates are
            // measured, and a GPU has little noise.
            Target::Gpu(_) => MachineParameters {
                batch: 48,
                least_proposals: 48,
                parallel_candidates: parallel::cores(),
                samples: 4,
                time: 0.0,
                reference_gain: 1.4,
                final_samples: 20.0,
                largest_compile_effort: 8000,
            },
        }
    }

    /// The plan for candidates when the best time so far is `best` seconds. The batch may take
    /// `within` seconds.
    pub fn plan(&self, reference: &ReferenceKernel, best: f64, within: Option<f64>) -> Plan {
        Plan {
            reference: Some(reference.reference_schedule()),
            best_seconds: best,
            first_call_limit: FIRST_CALL_FACTOR * best,
            call_limit: CALL_FACTOR * best,
            samples: self.samples,
            time: self.time,
            batch_limit: within,
        }
    }
}
