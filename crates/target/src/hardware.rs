//! Defines the trait [`Hardware`]: the properties that every kind of target reports, such as its
//! capabilities, model name, cache sizes and peak rates.

use crate::capabilities::Capabilities;

/// A description of hardware.
pub trait Hardware {
    /// The capabilities that schedules may use.
    fn capabilities(&self) -> Capabilities;

    /// The interface that programs the hardware, by its name on the command line.
    fn interface(&self) -> &'static str;

    /// The manufacturer's name for the model.
    fn model(&self) -> String;

    /// The instruction set in use, as far as schedules depend on it. Empty if there is only one.
    fn instruction_set(&self) -> String;

    /// The sizes in bytes of the memories near the processors, nearest first.
    fn memory_sizes(&self) -> Vec<usize>;

    /// The sizes in bytes of the caches that keep data from one measured call to the next, nearest
    /// first.
    fn warm_cache_sizes(&self) -> &[usize];

    /// The peak numbers of floating-point operations and of bytes from memory per second, if the
    /// hardware reports them. Otherwise they are measured, if at all.
    fn peak_rates(&self) -> Option<(f64, f64)>;

    /// The number of processors that run a kernel, and the noun for that number of them.
    fn parallel_units(&self) -> (usize, &'static str);
}
