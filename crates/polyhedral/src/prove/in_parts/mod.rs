//! Rewrites a program whose recurrences a nest computes in parts to a program that computes them in
//! parts too. Everything else of the proof then compares the nest with the rewritten program.
//!
//! In: a program, and a nest whose claims name values of parts ([`RecurrencePart`]). Out: the
//! rewritten program, and the nest with its claims in terms of that program. For parts of `L`
//! iterations, the statement
//!
//! ```text
//! for v in from:to { y(v) = y(v - 1) + e(v) }
//! ```
//!
//! becomes
//!
//! ```text
//! total(q) +=! e(from + L*q + t)          where t in 0:L
//! for q in 0:parts { start(q) = q >= 1 ? start(q - 1) + total(q - 1) : y(from - 1) }
//! for v in from:to { y(v) = ((v - from) % L >= 1 ? y(v - 1) : start((v - from) / L)) + e(v) }
//! ```
//!
//! Both programs have the same results, up to the rounding of floats: by induction, `start(q)` is
//! `y(from + L*q - 1)`, since `total(q - 1)` combines exactly the values between. This needs that
//! `e` does not read `y`, that all iterations write different elements, and that nothing else is in
//! the loop, all of which the module checks. The last part may have fewer than `L` iterations; its
//! total is not needed, and does not exist in the rewritten program.
//!
//! Parts may have parts: the `start` of an inner part is then that of the outer part, where both
//! begin together. `form` takes the value of the recurrence apart.

mod form;

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::nest::{Claim, LoopNest, PartValue, RecurrencePart, Stmt};
use tilewright_ir::{
    Access, Atom, BinaryOp, DType, Expr, ExprKind, ForLoop, IndexExpr, Node, Program, Range, ReduceOp, Role,
    Statement, TensorDecl, TensorId, Update, Var, VarId, VarKind, walk,
};

use super::{ProofResult, undecided};
use form::{Form, form};

/// The lengths of the parts of each statement that the nest computes in parts, longest first.
type Lengths = BTreeMap<usize, Vec<i64>>;

/// The program and the nest of the rest of the proof, if the nest computes recurrences in parts.
pub fn rewrite(program: &Program, nest: &LoopNest) -> ProofResult<Option<(Program, LoopNest)>> {
    let lengths = lengths(nest)?;
    if lengths.is_empty() {
        return Ok(None);
    }
    let mut rewriting = Rewriting {
        program: Program { stages: Vec::new(), ..program.clone() },
        lengths,
        next: 0,
        made: Vec::new(),
    };
    for stage in &program.stages {
        let body = rewriting.nodes(&stage.body)?;
        let mut tensors = stage.tensors.clone();
        tensors.extend(rewriting.new_tensors(&body, program.tensors.len()));
        rewriting.program.stages.push(tilewright_ir::Stage { tensors, body });
    }
    let mut nest = nest.clone();
    let mut unknown = false;
    for stmts in [&mut nest.setup, &mut nest.body] {
        walk::visit_mut(stmts, &mut |stmt| {
            if let Some(claim) = stmt.store_mut().and_then(|store| store.claim.as_deref_mut()) {
                unknown |= !rewriting.translate(claim);
            }
        });
    }
    match unknown {
        true => undecided("a store claims a value of a part that the recurrence does not have"),
        false => Ok(Some((rewriting.program, nest))),
    }
}

fn lengths(nest: &LoopNest) -> ProofResult<Lengths> {
    let mut found: BTreeMap<usize, BTreeSet<i64>> = BTreeMap::new();
    for stmts in [&nest.setup, &nest.body] {
        walk::visit(stmts, &mut |stmt: &Stmt| {
            if let Some(claim) = stmt.store().and_then(|store| store.claim.as_deref())
                && let Some(part) = claim.part
            {
                found.entry(claim.statement).or_default().insert(part.length);
            }
        });
    }
    let lengths: Lengths =
        found.into_iter().map(|(statement, own)| (statement, own.into_iter().rev().collect())).collect();
    let nested =
        |own: &Vec<i64>| own.iter().all(|one| *one > 0) && own.windows(2).all(|pair| pair[0] % pair[1] == 0);
    match lengths.values().all(nested) {
        true => Ok(lengths),
        false => undecided("the parts of a recurrence differ in their lengths"),
    }
}

