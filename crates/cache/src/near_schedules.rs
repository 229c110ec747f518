//! Finds schedules of a program that were tuned for nearly the same sizes, or for another number of
//! threads, on the same machine.

use tilewright_ir::Program;
use tilewright_schedule::Schedule;
use tilewright_target::Target;

use crate::{Cache, CacheError, Canonical, Difference};

/// A size is near another one if it is at most this many times as large.
const NEAR_SIZE: f64 = 2.0;

/// A schedule that was tuned for something else.
#[derive(Clone, Debug)]
pub struct NearSchedule {
    /// The steps in the program's own names. They may be illegal here.
    pub schedule: Schedule,
    /// The differences between the record and the wanted key, with the program's names of sizes.
    pub differences: Vec<Difference>,
}

impl Cache {
    /// The fastest schedules for nearly the same sizes or another number of threads, nearest first.
    /// Records that the default schedule has won are left out.
    pub fn near_schedules<'t>(
        &self,
        program: &'t Program,
        target: impl Into<Target<'t>>,
    ) -> Result<Vec<NearSchedule>, CacheError> {
        let target = target.into();
        let canonical = Canonical::new(program);
        let mut found = Vec::new();
        for near in self.nearest(&canonical.key_on(target))? {
            if !near.differences.iter().all(is_small) {
                continue;
            }
            let Some(record) = self.best(&near.summary.key)? else { continue };
            let renamed = canonical.schedule_of(&record, target);
            if renamed.refusal.is_none() && record.trial != Some(0) {
                let differences = near.differences.into_iter().map(|own| in_program_names(&canonical, own));
                found.push(NearSchedule { schedule: renamed.schedule, differences: differences.collect() });
            }
        }
        Ok(found)
    }
}

fn in_program_names(canonical: &Canonical, difference: Difference) -> Difference {
    match difference {
        Difference::Size { name, wanted, found } => {
            Difference::Size { name: canonical.program_size_name(&name).to_owned(), wanted, found }
        }
        other => other,
    }
}

fn is_small(difference: &Difference) -> bool {
    match difference {
        Difference::Size { wanted, found, .. } => {
            let [wanted, found] = [wanted, found].map(|size| *size as f64);
            wanted.max(found) <= NEAR_SIZE * wanted.min(found)
        }
        Difference::Threads { .. } => true,
        Difference::Program { .. } | Difference::Target { .. } | Difference::NothingMeasured => false,
    }
}
