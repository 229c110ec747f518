//! Proofs that the loops of a program compute what its text says.

use tilewright_polyhedral::Verdict;

use crate::compile::Compile;
use crate::error::Error;
use crate::module::Program;

impl Program {
    /// Proves that the loops of this program, compiled with these options, compute what its text
    /// says, for every input. Returns an error if the schedule is refused.
    ///
    /// The prover shares no code with the steps that made the loops: it traces every value of the
    /// loops back to the instance of the program that it stands for. [`Verdict::Refuted`] is
    /// therefore always a bug in Tilewright, even for a schedule written by hand.
    /// [`Verdict::Undecided`] is no sign of a mistake: the prover limits its number of operations,
    /// and knows little of accesses that depend on data. Sums may be added in another order, as the
    /// language allows.
    ///
    /// ```
    /// # use tilewright::{Compile, Module, Verdict};
    /// # fn main() -> Result<(), tilewright::Error> {
    /// let module = Module::parse("def blur(float(N) x) -> (y) { y(i) = x(i) + x(i + 1) + x(i + 2) }")?;
    /// let program = module.program("blur", [("N", 1000)])?;
    /// let schedule = tilewright::parse_schedule("split y.i -> io, iv:8\nvectorize y.iv")?;
    /// assert_eq!(program.prove(&Compile::with(schedule))?, Verdict::Proved);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prove(&self, options: &Compile) -> Result<Verdict, Error> {
        Ok(tilewright_polyhedral::prove_patiently(&self.ir, &self.loops(options)?))
    }
}
