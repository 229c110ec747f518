//! Searches for a counterexample ([`Witness`]): values of sizes and variables at which a claim
//! fails.
//!
//! A claim that cannot be proved is tested at small sizes, or at the given sizes, with every value
//! of the variables. A counterexample makes the message concrete; an exhaustive search is itself a
//! proof.

use std::collections::{BTreeMap, BTreeSet};

use crate::arithmetic;
use crate::expr::{Expr, ExprKind};
use crate::index::{Atom, IndexExpr};
use crate::interval::Knowledge;
use crate::number::Number;
use crate::operators::BinaryOp;
use crate::precondition::repair;
use crate::program::{SymbolId, VarId};
use crate::unchecked::{Guard, UncheckedProgram, add_symbols};

/// The maximal number of points that one search visits.
const BUDGET: usize = 300_000;
/// The number of values that are tried for a size that is not given, starting at its least value.
const VALUES_PER_SIZE: i64 = 8;

/// Values at which a claim fails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// The values of sizes and integer scalars that are not given.
    pub sizes: BTreeMap<SymbolId, i64>,
    /// The values of variables.
    pub vars: BTreeMap<VarId, i64>,
}

/// The outcome of a search.
pub(super) enum SearchOutcome {
    Found(Witness),
    /// The search visited every point of the only possible sizes.
    Proved,
    Unknown,
}

impl Witness {
    /// The value of an index, or `None` where it depends on data.
    pub fn eval(&self, expr: &IndexExpr) -> Option<i64> {
        expr.eval(&mut |atom| match atom {
            Atom::Var(var) => self.vars.get(var).copied(),
            Atom::Symbol(symbol) => self.sizes.get(symbol).copied(),
            Atom::Data(data) => i64::try_from(self.value(&data.value)?.as_i128()).ok(),
            _ => None,
        })
    }

    /// Whether the guard allows its access, or `None` where it depends on data.
    pub(super) fn allows(&self, guard: &Guard) -> Option<bool> {
        self.holds(&guard.condition).map(|truth| truth == guard.holds)
    }

    /// The truth of a condition, or `None` where it depends on data.
    fn holds(&self, condition: &Expr) -> Option<bool> {
        self.value(condition).map(Number::is_true)
    }

    /// The value of an expression, or `None` where it depends on data.
    fn value(&self, expr: &Expr) -> Option<Number> {
        Some(match &expr.kind {
            ExprKind::Literal(number) => *number,
            ExprKind::Index(index) => Number::Int(self.eval(index)? as i128).convert(expr.dtype),
            ExprKind::Scalar(_) | ExprKind::Load(_) => return None,
            ExprKind::Unary(op, operand) => arithmetic::unary(*op, self.value(operand)?, expr.dtype),
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), operands) => {
                // Either operand may decide the result.
                let decisive = *op == BinaryOp::Or;
                let sides = [self.holds(&operands[0]), self.holds(&operands[1])];
                if !sides.contains(&Some(decisive)) && sides.contains(&None) {
                    return None;
                }
                Number::Int((sides.contains(&Some(decisive)) == decisive) as i128)
            }
            ExprKind::Binary(op, operands) => {
                arithmetic::binary(*op, self.value(&operands[0])?, self.value(&operands[1])?, expr.dtype)
            }
            ExprKind::Select(operands) => {
                let chosen = if self.holds(&operands[0])? { &operands[1] } else { &operands[2] };
                self.value(chosen)?
            }
            ExprKind::Call(builtin, arguments) => {
                let arguments: Option<Vec<Number>> =
                    arguments.iter().map(|argument| self.value(argument)).collect();
                arithmetic::call(*builtin, &arguments?, expr.dtype)
            }
            ExprKind::Cast(operand) => self.value(operand)?.convert(expr.dtype),
        })
    }
}

/// Searches for sizes and values of `vars` at which `fails` returns true. The search skips sizes at
/// which a fact is negative, because the program is refused there anyway.
pub(super) fn search(
    unchecked: &UncheckedProgram,
    mentioned: &[&IndexExpr],
    vars: &[VarId],
    facts: &[IndexExpr],
    fails: &mut dyn FnMut(&Witness) -> bool,
) -> SearchOutcome {
    let mut symbols = BTreeSet::new();
    mentioned.iter().copied().chain(facts).for_each(|expr| add_symbols(expr, &mut symbols));
    for range in vars.iter().filter_map(|var| unchecked.var(*var).range.as_ref()) {
        add_symbols(&range.from, &mut symbols);
        add_symbols(&range.to, &mut symbols);
    }
    add_related_symbols(unchecked, &mut symbols);
    let symbols: Vec<SymbolId> = symbols.into_iter().collect();
    let mut budget = BUDGET;
    for sizes in size_assignments(unchecked, &symbols) {
        let mut witness = Witness { sizes, vars: BTreeMap::new() };
        if facts.iter().any(|fact| witness.eval(fact).is_none_or(|value| value < 0)) {
            continue;
        }
        match visit(unchecked, vars, &mut witness, &mut budget, fails) {
            VisitOutcome::Found => return SearchOutcome::Found(witness),
            VisitOutcome::Exhausted => return SearchOutcome::Unknown,
            VisitOutcome::Done => {}
        }
    }
    if symbols.is_empty() { SearchOutcome::Proved } else { SearchOutcome::Unknown }
}

