//! Adds what a search has measured to the measurements that models are trained with.
//!
//! A search measures hundreds of schedules of one program, and most of them are similar. So a
//! record has a few of them: the default schedule, the fastest, and others from the whole range of
//! times.

use std::io;
use std::path::Path;

use tilewright_tuner::search::{HistoryEntry, SearchOutcome};

use crate::data::{MeasuredSchedule, ProgramRecord, TrainingFile};

/// The kind of programs that were tuned.
pub const KIND: &str = "tuned";
/// The most schedules of a program: half of them are the fastest.
const MOST_SCHEDULES: usize = 32;

/// Appends the schedules of a search to a file. Returns their number, or `None` where nothing was
/// added: nobody has trained a model with this file, or it has the program already.
pub fn add(outcome: &SearchOutcome, file: &Path) -> io::Result<Option<usize>> {
    if !file.exists() || outcome.is_replay {
        return Ok(None);
    }
    let record = ProgramRecord {
        kind: KIND.to_owned(),
        task: outcome.setting.task.clone(),
        caches: outcome.setting.caches.clone(),
        schedules: choose(&outcome.history.trials),
    };
    let mut file = TrainingFile::open(file)?;
    if record.schedules.len() < 2 || file.names().contains(&record.name()) {
        return Ok(None);
    }
    file.append(&record)?;
    Ok(Some(record.schedules.len()))
}

/// The default schedule, the fastest ones, and others at equal distances in the order of times.
fn choose(trials: &[HistoryEntry]) -> Vec<MeasuredSchedule> {
    let measured = trials
        .iter()
        .filter_map(|own| Some(MeasuredSchedule { steps: own.schedule.clone(), seconds: own.seconds? }));
    let mut others: Vec<MeasuredSchedule> = measured.collect();
    if others.is_empty() {
        return others;
    }
    let mut chosen = vec![others.remove(0)];
    others.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let slower = others.split_off(others.len().min(MOST_SCHEDULES / 2));
    chosen.append(&mut others);
    let room = MOST_SCHEDULES - chosen.len();
    let step = slower.len().div_ceil(room.max(1)).max(1);
    chosen.extend(slower.into_iter().step_by(step));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(number: usize, seconds: Option<f64>) -> HistoryEntry {
        let schedule = format!("parallel y.i{number}");
        HistoryEntry { schedule, after: 0.0, trials: number, outcome: String::new(), seconds, best: 0.0 }
    }

    #[test]
    fn the_default_the_fastest_and_some_of_all_others_are_chosen() {
        let times = (0..1000).map(|at| trial(at, (at % 10 != 9).then_some(1.0 + (at * 7 % 1000) as f64)));
        let chosen = choose(&times.collect::<Vec<_>>());
        assert_eq!(chosen[0].steps, "parallel y.i0");
        assert!(chosen.len() <= MOST_SCHEDULES && chosen.len() > MOST_SCHEDULES - 4, "{}", chosen.len());
        assert!(chosen[1..].windows(2).all(|pair| pair[0].seconds < pair[1].seconds));
        let fast = chosen.iter().filter(|own| own.seconds < 30.0).count();
        assert!(fast >= MOST_SCHEDULES / 2 && chosen.iter().any(|own| own.seconds > 900.0), "{chosen:?}");
    }

    #[test]
    fn few_schedules_are_all_chosen_and_failed_ones_are_not() {
        let trials = [trial(0, Some(2.0)), trial(1, None), trial(2, Some(1.0))];
        assert_eq!(choose(&trials).len(), 2);
        assert!(choose(&[trial(0, None)]).is_empty());
    }
}
