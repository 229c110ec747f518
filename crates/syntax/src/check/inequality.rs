//! Solves an inequality between a subscript and a limit for one variable of the subscript.
//!
//! The solution holds for all values of the other variables in the subscript, whose ranges are
//! known. Only upper limits are useful, since ranges begin at 0. An inequality that cannot be
//! solved gives no limit, and the `bounds` pass checks the access later.

use tilewright_ir::interval::{is_nonnegative_by_least_values, lower_bound, upper_bound};
use tilewright_ir::prove::can_prove_nonnegative;
use tilewright_ir::{Atom, IndexExpr, VarId};

use super::model::Model;

/// The direction of an inequality.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    AtLeast,
    AtMost,
}

impl Direction {
    fn flip(self) -> Direction {
        match self {
            Direction::AtLeast => Direction::AtMost,
            Direction::AtMost => Direction::AtLeast,
        }
    }
}

/// The solution of an inequality for a variable.
pub(super) enum Solution {
    AtMost(IndexExpr),
    /// No upper limit: the solution is a lower limit, the inequality always holds, or it cannot be
    /// solved. The `bounds` pass checks the access later.
    NoUpperLimit,
}

/// Solves `index <= limit` or `index >= limit` for `var`, for all values of the other variables.
pub(super) fn solve(
    model: &Model,
    index: &IndexExpr,
    var: VarId,
    end: Direction,
    limit: &IndexExpr,
) -> Solution {
    if index.as_var() == Some(var) {
        return if end == Direction::AtMost {
            Solution::AtMost(limit.clone())
        } else {
            Solution::NoUpperLimit
        };
    }
    let mut holders = index
        .terms()
        .iter()
        .flat_map(|term| &term.factors)
        .filter(|factor| IndexExpr::atom((*factor).clone()).mentions(var));
    let (Some(holder), None) = (holders.next(), holders.next()) else { return Solution::NoUpperLimit };
    let Some((coefficient, rest)) = index.split_on(holder) else { return Solution::NoUpperLimit };
    let positive = is_nonnegative_by_least_values(&coefficient, model);
    let negative = is_nonnegative_by_least_values(&coefficient.scale(-1), model);
    if positive == negative || rest.mentions(var) || coefficient.mentions(var) {
        return Solution::NoUpperLimit;
    }
    let (coefficient, end) = if positive { (coefficient, end) } else { (coefficient.scale(-1), end.flip()) };
    // The goal is coefficient * holder + rest <= limit for every value of rest. A negative sign has
    // been moved out of the coefficient.
    let product_limit = match (end == Direction::AtMost) == positive {
        true => upper_bound(&rest, model).map(|rest| limit.sub(&rest)),
        false => lower_bound(&rest, model).map(|rest| limit.sub(&rest)),
    };
    let Some(product_limit) = product_limit else { return Solution::NoUpperLimit };
    let product_limit = if positive { product_limit } else { product_limit.scale(-1) };
    let atom_limit = match end {
        Direction::AtMost => product_limit.floor_div(&coefficient),
        Direction::AtLeast => product_limit.scale(-1).floor_div(&coefficient).scale(-1),
    };
    solve_atom(model, holder, var, end, &atom_limit)
}

fn solve_atom(model: &Model, atom: &Atom, var: VarId, end: Direction, limit: &IndexExpr) -> Solution {
    match atom {
        Atom::Var(_) => solve(model, &IndexExpr::var(var), var, end, limit),
        Atom::FloorDiv(pair) if is_nonnegative_by_least_values(&pair.1.offset(-1), model) => {
            let (value, by) = pair.as_ref();
            match end {
                Direction::AtMost => solve(model, value, var, end, &limit.mul(by).add(by).offset(-1)),
                Direction::AtLeast => solve(model, value, var, end, &limit.mul(by)),
            }
        }
        Atom::Min(pair) | Atom::Max(pair) => {
            let (holder, other) = if pair.0.mentions(var) { (&pair.0, &pair.1) } else { (&pair.1, &pair.0) };
            // A minimum satisfies an upper limit if either operand does.
            let either = matches!(atom, Atom::Min(_)) == (end == Direction::AtMost);
            let slack = if end == Direction::AtMost { limit.sub(other) } else { other.sub(limit) };
            if other.mentions(var) || (either && can_prove_nonnegative(&slack, &[], model)) {
                return Solution::NoUpperLimit;
            }
            solve(model, holder, var, end, limit)
        }
        _ => Solution::NoUpperLimit,
    }
}
