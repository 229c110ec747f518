//! Compiles a program, calls the code on tensors with any layout, and compares results.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod fenced_memory;
pub mod fenced_tensor;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use tilewright::{
    Compile, Cpu, Error, Kernel, Number, OpenTarget, Pool, Program, Schedule, ScheduleChoice,
    VectorInstructions, View, ViewMut,
};
use tilewright_interp::Inputs;
use tilewright_ir::{DType, Tensor};
use tilewright_runtime::signature::Parameter;

use fenced_tensor::{FencedTensor, Placement};

/// The results of a call, by name.
pub type Results = BTreeMap<String, Tensor>;

static POOLS: LazyLock<[Arc<Pool>; 2]> = LazyLock::new(|| [1, 2].map(|threads| Arc::new(Pool::new(threads))));

/// The thread pool that all kernels of a test share, with one or two threads.
pub fn pool(threads: usize) -> Arc<Pool> {
    Arc::clone(&POOLS[threads - 1])
}

/// The vector instruction sets that this machine has.
pub fn vectors() -> Vec<VectorInstructions> {
    VectorInstructions::ALL.into_iter().filter(|vectors| *vectors <= Cpu::host().vectors).collect()
}

/// Compiles a program for a shared thread pool.
pub fn compile(
    program: &Program,
    schedule: Option<Schedule>,
    vectors: VectorInstructions,
    threads: usize,
) -> Result<Kernel, Error> {
    let schedule = schedule.map_or(ScheduleChoice::Default, ScheduleChoice::Given);
    let target = OpenTarget::Cpu(Cpu { vectors, ..Cpu::host() });
    program.compile_on(&Compile { schedule, target }, pool(threads))
}

/// The tensors and scalars of calls, in separate memory.
pub struct Arguments {
    constants: Vec<FencedTensor>,
    inputs: Vec<FencedTensor>,
    scalars: Vec<Number>,
}

impl Arguments {
    /// Allocates the arguments of a kernel. `place` returns the layout of each tensor.
    pub fn new(kernel: &Kernel, inputs: &Inputs, mut place: impl FnMut() -> Placement) -> Arguments {
        let signature = kernel.signature();
        let mut lent = |parameters: &[Parameter]| -> Vec<FencedTensor> {
            parameters.iter().map(|own| FencedTensor::copy_of(&inputs.tensors[&own.name], &place())).collect()
        };
        let (constants, given) = (lent(&signature.constants), lent(&signature.inputs));
        let scalars = signature.scalars.iter().map(|scalar| inputs.scalars[&scalar.name]).collect();
        Arguments { constants, inputs: given, scalars }
    }

    /// Binds the constants and makes several calls, which must all give the same bits.
    pub fn run(
        &self,
        kernel: &Kernel,
        inputs: &Inputs,
        calls: usize,
        mut place: impl FnMut() -> Placement,
    ) -> Result<Results, String> {
        let constants: Vec<View> = self.constants.iter().map(FencedTensor::view).collect();
        let bound = kernel.bind(&constants).map_err(|error| format!("bind: {error}"))?;
        let views: Vec<View> = self.inputs.iter().map(FencedTensor::view).collect();
        let mut first: Option<Results> = None;
        for _ in 0..calls {
            let mut results = results(kernel, inputs, &mut place);
            let mut lent: Vec<ViewMut> = results.iter_mut().map(|(_, lent)| lent.view_mut()).collect();
            bound.run(&views, &mut lent, &self.scalars).map_err(|error| error.to_string())?;
            drop(lent);
            if let Some((name, _)) = results.iter().find(|(_, lent)| !lent.gaps_are_unchanged()) {
                return Err(format!("`{name}` was written outside of its elements"));
            }
            let found = results.into_iter().map(|(name, lent)| (name, lent.tensor())).collect();
            match &first {
                Some(first) if *first != found => return Err("two calls differ".to_string()),
                _ => first = Some(found),
            }
        }
        if self.inputs.iter().chain(&self.constants).any(|lent| !lent.gaps_are_unchanged()) {
            return Err("an input was written outside of its elements".to_string());
        }
        Ok(first.unwrap_or_default())
    }
}

/// Allocates the results. A tensor that the program updates holds its old values; other results
/// hold meaningless bytes.
fn results(
    kernel: &Kernel,
    inputs: &Inputs,
    place: &mut impl FnMut() -> Placement,
) -> Vec<(String, FencedTensor)> {
    let parameters = kernel.signature().results.iter();
    let lent = parameters.map(|own| match inputs.tensors.get(&own.name) {
        Some(old) => FencedTensor::copy_of(old, &place()),
        // Any byte is valid in a number, but not in a `bool`.
        None if own.layout.dtype() == DType::Bool => {
            FencedTensor::copy_of(&Tensor::zeros(DType::Bool, own.layout.shape()).unwrap(), &place())
        }
        None => FencedTensor::empty(own.layout.dtype(), own.layout.shape(), &place()),
    });
    kernel.signature().results.iter().map(|own| own.name.clone()).zip(lent).collect()
}

/// Returns the first element that differs. Integers must be equal. Floats must be equal if `exact`
/// is set: then they are small integers, whose sum is the same in any order. Otherwise floats may
/// differ by what rounding can explain.
pub fn difference(wanted: &Results, found: &Results, exact: bool) -> Option<String> {
    for (name, tensor) in wanted {
        let Some(other) = found.get(name) else { return Some(format!("`{name}` is missing")) };
        let allowed_error = if exact { 0.0 } else { tolerance(tensor.dtype()) };
        for at in 0..tensor.len() {
            let (left, right) = (tensor.get(at), other.get(at));
            if !agree(left, right, allowed_error) {
                return Some(format!("{name}[{at}] is {right:?}, not {left:?}"));
            }
        }
    }
    None
}

fn agree(wanted: Number, found: Number, allowed_error: f64) -> bool {
    let (Number::Float(wanted), Number::Float(found)) = (wanted, found) else { return wanted == found };
    wanted == found
        || wanted.is_nan() && found.is_nan()
        || (wanted - found).abs() <= allowed_error * (1.0 + wanted.abs().max(found.abs()))
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::Float64 => 1e-10,
        DType::Float32 => 1e-4,
        _ => 2e-2,
    }
}
