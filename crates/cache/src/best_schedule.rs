//! Finds the best usable schedule of a program in the cache: takes a program and a target, and
//! returns a [`TunedSchedule`]. A schedule is usable if it is legal there.

use tilewright_ir::Program;
use tilewright_schedule::{Schedule, apply};
use tilewright_target::Target;

use crate::{BestUsable, Cache, CacheError, Canonical, TuningRecord};

/// The best known schedule of a program on a machine.
#[derive(Clone, Debug)]
pub struct TunedSchedule {
    /// The steps in the program's own names.
    pub schedule: Schedule,
    /// The measured time of one call, in seconds.
    pub seconds: f64,
    /// Whether it was the default schedule when it was measured: the first trial of its search.
    pub is_default: bool,
}

impl Cache {
    /// The best usable schedule of a program.
    pub fn best_schedule<'t>(
        &self,
        program: &'t Program,
        target: impl Into<Target<'t>>,
    ) -> Result<BestUsable<TunedSchedule>, CacheError> {
        let target = target.into();
        let canonical = Canonical::new(program);
        self.best_usable(&canonical.key_on(target), &|record| {
            let schedule = schedule_if_legal(&canonical, &record, program, target)?;
            let seconds = record.median().unwrap_or_default();
            Ok(TunedSchedule { schedule, seconds, is_default: record.trial == Some(0) })
        })
    }
}

/// The steps of a record in the program's own names, or the reason why they cannot be used here.
pub fn schedule_if_legal(
    canonical: &Canonical,
    record: &TuningRecord,
    program: &Program,
    target: Target<'_>,
) -> Result<Schedule, String> {
    let renamed = canonical.schedule_of(record, target);
    if let Some(refusal) = renamed.refusal {
        return Err(refusal.to_string());
    }
    apply(program, &renamed.schedule, target).map_err(|refusal| refusal.to_string())?;
    Ok(renamed.schedule)
}
