//! Visits the accesses of a store: its target and its loads, each with the iterations that evaluate
//! it.
//!
//! If a condition on indices selects one side of an expression, an access on that side counts only
//! in the iterations that select it.

use tilewright_ir::BinaryOp;
use tilewright_ir::nest::{Access, Atom, Expr, ExprKind, IndexExpr};
use tilewright_isl::Set;

use super::ProofResult;
use super::nest::Site;

/// The iterations that evaluate an expression.
#[derive(Clone)]
pub struct Evaluations {
    /// The iterations.
    pub iterations: Set,
    /// Whether all of these iterations evaluate the expression for any data.
    pub is_certain: bool,
}

impl Evaluations {
    /// The iterations that evaluate at least one of two expressions.
    pub fn union(&self, other: &Evaluations) -> Evaluations {
        let iterations = self.iterations.union(&other.iterations);
        Evaluations { iterations, is_certain: self.is_certain && other.is_certain }
    }
}

/// Calls `visit` on the target and on every load, including loads in subscripts.
pub fn for_each_access(
    site: &Site,
    visit: &mut dyn FnMut(&Access, &Evaluations) -> ProofResult<()>,
) -> ProofResult<()> {
    let whole = Evaluations { iterations: site.domain.clone(), is_certain: true };
    let mut walk = Walk { site, visit };
    walk.access(&site.store.target, &whole)?;
    walk.expr(&site.store.value, &whole)
}

struct Walk<'a, 'n> {
    site: &'a Site<'n>,
    visit: &'a mut dyn FnMut(&Access, &Evaluations) -> ProofResult<()>,
}

impl Walk<'_, '_> {
    fn expr(&mut self, expr: &Expr, at: &Evaluations) -> ProofResult<()> {
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

    /// The iterations at which a condition holds, or does not hold if `holds` is false.
    fn narrowed(&self, at: &Evaluations, condition: &Expr, holds: bool) -> Evaluations {
        match (self.site.coordinates.condition(condition), holds) {
            (None, _) => Evaluations { iterations: at.iterations.clone(), is_certain: false },
            (Some(set), true) => Evaluations { iterations: at.iterations.intersect(&set), ..*at },
            (Some(set), false) => Evaluations { iterations: at.iterations.subtract(&set), ..*at },
        }
    }

    fn index(&mut self, index: &IndexExpr, at: &Evaluations) -> ProofResult<()> {
        let mut factors = index.terms().iter().flat_map(|term| &term.factors);
        factors.try_for_each(|factor| match factor {
            Atom::Data(data) => self.expr(&data.value, at),
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                self.index(&pair.0, at)?;
                self.index(&pair.1, at)
            }
            Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => Ok(()),
        })
    }

    fn access(&mut self, access: &Access, at: &Evaluations) -> ProofResult<()> {
        access.indices.iter().try_for_each(|index| self.index(index, at))?;
        (self.visit)(access, at)
    }
}
