//! Emits subscripts as exact integer arithmetic on loop variables. [`super::condition`] compares
//! them.
//!
//! Uniform subscripts are computed in 64 bits. Subscripts that differ between lanes are computed in
//! 32 bits where the ranges of the loop variables rule out overflow, since a vector then holds
//! twice as many.
//!
//! The terms of a sum are added outermost loop first, so that LLVM can hoist loop-invariant partial
//! sums out of a loop.

use inkwell::types::IntType;
use inkwell::values::InstructionOpcode;
use tilewright_ir::DType;
use tilewright_ir::ids::InNest;
use tilewright_ir::index::greatest_common_divisor;
use tilewright_ir::interval::{Interval, Intervals, interval, interval_of_atom, interval_of_value};
use tilewright_ir::nest::{Atom, Data, IndexExpr, LoopVarId, Term};

use super::function::{Binding, Emit, Emitter};
use super::ops::{Value, integer};
use crate::CodegenError;

impl<'ctx> Emitter<'ctx, '_> {
    /// Substitutes constants for the variables of unrolled loops, and moves the lane out of
    /// divisions.
    pub(super) fn resolve(&self, index: &IndexExpr) -> IndexExpr {
        let number = |atom: &Atom| match atom {
            Atom::Var(var) => match self.frame.vars.get(var) {
                Some(Binding::Constant(value)) => Some(*value),
                _ => None,
            },
            _ => None,
        };
        let mut resolved = index.clone();
        if resolved.any_atom(&mut |atom| number(atom).is_some()) {
            resolved = resolved.substitute(&mut |atom| number(atom).map(IndexExpr::constant));
        }
        match self.frame.lanes {
            Some(lanes) if has_var_in_dividend(&resolved, lanes.var) => {
                resolved.substitute(&mut |atom| lane_out_of_division(atom, lanes.var, lanes.count))
            }
            _ => resolved,
        }
    }

    /// Emits a subscript as a 64-bit integer or a vector of integers.
    pub(super) fn index(&mut self, index: &IndexExpr) -> Emit<Value<'ctx>> {
        let index = self.resolve(index);
        let differs = self.frame.lanes.is_some_and(|lanes| index.mentions(lanes.var));
        let narrow = differs && self.is_narrow(&index);
        let width = if narrow { self.ops.int_type(32) } else { self.ops.i64() };
        self.index_in_width(&index, width)
    }

    /// Emits a resolved expression in integers of one width.
    pub(super) fn index_in_width(&mut self, index: &IndexExpr, width: IntType<'ctx>) -> Emit<Value<'ctx>> {
        let mut sum: Option<Value<'ctx>> = None;
        let mut terms: Vec<&Term> = index.terms().iter().collect();
        terms.sort_by_key(|term| self.term_depth(term));
        for term in terms {
            let term = self.term(term, width)?;
            sum = Some(sum.map_or(term, |sum| self.ops.add(sum, term)));
        }
        let constant: Value<'ctx> = integer(width, index.constant_part()).into();
        Ok(match sum {
            None => constant,
            Some(sum) if index.constant_part() == 0 => sum,
            Some(sum) => self.ops.add(sum, constant),
        })
    }

    pub(super) fn term(&mut self, term: &Term, width: IntType<'ctx>) -> Emit<Value<'ctx>> {
        let mut product: Option<Value<'ctx>> = None;
        for factor in &term.factors {
            let factor = self.atom(factor, width)?;
            product = Some(product.map_or(factor, |product| self.ops.mul(product, factor)));
        }
        let product = product.expect("a term has factors");
        if term.coefficient == 1 {
            return Ok(product);
        }
        Ok(self.ops.mul(product, integer(width, term.coefficient).into()))
    }

    fn atom(&mut self, atom: &Atom, width: IntType<'ctx>) -> Emit<Value<'ctx>> {
        match atom {
            Atom::Var(var) => self.variable(*var, width),
            Atom::FloorDiv(pair) => self.division(pair, width, true),
            Atom::Mod(pair) => self.division(pair, width, false),
            Atom::Min(pair) => self.min_max(pair, width, "llvm.smin"),
            Atom::Max(pair) => self.min_max(pair, width, "llvm.smax"),
            Atom::Data(data) => self.data(data, width),
            Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => {
                Err(CodegenError::Unsupported("a subscript with a symbolic size or an overflow".into()))
            }
        }
    }

    fn variable(&mut self, var: LoopVarId, width: IntType<'ctx>) -> Emit<Value<'ctx>> {
        match self.frame.vars.get(&var) {
            Some(Binding::Constant(value)) => Ok(integer(width, *value).into()),
            Some(Binding::Loop { value, .. }) => Ok(self.ops.resize((*value).into(), width, true)),
            Some(Binding::Lane) => {
                let lanes = self.frame.lanes.expect("a lane belongs to a vector loop").count;
                Ok(self.ops.iota(width, lanes, 1))
            }
            None => Err(CodegenError::Unsupported(format!(
                "a use of variable `{}` outside its loop",
                self.nest.var_name(var)
            ))),
        }
    }

    fn min_max(
        &mut self,
        (left, right): &(IndexExpr, IndexExpr),
        width: IntType<'ctx>,
        name: &str,
    ) -> Emit<Value<'ctx>> {
        let (left, right) = (self.index_in_width(left, width)?, self.index_in_width(right, width)?);
        let (left, right) = self.ops.matched(left, right);
        Ok(self.ops.elementwise(name, &[left, right]))
    }

    /// Emits a quotient or remainder, rounded toward minus infinity.
    fn division(
        &mut self,
        (value, divisor): &(IndexExpr, IndexExpr),
        width: IntType<'ctx>,
        quotient: bool,
    ) -> Emit<Value<'ctx>> {
        let nonnegative = self.range(value).is_some_and(|value| value.low >= 0);
        let positive = self.range(divisor).is_some_and(|by| by.low >= 1);
        let dividend = self.index_in_width(value, width)?;
        let divisor = self.index_in_width(divisor, width)?;
        if nonnegative && positive {
            let op = if quotient { InstructionOpcode::UDiv } else { InstructionOpcode::URem };
            return Ok(self.ops.binary(op, dividend, divisor));
        }
        Ok(self.floor_division(dividend, divisor, true, quotient))
    }

    /// Emits an index from data. A value that does not fit becomes the largest index.
    fn data(&mut self, data: &Data, width: IntType<'ctx>) -> Emit<Value<'ctx>> {
        let dtype = data.value.dtype;
        let mut value = self.expr(&data.value)?;
        if dtype == DType::UInt64 {
            value = self.ops.elementwise("llvm.umin", &[value, self.ops.int(i64::MAX).into()]);
        }
        Ok(self.ops.resize(value, width, dtype.is_signed_integer()))
    }

    /// The depth of the innermost loop that a term depends on. Terms that differ between lanes are
    /// deepest.
    pub(super) fn term_depth(&self, term: &Term) -> usize {
        term.factors.iter().map(|factor| self.atom_depth(factor)).max().unwrap_or(0)
    }

    fn atom_depth(&self, atom: &Atom) -> usize {
        let mut depth = 0;
        IndexExpr::atom(atom.clone()).visit_atoms(&mut |atom| {
            depth = depth.max(match atom {
                Atom::Var(var) => match self.frame.vars.get(var) {
                    Some(Binding::Loop { depth, .. }) => *depth,
                    Some(Binding::Lane) => usize::MAX,
                    _ => 0,
                },
                Atom::Data(_) => self.frame.loops.len(),
                _ => 0,
            });
        });
        depth
    }

    // Ranges.

    /// The interval of an expression over all iterations of the enclosing loops.
    pub(super) fn range(&self, index: &IndexExpr) -> Option<Interval> {
        interval(index, self)
    }

    /// Whether a resolved expression can be computed in 32 bits without intermediate overflow.
    pub(super) fn is_narrow(&self, index: &IndexExpr) -> bool {
        let fits = |range: &Interval| range.is_within(i32::MAX.into());
        let mut sum = Interval::point(index.constant_part());
        // Terms are added in any order, so a partial sum may leave out every other term.
        (sum.low, sum.high) = (sum.low.min(0), sum.high.max(0));
        for term in index.terms() {
            let product = term.factors.iter().try_fold(Interval::point(1), |product, factor| {
                let range = interval_of_atom(factor, self).filter(|_| self.is_atom_narrow(factor))?;
                product.times(range).filter(fits)
            });
            let product = product.and_then(|product| product.times(Interval::point(term.coefficient)));
            let Some(product) = product.filter(fits) else { return false };
            sum.low += product.low.min(0);
            sum.high += product.high.max(0);
        }
        fits(&sum)
    }

    fn is_atom_narrow(&self, atom: &Atom) -> bool {
        match atom {
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                self.is_narrow(&pair.0) && self.is_narrow(&pair.1)
            }
            _ => true,
        }
    }
}

impl Intervals<InNest> for Emitter<'_, '_> {
    fn var(&self, var: LoopVarId) -> Option<Interval> {
        match self.frame.vars.get(&var)? {
            Binding::Constant(value) => Some(Interval::point(*value)),
            Binding::Loop { last, .. } => Some(Interval { low: 0, high: *last }),
            Binding::Lane => Some(Interval { low: 0, high: self.frame.lanes?.count as i128 - 1 }),
        }
    }

    fn data(&self, data: &Data) -> Option<Interval> {
        interval_of_value(&data.value, self)
    }
}

/// Whether the variable occurs in the dividend of a quotient or remainder.
fn has_var_in_dividend(index: &IndexExpr, var: LoopVarId) -> bool {
    index.any_atom(&mut |atom| matches!(atom, Atom::FloorDiv(pair) | Atom::Mod(pair) if pair.0.mentions(var)))
}

/// Moves the lane out of a quotient or remainder. For a lane below 16, `(16*f + lane) / 64` is
/// `16*f / 64`, and `(16*f + lane) % 64` is `16*f % 64 + lane`. The rest of the dividend is a
/// multiple of 16, so the lanes of a vector never straddle a multiple of 64.
fn lane_out_of_division(atom: &Atom, lane: LoopVarId, lanes: u32) -> Option<IndexExpr> {
    let (Atom::FloorDiv(pair) | Atom::Mod(pair)) = atom else { return None };
    let by = pair.1.as_constant().filter(|by| *by > 0)?;
    let (step, rest) = pair.0.split_on(&Atom::Var(lane))?;
    if step.as_constant() != Some(1) || rest.mentions(lane) {
        return None;
    }
    let grain = rest.terms().iter().fold(by, |grain, term| greatest_common_divisor(grain, term.coefficient));
    let start = rest.constant_part().rem_euclid(grain);
    if start + lanes as i64 > grain {
        return None;
    }
    Some(match atom {
        Atom::FloorDiv(_) => rest.floor_div(&pair.1),
        _ => rest.modulo(&pair.1).add(&IndexExpr::var(lane)),
    })
}
