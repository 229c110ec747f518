//! Runs all searches on a program, one after the other or several at the same time.
//!
//! A search that waits for five points leaves most of sixteen cores idle. Searches are independent,
//! so the candidates that several of them wait for can be compiled together. A candidate then costs
//! less time than it would in a single search.

use tilewright_search::strategy::Features;

use super::found::Compared;
use super::landscape::{Known, Landscape};
use super::search::Searching;
use super::{Arena, Beginning, CompareError, Contest, Observer};
use crate::tune::Stop;

/// The searches on a program.
pub(super) struct Race<'s, 'p, 'm> {
    arena: &'s Arena<'p>,
    contest: &'s Contest,
    landscape: &'s mut Landscape<'m>,
    /// The running searches, each with the index of its strategy.
    going: Vec<(usize, Searching<'s, 'p>)>,
    /// The start of the searches from the last seed.
    beginning: Option<(u64, Beginning<'p>)>,
}

impl<'s, 'p, 'm> Race<'s, 'p, 'm> {
    pub fn new(
        arena: &'s Arena<'p>,
        contest: &'s Contest,
        landscape: &'s mut Landscape<'m>,
    ) -> Race<'s, 'p, 'm> {
        Race { arena, contest, landscape, going: Vec::new(), beginning: None }
    }

    /// Runs all searches. Each result is kept as soon as its search ends.
    pub fn run(
        mut self,
        features: &'s dyn Features,
        observer: &mut dyn Observer,
        stop: &Stop,
        compared: &mut Compared,
    ) -> Result<(), CompareError> {
        let Contest { strategies, seeds, abreast, .. } = self.contest;
        let mut waiting = seeds.iter().flat_map(|seed| (0..strategies.len()).map(move |at| (at, *seed)));
        let mut over = 0;
        loop {
            while self.going.len() < (*abreast).max(1)
                && let Some((at, seed)) = waiting.next()
            {
                observer.begins(&strategies[at], seed);
                self.begin(at, seed, features)?;
            }
            if self.going.is_empty() {
                return Ok(());
            }
            if stop.is_asked() {
                return Err(CompareError::Stopped);
            }
            over += self.go_on(compared)?;
            let parts = self.going.iter().map(|(_, own)| own.part().min(1.0)).sum::<f64>();
            let best = self.going.iter().filter_map(|(_, own)| own.best()).reduce(f64::min);
            observer.goes_on(over as f64 + parts, best);
        }
    }

    fn begin(&mut self, at: usize, seed: u64, features: &'s dyn Features) -> Result<(), CompareError> {
        let Race { arena, contest, landscape, .. } = self;
        let beginning = match self.beginning.take() {
            Some((of, beginning)) if of == seed => beginning,
            _ => arena.beginning(contest, seed, landscape)?,
        };
        let who = (contest.strategies[at].as_str(), seed);
        self.going.push((at, Searching::begin(arena, contest, &beginning, features, who)?));
        self.beginning = Some((seed, beginning));
        Ok(())
    }

    /// Asks each search for points once, and reports their costs. Returns the number of searches
    /// that ended.
    fn go_on(&mut self, compared: &mut Compared) -> Result<usize, CompareError> {
        let before = self.going.len();
        let mut wanted = Vec::new();
        let mut shares = Vec::new();
        for (at, mut searching) in std::mem::take(&mut self.going) {
            if let Some(schedules) = searching.ask() {
                wanted.extend_from_slice(schedules);
                shares.push(schedules.len());
                self.going.push((at, searching));
            } else {
                let searches = &mut compared.strategies[at].searches;
                searches.push(searching.end());
                searches.sort_by_key(|search| search.seed);
            }
        }
        let over = before - self.going.len();
        let known = self.landscape.costs(&wanted, &self.arena.machine_parameters)?;
        let mut rest: &[Known] = &known;
        for ((_, searching), share) in self.going.iter_mut().zip(shares) {
            let (own, others) = rest.split_at(share);
            searching.tell(own);
            rest = others;
        }
        Ok(over)
    }
}
