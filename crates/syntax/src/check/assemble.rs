//! Builds a [`Program`] from the model of a function that passed every check.

use tilewright_ir::{
    Expr, ForLoop, IndexExpr, Node, Number, Program, Range, Role, Stage, Statement, TensorDecl, TensorId,
    Update, Var, VarId, VarKind,
};

use super::definedness::Supply;
use super::model::{Model, Source};
use super::nest::{Nest, nest};
use super::writes::var_kind;
use crate::ast::AssignOp;

/// Builds the program. Returns `None` if a part is missing, which only a mistake in the function
/// can cause.
pub(super) fn assemble(model: Model, supplies: &[Supply]) -> Option<Program> {
    let mut stages: Vec<Stage> = Vec::new();
    let mut vars = vars(&model);
    let mut unfilled: Vec<TensorId> = (0..supplies.len())
        .filter(|at| supplies[*at] == Supply::Unproved)
        .map(|at| TensorId(at as u32))
        .collect();
    for node in nest(&model) {
        let node = build(&model, &node)?;
        let own = targets(&node);
        for tensor in unfilled.extract_if(.., |tensor| own.contains(tensor)) {
            append(&mut stages, Node::Statement(filler(&model, tensor, &mut vars)?));
        }
        append(&mut stages, node);
    }
    let tensors: Option<Vec<TensorDecl>> = model
        .tensors
        .iter()
        .enumerate()
        .map(|(at, tensor)| {
            let role = match (tensor.source, supplies[at]) {
                (Source::Param { constant }, _) => Role::Input { constant },
                (Source::Result, Supply::Defined | Supply::Unproved) => Role::Output,
                (Source::Result, Supply::Caller) => Role::InOut,
                (Source::Local, _) => Role::Temporary,
            };
            Some(TensorDecl {
                name: tensor.name.clone(),
                dtype: tensor.dtype?,
                shape: tensor.shape.clone()?,
                role,
            })
        })
        .collect();
    let tensors = tensors?;
    Some(Program {
        name: model.name,
        symbols: model.symbols,
        scalars: model.scalars,
        tensors,
        vars,
        stages,
        contract: true,
        general: None,
    })
}

fn append(stages: &mut Vec<Stage>, node: Node) {
    let tensors = targets(&node);
    match stages.last_mut() {
        Some(stage) if stage.tensors == tensors => stage.body.push(node),
        _ => stages.push(Stage { tensors, body: vec![node] }),
    }
}

/// A statement that sets every element of a tensor to 0.
fn filler(model: &Model, target: TensorId, vars: &mut Vec<Var>) -> Option<Statement> {
    let tensor = model.tensor(target);
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
        origin: tensor.span.origin(),
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

fn build(model: &Model, node: &Nest) -> Option<Node> {
    Some(match node {
        Nest::Statement(at) => Node::Statement(statement(model, *at)?),
        Nest::For(id, body) => {
            let body: Option<Vec<Node>> = body.iter().map(|inner| build(model, inner)).collect();
            Node::For(ForLoop { var: model.loops[id.0].var, body: body? })
        }
    })
}

fn statement(model: &Model, at: usize) -> Option<Statement> {
    let from = &model.statements[at];
    let lowered = from.lowered.as_ref()?;
    let update = match from.op {
        AssignOp::Assign => Update::Assign,
        AssignOp::Reduce { op, reset } => Update::Reduce { op, reset },
    };
    // Spatial variables come in the order of the left-hand side, then reductions in the order of
    // their first mention.
    let place = |var: &VarId| lowered.indices.iter().position(|index| index.mentions(*var));
    let (mut spatial, reductions): (Vec<VarId>, Vec<VarId>) =
        from.vars.iter().partition(|var| var_kind(from, **var) == VarKind::Spatial);
    spatial.sort_by_key(place);
    Some(Statement {
        target: from.target,
        indices: lowered.indices.clone(),
        vars: spatial.into_iter().chain(reductions).collect(),
        update,
        value: lowered.value.clone(),
        is_filler: false,
        origin: from.span.origin(),
    })
}

fn vars(model: &Model) -> Vec<Var> {
    let mut kinds = vec![VarKind::Ordered; model.vars.len()];
    for statement in &model.statements {
        for var in &statement.vars {
            kinds[var.index()] = var_kind(statement, *var);
        }
    }
    let nothing = Range { from: Default::default(), to: Default::default() };
    model
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