/// A statement of the rewritten program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Made {
    /// The statement of the program that it comes from.
    statement: usize,
    part: Option<RecurrencePart>,
    /// The number of ordered loops, if the innermost of them runs over the positions in a part.
    in_order: Option<usize>,
}

struct Rewriting {
    program: Program,
    lengths: Lengths,
    /// The number of the next statement of the original program.
    next: usize,
    /// The statements of the rewritten program, in order.
    made: Vec<Made>,
}

impl Rewriting {
    fn nodes(&mut self, nodes: &[Node]) -> ProofResult<Vec<Node>> {
        self.nodes_at(nodes, 0)
    }

    fn nodes_at(&mut self, nodes: &[Node], depth: usize) -> ProofResult<Vec<Node>> {
        let mut out = Vec::new();
        for node in nodes {
            match node {
                Node::Statement(_) if self.lengths.contains_key(&self.next) => {
                    return undecided("a recurrence in parts is not alone in its loop");
                }
                Node::Statement(statement) => {
                    self.record(None, None);
                    self.next += 1;
                    out.push(Node::Statement(statement.clone()));
                }
                Node::For(own) => match own.body.as_slice() {
                    [Node::Statement(only)] if self.lengths.contains_key(&self.next) => {
                        out.extend(self.recurrence(own.var, only, depth)?);
                        self.next += 1;
                    }
                    _ => {
                        let body = self.nodes_at(&own.body, depth + 1)?;
                        out.push(Node::For(ForLoop { var: own.var, body }));
                    }
                },
            }
        }
        Ok(out)
    }

    fn record(&mut self, part: Option<RecurrencePart>, in_order: Option<usize>) {
        self.made.push(Made { statement: self.next, part, in_order });
    }

    /// The tensors that were added, and that statements in these nodes write.
    fn new_tensors(&self, nodes: &[Node], first: usize) -> Vec<TensorId> {
        let mut found = Vec::new();
        for node in nodes {
            match node {
                Node::Statement(own) if own.target.index() >= first => found.push(own.target),
                Node::Statement(_) => {}
                Node::For(own) => found.extend(self.new_tensors(&own.body, first)),
            }
        }
        found
    }

    /// Puts a claim in terms of the rewritten program. Returns false if the program has no such
    /// statement.
    fn translate(&self, claim: &mut Claim) -> bool {
        let is_it = |made: &Made| made.statement == claim.statement && made.part == claim.part;
        let Some(at) = self.made.iter().position(is_it) else { return false };
        if let Some(loops) = self.made[at].in_order {
            let Some(position) = claim.point.pop().filter(|_| loops <= claim.point.len() + 1) else {
                return false;
            };
            claim.point.insert(loops - 1, position);
        }
        (claim.statement, claim.part) = (at, None);
        true
    }

    /// Rewrites the loop around one statement. `depth` is the number of loops around it.
    fn recurrence(&mut self, var: VarId, statement: &Statement, depth: usize) -> ProofResult<Vec<Node>> {
        let recurrence = Recurrence::find(&self.program, var, statement)?;
        let lengths = self.lengths[&self.next].clone();
        let mut nodes = Vec::new();
        let mut starts: Option<(i64, TensorId)> = None;
        for length in lengths {
            let mut parts = Parts { rewriting: self, recurrence: &recurrence, length, depth };
            let (totals, factors) = parts.totals(&mut nodes);
            let start = parts.starts(&mut nodes, (totals, factors), starts);
            starts = Some((length, start));
        }
        let (length, start) = starts.expect("a recurrence in parts has a length");
        let position = IndexExpr::var(var).offset(-recurrence.from);
        let number = position.floor_div(&IndexExpr::constant(length));
        let begin = recurrence.load(&self.program, start, number, &[]);
        let position = position.modulo(&IndexExpr::constant(length));
        let mut own = statement.clone();
        let before = choice_unless_first(&position, recurrence.before(), begin);
        replace(&mut own.value, &recurrence.before(), &before);
        self.record(None, None);
        nodes.push(Node::For(ForLoop { var, body: vec![Node::Statement(own)] }));
        Ok(nodes)
    }
}

/// A recurrence: the only statement in an ordered loop, which reads its own element of the
/// iteration before.
struct Recurrence<'p> {
    statement: &'p Statement,
    var: VarId,
    from: i64,
    /// The number of iterations.
    count: i64,
    /// The element that the iteration before has written.
    element: Access,
    dtype: DType,
    form: Form,
}

