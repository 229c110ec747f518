//! Determines the final times of the schedules that searches found, and replaces the searches'
//! best times by them.
//!
//! The best of many noisy times is too optimistic, and a few fast seconds of the machine must not
//! decide which strategy is best. So all schedules that may have been the best of a search are
//! measured again, one sample of each per round, and these times count.

use super::landscape::Landscape;
use super::results::{Contender, Improvement, ProgramResult, SearchResult};

/// The number of contenders of every search that are measured again, by the times that the search
/// saw.
const MOST_PER_SEARCH: usize = 12;
/// The number of fastest known schedules that are measured again, whichever search found them.
const FASTEST_KNOWN: usize = 24;
/// The largest total number of schedules to measure again, filled up with further contenders.
const MOST_FINALISTS: usize = 500;

/// The schedules to measure again, and whether the default schedule counts as found.
pub(super) struct Finalists {
    pub schedules: Vec<String>,
    default_is_found: bool,
}

impl Finalists {
    pub fn choose(compared: &ProgramResult, landscape: &Landscape<'_>, is_blind: bool) -> Finalists {
        let default = landscape.default_schedule().0.to_owned();
        let contends = |search: &SearchResult| search.contenders.iter().any(|own| own.schedule == default);
        let default_is_found = !is_blind || compared.searches().any(contends);
        let mut schedules: Vec<String> = compared
            .searches()
            .flat_map(|search| fastest(search, landscape))
            .map(|own| own.schedule.clone())
            .collect();
        let works = landscape.working_schedules().map(|(schedule, seconds)| (seconds, schedule.to_owned()));
        let mut works: Vec<(f64, String)> =
            works.filter(|(_, own)| default_is_found || *own != default).collect();
        sort_by_time(&mut works);
        schedules.extend(works.into_iter().take(FASTEST_KNOWN).map(|(_, schedule)| schedule));
        schedules.sort();
        schedules.dedup();
        let others = compared.searches().flat_map(|search| &search.contenders);
        let mut others: Vec<(f64, String)> = others
            .filter_map(|own| Some((landscape.first_time(&own.schedule)?, own.schedule.clone())))
            .collect();
        sort_by_time(&mut others);
        others.dedup();
        others.retain(|(_, own)| schedules.binary_search(own).is_err());
        let room = MOST_FINALISTS.saturating_sub(schedules.len());
        schedules.extend(others.into_iter().take(room).map(|(_, schedule)| schedule));
        if !schedules.contains(&default) {
            schedules.push(default);
        }
        Finalists { schedules, default_is_found }
    }

    /// Replaces the bests of all searches by the final times.
    pub fn apply_final_times(&self, compared: &mut ProgramResult, landscape: &mut Landscape<'_>) {
        landscape.clear_other_final_times(&self.schedules);
        let default = landscape.default_schedule().0;
        let seconds = |schedule: &str| landscape.final_time(schedule).or(landscape.first_time(schedule));
        for search in compared.strategies.iter_mut().flat_map(|strategy| &mut strategy.searches) {
            search.bests = improvements(search, landscape);
        }
        let found = self.schedules.iter().filter(|own| self.default_is_found || *own != default);
        compared.best_known = found.filter_map(|own| seconds(own)).reduce(f64::min).unwrap_or(0.0);
        compared.default = seconds(default).or(compared.default);
    }
}

/// The contenders with the shortest times that the search saw.
fn fastest<'s>(search: &'s SearchResult, landscape: &Landscape<'_>) -> Vec<&'s Contender> {
    let told = search.contenders.iter().filter_map(|own| Some((landscape.first_time(&own.schedule)?, own)));
    let mut told: Vec<(f64, &Contender)> = told.collect();
    told.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.trial.cmp(&right.1.trial)));
    told.into_iter().take(MOST_PER_SEARCH).map(|(_, own)| own).collect()
}

/// The contenders that were better than all before them. If the search's fastest contenders were
/// measured again, only times from the final race count. Otherwise the times that the search saw
/// count too.
fn improvements(search: &SearchResult, landscape: &Landscape<'_>) -> Vec<Improvement> {
    let all = fastest(search, landscape).iter().all(|own| landscape.final_time(&own.schedule).is_some());
    let mut bests: Vec<Improvement> = Vec::new();
    for Contender { trial, after, schedule } in &search.contenders {
        let told = || if all { None } else { landscape.first_time(schedule) };
        if let Some(seconds) = landscape.final_time(schedule).or_else(told)
            && bests.last().is_none_or(|best| seconds < best.seconds)
        {
            bests.push(Improvement { trial: *trial, after: *after, seconds });
        }
    }
    bests
}

fn sort_by_time(schedules: &mut [(f64, String)]) {
    schedules.sort_by(|left, right| left.0.total_cmp(&right.0).then_with(|| left.1.cmp(&right.1)));
}

#[cfg(test)]
mod tests {
    use super::super::landscape::KnownCost;
    use super::super::results::StrategyResult;
    use super::*;

    fn search(schedules: &[&str]) -> SearchResult {
        let contender = |(at, own): (usize, &&str)| Contender {
            trial: at + 1,
            after: at as f64,
            schedule: (*own).to_owned(),
        };
        SearchResult {
            contenders: schedules.iter().enumerate().map(contender).collect(),
            ..SearchResult::default()
        }
    }

    fn landscape(known: &[(&str, f64, Option<f64>)]) -> Landscape<'static> {
        let known = known.iter().map(|(own, seconds, confirmed)| {
            (
                (*own).to_owned(),
                KnownCost { seconds: Some(*seconds), trial_seconds: 1.0, final_seconds: *confirmed },
            )
        });
        Landscape::recorded(known.collect())
    }

    #[test]
    fn what_was_measured_again_in_another_comparison_does_not_count() {
        let mut known = landscape(&[("here", 2.0, Some(2.0)), ("another", 2.1, Some(1.0))]);
        let finalists = Finalists { schedules: vec!["here".to_owned()], default_is_found: false };
        let mut compared = ProgramResult::default();
        let searches = vec![search(&["here", "another"])];
        compared.strategies.push(StrategyResult { name: "any".to_owned(), searches });
        finalists.apply_final_times(&mut compared, &mut known);
        assert_eq!(compared.best_known, 2.0);
        assert_eq!(compared.strategies[0].searches[0].bests.last().map(|best| best.seconds), Some(2.0));
    }

    fn found(search: &SearchResult, landscape: &Landscape<'_>) -> Vec<(usize, f64)> {
        improvements(search, landscape).iter().map(|best| (best.trial, best.seconds)).collect()
    }

    #[test]
    fn a_lucky_time_does_not_count() {
        let known = landscape(&[("lucky", 1.0, Some(3.0)), ("good", 1.2, Some(2.0))]);
        assert_eq!(found(&search(&["lucky", "good"]), &known), [(1, 3.0), (2, 2.0)]);
        assert_eq!(found(&search(&["good", "lucky"]), &known), [(1, 2.0)]);
    }

    #[test]
    fn what_was_told_counts_where_nothing_was_measured_again() {
        let known = landscape(&[("old", 1.0, Some(3.0)), ("new", 2.0, None)]);
        assert_eq!(found(&search(&["old", "new"]), &known), [(1, 3.0), (2, 2.0)]);
    }
}
