//! Splits loops whose variable is decomposed by quotients and remainders into several loops.
//!
//! A GPU has one block index for many loops of the program, and the kernel decomposes it again:
//!
//! ```text
//! block.x b in 40                        block.x b₁ in 8
//!   O[b/5, b % 5] = …             →        block.x b₀ in 5
//!                                            O[b₁, b₀] = …
//! ```
//!
//! Both forms have the same iterations in the same order. isl answers questions without quotients
//! quickly, and questions with quotients slowly.
//!
//! A run is the set of stores that make one result. If a variable distinguishes runs, its digits do
//! so as well, provided that all stores of a computation have the same digits.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::ids::InNest;
use tilewright_ir::nest::{Atom, For, If, IndexExpr, LoopNest, LoopVar, LoopVarId, Stmt, Store, Term};
use tilewright_ir::walk;
use tilewright_isl::Context;

use crate::coordinates::Coordinates;

/// The nest, with a loop for each digit of the variables that it decomposes.
pub fn split_digit_loops<'n>(context: &Context, nest: Cow<'n, LoopNest>) -> Cow<'n, LoopNest> {
    let mut survey = Survey::default();
    for stmts in [&nest.setup, &nest.body] {
        walk::visit(stmts, &mut |stmt| survey.stmt(stmt));
    }
    let lanes = std::mem::take(&mut survey.lanes);
    survey.place_values.retain(|var, _| !lanes.contains(var));
    if survey.place_values.is_empty() {
        return nest;
    }
    let mut nest = nest.into_owned();
    let mut rewrite = Rewrite {
        by_digits: survey.runs_by_digits(),
        place_values: survey.place_values,
        values: BTreeMap::new(),
        digits: BTreeMap::new(),
        ranges: Coordinates::new(context),
        vars: std::mem::take(&mut nest.vars),
    };
    nest.setup = rewrite.stmts(nest.setup);
    nest.body = rewrite.stmts(nest.body);
    nest.vars = rewrite.vars;
    Cow::Owned(nest)
}

/// The divisors of each loop variable, and the facts that decide how runs are rewritten.
#[derive(Default)]
struct Survey {
    place_values: BTreeMap<LoopVarId, BTreeSet<i64>>,
    /// The lane variables of combined threads, which are not split.
    lanes: BTreeSet<LoopVarId>,
    /// The trip counts of the loops of each variable; `None` for one that is not constant.
    extents: BTreeMap<LoopVarId, BTreeSet<Option<i64>>>,
    /// The variables that distinguish the runs of each computation. The key is the computation and
    /// the position in the run; the set holds the variables of all stores, and `None` for other
    /// expressions.
    runs: BTreeMap<(usize, usize), BTreeSet<Option<LoopVarId>>>,
}

impl Survey {
    fn stmt(&mut self, stmt: &Stmt) {
        stmt.control_exprs().iter().for_each(|bound| self.index(bound));
        match stmt {
            Stmt::For(own) => {
                self.extents.entry(own.var).or_default().insert(own.extent.as_constant());
            }
            Stmt::Combine(own) => _ = self.lanes.insert(own.lane),
            _ => {}
        }
        if let Some(store) = stmt.store() {
            self.store(store);
        }
    }

    fn store(&mut self, store: &Store) {
        store.target.indices.iter().for_each(|index| self.index(index));
        store.value.visit_indices(&mut |index| self.index(index));
        let claim = store.claim.iter();
        claim
            .flat_map(|claim| claim.point.iter().flatten().chain(&claim.repetition))
            .for_each(|own| self.index(own));
        if let Some(claim) = &store.claim {
            for (at, value) in claim.repetition.iter().enumerate() {
                self.runs.entry((claim.computation, at)).or_default().insert(value.as_var());
            }
        }
    }

