//! Builds the first draft of a program, before any step: one loop nest for each statement, in the
//! order of the program's text.

use std::sync::Arc;

use tilewright_ir::nest::{Access, Buffer, BufferId, Expr, IndexExpr, LoopKind, LoopVarId, Scope};
use tilewright_ir::{
    self as ir, Node as ProgramNode, Program, Role, Statement as ProgramStatement, TensorId, VarId, VarKind,
};
use tilewright_target::Target;

use super::tree::Links;
use super::{
    Draft, DraftBuffer, Instance, Legal, Loop, LoopRole, Node, Parent, Statement, StatementId, Table,
};
use crate::illegal::Illegal;
use crate::step::StatementName;

impl<'a> Draft<'a> {
    /// Builds the draft of a program whose sizes are all known.
    pub fn new(program: &'a Program, target: Target<'_>) -> Legal<Draft<'a>> {
        if let Some(open) = program.symbols.iter().find(|symbol| symbol.value.is_none()) {
            return Err(Illegal::UnknownSize(open.name.clone()));
        }
        let named = program.tensors.iter().enumerate();
        let named = named.map(|(at, tensor)| (tensor.name.clone(), Draft::buffer_of(TensorId(at as u32))));
        let mut draft = Draft {
            program,
            capabilities: target.hardware().capabilities(),
            buffers: Table::default(),
            loops: Table::default(),
            statements: Table::default(),
            setup: Vec::new(),
            body: Vec::new(),
            prefetches: Vec::new(),
            pipelines: Vec::new(),
            kept_parts: Vec::new(),
            links: Links::default(),
            replaced_loops: Table::default(),
            tensors: Arc::new(named.collect()),
            last_writers: Arc::new(super::instance::last_writers(program)),
        };
        for (at, tensor) in program.tensors.iter().enumerate() {
            let id = TensorId(at as u32);
            let shape = program.shape(id).ok_or_else(|| Illegal::UnknownSize(tensor.name.clone()))?;
            let scope = match tensor.role {
                Role::Temporary => Scope::Scratch,
                Role::Input { .. } | Role::Output | Role::InOut => Scope::Argument(id),
            };
            let shape = shape.into_iter().map(|extent| extent as i64).collect();
            draft
                .add_buffer(Buffer { name: tensor.name.clone(), dtype: tensor.dtype, shape, scope }, None)?;
        }
        for stage in &program.stages {
            let nodes = draft.nodes(&stage.body, &mut Vec::new());
            draft.insert(Parent::Body, draft.body.len(), nodes);
        }
        Ok(draft)
    }

    /// Builds the nodes of the draft. `around` maps the variables of the ordered loops around these
    /// nodes to their values in the draft.
    fn nodes(&mut self, nodes: &[ProgramNode], around: &mut Vec<(VarId, IndexExpr)>) -> Vec<Node> {
        let mut built = Vec::new();
        for node in nodes {
            match node {
                ProgramNode::Statement(statement) => built.extend(self.statement_nest(statement, around)),
                ProgramNode::For(ordered) => {
                    let (var, value) = self.program_loop(ordered.var, None);
                    around.push((ordered.var, value));
                    let body = self.nodes(&ordered.body, around);
                    around.pop();
                    built.extend(self.wrap_in_loops(&[var], body));
                }
            }
        }
        built
    }

    /// Builds a statement inside the loops over its own variables.
    fn statement_nest(&mut self, statement: &ProgramStatement, around: &[(VarId, IndexExpr)]) -> Vec<Node> {
        let id = StatementId(self.statements.len());
        let target = Draft::buffer_of(statement.target);
        let name = self.next_name(target);
        let number = self.statements.len();
        let mut values = around.to_vec();
        let mut loops: Vec<LoopVarId> = Vec::new();
        for var in &statement.vars {
            let (new, value) = self.program_loop(*var, Some(id));
            loops.push(new);
            values.push((*var, value));
        }
        let vars = loops.iter().map(|var| (IndexExpr::var(*var), self.loop_of(*var).extent.clone()));
        let indices = statement.indices.iter().map(|index| index_in_draft(index, &values)).collect();
        let point = values.iter().map(|(_, value)| Some(value.clone())).collect();
        let new = Statement {
            name,
            target: Access { tensor: target, indices, origin: statement.origin },
            update: statement.update,
            value: value_in_draft(&statement.value, &values),
            accumulator: None,
            is_partial: false,
            vars: vars.collect(),
            is_narrowed: false,
            instances: vec![Instance { statement: number, point, sums_partials: false }],
            scan: None,
        };
        self.add_statement(new);
        self.wrap_in_loops(&loops, vec![Node::Statement(id)])
    }

    /// Adds the loop over a variable's range, and returns it with the variable's value in terms of
    /// the loop.
    fn program_loop(&mut self, var: VarId, owner: Option<StatementId>) -> (LoopVarId, IndexExpr) {
        let declared = self.program.var(var);
        let role = match declared.kind {
            VarKind::Spatial => LoopRole::Spatial,
            VarKind::Reduction => LoopRole::Reduction,
            VarKind::Ordered => LoopRole::Ordered,
        };
        // The bounds of a range mention no variables.
        let extent = index_in_draft(&declared.range.extent(), &[]).maximum(&IndexExpr::constant(0));
        let from = index_in_draft(&declared.range.from, &[]);
        let name = declared.name.clone();
        let new = self.add_loop(Loop {
            name,
            extent,
            kind: LoopKind::Serial,
            role,
            owner,
            is_unchanged: true,
            slides: false,
            keeps_order: false,
            guards: Vec::new(),
        });
        (new, IndexExpr::var(new).add(&from))
    }

    /// The name of the next statement that writes a tensor.
    pub fn next_name(&self, tensor: BufferId) -> StatementName {
        let DraftBuffer { buffer, users, .. } = &self.buffers[tensor.index()];
        let before = users.iter().filter(|id| self.statement(**id).target.tensor == tensor).count();
        StatementName { tensor: buffer.name.clone(), ordinal: before + 1 }
    }
}

/// The invariant of checked programs by which every variable of an expression has a value here.
const IN_SCOPE: &str = "a statement mentions only its own variables and those of the loops around it";

/// A subscript or bound of the program, given the values of the variables in scope.
fn index_in_draft(index: &ir::IndexExpr, values: &[(VarId, IndexExpr)]) -> IndexExpr {
    index.map_ids(&|tensor| Some(Draft::buffer_of(tensor)), &|var| value_of(var, values)).expect(IN_SCOPE)
}

/// A value of the program, given the values of the variables in scope.
fn value_in_draft(value: &ir::Expr, values: &[(VarId, IndexExpr)]) -> Expr {
    value.map_ids(&|tensor| Some(Draft::buffer_of(tensor)), &|var| value_of(var, values)).expect(IN_SCOPE)
}

fn value_of(var: VarId, values: &[(VarId, IndexExpr)]) -> Option<IndexExpr> {
    values.iter().find(|(own, _)| *own == var).map(|(_, value)| value.clone())
}
