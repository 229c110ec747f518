//! Calls kernels: [`Arguments`] collects the arguments of one call by name, and [`BoundKernel`] is
//! a kernel whose constant inputs are already bound.

use std::sync::Arc;

use tilewright_driver::BoundCode;
use tilewright_ir::Number;
use tilewright_runtime::signature::Parameter;
use tilewright_runtime::{Pool, Signature, View, ViewMut};

use crate::compile::Kernel;
use crate::error::Error;

/// A kernel with its constant inputs bound. It can be called any number of times, from any thread.
pub struct BoundKernel<'c> {
    pub(crate) bound: BoundCode<'c>,
    pub(crate) pool: Arc<Pool>,
}

impl<'c> BoundKernel<'c> {
    /// Begins a call whose arguments are given by name.
    pub fn call<'k>(&'k self) -> Arguments<'k, 'c> {
        Arguments::new(Callee::Bound(self), self.bound.signature())
    }

    /// Calls the kernel with inputs, results and scalars in the order of the signature, without
    /// looking up names.
    pub fn run(
        &self,
        inputs: &[View<'_>],
        results: &mut [ViewMut<'_>],
        scalars: &[Number],
    ) -> Result<(), Error> {
        Ok(self.bound.run(&self.pool, inputs, results, scalars)?)
    }
}

enum Callee<'k, 'c> {
    Kernel(&'k Kernel),
    Bound(&'k BoundKernel<'c>),
}

/// The arguments of one call.
pub struct Arguments<'k, 'c> {
    callee: Callee<'k, 'c>,
    signature: &'k Signature,
    constants: Vec<Option<View<'k>>>,
    inputs: Vec<Option<View<'k>>>,
    results: Vec<Option<ViewMut<'k>>>,
    scalars: Vec<Option<Number>>,
}

impl<'k> Arguments<'k, 'static> {
    pub(crate) fn of_kernel(kernel: &'k Kernel) -> Arguments<'k, 'static> {
        Arguments::new(Callee::Kernel(kernel), kernel.signature())
    }
}

impl<'k, 'c> Arguments<'k, 'c> {
    fn new(callee: Callee<'k, 'c>, signature: &'k Signature) -> Arguments<'k, 'c> {
        let empty = |parameters: &[Parameter]| parameters.iter().map(|_| None).collect();
        Arguments {
            callee,
            signature,
            constants: empty(&signature.constants),
            inputs: empty(&signature.inputs),
            results: signature.results.iter().map(|_| None).collect(),
            scalars: signature
                .scalars
                .iter()
                .map(|scalar| scalar.fixed.map(|value| Number::Int(value as i128)))
                .collect(),
        }
    }

    /// Gives an input: an `ndarray` array or view, or a [`View`] of a slice.
    pub fn input(mut self, name: &str, value: impl Into<View<'k>>) -> Result<Self, Error> {
        if let Some(at) = position_of(&self.signature.inputs, name) {
            set_argument(&mut self.inputs[at], name, value.into())?;
        } else if let Some(at) = position_of(&self.signature.constants, name) {
            if let Callee::Bound(_) = self.callee {
                return Err(Error::Argument(format!("`{name}` was bound before")));
            }
            set_argument(&mut self.constants[at], name, value.into())?;
        } else {
            return Err(self.unknown("input", name));
        }
        Ok(self)
    }

    /// Gives a result that the call writes or updates.
    pub fn output(mut self, name: &str, value: impl Into<ViewMut<'k>>) -> Result<Self, Error> {
        let Some(at) = position_of(&self.signature.results, name) else {
            return Err(self.unknown("result", name));
        };
        set_argument(&mut self.results[at], name, value.into())?;
        Ok(self)
    }

    /// Gives a scalar. Scalars that the program was specialised for need not be given.
    pub fn scalar(mut self, name: &str, value: impl Into<f64>) -> Result<Self, Error> {
        self = self.number(name, Number::Float(value.into()))?;
        Ok(self)
    }

    /// Gives a scalar with its exact value.
    pub fn number(mut self, name: &str, value: Number) -> Result<Self, Error> {
        let at = self.signature.scalars.iter().position(|scalar| scalar.name == name);
        let Some(at) = at else { return Err(self.unknown("scalar", name)) };
        self.scalars[at] = Some(value);
        Ok(self)
    }

    /// Runs the call.
    pub fn run(self) -> Result<(), Error> {
        let inputs = require_all(self.inputs, &self.signature.inputs)?;
        let mut results = require_all(self.results, &self.signature.results)?;
        let names = self.signature.scalars.iter().map(|scalar| scalar.name.as_str());
        let scalars = require_all_named(self.scalars, names)?;
        match self.callee {
            Callee::Bound(kernel) => kernel.run(&inputs, &mut results, &scalars),
            Callee::Kernel(kernel) => {
                let constants = require_all(self.constants, &self.signature.constants)?;
                kernel.bind(&constants)?.run(&inputs, &mut results, &scalars)
            }
        }
    }

    fn unknown(&self, what: &str, name: &str) -> Error {
        let signature = self.signature;
        let tensors = signature.inputs.iter().chain(&signature.constants).chain(&signature.results);
        let scalars = signature.scalars.iter().map(|scalar| &scalar.name);
        let known: Vec<String> =
            tensors.map(|tensor| &tensor.name).chain(scalars).map(|name| format!("`{name}`")).collect();
        Error::Argument(format!("there is no {what} `{name}`; the parameters are {}", known.join(", ")))
    }
}

/// Stores an argument, and refuses it if it was given before.
fn set_argument<T>(slot: &mut Option<T>, name: &str, value: T) -> Result<(), Error> {
    if slot.is_some() {
        return Err(Error::Argument(format!("`{name}` was given twice")));
    }
    *slot = Some(value);
    Ok(())
}

fn position_of(parameters: &[Parameter], name: &str) -> Option<usize> {
    parameters.iter().position(|parameter| parameter.name == name)
}

fn require_all<T>(values: Vec<Option<T>>, parameters: &[Parameter]) -> Result<Vec<T>, Error> {
    require_all_named(values, parameters.iter().map(|parameter| parameter.name.as_str()))
}

fn require_all_named<'n, T>(
    values: Vec<Option<T>>,
    names: impl Iterator<Item = &'n str>,
) -> Result<Vec<T>, Error> {
    let missing = |name: &str| Error::Argument(format!("`{name}` was not given"));
    values.into_iter().zip(names).map(|(value, name)| value.ok_or_else(|| missing(name))).collect()
}
