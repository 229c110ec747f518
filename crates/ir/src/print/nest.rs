//! Prints loop nests as text, one line per loop, choice, buffer or store.

use std::fmt::Write;

use super::{Names, access, expr, index};
use crate::ids::InNest;
use crate::nest::{
    Allocate, Buffer, BufferId, Combine, For, If, IndexExpr, LoopKind, LoopNest, LoopVarId, Scope, Stmt,
    Store, Sync,
};
use crate::program::{ScalarId, SymbolId};
use crate::walk;

/// Prints a whole loop nest: its arguments, the constant buffers, the statements that fill them,
/// and the body.
///
/// Arguments that are only read are in the parentheses; arguments that are written follow the
/// arrow. A scratch, shared or register buffer is printed where it is allocated. Its body follows
/// at the same depth, or one level deeper where other statements follow the allocation. Names that
/// would be ambiguous get a number: `i`, `i_1`, and so on.
pub fn nest(nest: &LoopNest) -> String {
    let mut writer = Writer { nest, names: UniqueNames::new(nest), loops: Vec::new(), text: String::new() };
    writer.signature();
    writer.constants();
    if nest.setup.is_empty() {
        writer.statements(&nest.body, 1);
    } else {
        for (part, statements) in [("setup", &nest.setup), ("body", &nest.body)] {
            writer.line(1, part);
            writer.statements(statements, 2);
        }
    }
    writer.text
}

/// A store as text: `acc[i, j] += a[i]*b[j]`, after `atomic` if it is.
pub(crate) fn store(store: &Store, names: &dyn Names<InNest>) -> String {
    let operator = store.reduce.map_or("=", |op| op.symbol());
    let atomic = if store.is_atomic { "atomic " } else { "" };
    format!("{atomic}{} {operator} {}", access(&store.target, names), expr(&store.value, names))
}

/// A combination of threads as text: `s[i] = sum of part[t] over t`.
pub(crate) fn combine(own: &Combine, names: &dyn Names<InNest>) -> String {
    let operator = own.store.reduce.map_or("=", |op| op.symbol());
    let (target, value) = (access(&own.store.target, names), expr(&own.store.value, names));
    format!("{target} {operator} {} of {value} over {}", own.op.result_noun(), names.var(own.lane))
}

/// The condition `expr >= 0` as a comparison without negative terms: `12*i + j <= 1023`, or
/// `i >= 1`.
pub(crate) fn condition(expr: &IndexExpr, names: &dyn Names<InNest>) -> String {
    let constant = expr.constant_part();
    let mut greater = IndexExpr::constant(constant.max(0));
    let mut less = IndexExpr::constant(0).sub(&IndexExpr::constant(constant.min(0)));
    for term in expr.terms() {
        let factors = term.factors.iter().map(|factor| IndexExpr::atom(factor.clone()));
        let product = factors.fold(IndexExpr::constant(1), |product, factor| product.mul(&factor));
        if term.coefficient > 0 {
            greater = greater.add(&product.scale(term.coefficient));
        } else {
            less = less.sub(&product.scale(term.coefficient));
        }
    }
    if less.as_constant().is_some() {
        format!("{} >= {}", index(&greater, names), index(&less, names))
    } else {
        format!("{} <= {}", index(&less, names), index(&greater, names))
    }
}

/// The names as the nest has them. Invalid ids also have a name, for messages about them.
impl Names<InNest> for LoopNest {
    fn var(&self, id: LoopVarId) -> &str {
        self.vars.get(id.index()).map_or("<no variable>", |var| &var.name)
    }
    fn symbol(&self, _: SymbolId) -> &str {
        "<symbol>"
    }
    fn tensor(&self, id: BufferId) -> &str {
        self.buffers.get(id.index()).map_or("<no buffer>", |buffer| &buffer.name)
    }
    fn scalar(&self, id: ScalarId) -> &str {
        self.scalars.get(id.index()).map_or("<no scalar>", |scalar| &scalar.name)
    }
    fn brackets(&self) -> [char; 2] {
        ['[', ']']
    }
}

/// Unique names. Buffers and scalars have distinct names everywhere; the name of a loop variable
/// differs from those of the loops around it.
struct UniqueNames<'a> {
    nest: &'a LoopNest,
    buffers: Vec<String>,
    vars: Vec<String>,
}

