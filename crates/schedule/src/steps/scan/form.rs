//! Recognises how the value of a recurrence depends on the value of the iteration before: by an
//! operator that combines any two values, or as `factor * before + term`.

use tilewright_ir::nest::{Expr, ExprKind};
use tilewright_ir::{BinaryOp, DType, Number, ReduceOp, UnaryOp};

/// The value of a recurrence, in terms of the value of the iteration before.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// `before op operand`, where the operands of a part can be combined in any order.
    Commutative {
        /// The operator.
        op: BinaryOp,
        operand: Expr,
    },
    /// `factor * before + term`.
    Affine { factor: Expr, term: Expr },
}

/// Recognises the form of a value. `is_before` tells whether an expression is the value of the
/// iteration before, and `depends` whether an expression contains it.
pub(super) fn form(
    value: &Expr,
    is_before: &dyn Fn(&Expr) -> bool,
    depends: &dyn Fn(&Expr) -> bool,
) -> Result<Form, String> {
    let reading = Reading { is_before, depends };
    if let ExprKind::Binary(op, _) = &value.kind
        && is_commutative(*op)
        && let Some(operand) = reading.operand_of(*op, value)
    {
        return Ok(Form::Commutative { op: *op, operand });
    }
    let Some(Linear { factor, term }) = reading.linear(value) else {
        return Err("its value is not `before op e`, with `+`, `*`, `min`, `max`, `&`, `|` or `^`, and not \
                    `a * before + b`, where `before` is the value of the iteration before, nor a choice \
                    between such products and sums; with floats, both sides must contain `before`"
            .to_string());
    };
    let dtype = value.dtype;
    Ok(match (factor, term) {
        (Factor::One, term) => {
            Form::Commutative { op: BinaryOp::Add, operand: term.unwrap_or_else(|| number(dtype, 0)) }
        }
        (Factor::Value(factor), None) => Form::Commutative { op: BinaryOp::Mul, operand: factor },
        (Factor::Value(factor), Some(term)) => Form::Affine { factor, term },
    })
}

/// The reduction that combines operands, if the language has it.
pub(super) fn reduction(op: BinaryOp) -> Option<ReduceOp> {
    [ReduceOp::Add, ReduceOp::Mul, ReduceOp::Min, ReduceOp::Max]
        .into_iter()
        .find(|reduce| reduce.operator() == op)
}

/// Operators other than `+`, which the linear form covers.
fn is_commutative(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Min | BinaryOp::Max | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor)
}

/// `factor * before + term`; a missing term is 0.
struct Linear {
    factor: Factor,
    term: Option<Expr>,
}

enum Factor {
    One,
    Value(Expr),
}

impl Factor {
    fn value(self, dtype: DType) -> Expr {
        match self {
            Factor::One => number(dtype, 1),
            Factor::Value(value) => value,
        }
    }
}

struct Reading<'r> {
    is_before: &'r dyn Fn(&Expr) -> bool,
    depends: &'r dyn Fn(&Expr) -> bool,
}

