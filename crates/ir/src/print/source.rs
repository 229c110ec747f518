//! Prints a program in the language, as text that parses back to the program.
//!
//! The text declares every tensor with its type and shape, gives every variable its range, and
//! shows the type of every value. So it leaves nothing to inference. The text is that of the
//! program for all sizes ([`Program::general`]). It contains no values of sizes, and it does not
//! say whether code generation may contract products ([`Program::contract`]).
//!
//! A few names change. The name of a temporary of a called function has a point, which the text
//! replaces by an underscore. A variable that shares its name with a size, a scalar, a
//! tensor or another variable in scope gets a number.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Names, index, range, statement, value_as};
use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::index::{Atom, Data, IndexExpr};
use crate::program::{
    ForLoop, Node, Program, Range, Role, ScalarId, Statement, SymbolId, SymbolKind, TensorDecl, TensorId,
    VarId,
};

/// The program as source text.
pub fn source(program: &Program) -> String {
    let program = program.general.as_deref().unwrap_or(program);
    let mut names = SourceNames::new(program);
    let mut text = signature(&names);
    for derived in &program.derived {
        let value = value_as(&derived.value, &names);
        let _ = writeln!(text, "  {} {} = {value}", derived.value.dtype, names.symbol(derived.symbol));
    }
    for (at, tensor) in program.tensors.iter().enumerate() {
        if tensor.role == Role::Temporary {
            let _ = writeln!(text, "  {}", declaration(tensor, TensorId(at as u32), &names));
        }
    }
    for stage in &program.stages {
        nodes(&stage.body, &mut Vec::new(), &mut names, &mut text);
    }
    text + "}\n"
}

/// The first line. The parameters are the tensors and then the scalars.
fn signature(names: &SourceNames) -> String {
    let program = names.program;
    let of = |test: &dyn Fn(Role) -> bool| -> Vec<String> {
        program.tensors_with(test).map(|(id, tensor)| declaration(tensor, id, names)).collect()
    };
    let mut parameters = of(&|role| matches!(role, Role::Input { .. }));
    parameters.extend(program.scalars.iter().map(|scalar| format!("{} {}", scalar.dtype, scalar.name)));
    let results = of(&Role::is_result);
    let preconditions: Vec<String> = program.preconditions.iter().map(|own| own.text(names)).collect();
    let requires = match preconditions.is_empty() {
        true => String::new(),
        false => format!(" requires {}", preconditions.join(", ")),
    };
    let (parameters, results) = (parameters.join(", "), results.join(", "));
    format!("def {}({parameters}) -> ({results}){requires} {{\n", program.name)
}

/// A tensor with its type and shape: `const float32(M, N) weight`.
fn declaration(tensor: &TensorDecl, id: TensorId, names: &SourceNames) -> String {
    let extents: Vec<String> = tensor.shape.iter().map(|extent| names.extent(extent)).collect();
    let constant = if tensor.role == (Role::Input { constant: true }) { "const " } else { "" };
    format!("{constant}{}({}) {}", tensor.dtype, extents.join(", "), names.tensor(id))
}

fn nodes<'p>(body: &'p [Node], loops: &mut Vec<VarId>, names: &mut SourceNames<'p>, text: &mut String) {
    let indent = "  ".repeat(loops.len() + 1);
    for node in body {
        match node {
            // The checker inserts the fillers again.
            Node::Statement(inner) if inner.is_filler => {}
            Node::Statement(inner) => {
                let _ = writeln!(text, "{indent}{}", whole_statement(inner, loops, names));
            }
            Node::For(ForLoop { var, body }) => {
                names.bind_vars(&[*var], loops);
                let own = range(&names.program.var(*var).range, names);
                let _ = writeln!(text, "{indent}for {} in {own} {{", names.var(*var));
                loops.push(*var);
                nodes(body, loops, names, text);
                loops.pop();
                let _ = writeln!(text, "{indent}}}");
            }
        }
    }
}

/// A statement with the ranges of its variables, and of the data in its subscripts.
fn whole_statement<'p>(own: &'p Statement, loops: &[VarId], names: &mut SourceNames<'p>) -> String {
    names.bind_vars(&own.vars, loops);
    let mut clauses: Vec<String> = Vec::new();
    // The checker numbers variables in the order of these clauses.
    let vars: BTreeSet<VarId> = own.vars.iter().copied().collect();
    for var in &vars {
        let own = range(&names.program.var(*var).range, names);
        clauses.push(format!("{} in {own}", names.var(*var)));
    }
    let mut bounded = Vec::new();
    own.indices.iter().for_each(|index| bounded_data(index, &mut bounded));
    bounded_data_of_value(&own.value, &mut bounded);
    for data in bounded {
        let Some((from, to)) = data.declared.clone() else { continue };
        let value = index(&IndexExpr::atom(Atom::Data(data.clone().into())), names);
        let ends = range(&Range { from, to }, names);
        let name = names.bind_data(data);
        clauses.push(format!("{name} = {value}, {name} in {ends}"));
    }
    let text = statement(own, names);
    if clauses.is_empty() { text } else { format!("{text} where {}", clauses.join(", ")) }
}