enum VisitOutcome {
    Found,
    Done,
    Exhausted,
}

fn visit(
    unchecked: &UncheckedProgram,
    vars: &[VarId],
    witness: &mut Witness,
    budget: &mut usize,
    fails: &mut dyn FnMut(&Witness) -> bool,
) -> VisitOutcome {
    let Some((var, rest)) = vars.split_first() else {
        if *budget == 0 {
            return VisitOutcome::Exhausted;
        }
        *budget -= 1;
        return if fails(witness) { VisitOutcome::Found } else { VisitOutcome::Done };
    };
    let Some((from, to)) = range_ends(unchecked, witness, *var) else { return VisitOutcome::Done };
    for value in from..to {
        witness.vars.insert(*var, value);
        match visit(unchecked, rest, witness, budget, fails) {
            VisitOutcome::Done => {}
            end => return end,
        }
    }
    witness.vars.remove(var);
    VisitOutcome::Done
}

pub(super) fn range_ends(unchecked: &UncheckedProgram, witness: &Witness, var: VarId) -> Option<(i64, i64)> {
    let range = unchecked.var(var).range.as_ref()?;
    Some((witness.eval(&range.from)?, witness.eval(&range.to)?))
}

/// Small sizes, the smallest first: all combinations of up to three symbols, a fixed sample for
/// more.
pub(super) fn size_assignments(
    unchecked: &UncheckedProgram,
    symbols: &[SymbolId],
) -> Vec<BTreeMap<SymbolId, i64>> {
    let known = unchecked.consequences();
    let least = |symbol: &SymbolId| known.least(*symbol).unwrap_or(-3);
    let mut all = Vec::new();
    if symbols.len() <= 3 {
        let side = VALUES_PER_SIZE as usize;
        for number in 0..side.pow(symbols.len() as u32) {
            let digit = |at: usize| (number / side.pow(at as u32) % side) as i64;
            all.push(
                symbols.iter().enumerate().map(|(at, symbol)| (*symbol, least(symbol) + digit(at))).collect(),
            );
        }
    } else {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..2000 {
            let mut draw = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 33) % VALUES_PER_SIZE as u64) as i64
            };
            all.push(
                symbols.iter().map(|symbol| (*symbol, least(symbol) + draw())).collect::<BTreeMap<_, _>>(),
            );
        }
    }
    all.iter_mut().for_each(|sizes| satisfy_preconditions(unchecked, sizes));
    all.retain(|sizes| !violates_precondition(unchecked, sizes));
    let weight = |sizes: &BTreeMap<SymbolId, i64>| {
        let distances = || sizes.values().map(|value| value.abs());
        (distances().max(), distances().sum::<i64>())
    };
    all.sort_by_key(|sizes| (weight(sizes), sizes.clone()));
    all.dedup();
    all
}

/// Adds the symbols that preconditions relate to the given ones, so that the search tries only
/// sizes at which the preconditions hold.
fn add_related_symbols(unchecked: &UncheckedProgram, symbols: &mut BTreeSet<SymbolId>) {
    loop {
        let before = symbols.len();
        for precondition in &unchecked.preconditions {
            let mut own = BTreeSet::new();
            add_symbols(&precondition.left, &mut own);
            add_symbols(&precondition.right, &mut own);
            if !own.is_disjoint(symbols) {
                symbols.extend(own);
            }
        }
        if symbols.len() == before {
            return;
        }
    }
}

/// Changes sizes so that preconditions hold, as far as that is easy. Two rounds settle a chain such
/// as `M == 2*N, K == 2*M` in any order.
fn satisfy_preconditions(unchecked: &UncheckedProgram, sizes: &mut BTreeMap<SymbolId, i64>) {
    for _ in 0..2 {
        repair(&unchecked.preconditions, sizes, |side, sizes| {
            Witness { sizes: sizes.clone(), vars: BTreeMap::new() }.eval(side)
        });
    }
}

fn violates_precondition(unchecked: &UncheckedProgram, sizes: &BTreeMap<SymbolId, i64>) -> bool {
    let witness = Witness { sizes: sizes.clone(), vars: BTreeMap::new() };
    let is_too_small = |(symbol, value): (&SymbolId, &i64)| {
        unchecked.symbols[symbol.index()].least.is_some_and(|least| *value < least)
    };
    sizes.iter().any(is_too_small)
        || unchecked.preconditions.iter().any(|precondition| {
            let sides = (witness.eval(&precondition.left), witness.eval(&precondition.right));
            // A side without a value mentions symbols that the search does not vary.
            matches!(sides, (Some(left), Some(right)) if !precondition.holds_for(left, right))
        })
}
