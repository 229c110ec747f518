//! Prints programs, expressions and subscripts as text, in the language's own notation where it has
//! one. [`nest()`] prints loop nests, which write their subscripts in square brackets.

mod nest;

pub use nest::nest;
pub(crate) use nest::{combine, condition, store};

use std::fmt::Write;

use crate::expr::{Access, BinaryOp, Expr, ExprKind, Number, UnaryOp};
use crate::index::{Atom, IndexExpr, Term};
use crate::program::{
    Node, Program, Range, Role, ScalarId, Statement, SymbolId, TensorId, Update, VarId, VarKind,
};

/// The names behind the ids.
pub trait Names {
    /// The name of a variable.
    fn var(&self, id: VarId) -> &str;
    /// The name of a size or integer scalar.
    fn symbol(&self, id: SymbolId) -> &str;
    /// The name of a tensor.
    fn tensor(&self, id: TensorId) -> &str;
    /// The name of a scalar.
    fn scalar(&self, id: ScalarId) -> &str;
    /// The brackets around the subscripts of an element.
    fn brackets(&self) -> [char; 2] {
        ['(', ')']
    }
}

impl Names for Program {
    fn var(&self, id: VarId) -> &str {
        &self.vars[id.index()].name
    }
    fn symbol(&self, id: SymbolId) -> &str {
        &self.symbols[id.index()].name
    }
    fn tensor(&self, id: TensorId) -> &str {
        &self.tensors[id.index()].name
    }
    fn scalar(&self, id: ScalarId) -> &str {
        &self.scalars[id.index()].name
    }
}

/// The binding strength of an expression, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tightness {
    Ternary,
    Or,
    And,
    Compare,
    Sum,
    Product,
    Unary,
    Leaf,
}

fn parenthesised(text: String, tightness: Tightness, at_least: Tightness) -> String {
    if tightness < at_least { format!("({text})") } else { text }
}

/// An index expression as text.
pub fn index(expr: &IndexExpr, names: &dyn Names) -> String {
    index_at(expr, names, Tightness::Ternary)
}

fn index_at(expr: &IndexExpr, names: &dyn Names, at_least: Tightness) -> String {
    if let Some(value) = expr.as_constant() {
        return if value < 0 {
            parenthesised(value.to_string(), Tightness::Unary, at_least)
        } else {
            value.to_string()
        };
    }
    let (first, rest): (Vec<&Term>, Vec<&Term>) = expr.terms().iter().partition(|term| term.coefficient > 0);
    let mut text = String::new();
    let leading_constant = first.is_empty() && expr.constant_part() > 0;
    if leading_constant {
        text.push_str(&expr.constant_part().to_string());
    }
    for term in first.iter().chain(&rest) {
        match (text.is_empty(), term.coefficient < 0) {
            (true, true) => text.push('-'),
            (true, false) => {}
            (false, true) => text.push_str(" - "),
            (false, false) => text.push_str(" + "),
        }
        text.push_str(&product(term, names));
    }
    match expr.constant_part() {
        0 => {}
        _ if leading_constant => {}
        constant if constant < 0 => {
            let _ = write!(text, " - {}", constant.unsigned_abs());
        }
        constant => {
            let _ = write!(text, " + {constant}");
        }
    }
    let one_product = expr.terms().len() == 1 && expr.constant_part() == 0;
    let term = &expr.terms()[0];
    let tightness = match (one_product, term.coefficient) {
        (false, _) => Tightness::Sum,
        (true, 1)
            if term.factors.len() == 1 && !matches!(term.factors[0], Atom::FloorDiv(_) | Atom::Mod(_)) =>
        {
            Tightness::Leaf
        }
        (true, _) => Tightness::Product,
    };
    parenthesised(text, tightness, at_least)
}

fn product(term: &Term, names: &dyn Names) -> String {
    let mut parts = Vec::new();
    if term.coefficient.unsigned_abs() != 1 {
        parts.push(term.coefficient.unsigned_abs().to_string());
    }
    let alone = term.coefficient == 1 && term.factors.len() == 1;
    for factor in &term.factors {
        let text = atom(factor, names);
        let division = matches!(factor, Atom::FloorDiv(_) | Atom::Mod(_));
        parts.push(if division && !alone { format!("({text})") } else { text });
    }
    parts.join("*")
}