impl<'p> Recurrence<'p> {
    fn find(program: &Program, var: VarId, statement: &'p Statement) -> ProofResult<Recurrence<'p>> {
        let refuse = || undecided("a statement in parts is not recognised as a recurrence");
        let Range { from, to } = &program.var(var).range;
        let (Some(from), Some(to)) = (from.as_constant(), to.as_constant()) else { return refuse() };
        let dtype = program.tensor(statement.target).dtype;
        let Some(element) = element_before(statement, var) else { return refuse() };
        if statement.update != Update::Assign || dtype == DType::Bool {
            return refuse();
        }
        let mut is_only_read = true;
        let mut check =
            |read: &Access| is_only_read &= read.tensor != element.tensor || read.indices == element.indices;
        statement.value.visit_reads(&mut check);
        if !is_only_read {
            return refuse();
        }
        let before = Expr { dtype, kind: ExprKind::Load(element.clone()) };
        let Some(form) = form(&statement.value, &before) else { return refuse() };
        Ok(Recurrence { statement, var, from, count: (to - from).max(0), element, dtype, form })
    }

    fn before(&self) -> Expr {
        Expr { dtype: self.dtype, kind: ExprKind::Load(self.element.clone()) }
    }

    /// An element of a tensor with a value for each part and each point of the statement's box.
    /// `copies` are the variables that stand for those of the statement.
    fn load(&self, program: &Program, tensor: TensorId, part: IndexExpr, copies: &[(VarId, VarId)]) -> Expr {
        let indices = self.indices(program, part, copies);
        Expr {
            dtype: self.dtype,
            kind: ExprKind::Load(Access { tensor, indices, origin: self.element.origin }),
        }
    }

    fn indices(&self, program: &Program, part: IndexExpr, copies: &[(VarId, VarId)]) -> Vec<IndexExpr> {
        let others = self.statement.vars.iter().map(|var| {
            let from = &program.var(*var).range.from;
            renamed(&IndexExpr::var(*var).sub(from), copies)
        });
        std::iter::once(part).chain(others).collect()
    }
}

/// The element that the iteration before has written, if all iterations write different elements:
/// one subscript is a multiple of the loop's variable plus a constant, and no other mentions it.
fn element_before(statement: &Statement, var: VarId) -> Option<Access> {
    let moving: Vec<usize> =
        (0..statement.indices.len()).filter(|at| statement.indices[*at].mentions(var)).collect();
    let [at] = moving.as_slice() else { return None };
    let index = &statement.indices[*at];
    let [term] = index.terms() else { return None };
    if term.factors.as_slice() != [Atom::Var(var)]
        || term.coefficient == 0
        || statement.indices.iter().any(IndexExpr::has_data)
    {
        return None;
    }
    let mut indices = statement.indices.clone();
    indices[*at] = index.offset(-term.coefficient);
    Some(Access { tensor: statement.target, indices, origin: statement.origin })
}

/// How the total of a part continues from one iteration to the next.
enum Next {
    Operator(BinaryOp),
    /// `factor * total + value`.
    Factor(Expr),
}

/// The statements that a length of parts adds.
struct Parts<'r, 'p> {
    rewriting: &'r mut Rewriting,
    recurrence: &'r Recurrence<'p>,
    length: i64,
    depth: usize,
}

impl Parts<'_, '_> {
    /// The number of parts, of which the last one may be shorter.
    fn count(&self) -> i64 {
        (self.recurrence.count + self.length - 1) / self.length
    }

    /// Adds the statements of the totals, and of the factors if there are any.
    fn totals(&mut self, nodes: &mut Vec<Node>) -> (TensorId, Option<TensorId>) {
        match self.recurrence.form.clone() {
            Form::Commutative(op, operand) => {
                let reduce = [ReduceOp::Add, ReduceOp::Mul, ReduceOp::Min, ReduceOp::Max];
                let totals = match reduce.into_iter().find(|reduce| reduce.operator() == op) {
                    Some(reduce) => self.reduction(nodes, PartValue::Total, reduce, &operand),
                    None => self.in_order(nodes, &Next::Operator(op), &operand),
                };
                (totals, None)
            }
            Form::Affine(factor, term) => {
                let factors = self.reduction(nodes, PartValue::Factor, ReduceOp::Mul, &factor);
                let totals = self.in_order(nodes, &Next::Factor(factor), &term);
                (totals, Some(factors))
            }
        }
    }

