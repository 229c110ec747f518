//! Subscripts and conditions: integers, and what is known of their ranges.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use tilewright_ir::index::{Atom, IndexExpr, Term};
use tilewright_ir::{DType, VarId};

use super::dialect;
use super::stmt::{Emit, Emitter};
use crate::CodegenError;

/// The least and greatest value.
pub(super) type Interval = (i128, i128);

impl Emitter<'_> {
    /// An index expression as text, fit to be an operand of `*`.
    pub(super) fn operand(&mut self, index: &IndexExpr) -> Emit<String> {
        let text = self.index(index)?;
        let single = index.terms().len() + usize::from(index.constant_part() != 0) <= 1
            && index.constant_part() >= 0
            && index.terms().iter().all(|term| term.coefficient == 1 && term.factors.len() == 1);
        Ok(if single { text } else { format!("({text})") })
    }

    /// An index expression as text, fit to be an operand of `+`.
    pub(super) fn index(&mut self, index: &IndexExpr) -> Emit<String> {
        let mut text = String::new();
        for term in index.terms() {
            let (sign, term) = self.term(term)?;
            match (text.is_empty(), sign) {
                (true, true) => text = term,
                (true, false) => text = format!("-{term}"),
                (false, true) => text = format!("{text} + {term}"),
                (false, false) => text = format!("{text} - {term}"),
            }
        }
        let constant = index.constant_part();
        Ok(match (text.is_empty(), constant) {
            (true, _) => self.number(constant),
            (false, 0) => text,
            (false, 1..) => format!("{text} + {}", self.number(constant)),
            (false, _) => format!("{text} - {}", self.number(constant.saturating_neg())),
        })
    }

    /// A term without its sign, and whether that is `+`.
    fn term(&mut self, term: &Term) -> Emit<(bool, String)> {
        let mut factors = Vec::new();
        let size = term.coefficient.saturating_abs();
        if size != 1 {
            factors.push(self.number(size));
        }
        for factor in &term.factors {
            factors.push(self.atom(factor)?);
        }
        Ok((term.coefficient >= 0, factors.join(" * ")))
    }

    fn atom(&mut self, atom: &Atom) -> Emit<String> {
        match atom {
            Atom::Var(var) => Ok(self.unit.names.var(*var).to_owned()),
            Atom::FloorDiv(pair) => self.division(pair, "/", "tw_floor_div"),
            Atom::Mod(pair) => self.division(pair, "%", "tw_floor_mod"),
            Atom::Min(pair) => self.extreme(pair, "<"),
            Atom::Max(pair) => self.extreme(pair, ">"),
            Atom::Data(data) => {
                let value = self.value(&data.value)?;
                Ok(format!("({})({value})", self.index_type()))
            }
            Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => {
                Err(CodegenError::Unsupported("a subscript that is not made of numbers and variables".into()))
            }
        }
    }

    fn division(&mut self, pair: &(IndexExpr, IndexExpr), symbol: &str, rounded: &str) -> Emit<String> {
        let at_least = |range: Option<Interval>, least: i128| range.is_some_and(|(low, _)| low >= least);
        let plain = at_least(self.range(&pair.0), 0) && at_least(self.range(&pair.1), 1);
        if plain {
            let (left, right) = (self.operand(&pair.0)?, self.operand(&pair.1)?);
            return Ok(format!("({left} {symbol} {right})"));
        }
        let name = self.needs(rounded, self.index_dtype());
        let (left, right) = (self.index(&pair.0)?, self.index(&pair.1)?);
        Ok(format!("{name}({left}, {right})"))
    }

    fn extreme(&mut self, pair: &(IndexExpr, IndexExpr), symbol: &str) -> Emit<String> {
        let (left, right) = (self.operand(&pair.0)?, self.operand(&pair.1)?);
        Ok(format!("({left} {symbol} {right} ? {left} : {right})"))
    }

    pub(super) fn number(&self, value: i64) -> String {
        match i32::try_from(value) {
            Ok(value) => value.to_string(),
            Err(_) => format!("{value}{}", dialect::long_suffix(self.unit.api)),
        }
    }

    pub(super) fn index_dtype(&self) -> DType {
        if self.unit.wide { DType::Int64 } else { DType::Int32 }
    }

    pub(super) fn index_type(&self) -> &'static str {
        dialect::value_type(self.unit.api, self.index_dtype())
    }

    /// The values that an expression can have, as far as the loops around say.
    pub(super) fn range(&self, index: &IndexExpr) -> Option<Interval> {
        range(index, &self.ranges)
    }
}

/// The values of an expression over ranges of its variables.
pub(super) fn range(index: &IndexExpr, vars: &BTreeMap<VarId, Interval>) -> Option<Interval> {
    let mut sum = (i128::from(index.constant_part()), i128::from(index.constant_part()));
    for term in index.terms() {
        let mut product = (i128::from(term.coefficient), i128::from(term.coefficient));
        for factor in &term.factors {
            product = times(product, atom_range(factor, vars)?)?;
        }
        sum = (sum.0.checked_add(product.0)?, sum.1.checked_add(product.1)?);
    }
    Some(sum)
}

fn atom_range(atom: &Atom, vars: &BTreeMap<VarId, Interval>) -> Option<Interval> {
    let both = |pair: &(IndexExpr, IndexExpr)| Some((range(&pair.0, vars)?, range(&pair.1, vars)?));
    match atom {
        Atom::Var(var) => vars.get(var).copied(),
        Atom::Min(pair) => {
            let (left, right) = both(pair)?;
            Some((left.0.min(right.0), left.1.min(right.1)))
        }
        Atom::Max(pair) => {
            let (left, right) = both(pair)?;
            Some((left.0.max(right.0), left.1.max(right.1)))
        }
        Atom::FloorDiv(pair) => {
            let (left, right) = both(pair)?;
            if right.0 < 1 {
                return None;
            }
            let ends = [left.0, left.1].map(|end| [end.div_euclid(right.0), end.div_euclid(right.1)]);
            let all = ends.concat();
            Some((*all.iter().min()?, *all.iter().max()?))
        }
        Atom::Mod(pair) => {
            let (left, right) = both(pair)?;
            let small = left.0 >= 0 && left.1 < right.0;
            (right.0 >= 1).then_some(if small { left } else { (0, right.1 - 1) })
        }
        Atom::Data(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => None,
    }
}

fn times(left: Interval, right: Interval) -> Option<Interval> {
    let products = [
        left.0.checked_mul(right.0)?,
        left.0.checked_mul(right.1)?,
        left.1.checked_mul(right.0)?,
        left.1.checked_mul(right.1)?,
    ];
    Some((*products.iter().min()?, *products.iter().max()?))
}

/// The variables of an expression, those inside of data included.
pub(super) fn all_vars(index: &IndexExpr) -> BTreeSet<VarId> {
    let mut found = BTreeSet::new();
    index.visit(&mut |atom| {
        if let Atom::Var(var) = atom {
            found.insert(*var);
        }
    });
    found
}
