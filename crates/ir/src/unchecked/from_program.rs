//! Turns a finished [`Program`] back into an [`UncheckedProgram`], so that its meaning can be
//! checked again.

use super::{Parts, Source, Statement, Tensor, UncheckedProgram, Var};
use crate::expr::Origin;
use crate::program::{Program, Role};

impl UncheckedProgram {
    /// The unchecked program that a program was assembled from, without its fillers. The ids of the
    /// program must point into their tables, and its sizes stay substituted.
    pub fn from_program(program: &Program) -> UncheckedProgram {
        let statements = program.statements();
        let fillers = statements.iter().filter(|(statement, _)| statement.is_filler);
        // The variables of fillers stand behind all others.
        let first_filler = fillers.flat_map(|(statement, _)| &statement.vars).min();
        let vars = program.vars.iter().take(first_filler.map_or(program.vars.len(), |var| var.index()));
        let own = statements.iter().filter(|(statement, _)| !statement.is_filler);
        UncheckedProgram {
            name: program.name.clone(),
            symbols: program.symbols.clone(),
            scalars: program.scalars.clone(),
            derived: program.derived.clone(),
            preconditions: program.preconditions.clone(),
            tensors: tensors(program),
            vars: vars.map(|var| Var { name: var.name.clone(), range: Some(var.range.clone()) }).collect(),
            statements: own
                .map(|(statement, loops)| Statement {
                    target: statement.target,
                    update: statement.update,
                    loops: loops.clone(),
                    vars: statement.vars.clone(),
                    parts: Some(Parts::new(statement.indices.clone(), statement.value.clone())),
                    origin: statement.origin,
                })
                .collect(),
            is_incomplete: false,
        }
    }
}

fn tensors(program: &Program) -> Vec<Tensor> {
    let unchecked = |tensor: &crate::program::TensorDecl| Tensor {
        name: tensor.name.clone(),
        dtype: Some(tensor.dtype),
        shape: Some(tensor.shape.clone()),
        has_inferred_shape: false,
        source: match tensor.role {
            Role::Input { constant } => Source::Input { constant },
            Role::Output => Source::Result,
            Role::InOut => Source::Updated,
            Role::Temporary => Source::Temporary,
        },
        is_suspect: false,
        origin: Origin::default(),
    };
    program.tensors.iter().map(unchecked).collect()
}
