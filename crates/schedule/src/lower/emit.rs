//! Emits the tree of a draft as the statements of a loop nest, and writes out the decisions that
//! steps recorded in the draft.
//!
//! A reduction that starts from its neutral element resets its elements just outside its outermost
//! reduction loop, in copies of the loops that its subscripts mention. For results that are
//! accumulated in a buffer, see [`mod@super::accumulate`].

use tilewright_ir::nest::{
    Access, Allocate, Buffer, BufferId, ClaimRole, Combine, Expr, For, If, IndexExpr, LoopKind, LoopVar,
    LoopVarId, Scope, Stmt, Store,
};
use tilewright_ir::{LoopNest, ReduceOp, arithmetic, walk};

use super::accumulate::OpenAccumulator;
use super::claim::claim_in_copy;
use crate::draft::{Draft, Legal, LoopRole, Node, Parent, StatementId, replace_var};
use crate::illegal::Illegal;

/// Emits the statements of a draft, before remainders and conditions are handled.
pub(super) fn emit(draft: &Draft) -> Legal<LoopNest> {
    let mut emitter = Emitter::new(draft, None);
    let setup = emitter.nodes(Parent::Setup)?;
    let mut body = emitter.nodes(Parent::Body)?;
    for tensor in (0..draft.buffers.len()).map(|at| BufferId(at as u32)) {
        if draft.buffers[tensor.index()].allocated_at.is_none() && emitter.needs_allocation(tensor) {
            body = vec![Stmt::Allocate(Allocate { buffer: tensor, body })];
        }
    }
    let buffers = draft.buffers.iter().map(|buffer| buffer.buffer.clone());
    let vars = draft.loops.iter().map(|own| LoopVar { name: own.name.clone() });
    Ok(LoopNest {
        name: draft.program.name.clone(),
        scalars: draft.program.scalars.clone(),
        buffers: buffers.chain(emitter.new_buffers).collect(),
        vars: vars.chain(emitter.new_vars).collect(),
        setup,
        body,
        contract: draft.program.contract,
    })
}

/// Emits one statement with the loops around it, and no other statement.
pub(super) fn emit_alone(draft: &Draft, statement: StatementId) -> Legal<Vec<Stmt>> {
    let mut emitter = Emitter::new(draft, Some(statement));
    let mut stmts = emitter.nodes(Parent::Setup)?;
    stmts.extend(emitter.nodes(Parent::Body)?);
    Ok(stmts)
}

/// Wraps statements in a condition, so that they are skipped where a guard is negative.
pub(super) fn guarded(guards: &[IndexExpr], body: Vec<Stmt>) -> Vec<Stmt> {
    if guards.is_empty() {
        return body;
    }
    vec![Stmt::If(If { conditions: guards.to_vec(), then: body, otherwise: Vec::new() })]
}

/// Returns a loop that the lanes of a vector would run differently often. An unrolled loop is
/// written out with a condition before each iteration, which masks lanes, so its extent may differ
/// between lanes. This is checked here and not by the steps: a loop may be unrolled by a step after
/// the one that vectorises a loop around it.
fn uneven_loop_in(stmts: &[Stmt], lanes: LoopVarId) -> Option<LoopVarId> {
    walk::find_map(stmts, &mut |stmt| match stmt {
        Stmt::For(own) if own.kind != LoopKind::Unrolled && own.extent.mentions(lanes) => Some(own.var),
        _ => None,
    })
}

/// Rewrites subscripts in terms of the copies of loops.
pub(super) type Renaming<'r> = dyn Fn(&IndexExpr) -> IndexExpr + 'r;

pub(super) struct Emitter<'a> {
    pub draft: &'a Draft<'a>,
    /// The only statement to emit, if not all.
    only_statement: Option<StatementId>,
    /// New buffers, whose ids follow those of the draft.
    new_buffers: Vec<Buffer>,
    /// Copies of loops, whose ids follow those of the draft's loops.
    new_vars: Vec<LoopVar>,
    /// Statements that currently store to a buffer, with the access to that buffer.
    pub redirected: Vec<(StatementId, Access)>,
}

