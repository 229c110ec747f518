//! Checks the invariants of a [`Program`]: first its form, then its meaning.
//!
//! The form, which [`verify_form`] checks:
//!
//! - Every id points into its table. A variable belongs to one statement or to one loop.
//! - A known size or scalar is not below its least value, and no statement writes an input.
//! - A derived symbol is computed from scalars, and from symbols before it.
//! - An access has one subscript per dimension; shapes, ranges and preconditions contain only
//!   symbols and numbers.
//! - Operands have the types that their operator requires, and a statement's value has its target's
//!   compute type.
//! - No [`Atom::Extent`] and no [`Atom::Overflow`] is left.
//! - A statement mentions only its own variables and those of the loops around it.
//!
//! The meaning, which [`mod@crate::check`] checks on the unchecked program: accesses are in bounds,
//! elements are written once and defined before they are read. The roles of tensors, the kinds of
//! variables, the stages and the fillers are those that follow from the unchecked program. The
//! general program has symbols in place of known sizes; with these sizes it equals the program.
//!
//! `syntax` and [`crate::builder`] only make programs that pass, so a program of theirs that fails
//! is a bug. A program from elsewhere, such as a file, is checked here before anything runs it. The
//! checks of expressions are written against the `Tables` trait, so that loop nests satisfy the
//! same rules; [`crate::verify_nest()`] adds the rules for loop nests.

use std::collections::HashSet;

use thiserror::Error;

use crate::check::{Definedness, check, describe};
use crate::dtype::DType;
use crate::expr::{Access, Expr, ExprKind};
use crate::ids::{Id, Ids, InProgram};
use crate::index::{Atom, Data, IndexExpr};
use crate::operators::{BinaryOp, Builtin, UnaryOp};
use crate::precondition::Precondition;
use crate::print::{self, Names};
use crate::program::{
    Node, Program, Range, Role, Scalar, ScalarId, Statement, SymbolId, SymbolKind, TensorId, VarId,
};
use crate::unchecked::{UncheckedProgram, assemble};

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid program {program}: {what}")]
pub struct InvalidProgram {
    /// The program's name.
    pub program: String,
    /// Which invariant is violated, and where.
    pub what: String,
}

/// Checks every invariant of a program, which takes as long as it took to check the program first.
pub fn verify(program: &Program) -> Result<(), InvalidProgram> {
    verify_form(program)?;
    check_meaning(program).map_err(|what| InvalidProgram { program: program.name.clone(), what })
}

/// Checks the form of a program, and of its general program. This is cheap, and suffices for a
/// program that was checked when it was made.
pub fn verify_form(program: &Program) -> Result<(), InvalidProgram> {
    let check = Check { program };
    check.run().map_err(|what| InvalidProgram { program: program.name.clone(), what })?;
    program.general.as_deref().map_or(Ok(()), verify_form)
}

/// Checks the unchecked program, and that the program is what follows from the unchecked program.
fn check_meaning(program: &Program) -> Verdict {
    let unchecked = UncheckedProgram::from_program(program);
    let report = check(&unchecked);
    if let Some(error) = report.findings.iter().find(|finding| finding.is_error()) {
        return Err(describe(error, &unchecked));
    }
    let wanted =
        assemble(unchecked, &report.definedness).ok_or("the unchecked of the program is incomplete")?;
    for (own, wanted) in program.tensors.iter().zip(&wanted.tensors) {
        ensure(own.role == wanted.role, || {
            let (name, found, needed) = (&own.name, own.role, wanted.role);
            format!("tensor `{name}` has the role {found:?}, but its uses require {needed:?}")
        })?;
    }
    for (own, wanted) in program.vars.iter().zip(&wanted.vars) {
        ensure(own.kind == wanted.kind, || {
            let (name, found, needed) = (&own.name, own.kind, wanted.kind);
            format!("variable `{name}` has the kind {found:?}, but its uses require {needed:?}")
        })?;
    }
    ensure(program.vars == wanted.vars && program.stages == wanted.stages, || {
        "the stages, fillers or variables differ from those that the statements require".to_owned()
    })?;
    program.general.as_deref().map_or(Ok(()), |general| check_general(general, program, &report.definedness))
}