/// Collects the data whose bounds a `where` clause declares, each once, inner data first.
fn bounded_data<'p>(index: &'p IndexExpr, found: &mut Vec<&'p Data>) {
    for factor in index.terms().iter().flat_map(|term| &term.factors) {
        match factor {
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                bounded_data(&pair.0, found);
                bounded_data(&pair.1, found);
            }
            Atom::Data(data) => {
                bounded_data_of_value(&data.value, found);
                if data.declared.is_some() && !found.contains(&data.as_ref()) {
                    found.push(data);
                }
            }
            Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => {}
        }
    }
}

fn bounded_data_of_value<'p>(value: &'p Expr, found: &mut Vec<&'p Data>) {
    match &value.kind {
        ExprKind::Index(index) => bounded_data(index, found),
        ExprKind::Load(access) => access.indices.iter().for_each(|index| bounded_data(index, found)),
        _ => value.operands().iter().for_each(|operand| bounded_data_of_value(operand, found)),
    }
}

/// The names in the text.
struct SourceNames<'p> {
    program: &'p Program,
    tensors: Vec<String>,
    vars: Vec<String>,
    /// The data that the statement at hand names in its `where` clause.
    bound: Vec<(&'p Data, String)>,
}

impl<'p> SourceNames<'p> {
    fn new(program: &'p Program) -> SourceNames<'p> {
        let mut taken: BTreeSet<String> = program.tensors.iter().map(|tensor| tensor.name.clone()).collect();
        let tensors = program.tensors.iter().map(|tensor| match tensor.name.contains('.') {
            true => unused_name(&tensor.name.replace('.', "_"), &mut taken),
            false => tensor.name.clone(),
        });
        let vars = program.vars.iter().map(|var| var.name.clone()).collect();
        SourceNames { program, tensors: tensors.collect(), vars, bound: Vec::new() }
    }

    /// Gives the variables of a loop or a statement names that differ from each other, and from the
    /// names that the loops around them and the program define.
    fn bind_vars(&mut self, vars: &[VarId], loops: &[VarId]) {
        let program = self.program;
        let symbols = program.symbols.iter().map(|symbol| symbol.name.clone());
        let parameters = program.scalars.iter().map(|scalar| scalar.name.clone());
        let tensors = self.tensors.iter().cloned();
        let mut taken: BTreeSet<String> = tensors.chain(symbols).chain(parameters).collect();
        taken.extend(loops.iter().map(|var| self.vars[var.index()].clone()));
        for var in vars {
            self.vars[var.index()] = unused_name(&program.var(*var).name, &mut taken);
        }
        self.bound.clear();
    }

    /// Names data of the statement at hand.
    fn bind_data(&mut self, data: &'p Data) -> String {
        let bound = self.bound.iter().map(|(_, name)| name);
        let symbols = self.program.symbols.iter().map(|symbol| &symbol.name);
        let scalars = self.program.scalars.iter().map(|scalar| &scalar.name);
        let others = self.tensors.iter().chain(&self.vars).chain(bound).chain(symbols).chain(scalars);
        let name = unused_name("at", &mut others.cloned().collect());
        self.bound.push((data, name.clone()));
        name
    }

    /// An extent. A scalar that stands alone as an extent must be at least 1; one that needs no
    /// such promise stands in a sum.
    fn extent(&self, extent: &IndexExpr) -> String {
        let text = index(extent, self);
        let needs_sum = self.program.symbols.iter().any(|symbol| {
            matches!(symbol.kind, SymbolKind::Scalar(_)) && symbol.least.is_none() && symbol.name == text
        });
        if needs_sum { format!("{text} + 0") } else { text }
    }
}

/// The name itself if it is free, or else with the first number that makes it free.
fn unused_name(name: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2u32..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let free = names.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

impl Names for SourceNames<'_> {
    fn var(&self, id: VarId) -> &str {
        &self.vars[id.index()]
    }
    fn symbol(&self, id: SymbolId) -> &str {
        self.program.symbol(id)
    }
    fn tensor(&self, id: TensorId) -> &str {
        &self.tensors[id.index()]
    }
    fn scalar(&self, id: ScalarId) -> &str {
        self.program.scalar(id)
    }
    fn is_exact(&self) -> bool {
        true
    }
    fn narrow_type(&self, id: TensorId) -> Option<DType> {
        let dtype = self.program.tensor(id).dtype;
        (dtype != dtype.compute_type()).then_some(dtype)
    }
    fn data(&self, data: &Data) -> Option<&str> {
        self.bound.iter().find(|(own, _)| *own == data).map(|(_, name)| name.as_str())
    }
}
