//! Turns the [`Model`] into an [`UncheckedProgram`], for the checks of `tilewright_ir::check`.
//!
//! The unchecked program keeps the positions of the model: statement 3 of the unchecked program is
//! statement 3 of the model, and so are tensors and variables. So a finding about the unchecked
//! program leads to its spans in the model.

use tilewright_ir::Update;
use tilewright_ir::unchecked::{Source, Statement, Tensor, UncheckedProgram, Var};

use super::model::{self, Model};
use super::preconditions;
use crate::ast::AssignOp;

/// Moves the typed parts of the model into an unchecked program.
pub(super) fn make_unchecked_program(model: &mut Model) -> UncheckedProgram {
    let lowered: Vec<_> = model.statements.iter_mut().map(|statement| statement.lowered.take()).collect();
    let statement = |(from, parts): (&model::Statement, _)| Statement {
        target: from.target,
        update: match from.op {
            AssignOp::Assign => Update::Assign,
            AssignOp::Reduce { op, reset } => Update::Reduce { op, reset },
        },
        loops: from.loops.iter().map(|id| model.loops[id.0].var).collect(),
        vars: from.vars.clone(),
        parts,
        origin: from.span.origin(),
    };
    UncheckedProgram {
        name: model.name.clone(),
        symbols: model.symbols.clone(),
        scalars: model.scalars.clone(),
        derived: model.derived.clone(),
        preconditions: preconditions::of_program(model),
        tensors: model.tensors.iter().map(tensor).collect(),
        vars: model.vars.iter().map(|var| Var { name: var.name.clone(), range: var.range.clone() }).collect(),
        statements: model.statements.iter().zip(lowered).map(statement).collect(),
        is_incomplete: model.is_incomplete,
    }
}

fn tensor(from: &model::Tensor) -> Tensor {
    Tensor {
        name: from.name.clone(),
        dtype: from.dtype,
        shape: from.shape.clone(),
        // An undeclared shape is inferred from the statements that write the tensor.
        has_inferred_shape: from.declared.is_none(),
        source: match from.source {
            model::Source::Param { constant } => Source::Input { constant },
            model::Source::Result => Source::Result,
            model::Source::Local => Source::Temporary,
        },
        is_suspect: from.poisoned,
        origin: from.span.origin(),
    }
}