impl<'a> Emitter<'a> {
    fn new(draft: &'a Draft<'a>, only: Option<StatementId>) -> Emitter<'a> {
        Emitter {
            draft,
            only_statement: only,
            new_buffers: Vec::new(),
            new_vars: Vec::new(),
            redirected: Vec::new(),
        }
    }

    /// A buffer of the draft, or one that the emitter added.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        match id.index().checked_sub(self.draft.buffers.len()) {
            Some(new) => &self.new_buffers[new],
            None => &self.draft.buffers[id.index()].buffer,
        }
    }

    /// Adds a buffer after those of the draft.
    pub fn add_buffer(&mut self, buffer: Buffer) -> BufferId {
        self.new_buffers.push(buffer);
        BufferId((self.draft.buffers.len() + self.new_buffers.len()) as u32 - 1)
    }

    /// The nodes directly inside a parent that are emitted.
    fn children(&self, of: Parent) -> Vec<Node> {
        match self.only_statement {
            Some(statement) => self.draft.child_containing(of, statement).into_iter().collect(),
            None => self.draft.children(of).to_vec(),
        }
    }

    /// The statements inside these nodes that are emitted.
    fn statements_in(&self, nodes: &[Node]) -> Vec<StatementId> {
        self.only_statement.map_or_else(|| self.draft.statements_in(nodes), |statement| vec![statement])
    }

    /// Emits the nodes directly inside a loop, or those outside all loops.
    fn nodes(&mut self, parent: Parent) -> Legal<Vec<Stmt>> {
        let mut out = Vec::new();
        for node in &self.children(parent) {
            let inside = self.statements_in(std::slice::from_ref(node));
            let accumulates_here = |id: &StatementId| {
                self.draft.accumulates_at(*id).is_some_and(|at| parent == Parent::Loop(at))
            };
            let accumulating: Vec<StatementId> = inside.into_iter().filter(accumulates_here).collect();
            // Accumulators are opened first, so that the stores inside go to the buffer.
            let accumulators = accumulating
                .into_iter()
                .map(|id| self.open_promoted_accumulator(id))
                .collect::<Legal<Vec<OpenAccumulator>>>()?;
            let mut stmts = match node {
                Node::Statement(id) => self.statement(*id),
                Node::Loop(var) => self.for_loop(*var)?,
            };
            for accumulator in accumulators.into_iter().rev() {
                stmts = self.close_accumulator(accumulator, stmts);
            }
            out.extend(stmts);
        }
        Ok(out)
    }

    fn for_loop(&mut self, var: LoopVarId) -> Legal<Vec<Stmt>> {
        self.check_combined_threads(var)?;
        let inside = self.statements_in(self.draft.body_of(var));
        let wide: Vec<StatementId> =
            inside.iter().copied().filter(|id| self.needs_wide_accumulator(*id, var)).collect();
        let accumulators = wide
            .into_iter()
            .map(|id| self.open_wide_accumulator(id, var))
            .collect::<Legal<Vec<OpenAccumulator>>>()?;
        let mut body = self.prefetches(var)?;
        body.extend(self.nodes(Parent::Loop(var))?);
        for tensor in self.draft.allocations_at(var, &inside) {
            if self.needs_allocation(tensor) {
                body = vec![Stmt::Allocate(Allocate { buffer: tensor, body })];
            }
        }
        let own = self.draft.loop_of(var);
        if own.kind == LoopKind::Vector
            && let Some(name) = self.first_allocation(&body)
        {
            let wide = inside.iter().find_map(|id| self.refuse_wide_in_vector(*id, var));
            let named =
                || Illegal::BufferInVectorLoop { name, loop_name: self.draft.qualified_loop_name(var) };
            return Err(wide.unwrap_or_else(named));
        }
        if own.kind == LoopKind::Vector
            && let Some(inner) = uneven_loop_in(&body, var)
        {
            return Err(Illegal::DependentExtent {
                outer: self.draft.qualified_loop_name(var),
                inner: self.loop_label(inner),
                problem: "all lanes of a vector must run the same iterations: unroll the inner loop"
                    .to_string(),
            });
        }
        let body = guarded(&self.needed_guards(var, &inside), body);
        let mut out: Vec<Stmt> = inside.iter().flat_map(|id| self.resets_before(*id, var)).collect();
        out.push(Stmt::For(For { var, extent: own.extent.clone(), kind: own.kind, body }));
        for accumulator in accumulators.into_iter().rev() {
            out = self.close_accumulator(accumulator, out);
        }
        Ok(out)
    }

    /// Refuses a reduction loop over threads that steps have changed since it was bound.
    fn check_combined_threads(&self, var: LoopVarId) -> Legal<()> {
        let own = self.draft.loop_of(var);
        let (LoopRole::Reduction, LoopKind::Thread(axis)) = (own.role, own.kind) else { return Ok(()) };
        if let Some(scatter) = own.owner.filter(|id| self.draft.is_scatter(*id)) {
            return self.check_shared_scatter(scatter, var);
        }
        let refuse = |why| Illegal::Combine { name: self.draft.qualified_loop_name(var), why };
        self.draft.check_combined_threads(var, axis).map_err(refuse)
    }

    /// Refuses threads that share a scatter inside a loop over other threads, where they cannot
    /// wait for each other.
    fn check_shared_scatter(&self, id: StatementId, var: LoopVarId) -> Legal<()> {
        let Some(around) = self.draft.thread_loop_around_fill(id) else { return Ok(()) };
        let name = &self.draft.statement(id).name;
        Err(Illegal::CarriedDependence {
            name: self.draft.qualified_loop_name(var),
            why: format!(
                "its threads wait until `{name}` is set to the neutral element, and cannot wait inside `{}`",
                self.draft.qualified_loop_name(around)
            ),
        })
    }

    /// The name of a buffer that is allocated somewhere in the statements.
    fn first_allocation(&self, stmts: &[Stmt]) -> Option<String> {
        walk::find_map(stmts, &mut |stmt| match stmt {
            Stmt::Allocate(own) => Some(self.buffer(own.buffer).name.clone()),
            _ => None,
        })
    }

    /// A loop's name for messages; a copy of a loop has the name of the loop alone.
    fn loop_label(&self, var: LoopVarId) -> String {
        match var.index().checked_sub(self.draft.loops.len()) {
            Some(new) => self.new_vars[new].name.clone(),
            None => self.draft.qualified_loop_name(var),
        }
    }

    /// Returns true when a buffer of the draft is scratch memory or registers, which must be
    /// allocated where they are used.
    fn needs_allocation(&self, tensor: BufferId) -> bool {
        let buffer = &self.draft.buffers[tensor.index()];
        !buffer.is_removed && matches!(buffer.buffer.scope, Scope::Scratch | Scope::Register)
    }

    fn statement(&mut self, id: StatementId) -> Vec<Stmt> {
        let statement = self.draft.statement(id);
        let redirected = self.redirected.iter().find(|(own, _)| *own == id).map(|(_, to)| to.clone());
        let is_redirected = redirected.is_some();
        let target = redirected.unwrap_or_else(|| statement.target.clone());
        let reduction = statement.reduction();
        let reduce = reduction.map(|(op, _)| op);
        if let (Some((op, reset)), Some(lane)) = (reduction, self.draft.combined_thread_loop(id)) {
            let reduce = (!reset).then_some(op);
            let claim = self.claim(id, ClaimRole::Value);
            let store = Store {
                target,
                value: statement.value.clone(),
                reduce,
                is_asynchronous: false,
                is_atomic: false,
                claim,
            };
            return vec![Stmt::Combine(Combine { lane, op, store })];
        }
        let mut out = Vec::new();
        if let Some((op, true)) = reduction
            && !is_redirected
            && self.draft.reset_loop(id).is_none()
        {
            out.extend(self.reset_here(id, op));
        }
        let claim = self.claim(id, ClaimRole::Value);
        out.push(Stmt::Store(Store {
            target,
            value: statement.value.clone(),
            reduce,
            is_asynchronous: false,
            is_atomic: self.draft.updates_atomically(id),
            claim,
        }));
        out
    }

    /// The stores of neutral elements that belong right before a loop.
    fn resets_before(&mut self, id: StatementId, var: LoopVarId) -> Vec<Stmt> {
        let statement = self.draft.statement(id);
        let Some((op, true)) = statement.reduction() else { return Vec::new() };
        let is_redirected = (self.redirected.iter().any(|(own, _)| *own == id)
            || self.draft.accumulates_at(id).is_some())
            && !self.draft.misses_partial_totals(id);
        let combined = self.draft.combined_thread_loop(id).is_some();
        if is_redirected || combined || self.draft.reset_loop(id) != Some(var) {
            return Vec::new();
        }
        self.reset_here(id, op)
    }

    /// Sets the elements that the statement writes inside this place to the neutral element.
    fn reset_here(&mut self, id: StatementId, op: ReduceOp) -> Vec<Stmt> {
        let statement = self.draft.statement(id);
        let dtype = self.buffer(statement.target.tensor).dtype.compute_type();
        let neutral = Expr::literal(dtype, arithmetic::neutral(op, dtype));
        let is_whole = match self.draft.is_scatter(id) {
            true if self.draft.resets_rows(id) => return self.fill_rows(id, &neutral),
            true => true,
            false => self.draft.misses_partial_totals(id),
        };
        if is_whole {
            return self.fill(id, neutral);
        }
        let loops = match self.draft.reset_loop(id) {
            Some(place) => self.draft.loops_in_subscripts(id, place),
            None => Vec::new(),
        };
        let guards = self.guards_of_elements(id, &loops);
        let claim = self.claim(id, ClaimRole::Neutral);
        self.replicate(&loops, &guards, &mut |renamed| {
            let indices = statement.target.indices.iter().map(renamed).collect();
            let target = Access { indices, ..statement.target.clone() };
            let claim = claim_in_copy(&claim, renamed);
            vec![Stmt::Store(Store {
                target,
                value: neutral.clone(),
                reduce: None,
                is_asynchronous: false,
                is_atomic: false,
                claim,
            })]
        })
    }

    pub fn new_var(&mut self, name: &str) -> LoopVarId {
        self.new_vars.push(LoopVar { name: name.to_string() });
        LoopVarId((self.draft.loops.len() + self.new_vars.len()) as u32 - 1)
    }

    /// Builds copies of loops, outermost first, around the statements that `make` returns, with the
    /// guards inside. `make` receives the translation of subscripts to the copies.
    pub fn replicate(
        &mut self,
        loops: &[LoopVarId],
        guards: &[IndexExpr],
        make: &mut dyn FnMut(&Renaming) -> Vec<Stmt>,
    ) -> Vec<Stmt> {
        let copies: Vec<(LoopVarId, LoopVarId)> =
            loops.iter().map(|var| (*var, self.new_var(&self.draft.loop_of(*var).name.clone()))).collect();
        let renamed = |index: &IndexExpr| {
            copies.iter().fold(index.clone(), |index, (from, to)| replace_var(&index, *from, *to))
        };
        let guards: Vec<IndexExpr> = guards.iter().map(renamed).collect();
        let mut body = guarded(&guards, make(&renamed));
        for (from, to) in copies.iter().rev() {
            let own = self.draft.loop_of(*from);
            let kind = if own.kind == LoopKind::Parallel { LoopKind::Serial } else { own.kind };
            let extent = renamed(&self.draft.copied_extent(*from, loops));
            body = vec![Stmt::For(For { var: *to, extent, kind, body })];
        }
        body
    }

    /// The guards for copies of a statement's loops: an iteration is skipped where it has no
    /// element. Guards that depend on a reduction loop are left out, because they say nothing about
    /// elements. The partial totals of an `rfactor` exist for all of its iterations, so guards on
    /// the loops of totals are replaced by the bounds of their buffer.
    pub fn guards_of_elements(&self, id: StatementId, loops: &[LoopVarId]) -> Vec<IndexExpr> {
        let is_partial = self.draft.statement(id).is_partial;
        let reduced = |var: LoopVarId| {
            let own = self.draft.loop_of(var);
            own.role == LoopRole::Reduction && own.owner == Some(id) && !loops.contains(&var)
        };
        let is_of_elements = |guard: &&IndexExpr| {
            let of_totals = |var: LoopVarId| is_partial && loops.contains(&var);
            !guard.vars().into_iter().any(|var| reduced(var) || of_totals(var))
        };
        let path = self.draft.path(id);
        let all = path.iter().flat_map(|var| &self.draft.loop_of(*var).guards);
        let mut guards: Vec<IndexExpr> = all.filter(is_of_elements).cloned().collect();
        if is_partial && loops.iter().any(|var| !self.draft.loop_of(*var).guards.is_empty()) {
            guards.extend(self.draft.subscript_bounds(id));
        }
        guards
    }
}
