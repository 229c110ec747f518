//! Parses reductions of several values, such as `(best(i), at(i)) min=! (cost(i, z), z)`.
//!
//! Such a reduction is notation for one reduction per value. A minimum of several values is that of
//! the first value; among the terms with that minimum, it is the minimum of the second value, and
//! so on. So the second reduction takes only the terms whose first value has reached the minimum:
//! `at(i) min=! cost(i, z) <= best(i) ? z : …`.

use super::{Parse, Parser};
use crate::ast::{AssignOp, Clause, Comprehension, Expr, ExprKind, Name, Stmt, StmtKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::TokenKind;
use crate::span::Span;
use tilewright_ir::{BinaryOp, ReduceOp};

/// `best(i)` on the left of a reduction of several values.
pub(super) struct Target {
    pub name: Name,
    /// The subscripts; `None` for a bare name.
    pub indices: Option<Vec<Expr>>,
    pub span: Span,
}

impl Parser<'_> {
    /// Parses one target of a call, or of a reduction of several values.
    pub(super) fn target(&mut self) -> Parse<Target> {
        let start = self.span();
        let name = self.tensor_name("a tensor")?;
        let indices = match *self.peek() == TokenKind::LeftParen {
            true => {
                self.advance();
                Some(self.list("a subscript", Self::expr)?)
            }
            false => None,
        };
        Ok(Target { name, indices, span: start.to(self.previous_span()) })
    }

    /// Parses the rest of a reduction of several values, and returns one reduction for each.
    pub(super) fn tuple_reduction(&mut self, targets: Vec<Target>, start: Span) -> Parse<Vec<Stmt>> {
        let op_span = self.span();
        let (op, reset) = match self.assign_op()? {
            AssignOp::Reduce { op, reset } => {
                self.refuse_open_order(op, reset, op_span)?;
                (op, reset)
            }
            AssignOp::Assign => {
                let message = "several values are reduced together, but not assigned";
                let help = "write one statement for each value, or a reduction such as `min=!`";
                return self.report(Diagnostic::error(Code::Syntax, op_span, message).help(help));
            }
        };
        let open = self.expect(&TokenKind::LeftParen, "`(` and one value for each target")?;
        let values = self.list("a value", Self::expr)?;
        if values.len() != targets.len() {
            let message = format!("{} targets, but {} values", targets.len(), values.len());
            let span = open.to(self.previous_span());
            return self.report(Diagnostic::error(Code::RankMismatch, span, message));
        }
        self.refuse_own_targets(&targets, &values)?;
        let clauses = self.where_clauses()?;
        let span = start.to(self.previous_span());
        let statement = |at: usize| {
            let inner = Comprehension {
                target: targets[at].name.clone(),
                indices: targets[at].indices.clone().unwrap_or_default(),
                op: AssignOp::Reduce { op, reset },
                op_span,
                value: among_the_first(op, &targets[..at], &values[..=at]),
                clauses: clauses.iter().cloned().chain(other_values(&values, at)).collect(),
            };
            Stmt { kind: StmtKind::Comprehension(inner), span }
        };
        Ok((0..targets.len()).map(statement).collect())
    }

    /// Refuses values that read what the statement changes: the values are computed one after the
    /// other.
    fn refuse_own_targets(&mut self, targets: &[Target], values: &[Expr]) -> Parse<()> {
        for target in targets {
            let name = &target.name.text;
            if let Some(read) = values.iter().find_map(|value| reads(value, name)) {
                let message = format!("this reads `{name}`, which the same statement changes");
                let diagnostic = Diagnostic::error(Code::InPlace, read.span, message);
                return self.report(diagnostic.help("copy it to another tensor first"));
            }
        }
        Ok(())
    }

    /// Refuses `min=` without `!`, which would need the order of the old values too.
    fn refuse_open_order(&mut self, op: ReduceOp, reset: bool, span: Span) -> Parse<()> {
        if reset || !is_ordered(op) {
            return Ok(());
        }
        let message = "a minimum or maximum of several values begins anew";
        self.report(
            Diagnostic::error(Code::Syntax, span, message)
                .help("write `min=!` or `max=!`, and combine the result with the old values afterwards"),
        )
    }
}

/// The first part of an expression that reads a tensor of this name.
fn reads<'e>(expr: &'e Expr, name: &str) -> Option<&'e Expr> {
    let own = match &expr.kind {
        ExprKind::Name(text) => text == name,
        ExprKind::Apply(own, _) | ExprKind::Element(own) => own.text == name,
        _ => false,
    };
    if own { Some(expr) } else { expr.operands().iter().find_map(|operand| reads(operand, name)) }
}

/// The other values as `exists` clauses: all values together determine the ranges.
fn other_values(values: &[Expr], at: usize) -> impl Iterator<Item = Clause> {
    let others = values.iter().enumerate().filter(move |(other, _)| *other != at);
    others.map(|(_, value)| Clause::Exists(value.clone()))
}

fn is_ordered(op: ReduceOp) -> bool {
    matches!(op, ReduceOp::Min | ReduceOp::Max)
}

/// The last of the values, in the terms in which each value before it has reached its minimum or
/// maximum; in other terms, the value that changes nothing.
fn among_the_first(op: ReduceOp, targets: &[Target], values: &[Expr]) -> Expr {
    let (value, before) = values.split_last().expect("each target has a value");
    if !is_ordered(op) || before.is_empty() {
        return value.clone();
    }
    let reached = if op == ReduceOp::Min { BinaryOp::LessEqual } else { BinaryOp::GreaterEqual };
    let conditions = targets.iter().zip(before).map(|(target, value)| {
        let best = match &target.indices {
            Some(indices) => ExprKind::Apply(target.name.clone(), indices.clone()),
            None if target.name.element.is_some() => ExprKind::Element(target.name.clone()),
            None => ExprKind::Name(target.name.text.clone()),
        };
        let best = Expr::new(best, target.span);
        // The tensor holds the best value as rounded to its type.
        let stored = ExprKind::CastLike(target.name.clone(), Box::new(value.clone()));
        let stored = Expr::new(stored, value.span);
        Expr::new(ExprKind::Binary(reached, Box::new([stored, best])), value.span)
    });
    let and = |left: Expr, right: Expr| {
        Expr::new(ExprKind::Binary(BinaryOp::And, Box::new([left, right])), value.span)
    };
    let all = conditions.reduce(and).expect("there is a value before this one");
    let neutral = Expr::new(ExprKind::Neutral(op), value.span);
    Expr::new(ExprKind::Ternary(Box::new([all, value.clone(), neutral])), value.span)
}
