//! Writes subscripts, extents and conditions ([`IndexExpr`]) as exact integer expressions of C, in
//! a type that holds every intermediate result.
//!
//! An index expression is computed in 32 bits where its interval (`range`) shows that no
//! intermediate result overflows, and in 64 bits elsewhere. Data in subscripts may have any integer
//! type: it is never truncated to the index type before it is checked. Sums of 64-bit data may
//! overflow even 64 bits. They wrap then, as on a processor, and are computed in unsigned integers,
//! since a compiler may assume that signed sums do not overflow.

use tilewright_ir::nest::{Atom, Data, IndexExpr, LoopVarId, Term};
use tilewright_ir::{BinaryOp, DType};

use super::c_expr::CExpr;
use super::dialect::Dialect;
use super::prelude::Helper;
use super::range::{MAX_INT32, MAX_INT64};
use super::stmt::{Emit, Emitter};
use crate::CodegenError;

/// The integer types of index computations. Each type holds the values of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    /// 32 bits hold every intermediate result.
    Narrow,
    /// 64 bits hold every intermediate result.
    Wide,
    /// An intermediate result may overflow 64 bits, and wraps.
    Wrapping,
}

impl Width {
    /// The type of the result.
    pub(super) fn dtype(self) -> DType {
        match self {
            Width::Narrow => DType::Int32,
            Width::Wide | Width::Wrapping => DType::Int64,
        }
    }

    /// The type of intermediate sums and products.
    fn intermediate_dtype(self) -> DType {
        if self == Width::Wrapping { DType::UInt64 } else { self.dtype() }
    }
}

