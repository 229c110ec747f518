//! Every access is inside of its buffer.
//!
//! An access on one side of a choice by indices counts only where that side is chosen. Which elements data choose cannot be
//! told: there, the program's own subscripts are what the nest's are compared with.

use tilewright_ir::{Access, Atom, BinaryOp, Expr, ExprKind, IndexExpr};
use tilewright_isl::Set;

use super::nest::{Nest, Site};
use super::{Step, refuted, undecided};

/// Refutes nests that touch memory outside of their buffers.
pub fn check(nest: &Nest) -> Step<()> {
    nest.sites.iter().try_for_each(|site| {
        let check = Check { nest, site };
        let whole = Reached { iterations: site.domain.clone(), certain: true };
        check.access(&site.store.target, &whole)?;
        check.expr(&site.store.value, &whole)
    })
}

/// The iterations that evaluate an expression.
struct Reached {
    iterations: Set,
    /// Whether all of them do, whatever the data.
    certain: bool,
}

struct Check<'a, 'n> {
    nest: &'a Nest<'n>,
    site: &'a Site<'n>,
}

impl Check<'_, '_> {
    fn expr(&self, expr: &Expr, at: &Reached) -> Step<()> {
        match &expr.kind {
            ExprKind::Load(access) => self.access(access, at),
            ExprKind::Index(index) => self.index(index, at),
            ExprKind::Select(parts) => {
                self.expr(&parts[0], at)?;
                self.expr(&parts[1], &self.narrowed(at, &parts[0], true))?;
                self.expr(&parts[2], &self.narrowed(at, &parts[0], false))
            }
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), sides) => {
                self.expr(&sides[0], at)?;
                self.expr(&sides[1], &self.narrowed(at, &sides[0], *op == BinaryOp::And))
            }
            _ => expr.operands().iter().try_for_each(|operand| self.expr(operand, at)),
        }
    }

    /// The iterations at which a condition holds, or does not.
    fn narrowed(&self, at: &Reached, condition: &Expr, holds: bool) -> Reached {
        match self.site.coordinates.condition(condition) {
            None => Reached { iterations: at.iterations.clone(), certain: false },
            Some(set) => {
                let iterations =
                    if holds { at.iterations.intersect(&set) } else { at.iterations.subtract(&set) };
                Reached { iterations, certain: at.certain }
            }
        }
    }

    fn index(&self, index: &IndexExpr, at: &Reached) -> Step<()> {
        let factors = index.terms().iter().flat_map(|term| &term.factors);
        factors.into_iter().try_for_each(|factor| match factor {
            Atom::Data(data) => self.expr(&data.value, at),
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                self.index(&pair.0, at)?;
                self.index(&pair.1, at)
            }
            Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => Ok(()),
        })
    }

    fn access(&self, access: &Access, at: &Reached) -> Step<()> {
        let buffer = self.nest.nest.buffer(access.tensor);
        for (index, extent) in access.indices.iter().zip(&buffer.shape) {
            self.index(index, at)?;
            let Some(value) = self.site.coordinates.affine(index) else { continue };
            let inside = value.nonnegative().intersect(&value.scale(-1).offset(extent - 1).nonnegative());
            let Some(found) = at.iterations.subtract(&inside).sample()? else { continue };
            if !at.certain {
                return undecided(format!("data decides whether an access leaves `{}`", buffer.name));
            }
            return refuted(format!(
                "{} touches `{}` outside of its extent {extent}",
                self.nest.describe(self.site, &found),
                buffer.name
            ));
        }
        Ok(())
    }
}