/// Checks that the general program, at the sizes of the program, is the program.
fn check_general(general: &Program, program: &Program, definedness: &[Definedness]) -> Verdict {
    let mut unchecked = UncheckedProgram::from_program(general);
    let has_symbols = unchecked.symbols.len() == program.symbols.len();
    unchecked.symbols.clone_from(&program.symbols);
    let at_sizes = || {
        unchecked.specialize();
        assemble(unchecked, definedness)
    };
    let is_same = |own: Program| {
        own.preconditions == program.preconditions
            && own.derived == program.derived
            && own.tensors == program.tensors
            && own.vars == program.vars
            && has_statements_of(&own, program)
    };
    ensure(has_symbols && at_sizes().is_some_and(is_same), || {
        "the general program, at the sizes of the program, is a different program".to_owned()
    })
}

/// Returns true when two programs have the same statements in the same loops. The order of a
/// statement's variables may depend on the sizes, and does not matter.
fn has_statements_of(left: &Program, right: &Program) -> bool {
    let (left, right) = (left.statements(), right.statements());
    let is_same = |left: &Statement, right: &Statement| {
        (left.target, left.update) == (right.target, right.update)
            && (&left.indices, &left.value) == (&right.indices, &right.value)
    };
    let mut pairs = left.iter().zip(&right);
    left.len() == right.len()
        && pairs.all(|((left, around), (right, others))| around == others && is_same(left, right))
}

struct Check<'a> {
    program: &'a Program,
}

/// The result of a check: on failure, which invariant is violated and where.
pub(crate) type Verdict = Result<(), String>;

/// Returns an error with the given message unless the condition holds.
pub(crate) fn ensure(condition: bool, message: impl FnOnce() -> String) -> Verdict {
    if condition { Ok(()) } else { Err(message()) }
}

