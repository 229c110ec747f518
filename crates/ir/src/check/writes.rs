//! Checks the left-hand sides of statements. Every variable is on the left or is reduced, every
//! element is written once, and no statement reads elements that it overwrites or resets.

use std::collections::{BTreeMap, HashMap};

use super::Checker;
use super::finding::Finding;
use super::regions::magnitude;
use super::witness::{SearchOutcome, Witness, search};
use crate::index::{Atom, IndexExpr, greatest_common_divisor};
use crate::interval::{Knowledge, lower_bound, upper_bound};
use crate::program::{Range, SymbolId, Update, VarId, VarKind};
use crate::prove::can_prove_nonnegative;
use crate::unchecked::{Parts, Read, Statement, is_injective_in, var_kind};

/// Checks the left-hand side of every statement against its right-hand side.
pub(super) fn check(checker: &mut Checker<'_>) {
    for at in 0..checker.unchecked.statements.len() {
        let Some(parts) = checker.parts(at) else { continue };
        let own = StatementCheck { checker, at, statement: &checker.unchecked.statements[at], parts };
        let problem = own
            .missing_reduction()
            .or_else(|| own.repeated_write())
            .or_else(|| own.reset_in_place())
            .or_else(|| own.in_place());
        if let Some(finding) = problem {
            checker.mark_suspect(checker.unchecked.statements[at].target);
            checker.report(finding);
        }
    }
}

/// A statement and its parts, during a check.
struct StatementCheck<'a> {
    checker: &'a Checker<'a>,
    at: usize,
    statement: &'a Statement,
    parts: &'a Parts,
}

