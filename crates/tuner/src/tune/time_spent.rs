//! Accounts for the time of a run by kind of work, such as proposing, compiling and measuring
//! ([`TimeSpent`]).

use std::time::{Duration, Instant};

use serde::Serialize;

use super::Run;
use crate::bench::Plan;
use crate::worker::WorkerError;
use tilewright_cache::outcome::Trial;

/// The time in seconds by kind of work. The parts add up to the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimeSpent {
    /// Ranking points with the cost model before the search.
    pub ranking: f64,
    /// Proposing points and judging them: the strategy, legality, limits, the cost model.
    pub proposing: f64,
    /// Proving candidates or the winner. This is elapsed time, on all cores at once.
    pub proving: f64,
    /// Compiling candidates. This is elapsed time, on all cores at once.
    pub compiling: f64,
    /// Running, checking and measuring candidates.
    pub measuring: f64,
    /// The final comparison.
    pub finals: f64,
    /// Everything else: keeping records, waiting for workers, starting others.
    pub other: f64,
}

impl TimeSpent {
    /// The kinds of work by name, in the order of a run.
    pub fn parts(&self) -> [(&'static str, f64); 7] {
        [
            ("ranking", self.ranking),
            ("proposing", self.proposing),
            ("proving", self.proving),
            ("compiling", self.compiling),
            ("measuring", self.measuring),
            ("finals", self.finals),
            ("other", self.other),
        ]
    }

    /// Adds a batch that took `wall` of elapsed time. A worker measures one candidate at a time,
    /// but compiles several at once. Of the time that measuring leaves, compiling gets at most the
    /// sum over all candidates.
    fn add_batch(&mut self, wall: Duration, trials: &[(usize, Trial)]) {
        let wall = wall.as_secs_f64();
        // Several devices may measure at once.
        let measuring = trials.iter().map(|(_, trial)| trial.effort.measuring).sum::<f64>().min(wall);
        let compiling: f64 = trials.iter().map(|(_, trial)| trial.effort.compiling).sum();
        self.measuring += measuring;
        self.compiling += compiling.min(wall - measuring).max(0.0);
    }

    /// Completes the account: assigns the rest of the whole time to `other`.
    pub(super) fn with_total(self, whole: Duration) -> TimeSpent {
        let known: f64 = self.parts().iter().map(|(_, seconds)| seconds).sum();
        TimeSpent { other: (whole.as_secs_f64() - known).max(0.0), ..self }
    }
}

/// Does some work, and adds the seconds that it took.
pub(super) fn time_work<T>(seconds: &mut f64, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let made = work();
    *seconds += begun.elapsed().as_secs_f64();
    made
}

impl Run<'_, '_> {
    /// Tries candidates, and accounts for the time.
    pub(super) fn try_all(
        &mut self,
        schedules: &[String],
        plan: &Plan,
    ) -> Result<Vec<(usize, Trial)>, WorkerError> {
        let begun = Instant::now();
        let trials = self.measurer.try_all(schedules, plan)?;
        self.time_spent.add_batch(begun.elapsed(), &trials);
        Ok(trials)
    }

    /// Tries one candidate, and accounts for the time.
    pub(super) fn try_one(&mut self, schedule: &String, plan: &Plan) -> Result<Option<Trial>, WorkerError> {
        Ok(self.try_all(std::slice::from_ref(schedule), plan)?.pop().map(|(_, trial)| trial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_cache::outcome::Effort;

    fn trial(compiling: f64, measuring: f64) -> (usize, Trial) {
        (0, Trial { effort: Effort { compiling, measuring }, ..Trial::measured(vec![1e-3]) })
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let mut spent = TimeSpent { ranking: 0.25, ..TimeSpent::default() };
        // Two candidates were compiled at once: two seconds of compiling in one second of elapsed
        // time.
        spent.add_batch(Duration::from_secs_f64(1.5), &[trial(1.0, 0.25), trial(1.0, 0.25)]);
        assert_eq!((spent.compiling, spent.measuring), (1.0, 0.5));
        // The run waited for a single candidate. The time that compiling did not take is left over.
        spent.add_batch(Duration::from_secs_f64(2.0), &[trial(0.5, 0.5)]);
        assert_eq!((spent.compiling, spent.measuring), (1.5, 1.0));
        let whole = spent.with_total(Duration::from_secs(4));
        assert_eq!(whole.other, 1.25);
        assert_eq!(whole.parts().iter().map(|(_, seconds)| seconds).sum::<f64>(), 4.0);
    }
}
