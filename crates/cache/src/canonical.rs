//! Translates programs and schedules to canonical names, which do not depend on the user's
//! names, and translates schedules back.
//!
//! `Canonical::new` takes a program and makes its canonical text. Two functions that differ only
//! in names, comments and layout have the same canonical text. Every change of the computation
//! changes the text: each node is written with its type, and operands stand in parentheses.
//!
//! Tensors are named `t0`, `t1`, … in the order of the signature and then of definition. In the
//! same way, variables are `v0`, …, sizes and the integer scalars of subscripts are `s0`, …, and
//! scalars are `p0`, …. The text describes the program for all sizes ([`Program::general`]). So a
//! program has one text for all its sizes, and the values of the sizes are kept beside the text.

use std::fmt::Write;

use tilewright_ir::{
    Access, Atom, BinaryOp, Expr, ExprKind, IndexExpr, Node, Number, Program, Range, Role, Statement, Symbol,
    SymbolKind, Term, UnaryOp, Update, VarId, VarKind,
};
use tilewright_schedule::{NamingScheme, RenamedSchedule, Schedule, rename, text as schedule_text};
use tilewright_target::Target;

use crate::key::{ProgramKey, TargetFingerprint};
use crate::record::TuningRecord;

/// A program, with a copy in canonical names and its canonical text.
#[derive(Clone, Debug)]
pub struct Canonical {
    program: Program,
    renamed: Program,
    text: String,
}

impl Canonical {
    /// The canonical form of a program whose sizes are all known.
    pub fn new(program: &Program) -> Canonical {
        let general = program.general.as_deref().unwrap_or(program);
        Canonical { program: program.clone(), renamed: with_canonical_names(program), text: text(general) }
    }

    /// The canonical text: the program in canonical names, for all sizes.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The values of sizes and of the integer scalars in subscripts, under their canonical names.
    pub fn sizes(&self) -> Vec<(String, i64)> {
        let known =
            self.renamed.symbols.iter().filter_map(|symbol| Some((symbol.name.clone(), symbol.value?)));
        known.collect()
    }

    /// The program's own name of a canonical size: `M` for `s0`.
    pub fn program_size_name<'a>(&'a self, canonical: &'a str) -> &'a str {
        let named = self.renamed.symbols.iter().position(|symbol| symbol.name == canonical);
        named.map_or(canonical, |at| &self.program.symbols[at].name)
    }

    /// The program and its sizes in the program's own names: `mm M=64,K=32`.
    pub fn title(&self) -> String {
        let known = self.program.symbols.iter().filter_map(|symbol| Some((&symbol.name, symbol.value?)));
        let sizes: Vec<String> = known.map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {}", self.program.name, sizes.join(",")).trim_end().to_owned()
    }

    /// The cache key of the program on this CPU or on one of its devices.
    pub fn key_on<'t>(&self, target: impl Into<Target<'t>>) -> ProgramKey {
        let hardware = target.into().hardware();
        self.key(&TargetFingerprint::of_hardware(hardware, &hardware.model()), hardware.parallel_units().0)
    }

    /// The cache key of the program on a target, with this many threads.
    pub fn key(&self, target: &TargetFingerprint, threads: usize) -> ProgramKey {
        ProgramKey { canonical: self.text.clone(), sizes: self.sizes(), target: target.clone(), threads }
    }

    /// Translates a schedule of the program to canonical names, the form in which the cache keeps
    /// schedules. A refused step is the last step of the result.
    pub fn to_canonical<'t>(&'t self, schedule: &Schedule, target: impl Into<Target<'t>>) -> RenamedSchedule {
        rename(schedule, &self.program, &self.renamed, target, NamingScheme::Numbered)
    }

    /// Translates the schedule of a record to the names of this program. A schedule that was tuned
    /// for other sizes or another machine may be refused here.
    pub fn schedule_of<'t>(
        &'t self,
        record: &TuningRecord,
        target: impl Into<Target<'t>>,
    ) -> RenamedSchedule {
        self.to_program_names(&schedule_text::parse(&record.schedule).schedule, target)
    }

    /// Translates a schedule in canonical names to the names of this program.
    pub fn to_program_names<'t>(
        &'t self,
        schedule: &Schedule,
        target: impl Into<Target<'t>>,
    ) -> RenamedSchedule {
        rename(schedule, &self.renamed, &self.program, target, NamingScheme::Derived)
    }
}

fn with_canonical_names(program: &Program) -> Program {
    let mut named = program.clone();
    let number = |prefix: char, names: &mut dyn Iterator<Item = &mut String>| {
        names.enumerate().for_each(|(at, name)| *name = format!("{prefix}{at}"));
    };
    number('s', &mut named.symbols.iter_mut().map(|symbol| &mut symbol.name));
    number('p', &mut named.scalars.iter_mut().map(|scalar| &mut scalar.name));
    number('t', &mut named.tensors.iter_mut().map(|tensor| &mut tensor.name));
    number('v', &mut named.vars.iter_mut().map(|var| &mut var.name));
    named
}