    /// The positions in runs of computations at which all stores have a variable with the same
    /// digits.
    fn runs_by_digits(&self) -> BTreeSet<(usize, usize)> {
        let digits = |var: &Option<LoopVarId>| {
            let extents = self.extents.get(&(*var)?)?;
            let extent = extents.iter().next().copied().flatten().filter(|_| extents.len() == 1)?;
            Some(place_values_and_counts(self.place_values.get(&(*var)?), extent))
        };
        let are_same = |vars: &&BTreeSet<Option<LoopVarId>>| {
            let all: BTreeSet<_> = vars.iter().map(digits).collect();
            all.len() == 1 && !all.contains(&None)
        };
        self.runs.iter().filter(|(_, vars)| are_same(vars)).map(|(at, _)| *at).collect()
    }

    fn index(&mut self, index: &IndexExpr) {
        index.visit_atoms(&mut |atom| {
            if let Atom::FloorDiv(pair) | Atom::Mod(pair) = atom
                && let Some((var, place)) = digit(&pair.0)
                && let Some(by) = pair.1.as_constant().filter(|by| *by > 1)
                && let Some(place) = place.checked_mul(by)
            {
                self.place_values.entry(var).or_default().insert(place);
            }
        });
    }
}

/// The place values of a variable's digits and the number of values of each digit, last digit
/// first.
fn place_values_and_counts(divisors: Option<&BTreeSet<i64>>, extent: i64) -> Vec<(i64, i64)> {
    let mut places = vec![1];
    for place in divisors.into_iter().flatten() {
        let before = places[places.len() - 1];
        if place % before == 0 && *place > before && *place < extent {
            places.push(*place);
        }
    }
    let count = |at: usize, place: i64| match places.get(at + 1) {
        Some(next) => next / place,
        None => (extent + place - 1) / place,
    };
    places.iter().enumerate().map(|(at, place)| (*place, count(at, *place))).collect()
}

/// The variable whose upper or lower digits an expression is, and the place value of the
/// expression's last digit.
fn digit(index: &IndexExpr) -> Option<(LoopVarId, i64)> {
    let ([term], 0) = (index.terms(), index.constant_part()) else { return None };
    match (term.factors.as_slice(), term.coefficient) {
        ([Atom::Var(var)], 1) => Some((*var, 1)),
        ([Atom::FloorDiv(pair)], 1) => {
            let (var, place) = digit(&pair.0)?;
            Some((var, place.checked_mul(pair.1.as_constant().filter(|by| *by > 0)?)?))
        }
        ([Atom::Mod(pair)], 1) => digit(&pair.0),
        _ => None,
    }
}

struct Rewrite {
    place_values: BTreeMap<LoopVarId, BTreeSet<i64>>,
    /// The positions in runs of computations that are rewritten to digits.
    by_digits: BTreeSet<(usize, usize)>,
    /// The values of the replaced variables, in terms of their digits.
    values: BTreeMap<LoopVarId, IndexExpr>,
    /// The digits of the replaced variables, largest first.
    digits: BTreeMap<LoopVarId, Vec<LoopVarId>>,
    ranges: Coordinates<InNest>,
    vars: Vec<LoopVar>,
}

impl Rewrite {
    fn stmts(&mut self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        stmts.into_iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&mut self, stmt: Stmt) -> Stmt {
        let mut stmt = match stmt {
            Stmt::For(own) => return self.for_loop(own),
            other => other,
        };
        stmt.control_exprs_mut().iter_mut().for_each(|bound| *bound = self.index(bound));
        if let Some(store) = stmt.store_mut() {
            self.store(store);
        }
        stmt.bodies_mut().for_each(|body| *body = self.stmts(std::mem::take(body)));
        stmt
    }

