//! Measures how long a call takes on a device, by the device's own clock.
//!
//! The clock starts and stops between kernels of the device's queue. Work of the host in the
//! meantime does not count, as long as the host is ahead of the device. To keep the host ahead,
//! each sample is queued behind the operation that empties the cache, or is a batch of calls.

use std::time::{Duration, Instant};

use tilewright_ir::Number;

use super::backend;
use super::bound::GpuBound;
use super::buffer::DeviceBuffer;
use super::device::Device;
use super::memory::Memory;
use crate::kernel::RunError;
use crate::timing::{Timing, batch};

/// The minimum duration, about, of a sample that does not begin with an empty cache, in seconds.
/// This is some hundred times the resolution of a device's clock, and longer than the host takes to
/// queue a kernel.
const SHORTEST_SAMPLE: f64 = 100e-6;

/// The maximum number of calls in a sample: a clock that reports no time must not lead to endless
/// batches.
const LARGEST_BATCH: usize = 1000;

/// Warming up ends at the latest after `1 / WARM_UP_SHARE` of the cap.
const WARM_UP_SHARE: u32 = 4;

/// When to stop measuring, and in which state of the cache to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The minimum number of calls before the first sample; the very first call includes one-time
    /// work.
    pub warm_up_calls: usize,
    /// The minimum time before the first sample: a device that was idle takes a while to reach its
    /// clock frequency.
    pub warm_up_time: Duration,
    /// The number of samples.
    pub samples: usize,
    /// The maximum time. The cap overrides all other options, but one sample is always taken.
    pub cap: Duration,
    /// Whether to empty the cache that all multiprocessors share before every sample, and to time
    /// every call by itself.
    pub flush: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            warm_up_calls: 3,
            warm_up_time: Duration::from_millis(20),
            samples: 30,
            cap: Duration::from_secs(3),
            flush: true,
        }
    }
}

impl GpuBound {
    /// Measures how long a call with tensors on the device takes.
    pub fn time(
        &self,
        inputs: &[&DeviceBuffer],
        results: &mut [&mut DeviceBuffer],
        scalars: &[Number],
        sampling: &Sampling,
    ) -> Result<Timing, RunError> {
        let mut series = Series::new(self, sampling)?;
        series.measure(&mut || self.launch(inputs, results, scalars))
    }
}

/// Measures the times of calls on a device, of one program or of several in turn.
pub struct Stopwatch {
    clock: Box<dyn backend::Stopwatch>,
    /// The memory that is overwritten to empty the cache.
    cache: Option<Memory>,
}

impl Stopwatch {
    /// A stopwatch of a device, which empties the cache before each start if `flush` is true.
    pub fn new(device: &Device, flush: bool) -> Result<Stopwatch, RunError> {
        // Twice the size of the cache, so that no data of a call is left, whatever the cache
        // decides to keep.
        let twice = device.gpu().cache.saturating_mul(2);
        let cache = if flush { Some(Memory::new(device, twice)?) } else { None };
        Ok(Stopwatch { clock: device.backend().stopwatch()?, cache })
    }

    /// Runs `call` this many times, and returns the time of one call in seconds. Waits until the
    /// calls are done; [`GpuBound::wait`] reports whether their checks failed.
    pub fn time(
        &mut self,
        calls: usize,
        call: &mut dyn FnMut() -> Result<(), RunError>,
    ) -> Result<f64, RunError> {
        if let Some(cache) = &self.cache {
            cache.clear()?;
        }
        self.clock.start()?;
        for _ in 0..calls {
            call()?;
        }
        self.clock.stop()?;
        Ok(self.clock.seconds()? / calls as f64)
    }
}

/// The samples of one call.
struct Series<'a> {
    bound: &'a GpuBound,
    sampling: &'a Sampling,
    watch: Stopwatch,
    started: Instant,
}

impl<'a> Series<'a> {
    fn new(bound: &'a GpuBound, sampling: &'a Sampling) -> Result<Series<'a>, RunError> {
        let watch = Stopwatch::new(bound.device(), sampling.flush)?;
        Ok(Series { bound, sampling, watch, started: Instant::now() })
    }

    fn measure(&mut self, call: &mut dyn FnMut() -> Result<(), RunError>) -> Result<Timing, RunError> {
        let estimate = self.warm_up(call)?;
        let calls = batch(estimate, SHORTEST_SAMPLE).min(LARGEST_BATCH);
        let batch = if self.sampling.flush { 1 } else { calls };
        let mut samples = Vec::with_capacity(self.sampling.samples);
        while samples.is_empty() || (samples.len() < self.sampling.samples && !self.has_passed(1)) {
            samples.push(self.watch.time(batch, call)?);
        }
        self.bound.wait()?;
        Ok(Timing::from_samples(samples, batch))
    }

    /// Repeats the call until the device has settled, and returns the time of the last call in
    /// seconds.
    fn warm_up(&mut self, call: &mut dyn FnMut() -> Result<(), RunError>) -> Result<f64, RunError> {
        let mut calls = 0;
        loop {
            let seconds = self.watch.time(1, call)?;
            calls += 1;
            let enough = calls >= self.sampling.warm_up_calls.max(1)
                && self.started.elapsed() >= self.sampling.warm_up_time;
            if enough || self.has_passed(WARM_UP_SHARE) {
                return Ok(seconds);
            }
        }
    }

    /// Checks whether `1 / share` of the cap has passed.
    fn has_passed(&self, share: u32) -> bool {
        self.started.elapsed() >= self.sampling.cap / share
    }
}
