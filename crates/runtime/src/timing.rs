//! Measures how long a call takes.
//!
//! A call is first repeated until caches, branch predictors and clock frequency have settled. Then
//! calls are timed one by one, or in batches if a call is too short for the clock. The result is
//! the median; the tenth and ninetieth percentiles show how far to trust it. [`interleaved`] takes
//! samples of several contenders in turn, so that a disturbance of the machine affects all of them
//! alike. Ratios of times that were not interleaved mean little.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::memory::{Block, CACHE_LINE, OutOfMemory};
use crate::pool::Pool;

/// The minimum duration of a sample, about, in seconds: neither the clock's resolution nor its own
/// cost matters then.
const SHORTEST_SAMPLE: f64 = 20e-6;
/// The maximum number of samples, about, where the requested time decides how many there are. All
/// samples are kept.
const MOST_SAMPLES: f64 = 1e6;

/// Warming up ends at the latest after `1 / WARM_UP_SHARE` of the cap.
const WARM_UP_SHARE: u32 = 4;

/// When to stop measuring, and in which state of the caches to measure.
#[derive(Debug)]
pub struct Options<'p> {
    /// The minimum number of calls before the first sample.
    pub warm_up_calls: usize,
    /// The minimum time before the first sample.
    pub warm_up_time: Duration,
    /// The minimum number of samples.
    pub samples: usize,
    /// The minimum time of all samples together.
    pub time: Duration,
    /// The maximum time of each contender, for calls, warming up and emptying caches together. The
    /// cap overrides all other options, but one sample is always taken.
    pub cap: Duration,
    /// If present, empties the caches before every sample, and every call is timed by itself.
    pub flush_caches: Option<CacheFlush<'p>>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            warm_up_calls: 3,
            warm_up_time: Duration::from_millis(20),
            samples: 30,
            time: Duration::from_millis(200),
            cap: Duration::from_secs(3),
            flush_caches: None,
        }
    }
}

/// The time of one call, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Half of the samples took less.
    pub median: f64,
    /// A tenth of the samples took less.
    pub p10: f64,
    /// Nine tenths of the samples took less.
    pub p90: f64,
    /// The number of samples.
    pub samples: usize,
    /// The number of calls in a sample; the time of a sample is divided by it.
    pub batch: usize,
}

impl Timing {
    /// The statistics of samples, each the time of one call in seconds.
    ///
    /// # Panics
    ///
    /// If there are no samples.
    pub fn from_samples(mut samples: Vec<f64>, batch: usize) -> Timing {
        samples.sort_by(f64::total_cmp);
        Timing {
            median: quantile(&samples, 0.5),
            p10: quantile(&samples, 0.1),
            p90: quantile(&samples, 0.9),
            samples: samples.len(),
            batch,
        }
    }
}

/// The value below which the fraction `part` of the sorted samples lies, interpolated linearly
/// between neighbours.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    below + (above - below) * place.fract()
}

/// Empties the caches by reading more than they hold.
#[derive(Debug)]
pub struct CacheFlush<'p> {
    block: Block,
    pool: &'p Pool,
}

impl<'p> CacheFlush<'p> {
    /// Prepares to read this many bytes on the threads of the pool, so that the private caches of
    /// each core are emptied too. The number should exceed the size of the last-level cache.
    pub fn new(bytes: usize, pool: &'p Pool) -> Result<CacheFlush<'p>, OutOfMemory> {
        Ok(CacheFlush { block: Block::zeroed(bytes)?, pool })
    }

    /// Empties the caches.
    pub fn flush(&self) {
        let bytes = self.block.as_bytes();
        self.pool.for_each(bytes.len().div_ceil(CACHE_LINE) as i64, |part| {
            let lines = bytes[part.start as usize * CACHE_LINE..].iter().step_by(CACHE_LINE);
            let sum =
                lines.take((part.end - part.start) as usize).fold(0u8, |sum, byte| sum.wrapping_add(*byte));
            black_box(sum);
        });
    }
}

/// Measures how long a call takes.
pub fn measure<E>(options: &Options<'_>, mut call: impl FnMut() -> Result<(), E>) -> Result<Timing, E> {
    let timings = interleaved(options, &mut [&mut call])?;
    Ok(timings[0])
}

/// Measures several contenders by taking samples of each in turn. The results are in the order of
/// the contenders.
///
/// All contenders go on until the last one has enough samples, so that they see the same machine. A
/// contender that reaches its cap drops out.
pub fn interleaved<E>(
    options: &Options<'_>,
    contenders: &mut [&mut dyn FnMut() -> Result<(), E>],
) -> Result<Vec<Timing>, E> {
    let started = Instant::now();
    interleaved_with_clock(&|| started.elapsed(), options, contenders)
}

/// Like [`interleaved`], with any clock.
fn interleaved_with_clock<E>(
    clock: &dyn Fn() -> Duration,
    options: &Options<'_>,
    contenders: &mut [&mut dyn FnMut() -> Result<(), E>],
) -> Result<Vec<Timing>, E> {
    let series = sample_all(clock, options, contenders)?;
    Ok(series.into_iter().map(|series| Timing::from_samples(series.samples, series.batch)).collect())
}

/// Takes all samples of all contenders, in turn.
fn sample_all<'a, E>(
    clock: &dyn Fn() -> Duration,
    options: &Options<'_>,
    contenders: &'a mut [&mut dyn FnMut() -> Result<(), E>],
) -> Result<Vec<Series<'a, E>>, E> {
    let mut series = Vec::with_capacity(contenders.len());
    for call in contenders {
        series.push(Series::warmed_up(clock, options, &mut **call)?);
    }
    // Every other round goes backward, so that no contender always follows the same one.
    let mut backward = false;
    while series.iter().any(|series| series.needs_samples(options)) {
        let mut round: Vec<&mut Series<'_, E>> = series.iter_mut().collect();
        if backward {
            round.reverse();
        }
        for series in round.into_iter().filter(|series| series.is_within_cap(options)) {
            series.sample(clock, options)?;
        }
        backward = !backward;
    }
    Ok(series)
}

