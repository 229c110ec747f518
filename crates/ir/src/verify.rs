//! The invariants of a [`Program`], checked.
//!
//! - Every id points into its table.
//! - An access has one subscript a dimension; shapes and ranges hold symbols and numbers only.
//! - Operands have the types that their operator asks for, and a statement's value has its target's compute type.
//! - No [`Atom::Extent`] and no [`Atom::Overflow`] is left.
//! - A statement mentions only its own variables and those of the loops around it.
//!
//! A program that fails here is a bug in whoever built it, never the user's mistake.

use thiserror::Error;

use crate::dtype::DType;
use crate::expr::{Access, BinaryOp, Expr, ExprKind};
use crate::index::{Atom, IndexExpr};
use crate::print;
use crate::program::{Program, Range, Statement, VarId};

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid program {program}: {what}")]
pub struct Invalid {
    /// The program's name.
    pub program: String,
    /// Which invariant, and where.
    pub what: String,
}

/// Checks every invariant of a program.
pub fn verify(program: &Program) -> Result<(), Invalid> {
    let check = Check { program };
    check.run().map_err(|what| Invalid { program: program.name.clone(), what })
}

struct Check<'a> {
    program: &'a Program,
}

type Verdict = Result<(), String>;

fn hold(condition: bool, what: impl FnOnce() -> String) -> Verdict {
    if condition { Ok(()) } else { Err(what()) }
}

impl Check<'_> {
    fn run(&self) -> Verdict {
        for tensor in &self.program.tensors {
            for extent in &tensor.shape {
                self.index(extent, &[])?;
                hold(!extent.has_data(), || format!("the shape of {} depends on data", tensor.name))?;
            }
        }
        for var in &self.program.vars {
            let Range { from, to } = &var.range;
            for end in [from, to] {
                self.index(end, &[])?;
                hold(!end.has_data(), || format!("the range of {} depends on data", var.name))?;
            }
        }
        for (statement, loops) in self.program.statements() {
            self.statement(statement, &loops)?;
        }
        Ok(())
    }

    fn statement(&self, statement: &Statement, loops: &[VarId]) -> Verdict {
        let vars: Vec<VarId> = loops.iter().chain(&statement.vars).copied().collect();
        hold(statement.target.index() < self.program.tensors.len(), || {
            "a target that does not exist".to_owned()
        })?;
        let target = self.program.tensor(statement.target);
        let text = || print::statement(statement, self.program);
        hold(statement.indices.len() == target.shape.len(), || format!("rank of the target in {}", text()))?;
        for index in &statement.indices {
            self.index(index, &vars)?;
        }
        hold(statement.value.dtype == target.dtype.compute_type(), || {
            format!("a {} value for a {} tensor in {}", statement.value.dtype, target.dtype, text())
        })?;
        self.expr(&statement.value, &vars)
    }

    fn index(&self, expr: &IndexExpr, vars: &[VarId]) -> Verdict {
        let mut verdict = Ok(());
        let mut data = Vec::new();
        expr.visit(&mut |atom| {
            let found = match atom {
                Atom::Var(var) if !vars.contains(var) => Err(format!("variable {} out of scope", var.0)),
                Atom::Symbol(symbol) if symbol.index() >= self.program.symbols.len() => {
                    Err(format!("symbol {} does not exist", symbol.0))
                }
                Atom::Extent(..) => Err("an extent that was never inferred".to_owned()),
                Atom::Overflow => Err("a number that is too large".to_owned()),
                Atom::Data(inner) => {
                    data.push(inner.value.clone());
                    Ok(())
                }
                _ => Ok(()),
            };
            if verdict.is_ok() {
                verdict = found;
            }
        });
        verdict?;
        for value in data {
            hold(!value.dtype.is_float(), || "an index that is a float".to_owned())?;
            self.expr(&value, vars)?;
        }
        Ok(())
    }

    fn access(&self, access: &Access, dtype: DType, vars: &[VarId]) -> Verdict {
        hold(access.tensor.index() < self.program.tensors.len(), || {
            "a tensor that does not exist".to_owned()
        })?;
        let tensor = self.program.tensor(access.tensor);
        hold(access.indices.len() == tensor.shape.len(), || format!("rank of an access to {}", tensor.name))?;
        hold(tensor.dtype == dtype, || format!("type of an access to {}", tensor.name))?;
        access.indices.iter().try_for_each(|index| self.index(index, vars))
    }

    fn expr(&self, expr: &Expr, vars: &[VarId]) -> Verdict {
        let of = |operand: &Expr, dtype: DType| {
            hold(operand.dtype == dtype, || {
                format!("{} where {dtype} is needed: {}", operand.dtype, print::expr(operand, self.program))
            })
        };
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Cast(_) => {}
            ExprKind::Index(index) => self.index(index, vars)?,
            ExprKind::Scalar(id) => {
                let scalar = self.program.scalars.get(id.index()).ok_or("a scalar that does not exist")?;
                hold(scalar.dtype == expr.dtype, || format!("type of scalar {}", scalar.name))?;
            }
            ExprKind::Load(access) => self.access(access, expr.dtype, vars)?,
            ExprKind::Unary(_, operand) => of(operand, expr.dtype)?,
            ExprKind::Binary(op, operands) => {
                let [left, right] = operands.as_ref();
                let wanted = match op {
                    BinaryOp::And | BinaryOp::Or => DType::Bool,
                    op if op.is_comparison() => left.dtype,
                    _ => expr.dtype,
                };
                of(left, wanted)?;
                of(right, wanted)?;
            }
            ExprKind::Select(operands) => {
                of(&operands[0], DType::Bool)?;
                of(&operands[1], expr.dtype)?;
                of(&operands[2], expr.dtype)?;
            }
            ExprKind::Call(builtin, arguments) => {
                hold(arguments.len() == builtin.arity(), || format!("arguments of {}", builtin.name()))?;
                for argument in arguments {
                    if builtin.is_predicate() {
                        hold(argument.dtype.is_float(), || format!("argument of {}", builtin.name()))?;
                    } else {
                        of(argument, expr.dtype)?;
                    }
                }
            }
        }
        expr.operands().iter().try_for_each(|operand| self.expr(operand, vars))
    }
}
