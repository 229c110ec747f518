//! Reads the program and the inputs of `run`, `bench` and `tune` as a [`Problem`]: a program at
//! given sizes, with its data.

use tilewright::driver::source::{ProgramError, program};
use tilewright::driver::zero_sizes::empty_program;
use tilewright::interp::{Inputs, bytes_to_expect, bytes_to_run};
use tilewright::ir::{Program, SymbolKind};
use tilewright::syntax::Bindings;

use crate::args::{ProgramArgs, RoundingArgs};
use crate::failure::Failure;
use crate::inputs::{GivenInputs, complete_inputs, given_inputs, read_inputs};
use crate::memory::{kernel_bytes, refuse_too_large};
use crate::source::Source;

/// The end of a message about missing sizes, for commands that take inputs.
pub const OR_INPUTS: &str =
    ", or inputs that determine them (--in NAME=FILE.npy, or --in NAME=NUMBER for a scalar)";

/// A checked program whose sizes are all known, and the inputs that the user has given.
pub struct Problem {
    /// The source file of the program.
    pub source: Source,
    /// The program.
    pub program: Program,
    given: GivenInputs,
}

impl Problem {
    /// Reads the program and the inputs of the command line. No tensor is allocated yet, except
    /// those in files.
    pub fn read(args: &ProgramArgs) -> Result<Problem, Failure> {
        Problem::read_with(args, |_, _, _| None)
    }

    /// Like [`Problem::read`], but some sizes may be 0. Such a program is for the interpreter.
    pub fn read_to_run(args: &ProgramArgs) -> Result<Problem, Failure> {
        let contract = !args.rounding.no_contract;
        Problem::read_with(args, |source, name, sizes| empty_program(&source.parsed, name, sizes, contract))
    }

    /// Reads the program and the inputs. The program is the one that `empty` returns, or else it is
    /// checked at the given sizes.
    fn read_with(
        args: &ProgramArgs,
        empty: impl FnOnce(&Source, &str, &Bindings) -> Option<Program>,
    ) -> Result<Problem, Failure> {
        let (source, name) = Source::read_function(&args.file)?;
        let given = read_inputs(&source, &name, &args.sizes, &args.inputs, args.seed)?;
        let program = match empty(&source, &name, given.sizes()) {
            Some(program) => program,
            None => concrete_program(&source, &name, given.sizes(), args.rounding, OR_INPUTS)?,
        };
        require_scalars(&program, &given)?;
        Ok(Problem { source, program, given })
    }

    /// Whether some size is 0.
    pub fn is_empty(&self) -> bool {
        self.program.symbols.iter().any(|symbol| symbol.kind == SymbolKind::Size && symbol.value == Some(0))
    }

    /// Returns the inputs for the interpreter: those that were given, and the others from the seed.
    pub fn interpreter_inputs(&mut self) -> Result<Inputs, Failure> {
        self.inputs(bytes_to_run(&self.program))
    }

    /// Returns the inputs for a compiled kernel. `checked` says that the interpreter runs too,
    /// which needs more memory.
    pub fn kernel_inputs(&mut self, checked: bool) -> Result<Inputs, Failure> {
        let mut needed = kernel_bytes(&self.program);
        if checked {
            needed = needed.zip(bytes_to_expect(&self.program)).map(|(kernel, interp)| kernel + interp);
        }
        self.inputs(needed)
    }

    /// Every size and integer scalar that was given, by name or by the shape of an input, and every
    /// size that scalars determine.
    pub fn given_sizes(&self) -> Vec<(String, i64)> {
        let mut sizes = self.given.sizes().clone();
        for size in self.program.derived_sizes() {
            sizes.set(size.name, size.value);
        }
        sizes.iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Returns the tensors and scalars that were given, after checking them. Of the random inputs,
    /// it includes only those that were given by a range.
    pub fn given_inputs(&mut self) -> Result<Inputs, Failure> {
        let names = self.given.names();
        if names.is_empty() {
            return Ok(Inputs::default());
        }
        refuse_too_large(&self.program, kernel_bytes(&self.program))?;
        let mut inputs = given_inputs(&self.program, std::mem::take(&mut self.given))?;
        inputs.tensors.retain(|name, _| names.contains(name));
        inputs.scalars.retain(|name, _| names.contains(name));
        Ok(inputs)
    }

    fn inputs(&mut self, needed: Option<u128>) -> Result<Inputs, Failure> {
        refuse_too_large(&self.program, needed)?;
        complete_inputs(&self.program, std::mem::take(&mut self.given))
    }

    /// The sizes and integer scalars that the program was specialised for.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, i64)> {
        self.program.symbols.iter().filter_map(|symbol| Some((symbol.name.as_str(), symbol.value?)))
    }
}

/// Checks a function whose sizes must all be known. `hint` says how else to give them.
pub fn concrete_program(
    source: &Source,
    name: &str,
    sizes: &Bindings,
    rounding: RoundingArgs,
    hint: &str,
) -> Result<Program, Failure> {
    let checked = program(&source.parsed, name, sizes, !rounding.no_contract);
    source.print(&checked.diagnostics);
    checked.program.map_err(|error| match error {
        ProgramError::HasErrors => Failure::Reported,
        ProgramError::UnknownSizes(open) => open_sizes(name, &open, sizes, hint),
        ProgramError::UnknownScalars { size, value, scalars } => open_scalars(name, &size, &value, &scalars),
        ProgramError::NoFunction(_) => Failure::Input(error.to_string()),
        ProgramError::Invalid(_) => Failure::Bug(error.to_string()),
    })
}

/// Refuses a program whose sizes are known while a scalar that determines one of them is not. A
/// random scalar would determine another size.
fn require_scalars(program: &Program, given: &GivenInputs) -> Result<(), Failure> {
    let sizes = program.derived_sizes();
    for (derived, size) in program.derived.iter().zip(&sizes) {
        let names = derived.scalar_names(&program.scalars);
        let open: Vec<String> = names.filter(|name| !given.has_scalar(name)).map(str::to_owned).collect();
        if !open.is_empty() {
            return Err(open_scalars(&program.name, &size.name, &size.text, &open));
        }
    }
    Ok(())
}

/// The failure for a size whose scalars are not known.
fn open_scalars(function: &str, size: &str, value: &str, scalars: &[String]) -> Failure {
    let options: Vec<String> = scalars.iter().map(|name| format!("--in {name}=…")).collect();
    Failure::Input(format!("`{function}` computes {size} = {value}: give {}", options.join(" ")))
}

/// The failure for sizes that are not known.
fn open_sizes(function: &str, open: &[String], sizes: &Bindings, hint: &str) -> Failure {
    let values: Vec<String> = open.iter().map(|name| format!("{name}=…")).collect();
    let known = sizes.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ");
    let known = if known.is_empty() { String::new() } else { format!(" (known: {known})") };
    let what = if open.len() == 1 { "a value for" } else { "values for" };
    Failure::Input(format!(
        "`{function}` needs {what} {}{known}: give --sizes {}{hint}",
        open.join(", "),
        values.join(",")
    ))
}
