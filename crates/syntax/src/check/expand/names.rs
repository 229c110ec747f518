//! Finds the names in a function before they are resolved: all of them, those in square brackets,
//! and those that statements define.

use std::collections::HashSet;

use crate::ast::{Clause, Comprehension, Expr, ExprKind, Function, Name, Stmt, StmtKind};

/// The names of the parameters that are not static, and of the results.
pub(super) fn signature_names(function: &Function) -> impl Iterator<Item = &Name> {
    let params = function.params.iter().filter(|param| !param.is_static).map(|param| &param.name);
    params.chain(function.results.iter().map(|result| &result.name))
}

/// The names in a function.
#[derive(Default)]
pub(super) struct Names<'f> {
    pub all: HashSet<&'f str>,
    /// The names that parameters and statements define with square brackets.
    pub lists: HashSet<&'f str>,
    /// The names that statements define or declare, without those of calls.
    pub targets: Vec<&'f Name>,
}

impl<'f> Names<'f> {
    pub fn of(function: &'f Function) -> Names<'f> {
        let mut names = Names::default();
        for param in &function.params {
            names.name(&param.name);
            if param.name.element.is_some() {
                names.lists.insert(&param.name.text);
            }
            param.ty.dims.iter().for_each(|dim| names.expression(dim));
        }
        for result in &function.results {
            names.name(&result.name);
            if result.name.element.is_some() {
                names.lists.insert(&result.name.text);
            }
            result.ty.iter().flat_map(|ty| &ty.dims).for_each(|dim| names.expression(dim));
        }
        for definition in &function.definitions {
            names.name(&definition.name);
            names.expression(&definition.value);
        }
        names.body(&function.body);
        names
    }

    fn body(&mut self, body: &'f [Stmt]) {
        for statement in body {
            expressions_of(statement).into_iter().for_each(|expr| self.expression(expr));
            let targets: Vec<&Name> = match &statement.kind {
                StmtKind::Comprehension(inner) => vec![&inner.target],
                StmtKind::Declare(declaration) => vec![&declaration.name],
                // A call may return a whole list.
                StmtKind::Call { targets, .. } => {
                    targets.iter().for_each(|target| self.name(target));
                    Vec::new()
                }
                StmtKind::For { var, body, .. } => {
                    self.name(var);
                    self.body(body);
                    Vec::new()
                }
            };
            for target in targets {
                self.name(target);
                if target.element.is_some() {
                    self.lists.insert(&target.text);
                }
                self.targets.push(target);
            }
            if let StmtKind::Comprehension(Comprehension { clauses, .. }) = &statement.kind {
                for clause in clauses {
                    if let Clause::In { name, .. } | Clause::Let { name, .. } = clause {
                        self.name(name);
                    }
                }
            }
        }
    }

    fn name(&mut self, name: &'f Name) {
        self.all.insert(&name.text);
        if let Some(element) = &name.element {
            self.expression(element);
        }
    }

    fn expression(&mut self, expr: &'f Expr) {
        match &expr.kind {
            ExprKind::Name(text) => {
                self.all.insert(text);
            }
            ExprKind::Element(name)
            | ExprKind::Extent(name, _)
            | ExprKind::Apply(name, _)
            | ExprKind::CastLike(name, _) => self.name(name),
            _ => {}
        }
        expr.operands().iter().for_each(|operand| self.expression(operand));
    }
}

/// Returns true when the variable of a loop is in square brackets.
pub(super) fn is_over_stages(var: &Name, body: &[Stmt]) -> bool {
    body_mentions_list(body, &mut |number| mentions(number, &var.text))
}

/// The names without a number of an element that statements define. A loop over stages has names
/// of its own.
pub(super) fn targets_of(body: &[Stmt]) -> Vec<&str> {
    let mut names = Vec::new();
    for statement in body {
        let own: Vec<&Name> = match &statement.kind {
            StmtKind::Comprehension(inner) => vec![&inner.target],
            StmtKind::Declare(declaration) => vec![&declaration.name],
            StmtKind::Call { targets, .. } => targets.iter().collect(),
            StmtKind::For { var, body, .. } => {
                if !is_over_stages(var, body) {
                    names.extend(targets_of(body));
                }
                Vec::new()
            }
        };
        names.extend(own.into_iter().filter(|name| name.element.is_none()).map(|name| name.text.as_str()));
    }
    names
}

/// Returns true when a number in square brackets satisfies the test.
pub(super) fn body_mentions_list(body: &[Stmt], test: &mut dyn FnMut(&Expr) -> bool) -> bool {
    let in_targets = body.iter().any(|statement| match &statement.kind {
        StmtKind::Comprehension(inner) => name_mentions(&inner.target, test),
        StmtKind::Declare(declaration) => name_mentions(&declaration.name, test),
        StmtKind::Call { targets, .. } => targets.iter().any(|target| name_mentions(target, test)),
        StmtKind::For { body, .. } => body_mentions_list(body, test),
    });
    in_targets
        || any_expression(body, &mut |expr| match &expr.kind {
            ExprKind::Element(name)
            | ExprKind::Extent(name, _)
            | ExprKind::Apply(name, _)
            | ExprKind::CastLike(name, _) => name_mentions(name, test),
            _ => false,
        })
}

fn name_mentions(name: &Name, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
    name.element.as_deref().is_some_and(test)
}

/// Returns true when some expression in the statements, or a part of one, satisfies the test.
fn any_expression(body: &[Stmt], test: &mut dyn FnMut(&Expr) -> bool) -> bool {
    body.iter().any(|statement| {
        if let StmtKind::For { body, .. } = &statement.kind
            && any_expression(body, test)
        {
            return true;
        }
        expressions_of(statement).into_iter().any(|expr| any_part(expr, test))
    })
}

/// The expressions of a statement; of a loop, only its bounds.
fn expressions_of(statement: &Stmt) -> Vec<&Expr> {
    match &statement.kind {
        StmtKind::Comprehension(inner) => {
            let clauses = inner.clauses.iter().flat_map(|clause| match clause {
                Clause::In { from, to, .. } => vec![from, to],
                Clause::Let { value, .. } => vec![value],
                Clause::Exists(expr) => vec![expr],
            });
            inner.indices.iter().chain([&inner.value]).chain(clauses).collect()
        }
        StmtKind::Declare(declaration) => declaration.ty.iter().flat_map(|ty| &ty.dims).collect(),
        StmtKind::Call { arguments, .. } => arguments.iter().collect(),
        StmtKind::For { from, to, .. } => vec![from, to],
    }
}

fn any_part(expr: &Expr, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
    test(expr) || expr.operands().iter().any(|operand| any_part(operand, test))
}

/// Returns true when an expression contains a name.
pub(super) fn mentions(expr: &Expr, name: &str) -> bool {
    matches!(&expr.kind, ExprKind::Name(text) if text == name)
        || expr.operands().iter().any(|operand| mentions(operand, name))
}
