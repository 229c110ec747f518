//! Compares a program with the peak rates of the machine by the roofline model of Williams,
//! Waterman and Patterson (CACM 52(4), 2009). Arithmetic or memory limits a program, whichever
//! takes longer at its peak rate.

use crate::peak::Peaks;
use tilewright_ir::{DType, Program};
use tilewright_target::Target;

use crate::work::{Work, count_work};

/// A program and the peak rates of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Roofline {
    /// The operations and bytes of one call.
    pub work: Work,
    /// The peak rates of the machine, if known.
    pub peaks: Option<Peaks>,
    /// The share of the arithmetic peak that the program's data type can reach, or `None` if its
    /// statements do not all have one float type.
    share_of_peak: Option<f64>,
    /// Whether inputs and results fit into the last cache, so that calls need not read memory.
    fits_caches: bool,
}

/// The resource that limits a program's speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// The arithmetic rate.
    Arithmetic,
    /// The memory rate.
    Memory,
}

impl Limit {
    /// The name of the limit.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Arithmetic => "arithmetic",
            Limit::Memory => "memory",
        }
    }
}

impl Roofline {
    /// The roofline of a program on a target.
    pub fn new(program: &Program, target: Target<'_>, peaks: Option<Peaks>) -> Roofline {
        let work = count_work(program);
        let last = target.hardware().warm_cache_sizes().last().copied().unwrap_or(0);
        let in_caches = work.bytes <= last as f64;
        Roofline { work, peaks, share_of_peak: share_of_peak(program), fits_caches: in_caches }
    }

    /// The binding limit, and the least time in seconds that it allows.
    pub fn limit(&self) -> Option<(Limit, f64)> {
        let peaks = self.peaks?;
        let memory = self.work.bytes / (peaks.gbs * 1e9);
        let arithmetic = self.share_of_peak.map(|share| self.work.operations / (share * peaks.gflops * 1e9));
        match arithmetic {
            Some(arithmetic) if arithmetic >= memory => Some((Limit::Arithmetic, arithmetic)),
            _ => Some((Limit::Memory, memory)),
        }
    }

    /// The share of the binding peak rate that a call of this duration reaches.
    pub fn peak_share(&self, seconds: f64) -> Option<f64> {
        Some(self.limit()?.1 / seconds)
    }

    /// Returns true if a call of this duration exceeds the peak rates. Then the machine was busy
    /// when they were measured.
    pub fn is_exceeded(&self, seconds: f64) -> bool {
        self.limit().is_some_and(|(limit, least)| {
            let counts = limit == Limit::Arithmetic || !self.fits_caches;
            counts && seconds < least
        })
    }

    /// Operations per second, in 10⁹.
    pub fn gflops(&self, seconds: f64) -> f64 {
        self.work.operations / seconds / 1e9
    }

    /// Bytes of inputs and results per second, in 10⁹.
    pub fn gbs(&self, seconds: f64) -> f64 {
        self.work.bytes / seconds / 1e9
    }

    /// The rates of a call, as text for people.
    pub fn describe(&self, seconds: f64) -> String {
        let (gflops, gbs) = (self.gflops(seconds), self.gbs(seconds));
        let Some((limit, least)) = self.limit() else { return format!("{gflops:.1} GFLOP/s") };
        let percent = 100.0 * least / seconds;
        match limit {
            Limit::Arithmetic => format!("{gflops:.1} GFLOP/s, {percent:.0} % of peak"),
            Limit::Memory => {
                let note = if self.fits_caches { " (its data fit the caches)" } else { "" };
                format!("{gflops:.1} GFLOP/s, {gbs:.1} GB/s, {percent:.0} % of memory peak{note}")
            }
        }
    }
}

/// The share of the single-precision peak for the program's data type. A vector holds half as many
/// double-precision numbers.
fn share_of_peak(program: &Program) -> Option<f64> {
    let mut kinds = program.statements().into_iter().map(|(statement, _)| statement.value.dtype);
    let first = kinds.next()?;
    match first {
        _ if kinds.any(|kind| kind != first) => None,
        DType::Float32 => Some(1.0),
        DType::Float64 => Some(0.5),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_syntax::{Bindings, check, parse};
    use tilewright_target::{Cpu, VectorInstructions};

    fn roofline(text: &str, last_cache: usize) -> Roofline {
        let parsed = parse(text);
        let name = parsed.ast.functions[0].name.text.clone();
        let program = check(&parsed.ast, &name, &Bindings::default()).program.unwrap();
        let cpu = Cpu { cores: 1, vectors: VectorInstructions::Baseline, caches: vec![last_cache] };
        Roofline::new(&program, (&cpu).into(), Some(Peaks { gflops: 100.0, gbs: 10.0 }))
    }

    #[test]
    fn a_matrix_product_is_limited_by_arithmetic() {
        let text = "def mm(float(1000,1000) A, float(1000,1000) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";
        let roofline = roofline(text, 1 << 20);
        assert_eq!(roofline.limit(), Some((Limit::Arithmetic, 0.02)));
        assert_eq!(roofline.describe(0.04), "50.0 GFLOP/s, 50 % of peak");
        assert!(roofline.is_exceeded(0.019) && !roofline.is_exceeded(0.02));
        let double = text.replace("float(", "double(");
        assert_eq!(super::tests::roofline(&double, 0).limit(), Some((Limit::Arithmetic, 0.04)));
    }

    #[test]
    fn a_sum_is_limited_by_memory_unless_the_caches_hold_it() {
        let text = "def add(float(5000,1000) x, float(5000,1000) y) -> (z) { z(i,j) = x(i,j) + y(i,j) }";
        let far = roofline(text, 1 << 20);
        assert_eq!(far.limit(), Some((Limit::Memory, 0.006)));
        assert_eq!(far.describe(0.012), "0.4 GFLOP/s, 5.0 GB/s, 50 % of memory peak");
        let near = roofline(text, 1 << 30);
        assert!(far.is_exceeded(0.001) && !near.is_exceeded(0.001));
        assert!(near.describe(0.012).ends_with("(its data fit the caches)"));
        // Integers have no arithmetic peak here. Without peaks there is nothing to compare with.
        let integers = text.replace("float", "int");
        assert_eq!(roofline(&integers, 0).limit().map(|(limit, _)| limit), Some(Limit::Memory));
        assert_eq!(Roofline { peaks: None, ..far }.describe(0.005), "1.0 GFLOP/s");
    }
}
