//! What is tuned: a function at given sizes, on this machine with so many threads.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tilewright_ir::{Program, verify};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::{Cpu, Vectors};

/// A program to tune, as it goes to a worker: text and numbers, and nothing that is executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The source.
    pub source: String,
    /// The function.
    pub function: String,
    /// Sizes, and integer scalars that sizes depend on.
    pub sizes: Vec<(String, i64)>,
    /// Threads that a kernel may use.
    pub threads: usize,
    /// The name of the vector instructions that it may use.
    pub vectors: String,
    /// What inputs are made from that are not given.
    pub seed: u64,
    /// Inputs that are given, by name: files, as [`given::write`](crate::given::write) makes them.
    pub inputs: Vec<(String, PathBuf)>,
}

/// A task that cannot be begun.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct TaskError(pub String);

impl Task {
    /// The program, checked.
    pub fn program(&self) -> Result<Program, TaskError> {
        let parsed = parse(&self.source);
        let sizes: Bindings = self.sizes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let known = parsed.ast.functions.iter().any(|function| function.name.text == self.function);
        if !known {
            return Err(TaskError(format!("there is no function `{}`", self.function)));
        }
        let checked = check(&parsed.ast, &self.function, &sizes);
        let program = checked.program.ok_or_else(|| TaskError("the program has errors".to_owned()))?;
        if let Some(open) = program.symbols.iter().find(|symbol| symbol.value.is_none()) {
            return Err(TaskError(format!("the size `{}` is not known", open.name)));
        }
        verify(&program).map_err(|error| TaskError(error.to_string()))?;
        Ok(program)
    }

    /// The machine as kernels may use it.
    pub fn target(&self) -> Result<Cpu, TaskError> {
        let host = Cpu::host();
        let vectors = Vectors::ALL.into_iter().find(|vectors| vectors.name() == self.vectors);
        let vectors = vectors.filter(|vectors| *vectors <= host.vectors);
        let vectors =
            vectors.ok_or_else(|| TaskError(format!("there are no {} vectors here", self.vectors)))?;
        Ok(Cpu { cores: self.threads.max(1), vectors, ..host })
    }
}