impl<'a> UniqueNames<'a> {
    fn new(nest: &'a LoopNest) -> UniqueNames<'a> {
        let mut buffers: Vec<String> = Vec::new();
        for buffer in &nest.buffers {
            let taken = |name: &str| {
                buffers.iter().any(|other| other == name)
                    || nest.scalars.iter().any(|scalar| scalar.name == name)
            };
            buffers.push(unused_name(&buffer.name, taken));
        }
        UniqueNames { nest, buffers, vars: nest.vars.iter().map(|var| var.name.clone()).collect() }
    }

    /// Names the variable of a loop so that it differs from the variables of the loops `around` it.
    fn bind_var(&mut self, var: LoopVarId, around: &[LoopVarId]) {
        let taken = |name: &str| {
            around.iter().any(|other| self.vars[other.index()] == name)
                || self.buffers.iter().any(|buffer| buffer == name)
                || self.nest.scalars.iter().any(|scalar| scalar.name == name)
        };
        self.vars[var.index()] = unused_name(self.nest.var_name(var), taken);
    }
}

/// The name, or the first of `name_1`, `name_2`, … that is not taken.
fn unused_name(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (1..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !taken(name)).expect("only finitely many names are taken")
}

impl Names<InNest> for UniqueNames<'_> {
    fn var(&self, id: LoopVarId) -> &str {
        &self.vars[id.index()]
    }
    fn symbol(&self, id: SymbolId) -> &str {
        Names::symbol(self.nest, id)
    }
    fn tensor(&self, id: BufferId) -> &str {
        &self.buffers[id.index()]
    }
    fn scalar(&self, id: ScalarId) -> &str {
        Names::scalar(self.nest, id)
    }
    fn brackets(&self) -> [char; 2] {
        self.nest.brackets()
    }
}

struct Writer<'a> {
    nest: &'a LoopNest,
    names: UniqueNames<'a>,
    /// The variables of the surrounding loops, outermost first.
    loops: Vec<LoopVarId>,
    text: String,
}

impl Writer<'_> {
    fn line(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.text, "{:indent$}{line}", "", indent = 2 * depth);
    }

    /// `gemm(float32 A[4, 8], float32 alpha) -> float32 C[4, 8]`
    fn signature(&mut self) {
        let written = written_buffers(self.nest);
        let (results, parameters): (Vec<_>, Vec<_>) = self
            .buffers(|scope| matches!(scope, Scope::Argument(_)))
            .into_iter()
            .partition(|(id, _)| written.contains(id));
        let scalars = self.nest.scalars.iter().map(|scalar| format!("{} {}", scalar.dtype, scalar.name));
        let parameters: Vec<String> = parameters.into_iter().map(|(_, text)| text).chain(scalars).collect();
        let results: Vec<String> = results.into_iter().map(|(_, text)| text).collect();
        let arrow = if results.is_empty() { "" } else { " -> " };
        let name = &self.nest.name;
        self.line(0, &format!("{name}({}){arrow}{}", parameters.join(", "), results.join(", ")));
    }

    fn constants(&mut self) {
        for (_, text) in self.buffers(|scope| scope == Scope::Constant) {
            self.line(1, &format!("constant {text}"));
        }
    }

    /// The buffers whose scope satisfies the predicate, as text.
    fn buffers(&self, test: impl Fn(Scope) -> bool) -> Vec<(BufferId, String)> {
        let buffers = self.nest.buffers.iter().enumerate();
        let ids = buffers.filter(|(_, buffer)| test(buffer.scope)).map(|(at, _)| BufferId(at as u32));
        ids.map(|id| (id, self.declaration(id))).collect()
    }

    /// `float32 A[4, 8]`
    fn declaration(&self, id: BufferId) -> String {
        let Buffer { dtype, shape, .. } = self.nest.buffer(id);
        let shape: Vec<String> = shape.iter().map(i64::to_string).collect();
        format!("{dtype} {}[{}]", self.names.tensor(id), shape.join(", "))
    }

    fn statements(&mut self, statements: &[Stmt], depth: usize) {
        for (at, statement) in statements.iter().enumerate() {
            match statement {
                Stmt::For(inner) => self.for_loop(inner, depth),
                Stmt::If(inner) => self.choice(inner, depth),
                Stmt::Allocate(inner) => self.allocate(inner, at + 1 == statements.len(), depth),
                Stmt::Store(inner) => {
                    let text = store(inner, &self.names);
                    self.line(depth, &text);
                }
                Stmt::Prefetch(inner) => {
                    let text = format!("prefetch {}", access(&inner.element, &self.names));
                    self.line(depth, &text);
                }
                Stmt::Combine(inner) => {
                    let text = combine(inner, &self.names);
                    self.line(depth, &text);
                }
                Stmt::Sync(Sync::Barrier) => self.line(depth, "barrier"),
                Stmt::Sync(Sync::Commit) => self.line(depth, "commit"),
                Stmt::Sync(Sync::Wait(groups)) => self.line(depth, &format!("wait {groups}")),
            }
        }
    }

    fn for_loop(&mut self, inner: &For, depth: usize) {
        let kind = match inner.kind {
            LoopKind::Serial => "for",
            LoopKind::Parallel => "parallel",
            LoopKind::Vector => "vector",
            LoopKind::Unrolled => "unroll",
            LoopKind::Block(axis) => ["block.x", "block.y", "block.z"][axis as usize],
            LoopKind::Thread(axis) => ["thread.x", "thread.y", "thread.z"][axis as usize],
        };
        let extent = index(&inner.extent, &self.names);
        self.names.bind_var(inner.var, &self.loops);
        self.line(depth, &format!("{kind} {} in {extent}", self.names.var(inner.var)));
        self.loops.push(inner.var);
        self.statements(&inner.body, depth + 1);
        self.loops.pop();
    }

    fn choice(&mut self, inner: &If, depth: usize) {
        let conditions: Vec<String> =
            inner.conditions.iter().map(|expr| condition(expr, &self.names)).collect();
        let all = if conditions.is_empty() { "true".to_owned() } else { conditions.join(" && ") };
        self.line(depth, &format!("if {all}"));
        self.statements(&inner.then, depth + 1);
        if !inner.otherwise.is_empty() {
            self.line(depth, "else");
            self.statements(&inner.otherwise, depth + 1);
        }
    }

    fn allocate(&mut self, inner: &Allocate, last: bool, depth: usize) {
        let scope = match self.nest.buffer(inner.buffer).scope {
            Scope::Register => "register",
            Scope::Shared => "shared",
            Scope::Scratch | Scope::Argument(_) | Scope::Constant => "scratch",
        };
        let declaration = self.declaration(inner.buffer);
        self.line(depth, &format!("{scope} {declaration}"));
        self.statements(&inner.body, if last { depth } else { depth + 1 });
    }
}

