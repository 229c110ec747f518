//! Splits result loops whose iterations differ by a remainder into a loop over quotients and a loop
//! over remainders.
//!
//! A transposed convolution of stride 2 reads `I(y)` where `h - kh` is `2*y`. Its results with even
//! `h` follow one access pattern, and those with odd `h` another. Written as `h = 2*q + r`,
//! neighbours in `q` read neighbours in `I` and use the same weights, as in any other convolution.
//! The loop over `r` is short and can be spread over threads or blocks.

use tilewright_ir::{Atom, IndexExpr, Program, Range, Statement, Var, VarId, VarKind};
use tilewright_schedule::Step;
use tilewright_schedule::analysis::{Multiple, fold_constant_quotients, required_multiples};

use super::names::Names;
use super::stage::{Stage, analyse};

/// The least number of quotients. Loops with fewer iterations than this number times the number of
/// remainders are not split.
const MIN_QUOTIENTS: i64 = 4;

/// A result loop that is replaced by a loop over quotients and a loop over remainders.
struct SplitLoop {
    var: VarId,
    remainders: i64,
    quotient: VarId,
    remainder: VarId,
}

/// Splits loops of a stage into quotients and remainders. Returns true if there were such loops.
pub(super) fn split_remainders(
    stage: &mut Stage,
    program: &Program,
    statement: &Statement,
    names: &Names,
) -> bool {
    let (mut program, mut statement) = (program.clone(), statement.clone());
    let mut all: Vec<SplitLoop> = Vec::new();
    for asked in required_multiples(&statement) {
        if let Some(var) = remainder_loop(&program, &statement, &asked)
            && all.iter().all(|own| own.var != var)
        {
            all.push(add_split_loop(&mut program, var, asked.divisor, names));
        }
    }
    all.iter()
        .for_each(|own| own.substitute_in(&program.vars[own.var.index()].range.from.clone(), &mut statement));
    fold_constant_quotients(&program, &mut statement);
    if all.is_empty() {
        return false;
    }
    *stage = analyse(&program, &statement, stage.name.clone(), stage.is_ordered);
    for own in &all {
        let name = |var: VarId| program.var(var).name.clone();
        for own_loop in stage.loops.iter_mut().filter(|own_loop| own_loop.name == name(own.remainder)) {
            own_loop.is_over_remainders = true;
        }
        stage.creation_steps.push(Step::Split {
            target: stage.name.loop_named(name(own.var)),
            outer: name(own.quotient),
            inner: vec![(name(own.remainder), own.remainders)],
        });
    }
    true
}

/// Returns the result loop whose remainder `asked` tests, if exactly one loop qualifies.
fn remainder_loop(program: &Program, statement: &Statement, asked: &Multiple) -> Option<VarId> {
    let spatial = |var: &VarId| program.var(*var).kind == VarKind::Spatial && statement.vars.contains(var);
    let vars: Vec<VarId> = asked.number.vars().into_iter().filter(spatial).collect();
    let [var] = vars.as_slice() else { return None };
    let (step, _) = asked.number.split_on(&Atom::Var(*var))?;
    let trips = program.var(*var).range.extent().as_constant()?;
    let is_long = trips >= MIN_QUOTIENTS * asked.divisor;
    (step.as_constant().map(i64::abs) == Some(1) && is_long).then_some(*var)
}

/// Adds the variables of the two loops to a program.
fn add_split_loop(program: &mut Program, var: VarId, remainders: i64, names: &Names) -> SplitLoop {
    let own = program.var(var).clone();
    let trips = own.range.extent().as_constant().unwrap_or(1);
    let mut add = |part: &str, extent: i64| {
        let range = Range { from: IndexExpr::constant(0), to: IndexExpr::constant(extent) };
        program.vars.push(Var { name: names.part(&own.name, part), range, kind: own.kind });
        VarId(program.vars.len() as u32 - 1)
    };
    let (quotient, remainder) = (add("q", (trips + remainders - 1) / remainders), add("r", remainders));
    SplitLoop { var, remainders, quotient, remainder }
}

impl SplitLoop {
    /// Replaces the variable of the original loop by those of the two loops.
    fn substitute_in(&self, from: &IndexExpr, statement: &mut Statement) {
        let quotient = IndexExpr::var(self.quotient).scale(self.remainders);
        let value = quotient.add(&IndexExpr::var(self.remainder)).add(from);
        let mut replaced = |index: &IndexExpr| {
            index.substitute(&mut |atom| (*atom == Atom::Var(self.var)).then(|| value.clone()))
        };
        statement.value.map_indices(&mut replaced);
        statement.indices.iter_mut().for_each(|index| *index = replaced(index));
        let place = statement.vars.iter().position(|var| *var == self.var);
        statement.vars.splice(place.map(|at| at..at + 1).unwrap_or(0..0), [self.quotient, self.remainder]);
    }
}