fn atom(atom: &Atom, names: &dyn Names) -> String {
    match atom {
        Atom::Var(var) => names.var(*var).to_owned(),
        Atom::Symbol(symbol) => names.symbol(*symbol).to_owned(),
        Atom::Extent(tensor, dimension) => format!("{}.{dimension}", names.tensor(*tensor)),
        Atom::FloorDiv(pair) => infix(pair, "/", names),
        Atom::Mod(pair) => infix(pair, " % ", names),
        Atom::Min(pair) => format!("min({}, {})", index(&pair.0, names), index(&pair.1, names)),
        Atom::Max(pair) => format!("max({}, {})", index(&pair.0, names), index(&pair.1, names)),
        Atom::Data(data) => expr_at(&data.value, names, Tightness::Or),
        Atom::Overflow => "<too large>".to_owned(),
    }
}

fn infix(pair: &(IndexExpr, IndexExpr), operator: &str, names: &dyn Names) -> String {
    let left = index_at(&pair.0, names, Tightness::Unary);
    let right = index_at(&pair.1, names, Tightness::Unary);
    format!("{left}{operator}{right}")
}

/// A range as text: `0:N`.
pub fn range(range: &Range, names: &dyn Names) -> String {
    let end = |expr| index_at(expr, names, Tightness::Or);
    format!("{}:{}", end(&range.from), end(&range.to))
}

/// An access as text: `A(i, k)`.
pub fn access(access: &Access, names: &dyn Names) -> String {
    element(access.tensor, &access.indices, names)
}

fn element(tensor: TensorId, indices: &[IndexExpr], names: &dyn Names) -> String {
    let indices: Vec<String> = indices.iter().map(|expr| index(expr, names)).collect();
    let [open, close] = names.brackets();
    format!("{}{open}{}{close}", names.tensor(tensor), indices.join(", "))
}

/// A value expression as text.
pub fn expr(value: &Expr, names: &dyn Names) -> String {
    expr_at(value, names, Tightness::Ternary)
}

fn expr_at(value: &Expr, names: &dyn Names, at_least: Tightness) -> String {
    let (text, tightness) = match &value.kind {
        ExprKind::Literal(number) => return literal(*number, value, at_least),
        ExprKind::Index(inner) => {
            let text =
                index_at(inner, names, if value.dtype.is_float() { Tightness::Ternary } else { at_least });
            let text = if value.dtype.is_float() { format!("{}({text})", value.dtype) } else { text };
            return text;
        }
        ExprKind::Scalar(scalar) => (names.scalar(*scalar).to_owned(), Tightness::Leaf),
        ExprKind::Load(load) => (access(load, names), Tightness::Leaf),
        ExprKind::Unary(op, operand) => {
            let sign = if *op == UnaryOp::Neg { "-" } else { "!" };
            (format!("{sign}{}", expr_at(operand, names, Tightness::Unary)), Tightness::Unary)
        }
        ExprKind::Binary(op @ (BinaryOp::Min | BinaryOp::Max), operands) => {
            (call(op.symbol(), operands.as_slice(), names), Tightness::Leaf)
        }
        ExprKind::Binary(op, operands) => binary(*op, operands, names),
        ExprKind::Select(operands) => {
            let [condition, then, otherwise] = operands.as_ref();
            let condition = expr_at(condition, names, Tightness::Or);
            let then = expr_at(then, names, Tightness::Or);
            (
                format!("{condition} ? {then} : {}", expr_at(otherwise, names, Tightness::Ternary)),
                Tightness::Ternary,
            )
        }
        ExprKind::Call(builtin, arguments) => (call(builtin.name(), arguments, names), Tightness::Leaf),
        ExprKind::Cast(operand) => (format!("{}({})", value.dtype, expr(operand, names)), Tightness::Leaf),
    };
    parenthesised(text, tightness, at_least)
}

fn binary(op: BinaryOp, operands: &[Expr; 2], names: &dyn Names) -> (String, Tightness) {
    let tightness = match op {
        BinaryOp::Or => Tightness::Or,
        BinaryOp::And => Tightness::And,
        BinaryOp::Add | BinaryOp::Sub => Tightness::Sum,
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod => Tightness::Product,
        _ => Tightness::Compare,
    };
    let tighter = match tightness {
        Tightness::Or => Tightness::And,
        Tightness::And => Tightness::Compare,
        Tightness::Sum => Tightness::Product,
        Tightness::Product => Tightness::Unary,
        _ => Tightness::Sum,
    };
    let left_least = if tightness == Tightness::Compare { Tightness::Sum } else { tightness };
    let left = expr_at(&operands[0], names, left_least);
    let right = expr_at(&operands[1], names, tighter);
    (format!("{left} {} {right}", op.symbol()), tightness)
}

