//! Runs all searches on a program, one after the other or several at the same time.
//!
//! A search that waits for five points leaves most of sixteen cores idle. Searches are independent,
//! so the candidates that several of them wait for can be compiled together. A candidate then costs
//! less time than it would in a single search.

use tilewright_search::strategy::Features;

use super::landscape::{KnownCost, Landscape};
use super::results::ProgramResult;
use super::running_search::RunningSearch;
use super::{CompareError, ComparedProgram, ComparisonOptions, Observer, SearchStart};
use crate::tune::Stop;

/// The searches on a program.
pub(super) struct ConcurrentSearches<'s, 'p, 'm> {
    arena: &'s ComparedProgram<'p>,
    contest: &'s ComparisonOptions,
    landscape: &'s mut Landscape<'m>,
    /// The running searches, each with the index of its strategy.
    running: Vec<(usize, RunningSearch<'s, 'p>)>,
    /// The start of the searches from the last seed.
    search_start: Option<(u64, SearchStart<'p>)>,
}

impl<'s, 'p, 'm> ConcurrentSearches<'s, 'p, 'm> {
    pub fn new(
        arena: &'s ComparedProgram<'p>,
        contest: &'s ComparisonOptions,
        landscape: &'s mut Landscape<'m>,
    ) -> ConcurrentSearches<'s, 'p, 'm> {
        ConcurrentSearches { arena, contest, landscape, running: Vec::new(), search_start: None }
    }

    /// Runs all searches. Each result is kept as soon as its search ends.
    pub fn run(
        mut self,
        features: &'s dyn Features,
        observer: &mut dyn Observer,
        stop: &Stop,
        compared: &mut ProgramResult,
    ) -> Result<(), CompareError> {
        let ComparisonOptions { strategies, seeds, parallel_searches: abreast, .. } = self.contest;
        let mut waiting = seeds.iter().flat_map(|seed| (0..strategies.len()).map(move |at| (at, *seed)));
        let mut over = 0;
        loop {
            while self.running.len() < (*abreast).max(1)
                && let Some((at, seed)) = waiting.next()
            {
                observer.search_started(&strategies[at], seed);
                self.start_search(at, seed, features)?;
            }
            if self.running.is_empty() {
                return Ok(());
            }
            if stop.is_requested() {
                return Err(CompareError::Stopped);
            }
            over += self.advance(compared)?;
            let parts = self.running.iter().map(|(_, own)| own.used_share().min(1.0)).sum::<f64>();
            let best = self.running.iter().filter_map(|(_, own)| own.best()).reduce(f64::min);
            observer.search_progress(over as f64 + parts, best);
        }
    }

    fn start_search(&mut self, at: usize, seed: u64, features: &'s dyn Features) -> Result<(), CompareError> {
        let ConcurrentSearches { arena, contest, landscape, .. } = self;
        let beginning = match self.search_start.take() {
            Some((of, beginning)) if of == seed => beginning,
            _ => arena.search_start(contest, seed, landscape)?,
        };
        let who = (contest.strategies[at].as_str(), seed);
        self.running.push((at, RunningSearch::start(arena, contest, &beginning, features, who)?));
        self.search_start = Some((seed, beginning));
        Ok(())
    }

    /// Asks each search for points once, and reports their costs. Returns the number of searches
    /// that ended.
    fn advance(&mut self, compared: &mut ProgramResult) -> Result<usize, CompareError> {
        let before = self.running.len();
        let mut wanted = Vec::new();
        let mut shares = Vec::new();
        for (at, mut searching) in std::mem::take(&mut self.running) {
            if let Some(schedules) = searching.ask() {
                wanted.extend_from_slice(schedules);
                shares.push(schedules.len());
                self.running.push((at, searching));
            } else {
                let searches = &mut compared.strategies[at].searches;
                searches.push(searching.end());
                searches.sort_by_key(|search| search.seed);
            }
        }
        let over = before - self.running.len();
        let known = self.landscape.costs(&wanted, &self.arena.machine_parameters)?;
        let mut rest: &[KnownCost] = &known;
        for ((_, searching), share) in self.running.iter_mut().zip(shares) {
            let (own, others) = rest.split_at(share);
            searching.tell(own);
            rest = others;
        }
        Ok(over)
    }
}
