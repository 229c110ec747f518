//! Resolves the names in statements, loops and `where` clauses, and adds the resolved statements
//! and loops to the model.
//!
//! A statement with a mistake is reported and left out. Its target, if a statement may define it,
//! is marked as poisoned, so that later checks do not report consequences of the mistake.

use std::collections::{HashMap, HashSet};

use tilewright_ir::{IndexExpr, TensorId, VarId};

use super::{
    MOST_DEPTH, MOST_NODES, MOST_STATEMENTS, Resolver, Scope, StatementScope, UnknownName, rank_text,
    subscript_count_text,
};
use crate::ast::{Clause, Comprehension, Expr, Function, Name, Stmt, StmtKind};
use crate::check::lower;
use crate::check::model::{self, LoopId, ResolvedStatement, Source, Statement};
use crate::check::reason::{Reason, ReasonKind};
use crate::check::value::{Value, ValueKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::parser::MOST_NESTING;
use crate::span::Span;

impl Resolver<'_> {
    pub(super) fn statements(&mut self, body: &[Stmt], scope: &mut Scope) {
        for statement in body {
            if self.has_too_many_statements() {
                if !self.model.is_incomplete {
                    let message = format!("more than {MOST_STATEMENTS} statements after calls are inlined");
                    self.report(Diagnostic::error(Code::TooComplex, statement.span, message));
                    self.model.is_incomplete = true;
                }
                return;
            }
            self.expansions = 0;
            match &statement.kind {
                StmtKind::Declare(_) => {}
                StmtKind::Comprehension(inner) => self.comprehension(inner, statement.span, scope),
                StmtKind::For { var, from, to, body } => self.for_loop(var, from, to, body, scope),
                StmtKind::Call { targets, callee, arguments, value } => {
                    self.call_or_definition(targets, callee, arguments, (statement.span, *value), scope);
                }
            }
        }
    }

    fn poison_targets(&mut self, body: &[Stmt], scope: &Scope) {
        for statement in body {
            match &statement.kind {
                StmtKind::Comprehension(inner) => self.poison(std::slice::from_ref(&inner.target), scope),
                StmtKind::Call { targets, .. } => self.poison(targets, scope),
                StmtKind::For { body, .. } => self.poison_targets(body, scope),
                StmtKind::Declare(_) => {}
            }
        }
    }

    pub(super) fn has_too_many_statements(&self) -> bool {
        self.model.statements.len() >= MOST_STATEMENTS
    }

    fn for_loop(&mut self, var: &Name, from: &Expr, to: &Expr, body: &[Stmt], scope: &mut Scope) {
        self.refuse_taken_name(var, "a loop variable", scope);
        let (from_value, to_value) = (self.size_bound(from, scope), self.size_bound(to, scope));
        let (Some(from_value), Some(to_value)) = (from_value, to_value) else {
            // The statements inside the loop cannot be checked without its range.
            self.poison_targets(body, scope);
            return;
        };
        let id = self.model.add_var(&var.text, var.span);
        let declared = &mut self.model.vars[id.index()];
        declared.range = Some(tilewright_ir::Range { from: from_value, to: to_value });
        declared.reasons.push(Reason { span: from.span.to(to.span), kind: ReasonKind::Loop });
        let loop_id = LoopId(self.model.loops.len());
        self.model.loops.push(model::Loop { var: id });
        scope.loops.push((var.text.clone(), loop_id));
        self.statements(body, scope);
        scope.loops.pop();
    }

    /// Resolves a bound of a range, which may contain sizes, integer scalars and extents.
    pub(super) fn size_bound(&mut self, expr: &Expr, scope: &Scope) -> Option<IndexExpr> {
        let mut names = scope.sizes_only();
        let value = self.expression(expr, &mut names)?;
        lower::bound(&value, &mut self.model)
    }

    fn refuse_taken_name(&mut self, name: &Name, what: &str, scope: &Scope) {
        let taken = if scope.sizes.contains_key(&name.text) {
            "a size"
        } else if scope.scalars.contains_key(&name.text) {
            "a scalar parameter"
        } else if scope.tensors.contains_key(&name.text) {
            "a tensor"
        } else if scope.views.contains_key(&name.text) {
            "a view"
        } else if scope.loops.iter().any(|(text, _)| *text == name.text) {
            "a loop variable"
        } else {
            return;
        };
        let message = format!("{what} cannot be called `{}`, which is {taken}", name.text);
        self.report(Diagnostic::error(Code::NameCollision, name.span, message).help("choose another name"));
    }

    /// The tensor on the left-hand side, if a statement may define it.
    pub(super) fn resolve_target(&mut self, target: &Name, scope: &Scope) -> Option<TensorId> {
        let function = self.module.function(&scope.function);
        let twice = |function: &Function| {
            let named = |name: &Name| name.text == target.text;
            function.results.iter().any(|result| named(&result.name))
                && function.params.iter().any(|param| named(&param.name))
        };
        if function.is_some_and(twice) {
            // The collision of parameter and result has been reported already.
            return None;
        }
        if scope.views.contains_key(&target.text) {
            let message = format!("`{}` is a view and cannot be assigned", target.text);
            self.report(
                Diagnostic::error(Code::InvalidTarget, target.span, message)
                    .help("assign to the tensor itself, or choose another name"),
            );
            return None;
        }
        let Some(id) = scope.tensors.get(&target.text).copied() else {
            let message = format!("`{}` is a scalar parameter and cannot be assigned", target.text);
            self.report(Diagnostic::error(Code::InvalidTarget, target.span, message));
            return None;
        };
        if matches!(self.model.tensor(id).source, Source::Param { .. }) {
            let input = self.model.tensor(id).span;
            let message = format!("`{}` is an input and cannot be assigned", target.text);
            self.report(
                Diagnostic::error(Code::InvalidTarget, target.span, message)
                    .secondary_label(input, "it is a parameter")
                    .help("define another tensor, or make it a result instead of a parameter to update it in place"),
            );
            return None;
        }
        Some(id)
    }

    pub(super) fn comprehension(&mut self, inner: &Comprehension, span: Span, scope: &Scope) {
        let Some(target) = self.resolve_target(&inner.target, scope) else { return };
        let before = self.model.diagnostics.len();
        let statement = self.resolve_comprehension(inner, span, target, scope);
        match statement {
            Some(statement) if self.model.diagnostics.len() == before => {
                self.model.statements.push(statement)
            }
            // The elements that the statement would have defined are not known, so consequences are
            // not reported.
            _ => self.model.tensors[target.index()].poisoned = true,
        }
    }

    fn resolve_comprehension(
        &mut self,
        inner: &Comprehension,
        span: Span,
        target: TensorId,
        scope: &Scope,
    ) -> Option<Statement> {
        let rank = self.model.tensor(target).rank;
        if let Some(rank) = rank.filter(|rank| *rank != inner.indices.len()) {
            let first = self.model.tensor(target).span;
            let message = format!(
                "`{}` has {}, but {}",
                inner.target.text,
                rank_text(rank),
                subscript_count_text(inner.indices.len())
            );
            self.report(
                Diagnostic::error(Code::RankMismatch, inner.target.span, message)
                    .secondary_label(first, "its rank comes from here"),
            );
            return None;
        }
        let mut names = StatementScope::new(scope, UnknownName::Variable);
        let declared = self.clauses(&inner.clauses, &mut names);
        let indices: Option<Vec<Value>> =
            inner.indices.iter().map(|index| self.expression(index, &mut names)).collect();
        let value = self.expression(&inner.value, &mut names);
        let exists: Option<Vec<Value>> = inner
            .clauses
            .iter()
            .filter_map(|clause| match clause {
                Clause::Exists(expr) => Some(self.expression(expr, &mut names)),
                _ => None,
            })
            .collect();
        let ranges = declared.and_then(|declared| self.declared_ranges(declared, &names));
        let (indices, value, exists) = (indices?, value?, exists?);
        let indices = self.model.tensor(target).in_memory_order(indices);
        // Inlined bindings and arguments add to the height of an expression.
        if indices.iter().chain([&value]).chain(&exists).any(|part| part.height() > MOST_DEPTH) {
            self.report(Diagnostic::error(
                Code::TooComplex,
                span,
                "this statement is nested too deeply with bindings and calls in place",
            ));
            return None;
        }
        Some(Statement {
            target,
            target_span: inner.target.span,
            op: inner.op,
            op_span: inner.op_span,
            span,
            call: self.call_stack.first().map(|(_, span)| *span),
            loops: scope.all_loops().collect(),
            vars: names.vars.iter().map(|(_, id)| *id).collect(),
            resolved: ResolvedStatement {
                indices,
                value,
                exists,
                ranges: ranges?,
                view_reads: names.view_reads,
            },
            lowered: None,
            view_reads: Vec::new(),
            has_ranges: false,
        })
    }

    /// Resolves the bounds of declared ranges, which may contain the variables of the statement.
    fn declared_ranges(
        &mut self,
        declared: Vec<(VarId, &Expr, &Expr)>,
        names: &StatementScope<'_>,
    ) -> Option<Vec<(VarId, Value, Value)>> {
        let mut bounds = StatementScope { vars: names.vars.clone(), ..names.scope.sizes_only() };
        let mut resolve = |bound| self.expression(bound, &mut bounds);
        let ranges: Vec<_> =
            declared.into_iter().map(|(id, from, to)| (id, resolve(from), resolve(to))).collect();
        ranges.into_iter().map(|(id, from, to)| Some((id, from?, to?))).collect()
    }

    /// Resolves the `where` clauses: adds the bound names to the scope, and returns the declared
    /// ranges.
    fn clauses<'c>(
        &mut self,
        clauses: &'c [Clause],
        names: &mut StatementScope<'_>,
    ) -> Option<Vec<(VarId, &'c Expr, &'c Expr)>> {
        let lets: HashSet<&str> = clauses
            .iter()
            .filter_map(|clause| match clause {
                Clause::Let { name, .. } => Some(name.text.as_str()),
                _ => None,
            })
            .collect();
        let mut ranges = Vec::new();
        let mut bounds: HashMap<&str, (Value, Value)> = HashMap::new();
        let mut seen: HashMap<&str, Span> = HashMap::new();
        let mut fine = true;
        for clause in clauses {
            let Clause::In { name, from, to } = clause else { continue };
            self.refuse_taken_name(name, "a variable", names.scope);
            if let Some(first) = seen.insert(&name.text, name.span) {
                self.report_collision(name, "given a range", Some(first));
                continue;
            }
            if !lets.contains(name.text.as_str()) {
                let id = self.model.add_var(&name.text, name.span);
                names.vars.push((name.text.clone(), id));
                ranges.push((id, from, to));
                continue;
            }
            let mut sizes = names.scope.sizes_only();
            let ends = (self.expression(from, &mut sizes), self.expression(to, &mut sizes));
            match ends {
                (Some(from), Some(to)) => drop(bounds.insert(&name.text, (from, to))),
                _ => fine = false,
            }
        }
        for clause in clauses {
            let Clause::Let { name, value } = clause else { continue };
            fine &= self.binding(name, value, bounds.remove(name.text.as_str()), names).is_some();
        }
        fine.then_some(ranges)
    }

    /// Resolves `name = value`, with the bounds that another clause declares for the name.
    pub(super) fn binding(
        &mut self,
        name: &Name,
        value: &Expr,
        bounds: Option<(Value, Value)>,
        names: &mut StatementScope<'_>,
    ) -> Option<()> {
        self.refuse_taken_name(name, "a `where` binding", names.scope);
        if names.lets.contains_key(&name.text) {
            self.report_collision(name, "bound", None);
            return None;
        }
        let mut value = self.expression(value, names)?;
        if value.height() > MOST_NESTING || value.count() > MOST_NODES {
            let message = "this binding is too large after the other bindings are substituted";
            // The text of a standard function is not part of the user's file.
            let span = self.call_span.unwrap_or(name.span);
            self.report(Diagnostic::error(Code::TooComplex, span, message));
            return None;
        }
        if let Some((from, to)) = bounds {
            let span = value.span;
            value = Value::new(ValueKind::Bounded(Box::new([value, from, to])), span);
        }
        names.lets.insert(name.text.clone(), value);
        Some(())
    }
}