impl StatementCheck<'_> {
    /// A variable that occurs only on the right-hand side of an assignment.
    fn missing_reduction(&self) -> Option<Finding> {
        if self.statement.update != Update::Assign {
            return None;
        }
        let on_left = |var: &VarId| self.parts.indices.iter().any(|index| index.mentions(*var));
        let missing = self.statement.vars.iter().copied().find(|var| !on_left(var))?;
        Some(Finding::MissingReduction { statement: self.at, var: missing })
    }

    fn repeated_write(&self) -> Option<Finding> {
        let statement = self.at;
        if self.statement.update != Update::Assign {
            return None;
        }
        if let Some(dimension) = self.parts.indices.iter().position(IndexExpr::has_data) {
            return Some(Finding::ComputedWrite { statement, dimension });
        }
        if self.is_injective() {
            return None;
        }
        match self.find_repeated_write() {
            (SearchOutcome::Found(second), Some((element, first))) => {
                Some(Finding::RepeatedWrite { statement, element, first, second })
            }
            (SearchOutcome::Proved, _) => None,
            _ => Some(Finding::MaybeRepeatedWrite { statement }),
        }
    }

    /// Searches for an element that two points of the same iteration of the surrounding loops
    /// write. Returns the element, and the first of the two points.
    fn find_repeated_write(&self) -> (SearchOutcome, Option<(Vec<i64>, Witness)>) {
        let mut seen: HashMap<Vec<i64>, BTreeMap<VarId, i64>> = HashMap::new();
        let mut iteration = None;
        let mut repeated = None;
        let indices = &self.parts.indices;
        let mentioned: Vec<&IndexExpr> = indices.iter().collect();
        let facts = self.checker.relevant_facts(self.statement, &mentioned);
        let vars = self.checker.unchecked.all_vars(self.statement);
        let outcome = search(self.checker.unchecked, &mentioned, &vars, &facts, &mut |witness| {
            let loops: Vec<Option<i64>> =
                self.statement.loops.iter().map(|var| witness.vars.get(var).copied()).collect();
            let this_iteration = Some((witness.sizes.clone(), loops));
            if iteration != this_iteration {
                seen.clear();
                iteration = this_iteration;
            }
            let element: Option<Vec<i64>> = indices.iter().map(|index| witness.eval(index)).collect();
            let Some(element) = element else { return false };
            let first = seen.insert(element.clone(), witness.vars.clone());
            repeated = first.map(|vars| (element, Witness { sizes: witness.sizes.clone(), vars }));
            repeated.is_some()
        });
        (outcome, repeated)
    }

    /// Returns true when different values of the statement's variables name different elements.
    fn is_injective(&self) -> bool {
        let indices = &self.parts.indices;
        let alone = |var: VarId| {
            indices.iter().any(|index| self.own_vars(index) == [var] && is_injective_in(index, var))
        };
        // An index that is injective in all its variables distinguishes the values of each of them.
        let is_determined = |var: VarId| {
            alone(var) || indices.iter().any(|index| index.mentions(var) && self.is_mixed_radix(index))
        };
        self.statement.vars.iter().all(|var| is_determined(*var))
    }

    /// The statement's own variables in an index.
    fn own_vars(&self, index: &IndexExpr) -> Vec<VarId> {
        index.vars().into_iter().filter(|var| self.statement.vars.contains(var)).collect()
    }

    /// Returns true for mixed-radix indices: `12*i + 3*j + k` with `j` in 0:4 and `k` in 0:3, or
    /// `M*i + j` with `j` in 0:M. In some order of the variables, each coefficient exceeds the
    /// largest sum of the terms before it.
    fn is_mixed_radix(&self, index: &IndexExpr) -> bool {
        let mut digits: Vec<(IndexExpr, IndexExpr)> = Vec::new();
        for var in self.own_vars(index) {
            let Some((coefficient, rest)) = index.split_on(&Atom::Var(var)) else { return false };
            let Some(range) = &self.checker.unchecked.var(var).range else { return false };
            if !self.own_vars(&coefficient).is_empty() || rest.mentions(var) {
                return false;
            }
            let Some(size) = magnitude(self.checker, coefficient) else { return false };
            digits.push((size, range.extent()));
        }
        digits.len() <= 5 && is_mixed_radix_in_some_order(self.checker, digits, &IndexExpr::constant(0))
    }

    /// A reduction that resets its target and reads the same tensor: the order of the reset and the
    /// reads is undefined. Accesses to elements that must only exist do not read them.
    fn reset_in_place(&self) -> Option<Finding> {
        let Update::Reduce { reset: true, .. } = self.statement.update else { return None };
        // A scatter resets the whole tensor; any other statement resets only the elements that it
        // names.
        let scatters = self.parts.indices.iter().any(IndexExpr::has_data);
        let kept = |read: &Read| !scatters && self.is_independent_of_writes(read);
        let own = |read: &Read| {
            !read.is_existence_only && read.access.tensor == self.statement.target && !kept(read)
        };
        let read = self.parts.reads.iter().position(own)?;
        let is_update = self.parts.reads[read].access.indices == self.parts.indices && !self.has_reduction();
        Some(Finding::ResetInPlace { statement: self.at, read, is_update })
    }

    /// Returns true when the statement reduces some variable.
    fn has_reduction(&self) -> bool {
        let kind = |var: &VarId| var_kind(self.statement, self.parts, *var);
        self.statement.vars.iter().any(|var| kind(var) == VarKind::Reduction)
    }

    /// An update that reads elements which the same statement overwrites.
    fn in_place(&self) -> Option<Finding> {
        let reductions = self.has_reduction();
        let is_own = |read: &Read| read.access.tensor == self.statement.target;
        for (place, read) in self.parts.reads.iter().enumerate().filter(|(_, read)| is_own(read)) {
            let is_same = read.access.indices == self.parts.indices;
            if is_same && !reductions || self.is_single_instance() || self.is_independent_of_writes(read) {
                continue;
            }
            return Some(Finding::InPlace { statement: self.at, read: place, is_same });
        }
        None
    }

    fn is_single_instance(&self) -> bool {
        self.statement.vars.iter().all(|var| {
            let range = self.checker.unchecked.var(*var).range.as_ref();
            range.is_some_and(|range| range.extent().as_constant() == Some(1))
        })
    }

    /// Returns true when no instance of the statement reads an element that another instance
    /// writes. This holds if the indices of some dimension are never equal, whatever the variables
    /// of the two instances are.
    fn is_independent_of_writes(&self, read: &Read) -> bool {
        let own = OwnRanges { checker: self.checker, vars: &self.statement.vars };
        self.parts.indices.iter().zip(&read.access.indices).any(|(write, read)| {
            // The bounds are over the statement's own variables; the variables of the surrounding
            // loops are equal for both.
            let bounds = (
                lower_bound(write, &own),
                upper_bound(write, &own),
                lower_bound(read, &own),
                upper_bound(read, &own),
            );
            let (Some(write_low), Some(write_high), Some(read_low), Some(read_high)) = bounds else {
                return false;
            };
            let facts = self.checker.relevant_facts(self.statement, &[write, read]);
            let below = |low: &IndexExpr, high: &IndexExpr| {
                can_prove_nonnegative(&high.sub(low).offset(-1), &facts, self.checker)
            };
            below(&write_high, &read_low)
                || below(&read_high, &write_low)
                || different_residues(write, read)
                || different_remainders(write, read, &self.statement.vars)
        })
    }
}