impl Check<'_> {
    fn run(&self) -> Verdict {
        self.symbols()?;
        self.derived()?;
        self.ownership()?;
        for tensor in &self.program.tensors {
            for extent in &tensor.shape {
                self.scope_with(&[]).index(extent)?;
                ensure(!extent.has_data(), || format!("the shape of {} depends on data", tensor.name))?;
            }
        }
        for Precondition { op, left, right, .. } in &self.program.preconditions {
            ensure(op.is_comparison(), || "a precondition is not a comparison".to_owned())?;
            for side in [left, right] {
                self.scope_with(&[]).index(side)?;
                ensure(!side.has_data(), || "a precondition depends on data".to_owned())?;
            }
        }
        for var in &self.program.vars {
            let Range { from, to } = &var.range;
            for end in [from, to] {
                self.scope_with(&[]).index(end)?;
                ensure(!end.has_data(), || format!("the range of {} depends on data", var.name))?;
            }
        }
        for (statement, loops) in self.program.statements() {
            self.statement(statement, &loops)?;
        }
        Ok(())
    }

    fn symbols(&self) -> Verdict {
        for symbol in &self.program.symbols {
            let fits = symbol.value.zip(symbol.least).is_none_or(|(value, least)| value >= least);
            ensure(fits, || format!("the value of {} is below its least value", symbol.name))?;
            let exists = match symbol.kind {
                SymbolKind::Size => symbol.least.is_some_and(|least| least >= 1),
                SymbolKind::Scalar(scalar) => scalar.index() < self.program.scalars.len(),
                SymbolKind::Derived => symbol.least.is_some_and(|least| least >= 0),
            };
            ensure(exists, || {
                let name = &symbol.name;
                format!(
                    "{name} is a size whose least value is below 1, or 0 if it is derived, or its scalar is missing"
                )
            })?;
        }
        Ok(())
    }

    /// Checks that each derived symbol is computed once, from scalars and from symbols that are
    /// computed before it.
    fn derived(&self) -> Verdict {
        let is_derived = |symbol: &SymbolId| self.kind_of(*symbol) == Some(SymbolKind::Derived);
        let mut known: HashSet<SymbolId> = self.symbol_ids().filter(|symbol| !is_derived(symbol)).collect();
        for own in &self.program.derived {
            let name = || format!("the derived symbol {}", own.symbol.0);
            ensure(is_derived(&own.symbol), || format!("{} is no such symbol", name()))?;
            ensure(matches!(own.value.dtype, DType::Int32 | DType::Int64), || {
                format!("{} is of type {}", name(), own.value.dtype)
            })?;
            self.scope_with(&[]).expr(&own.value)?;
            let mut reads = false;
            own.value.visit_reads(&mut |_| reads = true);
            let has_data = own.value.any_index(&mut |index| index.has_data());
            ensure(!reads && !has_data, || format!("{} depends on data", name()))?;
            ensure(own.symbols().iter().all(|symbol| known.contains(symbol)), || {
                format!("{} depends on itself or on a later one", name())
            })?;
            ensure(known.insert(own.symbol), || format!("{} is computed twice", name()))?;
        }
        ensure(self.symbol_ids().all(|symbol| known.contains(&symbol)), || {
            "nothing computes a derived symbol".to_owned()
        })
    }

    fn symbol_ids(&self) -> impl Iterator<Item = SymbolId> {
        (0..self.program.symbols.len() as u32).map(SymbolId)
    }

    fn kind_of(&self, symbol: SymbolId) -> Option<SymbolKind> {
        self.program.symbols.get(symbol.index()).map(|symbol| symbol.kind)
    }

    /// Checks that every variable of a statement or loop exists, and belongs to it alone.
    fn ownership(&self) -> Verdict {
        let mut owned = HashSet::new();
        self.program.stages.iter().try_for_each(|stage| self.check_owners(&stage.body, &mut owned))
    }

    fn check_owners(&self, nodes: &[Node], owned: &mut HashSet<VarId>) -> Verdict {
        for node in nodes {
            let vars = match node {
                Node::Statement(statement) => statement.vars.as_slice(),
                Node::For(inner) => std::slice::from_ref(&inner.var),
            };
            for var in vars {
                let exists = var.index() < self.program.vars.len();
                ensure(exists && owned.insert(*var), || {
                    format!("variable {} does not exist, or belongs to two statements or loops", var.0)
                })?;
            }
            if let Node::For(inner) = node {
                self.check_owners(&inner.body, owned)?;
            }
        }
        Ok(())
    }

    /// The view of the program from a statement with these variables in scope.
    fn scope_with<'b>(&'b self, vars: &'b [VarId]) -> ProgramScope<'b> {
        ProgramScope { program: self.program, vars }
    }

    fn statement(&self, statement: &Statement, loops: &[VarId]) -> Verdict {
        let vars: Vec<VarId> = loops.iter().chain(&statement.vars).copied().collect();
        ensure(statement.target.index() < self.program.tensors.len(), || {
            "the target of a statement does not exist".to_owned()
        })?;
        let target = self.program.tensor(statement.target);
        let text = || print::statement(statement, self.program);
        ensure(!matches!(target.role, Role::Input { .. }), || format!("an input is written in {}", text()))?;
        ensure(statement.indices.len() == target.shape.len(), || {
            format!("the number of subscripts of the target is not its rank, in {}", text())
        })?;
        for index in &statement.indices {
            self.scope_with(&vars).index(index)?;
        }
        ensure(statement.value.dtype == target.dtype.compute_type(), || {
            let (value, stored) = (statement.value.dtype, target.dtype);
            format!("a value of type {value} for a tensor of type {stored}, in {}", text())
        })?;
        self.scope_with(&vars).expr(&statement.value)
    }
}