/// The canonical text of a program for all sizes. Every change of this notation needs a new
/// `NOTATION`.
fn text(program: &Program) -> String {
    let mut out = format!("program {NOTATION}\n");
    if !program.contract {
        out.push_str("every operation rounded\n");
    }
    for (at, own) in program.symbols.iter().enumerate() {
        let _ = writeln!(out, "s{at} {}", symbol(own));
    }
    for derived in &program.derived {
        let _ = writeln!(out, "s{} = {}", derived.symbol.0, expr(&derived.value));
    }
    for (at, scalar) in program.scalars.iter().enumerate() {
        let _ = writeln!(out, "p{at} {}", scalar.dtype);
    }
    for (at, tensor) in program.tensors.iter().enumerate() {
        let _ = writeln!(out, "t{at} {} {}({})", role(tensor.role), tensor.dtype, list(&tensor.shape, index));
    }
    for stage in &program.stages {
        let _ = writeln!(out, "stage {}", list(&stage.tensors, |id| format!("t{}", id.0)));
        nodes(&stage.body, program, &mut out);
    }
    out
}

/// The version of the notation of the canonical text.
const NOTATION: u32 = 1;

fn symbol(symbol: &Symbol) -> String {
    let kind = match symbol.kind {
        SymbolKind::Size => "size".to_owned(),
        SymbolKind::Scalar(id) => format!("scalar p{}", id.0),
        SymbolKind::Derived => "derived".to_owned(),
    };
    symbol.least.map_or(kind.clone(), |least| format!("{kind} from {least}"))
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Input { constant: false } => "input",
        Role::Input { constant: true } => "const",
        Role::Output => "output",
        Role::InOut => "in-out",
        Role::Temporary => "temporary",
    }
}

fn nodes(body: &[Node], program: &Program, out: &mut String) {
    for node in body {
        match node {
            Node::Statement(inner) => {
                let _ = writeln!(out, "{}", statement(inner, program));
            }
            Node::For(inner) => {
                let _ = writeln!(out, "for {} {{", variable(inner.var, program));
                nodes(&inner.body, program, out);
                out.push_str("}\n");
            }
        }
    }
}

fn statement(statement: &Statement, program: &Program) -> String {
    let update = match statement.update {
        Update::Assign => "=".to_owned(),
        Update::Reduce { op, reset } => format!("{}{}", op.symbol(), if reset { "!" } else { "" }),
    };
    format!(
        "t{}[{}] {update} {} over {}",
        statement.target.0,
        list(&statement.indices, index),
        expr(&statement.value),
        list(&statement.vars, |var| variable(*var, program))
    )
}

fn variable(id: VarId, program: &Program) -> String {
    let var = program.var(id);
    let kind = match var.kind {
        VarKind::Spatial => "spatial",
        VarKind::Reduction => "reduction",
        VarKind::Ordered => "ordered",
    };
    let Range { from, to } = &var.range;
    format!("v{} {kind} {}:{}", id.0, index(from), index(to))
}

/// A subscript or a bound, written term by term in its normal form.
fn index(expr: &IndexExpr) -> String {
    let mut parts: Vec<String> = expr.terms().iter().map(term).collect();
    if expr.constant_part() != 0 || parts.is_empty() {
        parts.push(expr.constant_part().to_string());
    }
    parts.join("+")
}

fn term(term: &Term) -> String {
    let factors = term.factors.iter().map(atom).collect::<Vec<_>>().join("*");
    if term.coefficient == 1 { factors } else { format!("{}*{factors}", term.coefficient) }
}

fn atom(atom: &Atom) -> String {
    let pair =
        |name: &str, pair: &(IndexExpr, IndexExpr)| format!("{name}({}, {})", index(&pair.0), index(&pair.1));
    match atom {
        Atom::Var(id) => format!("v{}", id.0),
        Atom::Symbol(id) => format!("s{}", id.0),
        Atom::Extent(id, dimension) => format!("extent(t{}, {dimension})", id.0),
        Atom::FloorDiv(operands) => pair("div", operands),
        Atom::Mod(operands) => pair("mod", operands),
        Atom::Min(operands) => pair("min", operands),
        Atom::Max(operands) => pair("max", operands),
        Atom::Data(data) => match &data.declared {
            None => format!("data({})", expr(&data.value)),
            Some((from, to)) => format!("data({} in {}:{})", expr(&data.value), index(from), index(to)),
        },
        Atom::Overflow => "overflow".to_owned(),
    }
}

/// A value, written as its operator, its type and its operands.
fn expr(value: &Expr) -> String {
    let dtype = value.dtype;
    match &value.kind {
        ExprKind::Literal(Number::Int(number)) => format!("{number}:{dtype}"),
        ExprKind::Literal(Number::Float(number)) => format!("{number:?}:{dtype}"),
        ExprKind::Index(inner) => format!("index:{dtype}({})", index(inner)),
        ExprKind::Scalar(id) => format!("p{}:{dtype}", id.0),
        ExprKind::Load(Access { tensor, indices, .. }) => {
            format!("t{}[{}]:{dtype}", tensor.0, list(indices, index))
        }
        ExprKind::Unary(op, operand) => {
            let name = match op {
                UnaryOp::Neg => "neg",
                UnaryOp::Not => "not",
                UnaryOp::Complement => "complement",
            };
            format!("{name}:{dtype}({})", expr(operand))
        }
        ExprKind::Binary(op, operands) => {
            format!("{}:{dtype}({})", BinaryOp::symbol(*op), list(operands.as_slice(), expr))
        }
        ExprKind::Select(operands) => format!("select:{dtype}({})", list(operands.as_slice(), expr)),
        ExprKind::Call(builtin, operands) => {
            format!("call {}:{dtype}({})", builtin.name(), list(operands, expr))
        }
        ExprKind::Cast(operand) => format!("cast:{dtype}({})", expr(operand)),
    }
}

fn list<T>(items: &[T], write: impl Fn(&T) -> String) -> String {
    items.iter().map(write).collect::<Vec<_>>().join(", ")
}