    fn for_loop(&mut self, mut own: For) -> Stmt {
        own.extent = self.index(&own.extent);
        let digits = own.extent.as_constant().map(|extent| self.digits(own.var, extent)).unwrap_or_default();
        if digits.len() < 2 {
            let most = self.ranges.range(&own.extent).and_then(|range| i64::try_from(range.high).ok());
            self.ranges.add(own.var, most.map(|most| (0, most - 1)));
            // The two sides of a condition may have loops with the same variable.
            self.values.remove(&own.var);
            self.digits.remove(&own.var);
            own.body = self.stmts(own.body);
            return Stmt::For(own);
        }
        let sum = digits.iter().fold(IndexExpr::constant(0), |sum, (var, place, _)| {
            sum.add(&IndexExpr::var(*var).scale(*place))
        });
        digits.iter().for_each(|(var, _, count)| self.ranges.add(*var, Some((0, count - 1))));
        let is_whole = own.extent.as_constant() == Some(digits[0].1 * digits[0].2);
        let last = own.extent.sub(&sum).offset(-1);
        self.values.insert(own.var, sum);
        self.digits.insert(own.var, digits.iter().map(|(var, _, _)| *var).collect());
        let mut body = self.stmts(std::mem::take(&mut own.body));
        if !is_whole {
            body = vec![Stmt::If(If { conditions: vec![last], then: body, otherwise: Vec::new() })];
        }
        let loops = digits.iter().rev().fold(body, |body, (var, _, count)| {
            vec![Stmt::For(For { var: *var, extent: IndexExpr::constant(*count), body, ..own.clone() })]
        });
        loops.into_iter().next().expect("there are two digits or more")
    }

    /// Makes new variables for the digits of a variable, largest first. Returns each digit with its
    /// place value and its number of values.
    fn digits(&mut self, var: LoopVarId, extent: i64) -> Vec<(LoopVarId, i64, i64)> {
        let digits = place_values_and_counts(self.place_values.get(&var), extent);
        let name = self.vars[var.index()].name.clone();
        let digits = digits.into_iter().map(|(place, count)| {
            self.vars.push(LoopVar { name: format!("{name}/{place}") });
            (LoopVarId(self.vars.len() as u32 - 1), place, count)
        });
        let mut digits: Vec<(LoopVarId, i64, i64)> = digits.collect();
        digits.reverse();
        digits
    }

    fn store(&self, store: &mut Store) {
        store.target.indices.iter_mut().for_each(|index| *index = self.index(index));
        store.value.map_indices(&mut |index| self.index(index));
        if let Some(claim) = &mut store.claim {
            claim.point.iter_mut().flatten().for_each(|value| *value = self.index(value));
            claim.repetition = self.run(claim.computation, &claim.repetition);
        }
    }

    fn run(&self, computation: usize, run: &[IndexExpr]) -> Vec<IndexExpr> {
        let mut values = Vec::new();
        for (at, value) in run.iter().enumerate() {
            let digits = value.as_var().and_then(|var| self.digits.get(&var));
            match digits.filter(|_| self.by_digits.contains(&(computation, at))) {
                Some(digits) => values.extend(digits.iter().map(|digit| IndexExpr::var(*digit))),
                None => values.push(self.index(value)),
            }
        }
        values
    }

    /// Rewrites an expression in terms of digits, with the same value.
    fn index(&self, index: &IndexExpr) -> IndexExpr {
        index.substitute(&mut |atom| match atom {
            Atom::Var(var) => self.values.get(var).cloned(),
            Atom::FloorDiv(pair) => self.divided(pair).map(|(quotient, _)| quotient),
            Atom::Mod(pair) => self.divided(pair).map(|(_, remainder)| remainder),
            _ => None,
        })
    }

    /// The quotient and the remainder, if the digits determine them: some terms are multiples of
    /// the divisor, and the sum of all other terms is less than the divisor.
    fn divided(&self, pair: &(IndexExpr, IndexExpr)) -> Option<(IndexExpr, IndexExpr)> {
        let by = pair.1.as_constant().filter(|by| *by > 0)?;
        let value = self.index(&pair.0);
        let (whole, rest): (Vec<_>, Vec<_>) =
            value.terms().iter().partition(|term| term.coefficient % by == 0);
        let sum = |terms: &[&Term], divided: i64| {
            terms.iter().fold(IndexExpr::constant(0), |sum, term| {
                let one = Term { coefficient: term.coefficient / divided, ..(*term).clone() };
                sum.add(&IndexExpr::from(&one))
            })
        };
        let constant = value.constant_part();
        let remainder = sum(&rest, 1).offset(constant.rem_euclid(by));
        let range = self.ranges.range(&remainder)?;
        let quotient = sum(&whole, by).offset(constant.div_euclid(by));
        (range.low >= 0 && range.high < by as i128).then_some((quotient, remainder))
    }
}