struct ProgramScope<'a> {
    program: &'a Program,
    vars: &'a [VarId],
}

impl Tables for ProgramScope<'_> {
    fn names(&self) -> &dyn Names {
        self.program
    }
    fn in_scope(&self, var: VarId) -> bool {
        self.vars.contains(&var)
    }
    fn has_symbol(&self, symbol: SymbolId) -> bool {
        symbol.index() < self.program.symbols.len()
    }
    fn scalar(&self, id: ScalarId) -> Option<&Scalar> {
        self.program.scalars.get(id.index())
    }
    fn tensor(&self, id: TensorId) -> Option<(DType, usize)> {
        self.program.tensors.get(id.index()).map(|tensor| (tensor.dtype, tensor.shape.len()))
    }
}

/// The tables that the ids of an expression point into, at one position of the program, and the
/// rules for the expression.
pub(crate) trait Tables<I: Ids = InProgram> {
    /// The names behind the ids.
    fn names(&self) -> &dyn Names<I>;
    /// Returns true when the variable is in scope here.
    fn in_scope(&self, var: I::Var) -> bool;
    /// Returns true when the symbol exists.
    fn has_symbol(&self, symbol: SymbolId) -> bool;
    /// A scalar parameter, if it exists.
    fn scalar(&self, id: ScalarId) -> Option<&Scalar>;
    /// The type and the rank of a tensor, if it exists.
    fn tensor(&self, id: I::Tensor) -> Option<(DType, usize)>;
    /// Checks the rules for an access to an existing tensor beyond its type and rank.
    fn check_access_rules(&self, _: &Access<I>) -> Verdict {
        Ok(())
    }

    /// Checks a subscript, bound or extent.
    fn index(&self, expr: &IndexExpr<I>) -> Verdict {
        let mut verdict = Ok(());
        expr.visit_atoms(&mut |atom| {
            let found = match atom {
                Atom::Var(var) if !self.in_scope(*var) => {
                    Err(format!("variable {} out of scope", var.index()))
                }
                Atom::Symbol(symbol) if !self.has_symbol(*symbol) => {
                    Err(format!("symbol {} does not exist", symbol.0))
                }
                Atom::Extent(..) => Err("an extent was never inferred".to_owned()),
                Atom::Overflow => Err("a number overflows 64 bits".to_owned()),
                _ => Ok(()),
            };
            if verdict.is_ok() {
                verdict = found;
            }
        });
        verdict?;
        let mut data = Vec::new();
        outermost_data(expr, &mut data);
        for Data { value, declared } in data {
            ensure(!value.dtype.is_float(), || "an index has a float type".to_owned())?;
            self.expr(value)?;
            if let Some((from, to)) = declared {
                self.index(from)?;
                self.index(to)?;
            }
        }
        Ok(())
    }

    /// Checks an access that is read as a value of `dtype`.
    fn load(&self, access: &Access<I>, dtype: DType) -> Verdict {
        let (declared, _) = self.tensor(access.tensor).ok_or("the tensor of an access does not exist")?;
        let name = || self.names().tensor(access.tensor).to_owned();
        ensure(declared == dtype, || {
            format!("an access to {} has the type {dtype}, but the tensor has {declared}", name())
        })?;
        self.access(access)
    }

    /// Checks an access, read or written.
    fn access(&self, access: &Access<I>) -> Verdict {
        let (_, rank) = self.tensor(access.tensor).ok_or("the tensor of an access does not exist")?;
        let name = || self.names().tensor(access.tensor).to_owned();
        let count = access.indices.len();
        ensure(count == rank, || {
            format!("the number of subscripts of {} is {count}, but its rank is {rank}", name())
        })?;
        access.indices.iter().try_for_each(|index| self.index(index))?;
        self.check_access_rules(access)
    }