fn call(name: &str, arguments: &[Expr], names: &dyn Names) -> String {
    let arguments: Vec<String> = arguments.iter().map(|argument| expr(argument, names)).collect();
    format!("{name}({})", arguments.join(", "))
}

fn literal(number: Number, value: &Expr, at_least: Tightness) -> String {
    let text = match number {
        Number::Int(value_bits) if value.dtype == crate::DType::Bool => (value_bits != 0).to_string(),
        Number::Int(integer) => integer.to_string(),
        Number::Float(float) if float.is_nan() => "nan".to_owned(),
        Number::Float(float) if value.dtype == crate::DType::Float64 => format!("{float:?}"),
        Number::Float(float) => format!("{:?}", float as f32),
    };
    if text.starts_with('-') { parenthesised(text, Tightness::Unary, at_least) } else { text }
}

/// A tensor's type and shape as text: `float32(M, K)`.
pub fn tensor_type(program: &Program, id: TensorId) -> String {
    let tensor = program.tensor(id);
    let shape: Vec<String> = tensor.shape.iter().map(|extent| index(extent, program)).collect();
    format!("{}({})", tensor.dtype, shape.join(", "))
}

/// A statement as text, without its ranges.
pub fn statement(statement: &Statement, names: &dyn Names) -> String {
    let operator = match statement.update {
        Update::Assign => "=".to_owned(),
        Update::Reduce { op, reset } => format!("{}{}", op.symbol(), if reset { "!" } else { "" }),
    };
    let target = element(statement.target, &statement.indices, names);
    format!("{target} {operator} {}", expr(&statement.value, names))
}

/// The whole program as text.
pub fn program(program: &Program) -> String {
    let mut text = format!("program {}\n", program.name);
    let sizes: Vec<String> = program
        .symbols
        .iter()
        .map(|symbol| symbol.value.map_or(symbol.name.clone(), |value| format!("{} = {value}", symbol.name)))
        .collect();
    if !sizes.is_empty() {
        let _ = writeln!(text, "  {:<12}{}", "sizes", sizes.join(", "));
    }
    for (at, tensor) in program.tensors.iter().enumerate() {
        let role = match tensor.role {
            Role::Input { constant: false } => "input",
            Role::Input { constant: true } => "const input",
            Role::Output => "output",
            Role::InOut => "in-out",
            Role::Temporary => "temporary",
        };
        let _ = writeln!(text, "  {role:<12}{} : {}", tensor.name, tensor_type(program, TensorId(at as u32)));
    }
    for scalar in &program.scalars {
        let _ = writeln!(text, "  {:<12}{} : {}", "scalar", scalar.name, scalar.dtype);
    }
    for stage in &program.stages {
        let tensors: Vec<&str> = stage.tensors.iter().map(|id| program.tensor(*id).name.as_str()).collect();
        let _ = writeln!(text, "\nstage {}", tensors.join(", "));
        nodes(&stage.body, 1, program, &mut text);
    }
    text
}

fn nodes(body: &[Node], depth: usize, program: &Program, text: &mut String) {
    let indent = "  ".repeat(depth);
    for node in body {
        match node {
            Node::Statement(inner) => {
                let _ = writeln!(text, "{indent}{}", statement(inner, program));
                for line in variable_lines(inner, program) {
                    let _ = writeln!(text, "{indent}    {line}");
                }
            }
            Node::For(inner) => {
                let var = program.var(inner.var);
                let _ = writeln!(text, "{indent}for {} in {} {{", var.name, range(&var.range, program));
                nodes(&inner.body, depth + 1, program, text);
                let _ = writeln!(text, "{indent}}}");
            }
        }
    }
}

/// One line for the spatial variables of a statement and one for its reduction variables, where it
/// has any.
fn variable_lines(statement: &Statement, program: &Program) -> Vec<String> {
    let of = |kind: VarKind| {
        let vars = statement.vars.iter().map(|id| program.var(*id)).filter(|var| var.kind == kind);
        vars.map(|var| format!("{} in {}", var.name, range(&var.range, program)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    [("over", of(VarKind::Spatial)), ("reducing", of(VarKind::Reduction))]
        .into_iter()
        .filter(|(_, vars)| !vars.is_empty())
        .map(|(what, vars)| format!("{what} {vars}"))
        .collect()
}