    /// `values(q, …) op=! value(from + length*q + t)`.
    fn reduction(&mut self, nodes: &mut Vec<Node>, kind: PartValue, op: ReduceOp, value: &Expr) -> TensorId {
        let tensor = self.add_tensor();
        let part = self.add_var("part", self.count() - 1, VarKind::Spatial);
        let position = self.add_var("position", self.length, VarKind::Reduction);
        let copies = self.copy_vars();
        let value = self.in_part(value, (part, position), &copies);
        let vars = [part].into_iter().chain(copies.iter().map(|(_, copy)| *copy)).chain([position]).collect();
        let indices = self.recurrence.indices(&self.rewriting.program, IndexExpr::var(part), &copies);
        let update = Update::Reduce { op, reset: true };
        nodes.push(Node::Statement(self.statement(tensor, indices, vars, (update, value))));
        self.record(kind, None);
        tensor
    }

    /// `for t { values(q, …) = t >= 1 ? next : value }`, where `next` combines `values(q, …)` with
    /// the value.
    fn in_order(&mut self, nodes: &mut Vec<Node>, next: &Next, value: &Expr) -> TensorId {
        let tensor = self.add_tensor();
        let part = self.add_var("part", self.count() - 1, VarKind::Spatial);
        let position = self.add_var("position", self.length, VarKind::Ordered);
        let copies = self.copy_vars();
        let first = self.in_part(value, (part, position), &copies);
        let before = self.recurrence.load(&self.rewriting.program, tensor, IndexExpr::var(part), &copies);
        let next = match next {
            Next::Operator(op) => Expr::binary(*op, before, first.clone()),
            Next::Factor(factor) => {
                let factor = self.in_part(factor, (part, position), &copies);
                Expr::binary(BinaryOp::Add, Expr::binary(BinaryOp::Mul, factor, before), first.clone())
            }
        };
        let value = choice_unless_first(&IndexExpr::var(position), next, first);
        let vars = [part].into_iter().chain(copies.iter().map(|(_, copy)| *copy)).collect();
        let indices = self.recurrence.indices(&self.rewriting.program, IndexExpr::var(part), &copies);
        let statement = self.statement(tensor, indices, vars, (Update::Assign, value));
        nodes.push(Node::For(ForLoop { var: position, body: vec![Node::Statement(statement)] }));
        self.record(PartValue::Total, Some(self.depth + 1));
        tensor
    }

    /// Adds the statement of the values before the parts. `outer` are those of longer parts.
    fn starts(
        &mut self,
        nodes: &mut Vec<Node>,
        (totals, factors): (TensorId, Option<TensorId>),
        outer: Option<(i64, TensorId)>,
    ) -> TensorId {
        let tensor = self.add_tensor();
        let part = self.add_var("part", self.count(), VarKind::Ordered);
        let copies = self.copy_vars();
        let number = IndexExpr::var(part);
        let load = |tensor: TensorId, number: IndexExpr| {
            self.recurrence.load(&self.rewriting.program, tensor, number, &copies)
        };
        let [before, total] = [tensor, totals].map(|tensor| load(tensor, number.offset(-1)));
        let next = match (&self.recurrence.form, factors) {
            (Form::Commutative(op, _), _) => Expr::binary(*op, before, total),
            (Form::Affine(..), Some(factors)) => {
                let factor = load(factors, number.offset(-1));
                Expr::binary(BinaryOp::Add, Expr::binary(BinaryOp::Mul, factor, before), total)
            }
            (Form::Affine(..), None) => unreachable!("an affine recurrence has factors"),
        };
        let value = match outer {
            Some((length, outer)) => {
                let parts = IndexExpr::constant(length / self.length);
                choice_unless_first(&number.modulo(&parts), next, load(outer, number.floor_div(&parts)))
            }
            None => {
                let first = IndexExpr::constant(self.recurrence.from);
                let begin = with_var(&self.recurrence.before(), self.recurrence.var, &first);
                choice_unless_first(&number, next, in_copies(&begin, &copies))
            }
        };
        let vars = copies.iter().map(|(_, copy)| *copy).collect();
        let indices = self.recurrence.indices(&self.rewriting.program, number, &copies);
        let statement = self.statement(tensor, indices, vars, (Update::Assign, value));
        nodes.push(Node::For(ForLoop { var: part, body: vec![Node::Statement(statement)] }));
        self.record(PartValue::Before, None);
        tensor
    }

