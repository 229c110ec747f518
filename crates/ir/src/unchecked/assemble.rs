//! Turns an unchecked program that passed every check into a [`Program`]: variables get their
//! kinds, tensors their roles, and statements their stages. A tensor that may have undefined
//! elements gets a filler, a statement that sets all its elements to 0 first.

use super::tree::{Tree, build_tree};
use super::{Parts, Source, Statement as UncheckedStatement, UncheckedProgram};
use crate::check::Definedness;
use crate::expr::Expr;
use crate::index::{Atom, IndexExpr};
use crate::number::Number;
use crate::program::{
    ForLoop, Node, Program, Range, Role, Stage, Statement, TensorDecl, TensorId, Update, Var, VarId, VarKind,
};

/// Builds the program. `definedness` says of each tensor how its content is defined, as the checks
/// found out. Returns `None` if the unchecked program has a gap.
pub fn assemble(unchecked: UncheckedProgram, definedness: &[Definedness]) -> Option<Program> {
    let mut stages: Vec<Stage> = Vec::new();
    let mut vars = vars(&unchecked);
    let mut unfilled: Vec<TensorId> = (0..definedness.len())
        .filter(|at| definedness[*at] == Definedness::Unproved)
        .map(|at| TensorId(at as u32))
        .collect();
    let all: Vec<usize> = (0..unchecked.statements.len()).collect();
    for node in build_tree(&unchecked, &all) {
        let node = build_node(&unchecked, &node)?;
        let own = targets(&node);
        for tensor in unfilled.extract_if(.., |tensor| own.contains(tensor)) {
            append_to_stages(&mut stages, Node::Statement(filler(&unchecked, tensor, &mut vars)?));
        }
        append_to_stages(&mut stages, node);
    }
    let tensors = tensors(&unchecked, definedness)?;
    Some(Program {
        name: unchecked.name,
        symbols: unchecked.symbols,
        scalars: unchecked.scalars,
        derived: unchecked.derived,
        preconditions: unchecked.preconditions,
        tensors,
        vars,
        stages,
        contract: true,
        general: None,
    })
}

fn tensors(unchecked: &UncheckedProgram, definedness: &[Definedness]) -> Option<Vec<TensorDecl>> {
    let declared = |(tensor, supply): (&super::Tensor, &Definedness)| {
        let role = match (tensor.source, supply) {
            (Source::Input { constant }, _) => Role::Input { constant },
            (Source::Result, Definedness::Proved | Definedness::Unproved) => Role::Output,
            (Source::Result, Definedness::Caller) | (Source::Updated, _) => Role::InOut,
            (Source::Temporary, _) => Role::Temporary,
        };
        Some(TensorDecl {
            name: tensor.name.clone(),
            dtype: tensor.dtype?,
            shape: tensor.shape.clone()?,
            role,
        })
    };
    unchecked.tensors.iter().zip(definedness).map(declared).collect()
}

fn append_to_stages(stages: &mut Vec<Stage>, node: Node) {
    let tensors = targets(&node);
    match stages.last_mut() {
        Some(stage) if stage.tensors == tensors => stage.body.push(node),
        _ => stages.push(Stage { tensors, body: vec![node] }),
    }
}

/// A statement that sets every element of a tensor to 0.
fn filler(unchecked: &UncheckedProgram, target: TensorId, vars: &mut Vec<Var>) -> Option<Statement> {
    let tensor = unchecked.tensor(target);
    let first = vars.len() as u32;
    for (at, extent) in tensor.shape.iter().flatten().enumerate() {
        let range = Range { from: IndexExpr::constant(0), to: extent.clone() };
        vars.push(Var { name: format!("d{at}"), range, kind: VarKind::Spatial });
    }
    let own: Vec<VarId> = (first..vars.len() as u32).map(VarId).collect();
    Some(Statement {
        target,
        indices: own.iter().map(|var| IndexExpr::var(*var)).collect(),
        vars: own,
        update: Update::Assign,
        value: Expr::literal(tensor.dtype?.compute_type(), Number::Int(0)),
        is_filler: true,
        origin: tensor.origin,
    })
}

fn targets(node: &Node) -> Vec<TensorId> {
    match node {
        Node::Statement(statement) => vec![statement.target],
        Node::For(inner) => {
            let mut tensors = Vec::new();
            for id in inner.body.iter().flat_map(targets) {
                if !tensors.contains(&id) {
                    tensors.push(id);
                }
            }
            tensors
        }
    }
}

fn build_node(unchecked: &UncheckedProgram, node: &Tree) -> Option<Node> {
    Some(match node {
        Tree::Statement(at) => Node::Statement(build_statement(&unchecked.statements[*at])?),
        Tree::For(var, body) => {
            let body: Option<Vec<Node>> = body.iter().map(|inner| build_node(unchecked, inner)).collect();
            Node::For(ForLoop { var: *var, body: body? })
        }
    })
}

fn build_statement(from: &UncheckedStatement) -> Option<Statement> {
    let parts = from.parts.as_ref()?;
    // Spatial variables come in the order of the left-hand side, then reductions in the order of
    // their first mention.
    let place = |var: &VarId| parts.indices.iter().position(|index| index.mentions(*var));
    let (mut spatial, reductions): (Vec<VarId>, Vec<VarId>) =
        from.vars.iter().partition(|var| var_kind(from, parts, **var) == VarKind::Spatial);
    spatial.sort_by_key(place);
    Some(Statement {
        target: from.target,
        indices: parts.indices.clone(),
        vars: spatial.into_iter().chain(reductions).collect(),
        update: from.update,
        value: parts.value.clone(),
        is_filler: false,
        origin: from.origin,
    })
}

fn vars(unchecked: &UncheckedProgram) -> Vec<Var> {
    let mut kinds = vec![VarKind::Ordered; unchecked.vars.len()];
    for statement in &unchecked.statements {
        for var in &statement.vars {
            let kind = statement.parts.as_ref().map(|parts| var_kind(statement, parts, *var));
            kinds[var.index()] = kind.unwrap_or(VarKind::Reduction);
        }
    }
    let nothing = Range { from: Default::default(), to: Default::default() };
    unchecked
        .vars
        .iter()
        .zip(kinds)
        .map(|(var, kind)| Var {
            name: var.name.clone(),
            range: var.range.clone().unwrap_or_else(|| nothing.clone()),
            kind,
        })
        .collect()
}

/// The kind of a variable in its statement. A reduction reduces every variable whose values no
/// index of the left-hand side distinguishes.
pub fn var_kind(statement: &UncheckedStatement, parts: &Parts, var: VarId) -> VarKind {
    let separates = |index: &IndexExpr| {
        let own: Vec<VarId> =
            index.vars().into_iter().filter(|other| statement.vars.contains(other)).collect();
        own == [var] && is_injective_in(index, var)
    };
    match statement.update {
        Update::Assign => VarKind::Spatial,
        Update::Reduce { .. } if parts.indices.iter().any(separates) => VarKind::Spatial,
        Update::Reduce { .. } => VarKind::Reduction,
    }
}

/// Returns true when different values of the variable give different indices.
pub(crate) fn is_injective_in(index: &IndexExpr, var: VarId) -> bool {
    let split = index.split_on(&Atom::Var(var));
    split.is_some_and(|(coefficient, rest)| {
        coefficient.as_constant().is_some_and(|value| value != 0) && !rest.mentions(var)
    })
}
