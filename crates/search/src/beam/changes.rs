//! Changes the numbers of a schedule at random: the lengths of strips, tiles and vectors, and the
//! rows that are kept.

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64Mcg;
use tilewright_schedule::{Schedule, Step};

/// The factors by which a number changes.
const FACTORS: [(i64, i64); 4] = [(2, 1), (1, 2), (4, 1), (1, 4)];
/// The largest number.
const MOST: i64 = 4096;

/// The schedule with one number changed, or `None` if it has none to change.
pub(super) fn change_number(schedule: &Schedule, rng: &mut Pcg64Mcg) -> Option<Schedule> {
    let numbered: Vec<usize> =
        (0..schedule.steps.len()).filter(|at| has_numbers(&schedule.steps[*at])).collect();
    let at = *numbered.choose(rng)?;
    let mut changed = schedule.clone();
    let (by, of) = *FACTORS.choose(rng)?;
    let scale = |number: &mut i64| *number = (*number * by / of).clamp(2, MOST);
    match &mut changed.steps[at] {
        Step::Split { inner, .. } => {
            let part = rng.random_range(0..inner.len());
            scale(&mut inner[part].1);
        }
        Step::ComputeAt { storage: Some(storage), .. } => scale(storage.fold.as_mut()?),
        _ => return None,
    }
    (changed != *schedule).then_some(changed)
}

fn has_numbers(step: &Step) -> bool {
    match step {
        Step::Split { inner, .. } => !inner.is_empty(),
        Step::ComputeAt { storage: Some(storage), .. } => storage.fold.is_some(),
        _ => false,
    }
}