/// The samples of one contender.
struct Series<'a, E> {
    call: &'a mut dyn FnMut() -> Result<(), E>,
    batch: usize,
    samples: Vec<f64>,
    /// The time of all samples together.
    sampled: Duration,
    /// The time of samples, warming up and emptying caches together.
    spent: Duration,
}

impl<'a, E> Series<'a, E> {
    /// Repeats the call until it has warmed up, and decides how many calls make a sample.
    fn warmed_up(
        clock: &dyn Fn() -> Duration,
        options: &Options<'_>,
        call: &'a mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Series<'a, E>, E> {
        let started = clock();
        let mut spent = Duration::ZERO;
        let mut calls = 0;
        // The first call includes one-time work, so the estimate leaves it out.
        let mut first = Duration::ZERO;
        while calls == 0
            || (spent < options.cap / WARM_UP_SHARE
                && (calls < options.warm_up_calls || spent < options.warm_up_time))
        {
            call()?;
            spent = clock() - started;
            if calls == 0 {
                first = spent;
            }
            calls += 1;
        }
        let estimate = if calls > 1 { (spent - first).as_secs_f64() / (calls - 1) as f64 } else { f64::MAX };
        let batch =
            if options.flush_caches.is_some() { 1 } else { batch(estimate, shortest_sample(options.time)) };
        Ok(Series { call, batch, samples: Vec::new(), sampled: Duration::ZERO, spent })
    }

    fn needs_samples(&self, options: &Options<'_>) -> bool {
        let enough = self.samples.len() >= options.samples && self.sampled >= options.time;
        self.samples.is_empty() || (!enough && self.is_within_cap(options))
    }

    fn is_within_cap(&self, options: &Options<'_>) -> bool {
        self.samples.is_empty() || self.spent < options.cap
    }

    fn sample(&mut self, clock: &dyn Fn() -> Duration, options: &Options<'_>) -> Result<(), E> {
        let before = clock();
        if let Some(caches) = &options.flush_caches {
            caches.flush();
        }
        let started = clock();
        for _ in 0..self.batch {
            (self.call)()?;
        }
        let ended = clock();
        self.samples.push((ended - started).as_secs_f64() / self.batch as f64);
        self.sampled += ended - started;
        self.spent += ended - before;
        Ok(())
    }
}

/// The minimum duration of a sample, in seconds. All samples are kept, so a long measurement takes
/// longer samples.
fn shortest_sample(time: Duration) -> f64 {
    SHORTEST_SAMPLE.max(time.as_secs_f64() / MOST_SAMPLES)
}

/// The number of calls in a sample, from the estimated time of a call and the minimum duration of a
/// sample.
pub(crate) fn batch(estimate: f64, shortest: f64) -> usize {
    // The estimate of a call that does nothing can be 0; the conversion saturates.
    (shortest / estimate.max(1e-10)).round().max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::convert::Infallible;

    #[test]
    fn quantiles_of_known_samples() {
        let timing = Timing::from_samples((0..=100).rev().map(f64::from).collect(), 7);
        assert_eq!(timing, Timing { median: 50.0, p10: 10.0, p90: 90.0, samples: 101, batch: 7 });
        let two = Timing::from_samples(vec![3.0, 1.0], 1);
        assert_eq!((two.median, two.p10, two.p90), (2.0, 1.2, 2.8));
        let one = Timing::from_samples(vec![4.0], 1);
        assert_eq!((one.median, one.p10, one.p90), (4.0, 4.0, 4.0));
    }

    #[test]
    fn short_calls_are_batched() {
        assert_eq!(batch(1.0, SHORTEST_SAMPLE), 1);
        assert_eq!(batch(20e-6, SHORTEST_SAMPLE), 1);
        assert_eq!(batch(1e-6, SHORTEST_SAMPLE), 20);
        assert_eq!(batch(3e-9, SHORTEST_SAMPLE), 6667);
        assert_eq!(batch(0.0, SHORTEST_SAMPLE), 200_000);
        // The samples of a whole day still fit into memory.
        assert_eq!(shortest_sample(Duration::from_secs(1)), SHORTEST_SAMPLE);
        assert_eq!(shortest_sample(Duration::from_secs(86400)), 0.0864);
    }

    /// Measures calls on a simulated clock. Call number `n` advances the clock by `times(n)`.
    fn on_simulated_clock(options: &Options<'_>, times: impl Fn(usize) -> Duration) -> (Timing, usize) {
        let (now, calls) = (Cell::new(Duration::ZERO), Cell::new(0));
        let mut call = || {
            now.set(now.get() + times(calls.replace(calls.get() + 1)));
            Ok::<(), Infallible>(())
        };
        let timings = interleaved_with_clock(&|| now.get(), options, &mut [&mut call]).unwrap();
        (timings[0], calls.get())
    }

    #[test]
    fn samples_go_on_until_number_and_time_are_reached() {
        let options = Options::default();
        let (timing, _) = on_simulated_clock(&options, |_| Duration::from_millis(50));
        assert_eq!((timing.samples, timing.batch, timing.median), (30, 1, 0.05));
        let (timing, _) = on_simulated_clock(&options, |_| Duration::from_millis(1));
        assert_eq!((timing.samples, timing.batch), (200, 1));
        let (timing, calls) = on_simulated_clock(&options, |_| Duration::from_micros(2));
        assert_eq!((timing.samples, timing.batch), (10_000, 10));
        assert_eq!(calls, 10_000 + 100_000);
        assert!((timing.median - 2e-6).abs() < 1e-12, "{timing:?}");
    }

    #[test]
    fn the_cap_ends_slow_calls() {
        let (timing, calls) = on_simulated_clock(&Options::default(), |_| Duration::from_millis(500));
        // Two calls warm up, and then samples are taken until three seconds have passed.
        assert_eq!((timing.samples, calls), (4, 6));
        let (timing, calls) = on_simulated_clock(&Options::default(), |_| Duration::from_secs(100));
        assert_eq!((timing.samples, calls), (1, 2));
    }

    #[test]
    fn the_first_call_and_outliers_do_not_count() {
        let slow = |call: usize| if call == 0 || call.is_multiple_of(10) { 900 } else { 40 };
        let (timing, _) = on_simulated_clock(&Options::default(), |call| Duration::from_micros(slow(call)));
        assert_eq!((timing.median, timing.p10, timing.batch), (40e-6, 40e-6, 1));
    }

    #[test]
    fn contenders_take_turns_and_errors_end_it() {
        let order = RefCell::new(String::new());
        let now = Cell::new(Duration::ZERO);
        let run = |name: char| {
            now.set(now.get() + Duration::from_millis(20));
            order.borrow_mut().push(name);
            if order.borrow().len() < 15 { Ok(()) } else { Err("enough") }
        };
        let options = Options { warm_up_calls: 1, ..Options::default() };
        let (mut a, mut b) = (|| run('a'), || run('b'));
        let result = interleaved_with_clock(&|| now.get(), &options, &mut [&mut a, &mut b]);
        assert_eq!(result, Err("enough"));
        assert_eq!(*order.borrow(), "ababbaabbaabbaa");
    }

    #[test]
    fn contenders_go_on_until_the_last_has_enough() {
        let now = Cell::new(Duration::ZERO);
        let take = |time: u64| {
            now.set(now.get() + Duration::from_millis(time));
            Ok::<(), Infallible>(())
        };
        let (mut fast, mut slow) = (|| take(2), || take(10));
        let contenders: &mut [&mut dyn FnMut() -> Result<(), Infallible>] = &mut [&mut fast, &mut slow];
        let timings = interleaved_with_clock(&|| now.get(), &Options::default(), contenders).unwrap();
        assert_eq!([timings[0].samples, timings[1].samples], [100, 100]);
        assert_eq!([timings[0].median, timings[1].median], [0.002, 0.01]);
        // The slow contender has warmed up for 30 ms, and reaches its cap of 500 ms after 47
        // samples.
        let capped = Options { cap: Duration::from_millis(500), ..Options::default() };
        let (mut fast, mut slow) = (|| take(2), || take(10));
        let timings = interleaved_with_clock(&|| now.get(), &capped, &mut [&mut fast, &mut slow]).unwrap();
        assert_eq!([timings[0].samples, timings[1].samples], [100, 47]);
    }

    #[test]
    fn cold_calls_are_timed_one_by_one() {
        let pool = Pool::new(2);
        let caches = CacheFlush::new(1_000_003, &pool).unwrap();
        let options = Options {
            samples: 5,
            time: Duration::ZERO,
            warm_up_time: Duration::ZERO,
            flush_caches: Some(caches),
            ..Options::default()
        };
        let timing = measure(&options, || Ok::<(), Infallible>(())).unwrap();
        assert_eq!((timing.samples, timing.batch), (5, 1));
    }
}