    /// A value of the recurrence at a position in a part.
    fn in_part(&self, value: &Expr, (part, position): (VarId, VarId), copies: &[(VarId, VarId)]) -> Expr {
        let first = IndexExpr::var(part).scale(self.length).offset(self.recurrence.from);
        let at = first.add(&IndexExpr::var(position));
        in_copies(&with_var(value, self.recurrence.var, &at), copies)
    }

    fn record(&mut self, value: PartValue, in_order: Option<usize>) {
        self.rewriting.record(Some(RecurrencePart { length: self.length, value }), in_order);
    }

    fn add_tensor(&mut self) -> TensorId {
        let count = IndexExpr::constant(self.count());
        let program = &mut self.rewriting.program;
        let extents = self.recurrence.statement.vars.iter().map(|var| program.var(*var).range.extent());
        let shape = std::iter::once(count).chain(extents).collect();
        let name = format!(
            "{}.part{}",
            program.tensor(self.recurrence.statement.target).name,
            program.tensors.len()
        );
        program.tensors.push(TensorDecl { name, dtype: self.recurrence.dtype, shape, role: Role::Temporary });
        TensorId(program.tensors.len() as u32 - 1)
    }

    fn add_var(&mut self, name: &str, count: i64, kind: VarKind) -> VarId {
        let range = Range { from: IndexExpr::constant(0), to: IndexExpr::constant(count.max(0)) };
        let vars = &mut self.rewriting.program.vars;
        vars.push(Var { name: name.to_string(), range, kind });
        VarId(vars.len() as u32 - 1)
    }

    /// Copies of the statement's own variables.
    fn copy_vars(&mut self) -> Vec<(VarId, VarId)> {
        let vars = &mut self.rewriting.program.vars;
        let copy = |var: &VarId| {
            vars.push(vars[var.index()].clone());
            (*var, VarId(vars.len() as u32 - 1))
        };
        self.recurrence.statement.vars.iter().map(copy).collect()
    }

    fn statement(
        &self,
        target: TensorId,
        indices: Vec<IndexExpr>,
        vars: Vec<VarId>,
        (update, value): (Update, Expr),
    ) -> Statement {
        let origin = self.recurrence.statement.origin;
        Statement { target, indices, vars, update, value, is_filler: false, origin }
    }
}

/// `1 <= position ? value : first`.
fn choice_unless_first(position: &IndexExpr, value: Expr, first: Expr) -> Expr {
    let index = |index: IndexExpr| Expr { dtype: DType::Int64, kind: ExprKind::Index(Box::new(index)) };
    let is_later = Expr::binary(BinaryOp::LessEqual, index(IndexExpr::constant(1)), index(position.clone()));
    Expr { dtype: value.dtype, kind: ExprKind::Select(Box::new([is_later, value, first])) }
}

/// Replaces all occurrences of a part of an expression.
fn replace(expr: &mut Expr, old: &Expr, new: &Expr) {
    match expr == old {
        true => *expr = new.clone(),
        false => expr.operands_mut().iter_mut().for_each(|operand| replace(operand, old, new)),
    }
}

fn with_var(value: &Expr, var: VarId, by: &IndexExpr) -> Expr {
    let mut value = value.clone();
    value.map_indices(&mut |index| {
        index.substitute(&mut |atom| (*atom == Atom::Var(var)).then(|| by.clone()))
    });
    value
}

fn in_copies(value: &Expr, copies: &[(VarId, VarId)]) -> Expr {
    let mut value = value.clone();
    value.map_indices(&mut |index| renamed(index, copies));
    value
}

fn renamed(index: &IndexExpr, copies: &[(VarId, VarId)]) -> IndexExpr {
    let copy = |var: &VarId| copies.iter().find(|(own, _)| own == var).map(|(_, copy)| IndexExpr::var(*copy));
    index.substitute(&mut |atom| match atom {
        Atom::Var(var) => copy(var),
        _ => None,
    })
}
