//! Resolves the preconditions of a function: comparisons of sizes, integer scalars and numbers.
//!
//! The preconditions of the function that is checked become those of the program. At a call, those
//! of the called function are resolved with the extents and scalars of the caller in place of its
//! own; [`crate::check::preconditions`] proves them, or makes the caller require them.

use tilewright_ir::{BinaryOp, DType, IndexExpr, Precondition};

use super::{Resolver, Scope};
use crate::ast::{Expr, ExprKind, Function, Requirement};
use crate::check::model::{CallSite, ModelPrecondition};
use crate::check::{lower, types};
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

impl Resolver<'_> {
    /// Adds the preconditions of a function to the model. `call` is the position of the call, for a
    /// function that is called.
    pub(super) fn preconditions(&mut self, function: &Function, call: Option<Span>, scope: &Scope) {
        for Requirement { condition, statics } in &function.requires {
            let before = self.model.preconditions.len();
            self.precondition(condition, call, scope);
            for own in &mut self.model.preconditions.edit()[before..] {
                own.statics = statics.clone();
            }
        }
    }

    /// Adds a comparison, or each of several that `&&` combines.
    fn precondition(&mut self, condition: &Expr, call: Option<Span>, scope: &Scope) {
        let ExprKind::Binary(op, operands) = &condition.kind else {
            return self.refuse_condition(condition);
        };
        let [left, right] = operands.as_ref();
        if *op == BinaryOp::And {
            self.precondition(left, call, scope);
            return self.precondition(right, call, scope);
        }
        if !op.is_comparison() {
            return self.refuse_condition(condition);
        }
        let (left, right) = (self.side(left, call, scope), self.side(right, call, scope));
        if let (Some(left), Some(right)) = (left, right) {
            let span = condition.span;
            let text =
                Precondition { op: *op, left: left.clone(), right: right.clone(), origin: span.origin() }
                    .text(&self.model);
            let call = call.map(|span| CallSite { span, callee: scope.function.clone(), text });
            let known = |side: IndexExpr| self.model.with_extents(&side).unwrap_or(side);
            let (left, right) = (known(left), known(right));
            self.model.preconditions.edit().push(ModelPrecondition {
                op: *op,
                left,
                right,
                span,
                call,
                statics: Vec::new(),
            });
        }
    }

    fn refuse_condition(&mut self, condition: &Expr) {
        let is_chain = matches!(&condition.kind, ExprKind::Binary(BinaryOp::Or, _));
        let message = "a precondition must be a comparison, such as `C % G == 0`";
        let diagnostic = Diagnostic::error(Code::Precondition, condition.span, message);
        self.report(match is_chain {
            true => diagnostic.help("proofs need every precondition to hold: `||` is not allowed"),
            false => diagnostic.help("several comparisons have commas or `&&` between them"),
        });
    }

    /// One side of a comparison, as an index.
    fn side(&mut self, side: &Expr, call: Option<Span>, scope: &Scope) -> Option<IndexExpr> {
        let value = self.expression(side, &mut scope.sizes_only())?;
        let dtype = types::type_of(&value, &self.model).or_default();
        if let Some(dtype) = dtype.filter(|dtype| dtype.is_float() || *dtype == DType::Bool) {
            let message = format!("a precondition compares integers, and this is {dtype}");
            let diagnostic = Diagnostic::error(Code::Precondition, side.span, message);
            self.report(diagnostic.help("it may contain sizes, integer scalars and numbers"));
            return None;
        }
        let index = lower::index(&value, &mut self.model)?;
        // The variables of loops around a call are allowed, if the precondition can be proved.
        let allowed = !index.has_data() && (call.is_some() || index.vars().is_empty());
        if !allowed {
            let message = "a precondition may depend on sizes, integer scalars and numbers only";
            let diagnostic = Diagnostic::error(Code::Precondition, side.span, message);
            self.report(match call {
                Some(call) => diagnostic
                    .label("this depends on data")
                    .secondary_label(call, "an argument of this call is computed from data"),
                None => diagnostic.label("this depends on data"),
            });
            return None;
        }
        Some(index)
    }
}