fn is_mixed_radix_in_some_order(
    checker: &Checker<'_>,
    digits: Vec<(IndexExpr, IndexExpr)>,
    reach: &IndexExpr,
) -> bool {
    digits.is_empty()
        || (0..digits.len()).any(|at| {
            let mut rest = digits.clone();
            let (size, extent) = rest.remove(at);
            can_prove_nonnegative(&size.offset(-1).sub(reach), &[], checker)
                && is_mixed_radix_in_some_order(checker, rest, &reach.add(&size.mul(&extent.offset(-1))))
        })
}

/// Returns true for indices such as `(t + 1) % 2` and `t % 2`, which are never equal in one
/// iteration of a loop over `t`. `own` lists the statement's variables, which may differ between
/// the writing and the reading instance.
fn different_remainders(write: &IndexExpr, read: &IndexExpr, own: &[VarId]) -> bool {
    let (Some((write, by)), Some((read, other))) = (remainder(write), remainder(read)) else { return false };
    if by != other {
        return false;
    }
    let shared = |expr: &IndexExpr| {
        let mut shared = IndexExpr::constant(expr.constant_part());
        for term in expr.terms() {
            let term_alone = IndexExpr::from(term);
            match term_alone.vars().iter().any(|var| own.contains(var)) || term_alone.has_data() {
                true if term.coefficient % by != 0 => return None,
                true => {}
                false => shared = shared.add(&term_alone),
            }
        }
        Some(shared)
    };
    let difference =
        shared(&write).zip(shared(&read)).and_then(|(write, read)| write.sub(&read).as_constant());
    difference.is_some_and(|difference| difference % by != 0)
}

/// The dividend and the divisor, if the index is exactly one remainder by a positive number.
fn remainder(index: &IndexExpr) -> Option<(IndexExpr, i64)> {
    match index.terms() {
        [term] if term.coefficient == 1 && index.constant_part() == 0 => match term.factors.as_slice() {
            [Atom::Mod(pair)] => Some((pair.0.clone(), pair.1.as_constant()?)).filter(|(_, by)| *by > 0),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true for indices such as `2*i` and `2*j + 1`, which are never equal.
fn different_residues(write: &IndexExpr, read: &IndexExpr) -> bool {
    let coefficients =
        |expr: &IndexExpr| expr.terms().iter().map(|term| term.coefficient).collect::<Vec<_>>();
    let divisor =
        coefficients(write).into_iter().chain(coefficients(read)).fold(0i64, greatest_common_divisor);
    divisor > 1 && (write.constant_part() - read.constant_part()) % divisor != 0
}

/// The ranges of a statement's own variables. The variables of the surrounding loops stay in the
/// bounds.
struct OwnRanges<'a> {
    checker: &'a Checker<'a>,
    vars: &'a [VarId],
}

impl Knowledge for OwnRanges<'_> {
    fn range(&self, var: VarId) -> Option<Range> {
        self.vars.contains(&var).then(|| self.checker.range(var)).flatten()
    }
    fn least(&self, symbol: SymbolId) -> Option<i64> {
        self.checker.least(symbol)
    }
    fn facts(&self) -> &[IndexExpr] {
        self.checker.facts()
    }
}