/// The buffers that some statement stores to.
fn written_buffers(nest: &LoopNest) -> Vec<BufferId> {
    let mut out = Vec::new();
    for stmts in [&nest.setup, &nest.body] {
        walk::visit(stmts, &mut |stmt| out.extend(stmt.store().map(|store| store.target.tensor)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::expr::Origin;
    use crate::nest::{Access, Expr, ExprKind, LoopVar};
    use crate::number::Number;
    use crate::operators::BinaryOp;
    use crate::program::{ReduceOp, Scalar, TensorId};

    fn c(value: i64) -> IndexExpr {
        IndexExpr::constant(value)
    }
    fn v(var: u32) -> IndexExpr {
        IndexExpr::var(LoopVarId(var))
    }
    fn at(tensor: u32, indices: &[IndexExpr]) -> Access {
        Access { tensor: BufferId(tensor), indices: indices.to_vec(), origin: Origin::default() }
    }
    fn load(tensor: u32, indices: &[IndexExpr]) -> Expr {
        Expr { dtype: DType::Float32, kind: ExprKind::Load(at(tensor, indices)) }
    }
    fn set(target: Access, value: Expr) -> Stmt {
        Stmt::Store(Store {
            target,
            value,
            reduce: None,
            is_asynchronous: false,
            is_atomic: false,
            claim: None,
        })
    }
    fn each(kind: LoopKind, var: u32, extent: IndexExpr, body: Vec<Stmt>) -> Stmt {
        Stmt::For(For { var: LoopVarId(var), extent, kind, body })
    }
    fn buffer(name: &str, shape: &[i64], scope: Scope) -> Buffer {
        Buffer { name: name.to_owned(), dtype: DType::Float32, shape: shape.to_vec(), scope }
    }
    fn nest_of(buffers: Vec<Buffer>, vars: &[&str], body: Vec<Stmt>) -> LoopNest {
        LoopNest {
            name: "f".to_owned(),
            contract: true,
            scalars: vec![Scalar { name: "alpha".to_owned(), dtype: DType::Float32 }],
            buffers,
            vars: vars.iter().map(|name| LoopVar { name: (*name).to_owned() }).collect(),
            setup: Vec::new(),
            body,
        }
    }

    #[test]
    fn a_nest_is_read_from_top_to_bottom() {
        let argument = |id| Scope::Argument(TensorId(id));
        let index = || v(0).scale(4).add(&v(1));
        let scaled = |by: Expr| {
            let alpha = Expr { dtype: DType::Float32, kind: ExprKind::Scalar(ScalarId(0)) };
            Expr::binary(BinaryOp::Mul, alpha, by)
        };
        let sum = Store {
            target: at(3, &[v(1)]),
            value: scaled(load(2, &[v(0), v(1)])),
            reduce: Some(ReduceOp::Add),
            is_asynchronous: false,
            is_atomic: false,
            claim: None,
        };
        let zero = Expr::literal(DType::Float32, Number::Float(0.0));
        let clear = set(at(3, &[v(1)]), zero.clone());
        let add = Stmt::If(If {
            conditions: vec![c(9).sub(&index()), v(0).offset(-1)],
            then: vec![Stmt::Store(sum)],
            otherwise: vec![set(at(3, &[c(0)]), zero)],
        });
        let copy = each(LoopKind::Vector, 1, c(4), vec![set(at(1, &[index()]), load(3, &[v(1)]))]);
        let body = Stmt::Allocate(Allocate {
            buffer: BufferId(3),
            body: vec![
                each(LoopKind::Unrolled, 1, c(4), vec![clear]),
                each(LoopKind::Serial, 1, v(0).minimum(&c(4)), vec![add]),
                copy,
            ],
        });
        let mut nest = nest_of(
            vec![
                buffer("A", &[10], argument(0)),
                buffer("C", &[10], argument(1)),
                buffer("P", &[3, 4], Scope::Constant),
                buffer("acc", &[4], Scope::Register),
            ],
            &["io", "ii"],
            vec![each(LoopKind::Parallel, 0, c(2), vec![body])],
        );
        nest.setup = vec![set(at(2, &[c(0), c(0)]), load(0, &[c(0)]))];
        assert_eq!(
            super::nest(&nest),
            "\
f(float32 A[10], float32 alpha) -> float32 C[10]
  constant float32 P[3, 4]
  setup
    P[0, 0] = A[0]
  body
    parallel io in 2
      register float32 acc[4]
      unroll ii in 4
        acc[ii] = 0.0
      for ii in min(4, io)
        if 4*io + ii <= 9 && io >= 1
          acc[ii] += alpha * P[io, ii]
        else
          acc[0] = 0.0
      vector ii in 4
        C[4*io + ii] = acc[ii]
"
        );
    }

    #[test]
    fn equal_names_get_numbers() {
        let scratch = |name| buffer(name, &[8], Scope::Scratch);
        let inner = |var| {
            each(LoopKind::Serial, var, c(4), vec![set(at(0, &[v(0).add(&v(var))]), load(1, &[v(var)]))])
        };
        let body = vec![
            Stmt::Allocate(Allocate {
                buffer: BufferId(0),
                body: vec![Stmt::Allocate(Allocate {
                    buffer: BufferId(1),
                    body: vec![each(LoopKind::Serial, 0, c(4), vec![inner(1), inner(2)])],
                })],
            }),
            each(LoopKind::Serial, 1, c(2), vec![]),
        ];
        let nest = nest_of(vec![scratch("i"), scratch("i")], &["i", "i", "i_2"], body);
        assert_eq!(
            super::nest(&nest),
            "\
f(float32 alpha)
  scratch float32 i[8]
    scratch float32 i_1[8]
    for i_2 in 4
      for i_3 in 4
        i[i_2 + i_3] = i_1[i_3]
      for i_2_1 in 4
        i[i_2 + i_2_1] = i_1[i_2_1]
  for i_2 in 2
"
        );
    }

    #[test]
    fn conditions_have_no_negative_terms() {
        let nest = nest_of(Vec::new(), &["i", "j"], Vec::new());
        let text = |expr: IndexExpr| condition(&expr, &nest);
        assert_eq!(text(c(1012).sub(&v(0).scale(12))), "12*i <= 1012");
        assert_eq!(text(v(0).sub(&v(1)).offset(-2)), "j + 2 <= i");
        assert_eq!(text(v(0).offset(-1)), "i >= 1");
        assert_eq!(text(v(0).add(&v(1))), "i + j >= 0");
        assert_eq!(text(v(0).scale(-1)), "i <= 0");
        assert_eq!(text(c(-5)), "0 >= 5");
    }
}
