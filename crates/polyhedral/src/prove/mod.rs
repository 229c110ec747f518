//! The prover: checks whether a loop nest computes what its program says.
//!
//! In: a program whose sizes are numbers, and a loop nest. The stores of the nest claim which
//! instances of the program they compute ([`tilewright_ir::nest::Claim`]). Out: a [`Verdict`]. The
//! prover shares no code with the steps that made the nest. It trusts no claim, but follows every
//! value through memory.
//!
//! A *version* of an element is the value that one statement gives the element in one iteration of
//! the ordered loops around the statement. In the program every read sees one version. The nest is
//! right if
//!
//! 1. every store that claims an instance computes the instance's value ([`values`]). Both
//!    expressions have the same operations, and each load brings the version that the program's
//!    read sees, through whatever buffers. [`sources`] finds the store that wrote the loaded value;
//! 2. every result of a reduction is complete when it is read: the reduction begins with the right
//!    value, and every instance is reduced into the result exactly once ([`reductions`]);
//! 3. the last store to every element of a result is the one that claims the element's last
//!    version;
//! 4. no two iterations of a parallel or vector loop touch one element, unless both only read it
//!    ([`races`]);
//! 5. every access is inside its buffer, and no load reads an element that was never written
//!    ([`bounds`]);
//! 6. on a GPU, barriers and waits order all conflicting accesses of different threads
//!    ([`threads`]), and no thread reads a value that is in the registers of another thread
//!    ([`registers`]).
//!
//! By induction over the order in which the nest runs, all values are then the program's, up to the
//! rounding of reductions whose order the language leaves open. The method is equivalence checking
//! of affine programs; the claims replace the search for corresponding statements.
//!
//! If the nest computes recurrences in parts, the program is first rewritten to one that does so
//! too ([`in_parts`]).
//!
//! Read next: [`nest`] for the stores of a nest as sets of iterations.

pub mod accesses;
pub mod bounds;
pub mod claims;
pub mod combine;
pub mod comparison;
pub mod contents;
pub mod continuity;
pub mod digits;
pub mod flat;
pub mod in_parts;
pub mod kernels;
pub mod loads;
pub mod nest;
pub mod neutral;
pub mod order;
pub mod races;
pub mod reductions;
pub mod registers;
pub mod scatters;
pub mod single_valued;
pub mod sources;
pub mod subscripts;
pub mod threads;
pub mod values;

use std::borrow::Cow;

use tilewright_ir::{LoopNest, Program};
use tilewright_isl::{Context, GaveUp};

use crate::model::{Instances, Model};
use contents::Contents;
use nest::Nest;
use reductions::Runs;
use single_valued::SingleValuedBuffers;
use sources::Sources;
use values::Proof;

/// The limit on isl's operations in one proof. A proof at the limit takes some seconds.
const MAX_OPERATIONS: u64 = 40_000_000;
/// The limit for somebody who waits for one proof. A proof at the limit takes some minutes.
const PATIENT_OPERATIONS: u64 = 10 * MAX_OPERATIONS;

/// The result of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The nest computes what the program says.
    Proved,
    /// The nest does not compute what the program says. The text names instances and elements that
    /// show the error.
    Refuted(String),
    /// The prover could show neither. The text gives the reason.
    Undecided(String),
}

/// The reason why a proof ends before it is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The nest is wrong.
    Refuted(String),
    /// The prover cannot decide a question.
    Undecided(String),
}

impl From<GaveUp> for Stop {
    fn from(_: GaveUp) -> Stop {
        Stop::Undecided("the proof takes too many operations".to_string())
    }
}

/// The result of a part of a proof.
pub type ProofResult<T> = Result<T, Stop>;

pub(crate) fn refuted<T>(what: String) -> ProofResult<T> {
    Err(Stop::Refuted(what))
}

pub(crate) fn undecided<T>(why: impl Into<String>) -> ProofResult<T> {
    Err(Stop::Undecided(why.into()))
}

/// Checks whether a loop nest computes what a program says.
pub fn prove(program: &Program, nest: &LoopNest) -> Verdict {
    prove_within(program, nest, MAX_OPERATIONS)
}

/// Checks whether a loop nest computes what a program says, for somebody who asks for this one
/// proof and may wait some minutes for it. Long pipelines need that.
pub fn prove_patiently(program: &Program, nest: &LoopNest) -> Verdict {
    prove_within(program, nest, PATIENT_OPERATIONS)
}

/// Checks whether a loop nest computes what a program says. The verdict is undecided if isl needs
/// more than `operations` operations.
pub fn prove_within(program: &Program, nest: &LoopNest, operations: u64) -> Verdict {
    let context = Context::new();
    context.limit_operations(operations);
    match attempt(&context, program, nest) {
        Ok(()) => Verdict::Proved,
        Err(Stop::Refuted(what)) => Verdict::Refuted(what),
        Err(Stop::Undecided(why)) => Verdict::Undecided(why),
    }
}

fn attempt(context: &Context, program: &Program, nest: &LoopNest) -> ProofResult<()> {
    let in_parts = in_parts::rewrite(program, nest)?;
    let (program, nest) = in_parts.as_ref().map_or((program, nest), |(program, nest)| (program, nest));
    let Some(model) = Model::new(context, program) else { return undecided("a size is not a number") };
    // The runs of such a statement hold several elements, and continue from several values.
    let continues = |own: &Instances| own.reduces_into_several && own.needs_previous_value();
    if model.statements.iter().any(continues) {
        return undecided("a reduction continues from the values of several elements");
    }
    let with_neutral = combine::with_neutral_stores(nest);
    let flat =
        flat::merge_loops(&with_neutral).map(|flat| digits::split_digit_loops(context, Cow::Owned(flat)));
    let prepared = digits::split_digit_loops(context, with_neutral);
    let original = Nest::new(context, &prepared)?;
    let nest = match &flat {
        None => check_nest(original)?,
        Some(flat) => check_both_forms(original, Nest::new(context, flat)?)?,
    };
    let claims = claims::claims(&model, &nest)?;
    let single_valued = SingleValuedBuffers::find(&nest, &claims);
    let sources = Sources::find(context, &model, &nest, &claims, &single_valued)?;
    bounds::check_written(&nest, &sources)?;
    registers::check(&nest, &sources, &single_valued)?;
    let runs = Runs::new(&nest, &claims);
    reductions::check(&model, &nest, &sources, &claims, (&runs, &single_valued))?;
    let contents = Contents::new((&model, &nest), (&sources, &single_valued), &claims, &runs);
    let proof = Proof {
        model: &model,
        nest: &nest,
        sources: &sources,
        claims: &claims,
        runs: &runs,
        contents: &contents,
    };
    values::check(&proof)
}

/// Checks that all accesses are inside their buffers and that the nest has no races; returns the
/// nest.
fn check_nest(nest: Nest) -> ProofResult<Nest> {
    bounds::check(&nest)?;
    races::check(&nest)?;
    threads::check(&nest)?;
    Ok(nest)
}

/// Checks both forms of the nest and returns the one with flat loops. If the flat form may have a
/// race, the original form is checked instead, because its loops order iterations that are
/// unordered in the flat form.
fn check_both_forms<'n>(original: Nest<'n>, flat: Nest<'n>) -> ProofResult<Nest<'n>> {
    bounds::check(&flat)?;
    let is_safe = races::check(&flat).and_then(|()| threads::check(&flat));
    if is_safe.is_err() {
        check_nest(original)?;
    }
    Ok(flat)
}