    /// Checks a value.
    fn expr(&self, expr: &Expr<I>) -> Verdict {
        let expect_type = |operand: &Expr<I>, dtype: DType| {
            ensure(operand.dtype == dtype, || {
                format!("{} where {dtype} is needed: {}", operand.dtype, print::expr(operand, self.names()))
            })
        };
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Cast(_) => {}
            ExprKind::Index(index) => self.index(index)?,
            ExprKind::Scalar(id) => {
                let scalar = self.scalar(*id).ok_or("a scalar does not exist")?;
                ensure(scalar.dtype == expr.dtype, || {
                    let Scalar { name, dtype } = scalar;
                    format!("a use of scalar {name} has the type {}, but the scalar has {dtype}", expr.dtype)
                })?;
            }
            ExprKind::Load(access) => self.load(access, expr.dtype)?,
            ExprKind::Unary(op, operand) => {
                ensure(*op != UnaryOp::Not || expr.dtype == DType::Bool, || {
                    format!("the result of `!` has the type {}, not bool", expr.dtype)
                })?;
                ensure(*op != UnaryOp::Complement || expr.dtype.is_integer(), || {
                    format!("the result of `~` has the type {}, not an integer type", expr.dtype)
                })?;
                expect_type(operand, expr.dtype)?;
            }
            ExprKind::Binary(op, operands) => {
                let [left, right] = operands.as_ref();
                let is_truth = op.is_comparison() || op.is_logical();
                ensure(!is_truth || expr.dtype == DType::Bool, || {
                    format!("the result of `{}` has the type {}, not bool", op.symbol(), expr.dtype)
                })?;
                ensure(!op.is_on_integers() || expr.dtype.is_integer(), || {
                    format!(
                        "the result of `{}` has the type {}, not an integer type",
                        op.symbol(),
                        expr.dtype
                    )
                })?;
                let wanted = match op {
                    BinaryOp::And | BinaryOp::Or => DType::Bool,
                    op if op.is_comparison() => left.dtype,
                    _ => expr.dtype,
                };
                expect_type(left, wanted)?;
                expect_type(right, wanted)?;
            }
            ExprKind::Select(operands) => {
                expect_type(&operands[0], DType::Bool)?;
                expect_type(&operands[1], expr.dtype)?;
                expect_type(&operands[2], expr.dtype)?;
            }
            ExprKind::Call(builtin, arguments) => {
                ensure(arguments.len() == builtin.arity(), || {
                    let (name, arity, found) = (builtin.name(), builtin.arity(), arguments.len());
                    format!("`{name}` takes {arity} arguments, but has {found}")
                })?;
                let is_truth = builtin.is_predicate();
                ensure(!is_truth || expr.dtype == DType::Bool, || {
                    format!("the result of `{}` has the type {}, not bool", builtin.name(), expr.dtype)
                })?;
                let is_on_integers = builtin.is_on_integers();
                let is_right = match builtin {
                    Builtin::Philox => expr.dtype == DType::UInt32,
                    _ => !is_on_integers || expr.dtype.is_integer(),
                };
                ensure(is_right, || {
                    format!("the result of `{}` has the type {}", builtin.name(), expr.dtype)
                })?;
                for argument in arguments {
                    if builtin.is_predicate() {
                        ensure(argument.dtype.is_float(), || {
                            format!("the argument of `{}` is not a float", builtin.name())
                        })?;
                    } else {
                        expect_type(argument, expr.dtype)?;
                    }
                }
            }
        }
        expr.operands().iter().try_for_each(|operand| self.expr(operand))
    }
}

/// Collects the data in a subscript that is not inside other data. The check of each outer data
/// value covers the data inside it, so nested subscripts are checked only once.
fn outermost_data<'e, I: Ids>(expr: &'e IndexExpr<I>, found: &mut Vec<&'e Data<I>>) {
    for factor in expr.terms().iter().flat_map(|term| &term.factors) {
        match factor {
            Atom::Data(data) => found.push(data),
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                outermost_data(&pair.0, found);
                outermost_data(&pair.1, found);
            }
            Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => {}
        }
    }
}
