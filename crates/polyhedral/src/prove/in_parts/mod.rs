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
//! for v in from:to {
//!   start(p) = p >= L ? start(p - L) + total(p / L - 1) : y(v - 1)
//!   y(v) = (p % L >= 1 ? y(v - 1) : start(p)) + e(v)
//! }                                        with p = v - from
//! ```
//!
//! Both programs have the same results, up to the rounding of floats: by induction, `start(p)` is
//! `y(v - 1)` where a part begins, since `total(p / L - 1)` combines exactly the values between.
//! The other elements of `start` are not used, and no nest computes them. This needs that `e` does
//! not read `y`, that all iterations write different elements, and that nothing else is in the
//! loop, all of which the module checks. The last part may have fewer than `L` iterations; its
//! total is not needed, and does not exist in the rewritten program.
//!
//! An ordered loop around the parts lets them begin anew: `p % W >= L` is then the condition, where
//! `W` is the number of iterations of that loop's body. Parts may have parts: where both begin
//! together, the `start` of an inner part is that of the outer part. `form` takes the value of the
//! recurrence apart.

mod form;

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::nest::{Claim, LoopNest, PartValue, RecurrencePart, Stmt};
use tilewright_ir::{
    Access, Atom, BinaryOp, DType, Expr, ExprKind, ForLoop, IndexExpr, Node, Program, Range, ReduceOp, Role,
    Statement, TensorDecl, TensorId, Update, Var, VarId, VarKind, walk,
};

use super::{ProofResult, undecided};
use form::{Form, form};

/// The parts of each statement that the nest computes in parts, longest first.
type AllParts = BTreeMap<usize, Vec<PartSize>>;

/// The sizes of the parts that one `scan` makes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PartSize {
    /// The number of iterations of a part.
    length: i64,
    /// The number of iterations after which the parts begin anew; 0 if they never do.
    within: i64,
}

/// The program and the nest of the rest of the proof, if the nest computes recurrences in parts.
pub fn rewrite(program: &Program, nest: &LoopNest) -> ProofResult<Option<(Program, LoopNest)>> {
    let parts = part_sizes(nest)?;
    if parts.is_empty() {
        return Ok(None);
    }
    let mut rewriting = Rewriting {
        program: Program { stages: Vec::new(), ..program.clone() },
        parts,
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

fn part_sizes(nest: &LoopNest) -> ProofResult<AllParts> {
    let mut found: BTreeMap<usize, BTreeSet<PartSize>> = BTreeMap::new();
    for stmts in [&nest.setup, &nest.body] {
        walk::visit(stmts, &mut |stmt: &Stmt| {
            if let Some(claim) = stmt.store().and_then(|store| store.claim.as_deref())
                && let Some(RecurrencePart { length, within, .. }) = claim.part
            {
                found.entry(claim.statement).or_default().insert(PartSize { length, within });
            }
        });
    }
    let parts: AllParts =
        found.into_iter().map(|(statement, own)| (statement, own.into_iter().rev().collect())).collect();
    let is_whole = |own: &PartSize| own.length > 0 && own.within >= 0 && own.within % own.length == 0;
    let are_nested = |own: &Vec<PartSize>| {
        own.iter().all(is_whole) && own.windows(2).all(|pair| pair[0].length % pair[1].length == 0)
    };
    match parts.values().all(are_nested) {
        true => Ok(parts),
        false => undecided("the parts of a recurrence differ in their lengths"),
    }
}

/// A statement of the rewritten program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Made {
    /// The statement of the program that it comes from.
    statement: usize,
    part: Option<RecurrencePart>,
    /// How its instances differ from those that the claims name.
    point: Point,
}

/// How the instances of a statement of the rewritten program differ from those that claims name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    /// Not at all.
    Same,
    /// Claims name the position in a part last. It is the variable of the innermost of this number
    /// of ordered loops.
    InOrder(usize),
    /// Claims name a part where the instance has, at this place, the first iteration of the part:
    /// `from + length * part`.
    FirstIteration { place: usize, from: i64, length: i64 },
}