impl Emitter<'_> {
    /// Writes an index expression in a type that holds it.
    pub(super) fn index(&mut self, index: &IndexExpr) -> Emit<CExpr> {
        self.index_in(index, self.width(index))
    }

    /// Writes an index expression in integers of the given width, which must hold it.
    pub(super) fn index_in(&mut self, index: &IndexExpr, width: Width) -> Emit<CExpr> {
        let mut sum: Option<CExpr> = None;
        for term in index.terms() {
            let (is_added, term) = self.term(term, width)?;
            sum = Some(match (sum, is_added) {
                (None, true) => term,
                (None, false) => term.negated(),
                (Some(sum), true) => CExpr::binary(BinaryOp::Add, &sum, &term),
                (Some(sum), false) => CExpr::binary(BinaryOp::Sub, &sum, &term),
            });
        }
        let constant = index.constant_part();
        let size = || self.number(constant.saturating_abs());
        let sum = match (sum, constant) {
            (None, _) => return Ok(self.number(constant)),
            (Some(sum), 0) => sum,
            (Some(sum), i64::MIN) => CExpr::binary(BinaryOp::Add, &sum, &self.number(constant)),
            (Some(sum), 1..) => CExpr::binary(BinaryOp::Add, &sum, &size()),
            (Some(sum), _) => CExpr::binary(BinaryOp::Sub, &sum, &size()),
        };
        Ok(match width {
            Width::Wrapping => sum.cast(self.type_name(DType::Int64)),
            Width::Narrow | Width::Wide => sum,
        })
    }

    /// Writes a term without its sign, and returns whether the term is added.
    fn term(&mut self, term: &Term, width: Width) -> Emit<(bool, CExpr)> {
        let least = term.coefficient == i64::MIN;
        let size = if least { i64::MIN } else { term.coefficient.abs() };
        let mut product = (size != 1).then(|| self.number(size));
        for factor in &term.factors {
            let factor = self.atom(factor, width)?;
            product = Some(match product {
                None => factor,
                Some(product) => CExpr::binary(BinaryOp::Mul, &product, &factor),
            });
        }
        Ok((term.coefficient >= 0 || least, product.unwrap_or_else(|| self.number(1))))
    }

    /// Writes an atom in the type of the sum around it.
    fn atom(&mut self, atom: &Atom, width: Width) -> Emit<CExpr> {
        let (value, dtype) = match atom {
            Atom::Var(var) => (self.variable(*var), self.var_dtype(*var)),
            Atom::FloorDiv(pair) => self.division(pair, BinaryOp::Div, Helper::FloorDiv)?,
            Atom::Mod(pair) => self.division(pair, BinaryOp::Mod, Helper::FloorMod)?,
            Atom::Min(pair) => self.min_max(pair, Helper::Min, Helper::PairwiseMin)?,
            Atom::Max(pair) => self.min_max(pair, Helper::Max, Helper::PairwiseMax)?,
            Atom::Data(data) => self.data(data)?,
            Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => {
                return Err(CodegenError::Unsupported(
                    "a subscript with a symbolic size or an overflow".into(),
                ));
            }
        };
        let wanted = width.intermediate_dtype();
        Ok(if dtype == wanted { value } else { value.cast(self.type_name(wanted)) })
    }

    /// Writes the variable of a loop. Variables of loops that the host runs are arguments of the
    /// kernel.
    fn variable(&mut self, var: LoopVarId) -> CExpr {
        if self.unit.host_vars.contains(&var) {
            self.add_argument(super::Argument::Variable(var));
        }
        CExpr::atom(self.unit.names.var(var))
    }

    fn division(
        &mut self,
        pair: &(IndexExpr, IndexExpr),
        op: BinaryOp,
        rounded: Helper,
    ) -> Emit<(CExpr, DType)> {
        let width = self.width(&pair.0).max(self.width(&pair.1));
        let dtype = width.dtype();
        let (left, right) = (self.index_in(&pair.0, width)?, self.index_in(&pair.1, width)?);
        let plain = self.ranges.interval(&pair.0).low >= 0 && self.ranges.interval(&pair.1).low >= 1;
        Ok(match plain {
            true => (CExpr::binary(op, &left, &right), dtype),
            false => (CExpr::call(&self.require_helper(rounded, dtype), &[left, right]), dtype),
        })
    }

    /// Writes a minimum or maximum. Operands that may be negated need the `pairwise` function in
    /// CUDA; the assembler handles the others correctly, with fewer instructions.
    fn min_max(
        &mut self,
        pair: &(IndexExpr, IndexExpr),
        plain: Helper,
        pairwise: Helper,
    ) -> Emit<(CExpr, DType)> {
        let width = self.width(&pair.0).max(self.width(&pair.1));
        let dtype = width.dtype();
        let arguments = [self.index_in(&pair.0, width)?, self.index_in(&pair.1, width)?];
        let negates = [&pair.0, &pair.1].iter().any(|operand| may_be_negated(operand));
        let needs_pairwise = negates && self.unit.dialect == Dialect::Cuda && dtype == DType::Int32;
        let helper = if needs_pairwise { pairwise } else { plain };
        Ok((CExpr::call(&self.require_helper(helper, dtype), &arguments), dtype))
    }

    /// Writes an integer from data, in a type that holds it. A value that does not fit 64 bits
    /// becomes the largest index.
    fn data(&mut self, data: &Data) -> Emit<(CExpr, DType)> {
        let value = self.value(&data.value)?;
        Ok(match data.value.dtype {
            DType::UInt64 => (
                CExpr::call(&self.require_helper(Helper::SaturatedIndex, DType::UInt64), &[value]),
                DType::Int64,
            ),
            dtype => (value, dtype),
        })
    }

    /// Writes the condition that an index expression is at least 0.
    pub(super) fn condition(&mut self, condition: &IndexExpr) -> Emit<CExpr> {
        let (left, right) = match self.width(condition) {
            // The two sides of a comparison may fit 64 bits even if their difference does not.
            Width::Wrapping => split_comparison(condition),
            Width::Narrow | Width::Wide => (condition.clone(), IndexExpr::constant(0)),
        };
        Ok(CExpr::binary(BinaryOp::GreaterEqual, &self.index(&left)?, &self.index(&right)?))
    }

    pub(super) fn conditions<'c>(
        &mut self,
        conditions: impl IntoIterator<Item = &'c IndexExpr>,
    ) -> Emit<Vec<CExpr>> {
        conditions.into_iter().map(|condition| self.condition(condition)).collect()
    }

    pub(super) fn number(&self, value: i64) -> CExpr {
        let suffix = self.unit.dialect.long_suffix();
        match i32::try_from(value) {
            // C has no literal for the least number: a minus sign would stand before a number that
            // overflows.
            Ok(i32::MIN) => CExpr::atom(format!("({} - 1)", i32::MIN + 1)),
            Ok(value) => CExpr::literal(value.to_string()),
            Err(_) if value == i64::MIN => CExpr::atom(format!("({}{suffix} - 1)", value + 1)),
            Err(_) => CExpr::literal(format!("{value}{suffix}")),
        }
    }

    pub(super) fn type_name(&self, dtype: DType) -> &'static str {
        self.unit.dialect.value_type(dtype)
    }

    /// The width of an element's offset in a buffer.
    pub(super) fn offset_width(&self) -> Width {
        if self.unit.needs_wide_offsets { Width::Wide } else { Width::Narrow }
    }

    /// The width in which an expression is computed.
    pub(super) fn width(&self, index: &IndexExpr) -> Width {
        if !self.unit.needs_wide_offsets && self.ranges.fits(index, MAX_INT32) {
            Width::Narrow
        } else if self.ranges.fits(index, MAX_INT64) {
            Width::Wide
        } else {
            Width::Wrapping
        }
    }

    /// The type of a loop variable. The host passes its variables in 64 bits.
    pub(super) fn var_dtype(&self, var: LoopVarId) -> DType {
        let fits = self.ranges.fits(&IndexExpr::var(var), MAX_INT32);
        match fits && !self.unit.needs_wide_offsets && !self.unit.host_vars.contains(&var) {
            true => DType::Int32,
            false => DType::Int64,
        }
    }

    pub(super) fn var_type(&self, var: LoopVarId) -> &'static str {
        self.type_name(self.var_dtype(var))
    }
}

/// Returns true for an index with a negative term, or with data, which may be any expression.
fn may_be_negated(index: &IndexExpr) -> bool {
    index.has_data() || index.terms().iter().any(|term| term.coefficient < 0)
}

/// Splits `left - right >= 0` into the two sides of `left >= right`, each without negative terms.
fn split_comparison(condition: &IndexExpr) -> (IndexExpr, IndexExpr) {
    let (mut left, mut right) = (IndexExpr::constant(0), IndexExpr::constant(0));
    let constant = IndexExpr::constant(condition.constant_part());
    let terms = condition.terms().iter().map(|term| (term.coefficient, IndexExpr::from(term)));
    for (coefficient, part) in terms.chain([(condition.constant_part(), constant)]) {
        match coefficient >= 0 {
            true => left = left.add(&part),
            false => right = right.sub(&part),
        }
    }
    (left, right)
}