impl Reading<'_> {
    /// The operand `e` of `before op e`, where `op` may combine several operands.
    fn operand_of(&self, op: BinaryOp, value: &Expr) -> Option<Expr> {
        let ExprKind::Binary(own, sides) = &value.kind else { return None };
        let [left, right] = &**sides;
        let (with, other) = match ((self.depends)(left), (self.depends)(right)) {
            (true, false) => (left, right),
            (false, true) => (right, left),
            _ => return None,
        };
        if *own != op {
            return None;
        }
        if (self.is_before)(with) {
            return Some(other.clone());
        }
        Some(Expr::binary(op, self.operand_of(op, with)?, other.clone()))
    }

    /// The value as `factor * before + term`, if it depends on the value before.
    fn linear(&self, value: &Expr) -> Option<Linear> {
        if (self.is_before)(value) {
            return Some(Linear { factor: Factor::One, term: None });
        }
        match &value.kind {
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                let Linear { factor, term } = self.linear(inner)?;
                let factor = Factor::Value(negated(factor.value(value.dtype)));
                Some(Linear { factor, term: term.map(negated) })
            }
            ExprKind::Binary(op, sides) => self.linear_of_operands(*op, &sides[0], &sides[1]),
            ExprKind::Select(parts) => self.linear_of_choice(parts),
            _ => None,
        }
    }

    fn linear_of_operands(&self, op: BinaryOp, left: &Expr, right: &Expr) -> Option<Linear> {
        let dtype = left.dtype;
        match (op, (self.depends)(left), (self.depends)(right)) {
            (BinaryOp::Add, true, false) => Some(plus(self.linear(left)?, right.clone())),
            (BinaryOp::Add, false, true) => Some(plus(self.linear(right)?, left.clone())),
            (BinaryOp::Sub, true, false) => Some(plus(self.linear(left)?, negated(right.clone()))),
            (BinaryOp::Sub, false, true) => {
                let Linear { factor, term } = self.linear(right)?;
                let factor = Factor::Value(negated(factor.value(dtype)));
                Some(plus(Linear { factor, term: term.map(negated) }, left.clone()))
            }
            (BinaryOp::Add | BinaryOp::Sub, true, true) => {
                let (one, other) = (self.linear(left)?, self.linear(right)?);
                let factor = Expr::binary(op, one.factor.value(dtype), other.factor.value(dtype));
                let term = match (one.term, other.term) {
                    (Some(one), Some(other)) => Some(Expr::binary(op, one, other)),
                    (None, Some(other)) if op == BinaryOp::Sub => Some(negated(other)),
                    (one, other) => one.or(other),
                };
                Some(Linear { factor: Factor::Value(factor), term })
            }
            (BinaryOp::Mul, true, false) => Some(times(self.linear(left)?, right)),
            (BinaryOp::Mul, false, true) => Some(times(self.linear(right)?, left)),
            (BinaryOp::Div, true, false) if dtype.is_float() => {
                let Linear { factor, term } = self.linear(left)?;
                let divided = |value: Expr| Expr::binary(BinaryOp::Div, value, right.clone());
                let factor = Factor::Value(divided(factor.value(dtype)));
                Some(Linear { factor, term: term.map(divided) })
            }
            _ => None,
        }
    }

    /// A choice between two values, of which one may begin anew. A float that begins anew must not
    /// depend on the value before, and `0 * before` does where that is infinite.
    fn linear_of_choice(&self, [condition, then, otherwise]: &[Expr; 3]) -> Option<Linear> {
        let dtype = then.dtype;
        let side = |value: &Expr| match (self.depends)(value) {
            true => self.linear(value),
            false if dtype.is_float() => None,
            false => Some(Linear { factor: Factor::Value(number(dtype, 0)), term: Some(value.clone()) }),
        };
        if (self.depends)(condition) {
            return None;
        }
        let (then, otherwise) = (side(then)?, side(otherwise)?);
        let choice = |then: Expr, otherwise: Expr| Expr {
            dtype,
            kind: ExprKind::Select(Box::new([condition.clone(), then, otherwise])),
        };
        let term = match (then.term, otherwise.term) {
            (None, None) => None,
            (one, other) => {
                let zero = || number(dtype, 0);
                Some(choice(one.unwrap_or_else(zero), other.unwrap_or_else(zero)))
            }
        };
        let factor = match (then.factor, otherwise.factor) {
            (Factor::One, Factor::One) => Factor::One,
            (one, other) => Factor::Value(choice(one.value(dtype), other.value(dtype))),
        };
        Some(Linear { factor, term })
    }
}

fn plus(linear: Linear, more: Expr) -> Linear {
    let term = match linear.term {
        Some(term) => Expr::binary(BinaryOp::Add, term, more),
        None => more,
    };
    Linear { factor: linear.factor, term: Some(term) }
}

fn times(linear: Linear, by: &Expr) -> Linear {
    let scaled = |value: Expr| Expr::binary(BinaryOp::Mul, value, by.clone());
    let factor = match linear.factor {
        Factor::One => by.clone(),
        Factor::Value(factor) => scaled(factor),
    };
    Linear { factor: Factor::Value(factor), term: linear.term.map(scaled) }
}

fn negated(value: Expr) -> Expr {
    Expr { dtype: value.dtype, kind: ExprKind::Unary(UnaryOp::Neg, Box::new(value)) }
}

/// A whole number of a type.
pub(super) fn number(dtype: DType, value: i128) -> Expr {
    let number = if dtype.is_float() { Number::Float(value as f64) } else { Number::Int(value) };
    Expr::literal(dtype, number)
}
