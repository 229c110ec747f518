//! Prints programs, expressions and subscripts as text.
//!
//! [`source`] prints a program in the language, as text that parses back to the program.
//! [`program`] prints the structure of a program for a reader, with its stages and roles.
//! [`nest()`] prints loop nests, which write their subscripts in square brackets.

mod literal;
mod nest;
mod source;

use literal::Style;
pub use nest::nest;
pub(crate) use nest::{combine, condition, store};
pub use source::source;

use std::fmt::Write;

use crate::dtype::DType;
use crate::expr::{Access, Expr, ExprKind};
use crate::ids::{Ids, InProgram};
use crate::index::{Atom, Data, IndexExpr, Term};
use crate::operators::{BinaryOp, Builtin, UnaryOp};
use crate::program::{
    Node, Program, Range, Role, ScalarId, Statement, SymbolId, TensorId, Update, VarId, VarKind,
};

/// The names behind the ids.
pub trait Names<I: Ids = InProgram> {
    /// The name of a variable.
    fn var(&self, id: I::Var) -> &str;
    /// The name of a size or integer scalar.
    fn symbol(&self, id: SymbolId) -> &str;
    /// The name of a tensor.
    fn tensor(&self, id: I::Tensor) -> &str;
    /// The name of a scalar.
    fn scalar(&self, id: ScalarId) -> &str;
    /// The place among the subscripts of a text where the index of a dimension stands.
    fn place_of(&self, _: I::Tensor, dimension: usize) -> usize {
        dimension
    }
    /// The brackets around the subscripts of an element.
    fn brackets(&self) -> [char; 2] {
        ['(', ')']
    }
    /// Returns true if the text shows the type of every value, so that it parses back to the same
    /// expression. Otherwise the text leaves out conversions that a reader does not need.
    fn is_exact(&self) -> bool {
        false
    }
    /// The tensor's type if it holds 16-bit floats. Only exact text depends on it.
    fn narrow_type(&self, _: I::Tensor) -> Option<DType> {
        None
    }
    /// The name that stands for a value read from data, if it has one.
    fn data(&self, _: &Data<I>) -> Option<&str> {
        None
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
enum Precedence {
    Ternary,
    Or,
    And,
    Compare,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    Unary,
    Power,
    Leaf,
}

impl Precedence {
    /// The precedence of a binary operator. Minima and maxima are calls, not operators.
    fn of(op: BinaryOp) -> Precedence {
        match op {
            BinaryOp::Or => Precedence::Or,
            BinaryOp::And => Precedence::And,
            BinaryOp::BitOr => Precedence::BitOr,
            BinaryOp::BitXor => Precedence::BitXor,
            BinaryOp::BitAnd => Precedence::BitAnd,
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => Precedence::Shift,
            BinaryOp::Add | BinaryOp::Sub => Precedence::Sum,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod => Precedence::Product,
            BinaryOp::Power => Precedence::Power,
            _ => Precedence::Compare,
        }
    }

    /// The least precedence of the two operands of an operator with this precedence. Powers
    /// associate to the right, comparisons do not chain, and all other operators associate to the
    /// left.
    fn of_operands(self) -> (Precedence, Precedence) {
        match self {
            Precedence::Or => (Precedence::Or, Precedence::And),
            Precedence::And => (Precedence::And, Precedence::Compare),
            Precedence::Compare => (Precedence::BitOr, Precedence::BitOr),
            Precedence::BitOr => (Precedence::BitOr, Precedence::BitXor),
            Precedence::BitXor => (Precedence::BitXor, Precedence::BitAnd),
            Precedence::BitAnd => (Precedence::BitAnd, Precedence::Shift),
            Precedence::Shift => (Precedence::Shift, Precedence::Sum),
            Precedence::Sum => (Precedence::Sum, Precedence::Product),
            Precedence::Product => (Precedence::Product, Precedence::Unary),
            _ => (Precedence::Leaf, Precedence::Unary),
        }
    }
}

fn parenthesised(text: String, precedence: Precedence, at_least: Precedence) -> String {
    if precedence < at_least { format!("({text})") } else { text }
}

/// An index expression as text.
pub fn index<I: Ids>(expr: &IndexExpr<I>, names: &dyn Names<I>) -> String {
    index_at(expr, names, Precedence::Ternary)
}

fn index_at<I: Ids>(expr: &IndexExpr<I>, names: &dyn Names<I>, at_least: Precedence) -> String {
    if let Some(value) = expr.as_constant() {
        return if value < 0 {
            parenthesised(value.to_string(), Precedence::Unary, at_least)
        } else {
            value.to_string()
        };
    }
    let (first, rest): (Vec<&Term<I>>, Vec<&Term<I>>) =
        expr.terms().iter().partition(|term| term.coefficient > 0);
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
    let precedence = match (one_product, term.coefficient) {
        (false, _) => Precedence::Sum,
        (true, 1)
            if term.factors.len() == 1 && !matches!(term.factors[0], Atom::FloorDiv(_) | Atom::Mod(_)) =>
        {
            Precedence::Leaf
        }
        (true, _) => Precedence::Product,
    };
    parenthesised(text, precedence, at_least)
}

fn product<I: Ids>(term: &Term<I>, names: &dyn Names<I>) -> String {
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

fn atom<I: Ids>(atom: &Atom<I>, names: &dyn Names<I>) -> String {
    match atom {
        Atom::Var(var) => names.var(*var).to_owned(),
        Atom::Symbol(symbol) => names.symbol(*symbol).to_owned(),
        Atom::Extent(tensor, dimension) => {
            format!("{}.{}", names.tensor(*tensor), names.place_of(*tensor, *dimension as usize))
        }
        Atom::FloorDiv(pair) => infix(pair, "/", names),
        Atom::Mod(pair) => infix(pair, " % ", names),
        Atom::Min(pair) => format!("min({}, {})", index(&pair.0, names), index(&pair.1, names)),
        Atom::Max(pair) => format!("max({}, {})", index(&pair.0, names), index(&pair.1, names)),
        Atom::Data(data) => match names.data(data) {
            Some(name) => name.to_owned(),
            None => data_value(&data.value, names),
        },
        Atom::Overflow => "<too large>".to_owned(),
    }
}

/// A value read from data, inside a subscript. Arithmetic inside a subscript is exact, and
/// arithmetic on data wraps. A conversion separates the two.
fn data_value<I: Ids>(value: &Expr<I>, names: &dyn Names<I>) -> String {
    let wraps = match &value.kind {
        ExprKind::Unary(op, _) => *op != UnaryOp::Not,
        ExprKind::Binary(op, _) => !op.is_comparison() && !op.is_logical(),
        ExprKind::Call(builtin, _) => *builtin == Builtin::Abs,
        _ => false,
    };
    if wraps && names.is_exact() {
        return format!("{}({})", value.dtype, expr(value, names));
    }
    expr_at(value, names, Precedence::Unary)
}

fn infix<I: Ids>(pair: &(IndexExpr<I>, IndexExpr<I>), operator: &str, names: &dyn Names<I>) -> String {
    let left = index_at(&pair.0, names, Precedence::Unary);
    let right = index_at(&pair.1, names, Precedence::Unary);
    format!("{left}{operator}{right}")
}

/// A range as text: `0:N`.
pub fn range<I: Ids>(range: &Range<I>, names: &dyn Names<I>) -> String {
    let end = |expr| index_at(expr, names, Precedence::Or);
    format!("{}:{}", end(&range.from), end(&range.to))
}

/// An access as text: `A(i, k)`.
pub fn access<I: Ids>(access: &Access<I>, names: &dyn Names<I>) -> String {
    element(access.tensor, &access.indices, names)
}

fn element<I: Ids>(tensor: I::Tensor, indices: &[IndexExpr<I>], names: &dyn Names<I>) -> String {
    let mut placed: Vec<(usize, String)> = (indices.iter().enumerate())
        .map(|(dimension, expr)| (names.place_of(tensor, dimension), index(expr, names)))
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    let indices: Vec<String> = placed.into_iter().map(|(_, text)| text).collect();
    let [open, close] = names.brackets();
    format!("{}{open}{}{close}", names.tensor(tensor), indices.join(", "))
}

/// A value expression as text.
pub fn expr<I: Ids>(value: &Expr<I>, names: &dyn Names<I>) -> String {
    expr_at(value, names, Precedence::Ternary)
}

fn expr_at<I: Ids>(value: &Expr<I>, names: &dyn Names<I>, at_least: Precedence) -> String {
    Context { names, wanted: None, narrow: None, types_literals: false }.expr(value, at_least)
}

/// The surroundings of an expression.
#[derive(Clone, Copy)]
struct Context<'n, I: Ids> {
    names: &'n dyn Names<I>,
    /// The type that a literal without a type takes here, where one is known.
    wanted: Option<DType>,
    /// The type if the value is stored as a 16-bit float. It is computed in float32, but a text
    /// whose type is float32 would not fit. So the text leaves out the conversions to float32.
    narrow: Option<DType>,
    /// Whether a literal shows the type `narrow`: no other operand does, and beside an integer a
    /// float without a type would be a float32.
    types_literals: bool,
}

impl<I: Ids> Context<'_, I> {
    fn expr(self, value: &Expr<I>, at_least: Precedence) -> String {
        let names = self.names;
        let (text, precedence) = match &value.kind {
            ExprKind::Literal(number) => {
                if let Some(narrow) = self.narrow.filter(|_| self.types_literals)
                    && number.convert(narrow).as_f64() == number.as_f64()
                {
                    return literal::literal(*number, narrow, Style::Typed, at_least);
                }
                let style = match names.is_exact() {
                    false => Style::Short,
                    true if self.wanted == Some(value.dtype) => Style::Exact,
                    true => Style::Typed,
                };
                return literal::literal(*number, value.dtype, style, at_least);
            }
            ExprKind::Index(inner) => return self.index_value(inner, value.dtype, at_least),
            ExprKind::Scalar(scalar) => (names.scalar(*scalar).to_owned(), Precedence::Leaf),
            ExprKind::Load(load) => (access(load, names), Precedence::Leaf),
            ExprKind::Unary(op, operand) => {
                let sign = match op {
                    UnaryOp::Neg => "-",
                    UnaryOp::Not => "!",
                    UnaryOp::Complement => "~",
                };
                (format!("{sign}{}", self.expr(operand, Precedence::Unary)), Precedence::Unary)
            }
            ExprKind::Binary(op @ (BinaryOp::Min | BinaryOp::Max), operands) => (
                self.for_arithmetic_operands(operands).call(op.symbol(), operands.as_slice()),
                Precedence::Leaf,
            ),
            ExprKind::Binary(op, operands) if op.is_comparison() => {
                self.for_operands(operands.as_slice()).binary(*op, operands)
            }
            ExprKind::Binary(op, operands) if op.is_shift() => self.shift(*op, operands),
            ExprKind::Binary(op, operands) if op.is_on_integers() => {
                self.for_bit_operands(operands).binary(*op, operands)
            }
            ExprKind::Binary(op, operands) => self.for_arithmetic_operands(operands).binary(*op, operands),
            ExprKind::Select(operands) => {
                let [condition, then, otherwise] = operands.as_ref();
                let condition = self.for_untyped_operand().expr(condition, Precedence::Or);
                let branches = self.for_operands(&operands[1..]);
                let then = branches.expr(then, Precedence::Or);
                let otherwise = branches.expr(otherwise, Precedence::Ternary);
                (format!("{condition} ? {then} : {otherwise}"), Precedence::Ternary)
            }
            ExprKind::Call(builtin, arguments) => {
                let context = match builtin {
                    Builtin::Philox => Context { wanted: Some(DType::UInt32), narrow: None, ..self },
                    // The type of the result is that of the argument, whatever stands around it.
                    Builtin::Popcount | Builtin::Clz | Builtin::Ctz => self.for_untyped_operand(),
                    _ => self.for_operands(arguments),
                };
                (context.call(builtin.name(), arguments), Precedence::Leaf)
            }
            ExprKind::Cast(operand) if self.narrow.is_some() && value.dtype == DType::Float32 => {
                return self.without_type().expr(operand, at_least);
            }
            ExprKind::Cast(operand) => {
                let operand = self.for_untyped_operand().expr(operand, Precedence::Ternary);
                (format!("{}({operand})", value.dtype), Precedence::Leaf)
            }
        };
        parenthesised(text, precedence, at_least)
    }

    fn without_type(self) -> Self {
        Context { wanted: None, ..self }
    }

    /// The context of an operand whose type does not matter here.
    fn for_untyped_operand(self) -> Self {
        Context { wanted: None, narrow: None, ..self }
    }

    /// The context of operands that share one type. A literal takes the type of an operand whose
    /// own text shows its type.
    fn for_operands(self, operands: &[Expr<I>]) -> Self {
        let shared = operands.first().map(|operand| operand.dtype);
        let is_shown = operands.iter().any(shows_type);
        let wanted = shared.filter(|own| is_shown || self.wanted == Some(*own));
        let narrow = self.narrow.filter(|_| shared == Some(DType::Float32));
        let types_literals =
            operands.iter().any(is_integer_as_float) && !operands.iter().any(|own| shows_narrow(own, narrow));
        Context { wanted, narrow, types_literals, ..self }
    }

    /// The context of the operands of arithmetic. Arithmetic on indices and on numbers without a
    /// type would be one index, so beside an index a literal shows its type.
    fn for_arithmetic_operands(self, operands: &[Expr<I>; 2]) -> Self {
        let context = self.for_operands(operands.as_slice());
        let is_index = |operand: &Expr<I>| matches!(operand.kind, ExprKind::Index(_));
        match context.wanted == Some(DType::Int64) && operands.iter().any(is_index) {
            true => context.without_type(),
            false => context,
        }
    }

    /// The context of the operands of `&`, `|`, `^` and `**`. On two numbers without types these
    /// operators would give one number, so two literals show their types.
    fn for_bit_operands(self, operands: &[Expr<I>; 2]) -> Self {
        let context = self.for_arithmetic_operands(operands);
        match operands.iter().all(|operand| matches!(operand.kind, ExprKind::Literal(_))) {
            true => context.without_type(),
            false => context,
        }
    }

    /// A shift. The type of the value follows from the left operand alone, and a literal count
    /// takes it.
    fn shift(self, op: BinaryOp, operands: &[Expr<I>; 2]) -> (String, Precedence) {
        let [value, count] = operands;
        let precedence = Precedence::of(op);
        let (left_least, right_least) = precedence.of_operands();
        let left = self.for_operands(&operands[..1]);
        let is_index = matches!(value.kind, ExprKind::Index(_)) && value.dtype == DType::Int64;
        let is_number = matches!(value.kind, ExprKind::Literal(_));
        let left = if is_number { left.without_type() } else { left };
        // Arithmetic on numbers without types would be one number.
        let is_plain_count = matches!(count.kind, ExprKind::Literal(_)) || shows_type(count);
        let wanted = Some(count.dtype).filter(|_| !is_index && !is_number && is_plain_count);
        let right = Context { wanted, narrow: None, ..self };
        let (left, right) = (left.expr(value, left_least), right.expr(count, right_least));
        (format!("{left} {} {right}", op.symbol()), precedence)
    }

    /// An index as a value of this type.
    fn index_value(self, inner: &IndexExpr<I>, dtype: DType, at_least: Precedence) -> String {
        let is_plain = match self.names.is_exact() {
            true => self.narrow.is_some() && dtype == DType::Float32,
            false => !dtype.is_float(),
        };
        match is_plain {
            true => index_at(inner, self.names, at_least),
            false => format!("{dtype}({})", index(inner, self.names)),
        }
    }

    fn binary(self, op: BinaryOp, operands: &[Expr<I>; 2]) -> (String, Precedence) {
        let precedence = Precedence::of(op);
        let (left_least, right_least) = precedence.of_operands();
        let left = self.operand(op, &operands[0], left_least);
        let right = self.operand(op, &operands[1], right_least);
        (format!("{left} {} {right}", op.symbol()), precedence)
    }

    /// An operand. A comparison of two indices is exact, and needs no types.
    fn operand(self, op: BinaryOp, operand: &Expr<I>, at_least: Precedence) -> String {
        match &operand.kind {
            ExprKind::Index(inner) if op.is_comparison() && operand.dtype == DType::Int64 => {
                index_at(inner, self.names, at_least)
            }
            _ => self.expr(operand, at_least),
        }
    }

    fn call(self, name: &str, arguments: &[Expr<I>]) -> String {
        let arguments: Vec<String> =
            arguments.iter().map(|argument| self.expr(argument, Precedence::Ternary)).collect();
        format!("{name}({})", arguments.join(", "))
    }
}

/// Returns true if the exact text of an expression determines its type, whatever stands around it.
fn shows_type<I: Ids>(value: &Expr<I>) -> bool {
    match &value.kind {
        ExprKind::Literal(_) => value.dtype == DType::Bool,
        ExprKind::Index(_) | ExprKind::Scalar(_) | ExprKind::Load(_) | ExprKind::Cast(_) => true,
        ExprKind::Select(operands) => operands[1..].iter().any(shows_type),
        ExprKind::Binary(op, operands) if op.is_shift() => shows_type(&operands[0]),
        ExprKind::Call(Builtin::Philox | Builtin::Popcount | Builtin::Clz | Builtin::Ctz, _) => true,
        _ => value.dtype == DType::Bool || value.operands().iter().any(shows_type),
    }
}

/// Returns true for an integer that is converted to float32.
fn is_integer_as_float<I: Ids>(value: &Expr<I>) -> bool {
    match &value.kind {
        ExprKind::Cast(operand) => value.dtype == DType::Float32 && !operand.dtype.is_float(),
        ExprKind::Unary(_, operand) => is_integer_as_float(operand),
        _ => false,
    }
}

/// Returns true if the text of a value has this 16-bit type, once it leaves out the conversions to
/// float32.
fn shows_narrow<I: Ids>(value: &Expr<I>, narrow: Option<DType>) -> bool {
    match &value.kind {
        _ if Some(value.dtype) == narrow => true,
        ExprKind::Cast(operand) => value.dtype == DType::Float32 && shows_narrow(operand, narrow),
        ExprKind::Select(operands) => operands[1..].iter().any(|operand| shows_narrow(operand, narrow)),
        _ => value.operands().iter().any(|operand| shows_narrow(operand, narrow)),
    }
}

/// A tensor's type and shape as text: `float32(M, K)`.
pub fn tensor_type(program: &Program, id: TensorId) -> String {
    let tensor = program.tensor(id);
    let shape: Vec<String> = tensor.shape.iter().map(|extent| index(extent, program)).collect();
    format!("{}({})", tensor.dtype, shape.join(", "))
}

/// A statement as text, without its ranges.
pub fn statement(statement: &Statement, names: &dyn Names) -> String {
    let wanted = Some(statement.value.dtype);
    let narrow = names.narrow_type(statement.target);
    let operator = match statement.update {
        Update::Assign => "=".to_owned(),
        Update::Reduce { op, reset } => format!("{}{}", op.symbol(), if reset { "!" } else { "" }),
    };
    let target = element(statement.target, &statement.indices, names);
    let value =
        Context { names, wanted, narrow, types_literals: false }.expr(&statement.value, Precedence::Ternary);
    format!("{target} {operator} {value}")
}

/// A value as text, where a value of its type is wanted.
fn value_as(value: &Expr, names: &dyn Names) -> String {
    let context = Context { names, wanted: Some(value.dtype), narrow: None, types_literals: false };
    context.expr(value, Precedence::Ternary)
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
    for derived in &program.derived {
        let name = program.symbol(derived.symbol);
        let _ = writeln!(text, "  {:<12}{name} = {}", "derived", expr(&derived.value, program));
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