struct Rewriting {
    program: Program,
    parts: AllParts,
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
                Node::Statement(_) if self.parts.contains_key(&self.next) => {
                    return undecided("a recurrence in parts is not alone in its loop");
                }
                Node::Statement(statement) => {
                    self.record(None, Point::Same);
                    self.next += 1;
                    out.push(Node::Statement(statement.clone()));
                }
                Node::For(own) => match own.body.as_slice() {
                    [Node::Statement(only)] if self.parts.contains_key(&self.next) => {
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

    fn record(&mut self, part: Option<RecurrencePart>, point: Point) {
        self.made.push(Made { statement: self.next, part, point });
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
        match self.made[at].point {
            Point::Same => {}
            Point::InOrder(loops) => {
                let Some(position) = claim.point.pop().filter(|_| loops <= claim.point.len() + 1) else {
                    return false;
                };
                claim.point.insert(loops - 1, position);
            }
            Point::FirstIteration { place, from, length } => {
                let Some(part) = claim.point.get_mut(place) else { return false };
                *part = part.as_ref().map(|part| part.scale(length).offset(from));
            }
        }
        (claim.statement, claim.part) = (at, None);
        true
    }

    /// Rewrites the loop around one statement. `depth` is the number of loops around it.
    fn recurrence(&mut self, var: VarId, statement: &Statement, depth: usize) -> ProofResult<Vec<Node>> {
        let recurrence = Recurrence::find(&self.program, var, statement)?;
        let sizes = self.parts[&self.next].clone();
        let mut nodes = Vec::new();
        let totals: Vec<Totals> = sizes
            .iter()
            .map(|size| {
                Parts { rewriting: self, recurrence: &recurrence, size: *size, depth }.totals(&mut nodes)
            })
            .collect();
        let (mut body, mut before) = (Vec::new(), recurrence.before());
        for (size, totals) in sizes.iter().zip(totals) {
            let mut parts = Parts { rewriting: self, recurrence: &recurrence, size: *size, depth };
            let starts = parts.starts(&mut body, totals, &before);
            let begin = recurrence.load(&self.program, starts, recurrence.position(), &[]);
            let position = recurrence.position().modulo(&IndexExpr::constant(size.length));
            before = choice_unless_first(&position, recurrence.before(), begin);
        }
        let mut own = statement.clone();
        replace(&mut own.value, &recurrence.before(), &before);
        self.record(None, Point::Same);
        body.push(Node::Statement(own));
        nodes.push(Node::For(ForLoop { var, body }));
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

    /// The number of iterations before this one.
    fn position(&self) -> IndexExpr {
        IndexExpr::var(self.var).offset(-self.from)
    }

    /// An element of a tensor with a value for each part, or each iteration, and each point of the
    /// statement's box. `copies` are the variables that stand for those of the statement.
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
    size: PartSize,
    depth: usize,
}

/// The tensors with the totals of the parts, and the products of their factors if there are any.
type Totals = (TensorId, Option<TensorId>);

impl Parts<'_, '_> {
    /// The number of parts, of which the last one may be shorter.
    fn count(&self) -> i64 {
        (self.recurrence.count + self.size.length - 1) / self.size.length
    }

    /// Adds the statements of the totals, and of the factors if there are any.
    fn totals(&mut self, nodes: &mut Vec<Node>) -> Totals {
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
        let tensor = self.add_tensor(self.count());
        let part = self.add_var("part", self.count() - 1, VarKind::Spatial);
        let position = self.add_var("position", self.size.length, VarKind::Reduction);
        let copies = self.copy_vars();
        let value = self.in_part(value, (part, position), &copies);
        let vars = [part].into_iter().chain(copies.iter().map(|(_, copy)| *copy)).chain([position]).collect();
        let indices = self.recurrence.indices(&self.rewriting.program, IndexExpr::var(part), &copies);
        let update = Update::Reduce { op, reset: true };
        nodes.push(Node::Statement(self.statement(tensor, indices, vars, (update, value))));
        self.record(kind, Point::Same);
        tensor
    }

    /// `for t { values(q, …) = t >= 1 ? next : value }`, where `next` combines `values(q, …)` with
    /// the value.
    fn in_order(&mut self, nodes: &mut Vec<Node>, next: &Next, value: &Expr) -> TensorId {
        let tensor = self.add_tensor(self.count());
        let part = self.add_var("part", self.count() - 1, VarKind::Spatial);
        let position = self.add_var("position", self.size.length, VarKind::Ordered);
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
        self.record(PartValue::Total, Point::InOrder(self.depth + 1));
        tensor
    }

    /// Adds the statement of the values before the parts. `before` is the value before an
    /// iteration, in terms of longer parts.
    fn starts(&mut self, body: &mut Vec<Node>, (totals, factors): Totals, before: &Expr) -> TensorId {
        let PartSize { length, within } = self.size;
        let count = self.recurrence.count;
        let tensor = self.add_tensor(count);
        let copies = self.copy_vars();
        let position = self.recurrence.position();
        let load = |tensor: TensorId, at: IndexExpr| {
            self.recurrence.load(&self.rewriting.program, tensor, at, &copies)
        };
        let part_before = position.floor_div(&IndexExpr::constant(length)).offset(-1);
        let (start, total) = (load(tensor, position.offset(-length)), load(totals, part_before.clone()));
        let next = match (&self.recurrence.form, factors) {
            (Form::Commutative(op, _), _) => Expr::binary(*op, start, total),
            (Form::Affine(..), Some(factors)) => {
                let product = Expr::binary(BinaryOp::Mul, load(factors, part_before), start);
                Expr::binary(BinaryOp::Add, product, total)
            }
            (Form::Affine(..), None) => unreachable!("an affine recurrence has factors"),
        };
        let since_beginning = match within {
            0 => position.clone(),
            _ => position.modulo(&IndexExpr::constant(within)),
        };
        let value =
            choice_unless_first(&since_beginning.offset(1 - length), next, in_copies(before, &copies));
        let vars = copies.iter().map(|(_, copy)| *copy).collect();
        let indices = self.recurrence.indices(&self.rewriting.program, position, &copies);
        body.push(Node::Statement(self.statement(tensor, indices, vars, (Update::Assign, value))));
        let from = self.recurrence.from;
        self.record(PartValue::Before, Point::FirstIteration { place: self.depth, from, length });
        tensor
    }

    /// A value of the recurrence at a position in a part.
    fn in_part(&self, value: &Expr, (part, position): (VarId, VarId), copies: &[(VarId, VarId)]) -> Expr {
        let first = IndexExpr::var(part).scale(self.size.length).offset(self.recurrence.from);
        let at = first.add(&IndexExpr::var(position));
        in_copies(&with_var(value, self.recurrence.var, &at), copies)
    }

    fn record(&mut self, value: PartValue, point: Point) {
        let PartSize { length, within } = self.size;
        self.rewriting.record(Some(RecurrencePart { length, within, value }), point);
    }

    /// Adds a tensor with `count` elements for each point of the statement's box.
    fn add_tensor(&mut self, count: i64) -> TensorId {
        let count = IndexExpr::constant(count);
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
