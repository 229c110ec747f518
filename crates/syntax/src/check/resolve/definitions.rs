//! Resolves the named integers at the beginning of a body: `int tiles = (N + 15) / 16`.
//!
//! A named integer of sizes and integer scalars is notation: its expression replaces the name, in
//! extents, bounds, subscripts and values. Any other expression of sizes and scalars, such as
//! `int(1 / sigma) + 3`, makes the name a symbol of its own, whose value `crate::check::derived`
//! computes when the scalars are known.

use tilewright_ir::derived::DerivedError;
use tilewright_ir::{DType, Derived, Expr, Symbol, SymbolId, SymbolKind};

use super::{Resolver, Scope};
use crate::ast::{Definition, Function, Name};
use crate::check::model::GivenName;
use crate::check::value::{Value, ValueKind};
use crate::check::{lower, types};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::Suffix;
use crate::span::Span;

impl Resolver<'_> {
    /// Adds the named integers of a function to its scope, as sizes.
    pub(super) fn definitions(&mut self, function: &Function, scope: &mut Scope) {
        for definition in &function.definitions {
            let name = &definition.name;
            let value = self.definition(definition, function, scope);
            // After a mistake any number will do, so that the name is not reported as undefined.
            let value = value.unwrap_or(Value::new(ValueKind::Int(1, Suffix::None), name.span));
            scope.sizes.entry(name.text.clone()).or_insert(value);
        }
    }

    /// The meaning of a named integer, or `None` after a report.
    fn definition(&mut self, definition: &Definition, function: &Function, scope: &Scope) -> Option<Value> {
        let Definition { ty, name, value } = definition;
        self.refuse_taken_integer_name(name, function, scope)?;
        if !matches!(ty.dtype, DType::Int32 | DType::Int64) || !ty.dims.is_empty() {
            let message = "only integers have names of their own: `int` or `int64`";
            self.report(
                Diagnostic::error(Code::TypeMismatch, ty.span, message)
                    .help("define a tensor without dimensions by a statement: `s = …`"),
            );
            return None;
        }
        let span = value.span;
        let value = self.expression(value, &mut scope.sizes_only())?;
        self.refuse_large_argument(&value, span)?;
        self.refuse_data(&value)?;
        let index = lower::index(&value, &mut self.model)?;
        if index.has_data() {
            return self.derived(definition, &value, scope);
        }
        if let Some(given) = self.bindings.get(&name.text).filter(|_| self.is_checked_itself(scope)) {
            self.model.given_names.push(GivenName { name: name.text.clone(), index, given, span });
        }
        Some(value)
    }

    /// Returns true in the function that is checked, and false in a function that it calls.
    fn is_checked_itself(&self, scope: &Scope) -> bool {
        scope.function == self.model.name
    }

    fn refuse_taken_integer_name(&mut self, name: &Name, function: &Function, scope: &Scope) -> Option<()> {
        let params = function.params.iter().filter(|param| !param.ty.dims.is_empty());
        let mut tensors =
            params.map(|param| &param.name).chain(function.results.iter().map(|result| &result.name));
        let taken = [
            (scope.sizes.contains_key(&name.text), "a named integer"),
            (scope.scalars.contains_key(&name.text), "a scalar parameter"),
            (tensors.any(|tensor| tensor.text == name.text), "a tensor"),
        ];
        let Some((_, what)) = taken.iter().find(|(is_taken, _)| *is_taken) else { return Some(()) };
        self.report_collision(name, what, None);
        None
    }

    /// Reports a named integer that is no integer, or no expression of sizes and scalars.
    fn refuse_data(&mut self, value: &Value) -> Option<()> {
        let dtype = types::type_of(value, &self.model).or_default();
        let error = |span: Span, message: String| Diagnostic::error(Code::InvalidSize, span, message);
        if let Some(dtype) = dtype.filter(|dtype| !dtype.is_integer()) {
            let message = format!("a named integer must be an integer, and this is {dtype}");
            let help = "convert it: `int(…)` rounds toward 0, and `int(ceil(…))` rounds up";
            self.report(error(value.span, message).help(help));
            return None;
        }
        let mut found = None;
        value.walk(&mut |part| match part.kind {
            ValueKind::Load(..) => found = Some((part.span, "this depends on data")),
            ValueKind::Var(_) => found = Some((part.span, "this is the variable of a loop")),
            _ => {}
        });
        let Some((span, label)) = found else { return Some(()) };
        let message = "a named integer may depend on sizes and scalars only".to_owned();
        self.report(error(span, message).label(label));
        None
    }

    /// A named integer that is computed from scalars: a symbol, or a number if its expression has
    /// neither scalars nor sizes.
    fn derived(&mut self, definition: &Definition, value: &Value, scope: &Scope) -> Option<Value> {
        let Definition { ty, name, value: written } = definition;
        let lowered = lower::lower_as(value, ty.dtype, &mut self.model)?;
        let span = written.span;
        let own = Derived { symbol: SymbolId(0), value: lowered, origin: span.origin() };
        match own.evaluate(&|_| None, &|_| None) {
            Ok(number) => Some(Value::new(ValueKind::Int(number.into(), Suffix::None), span)),
            Err(DerivedError::Unknown) => {
                let symbol = self.derived_symbol(own.value, name, span, scope);
                Some(Value::new(ValueKind::Size(symbol), span))
            }
            Err(error) => {
                let message = format!("`{}` has no value: {error}", name.text);
                self.report(Diagnostic::error(Code::InvalidSize, span, message));
                None
            }
        }
    }

    /// The symbol of a derived size. Calls that compute the same value share a symbol, so that
    /// their shapes are equal.
    fn derived_symbol(&mut self, value: Expr, name: &Name, span: Span, scope: &Scope) -> SymbolId {
        let is_own = self.is_checked_itself(scope);
        if let Some(same) = self.model.derived.iter().find(|own| !is_own && own.value == value) {
            return same.symbol;
        }
        let name = if is_own { name.text.clone() } else { self.unused_size_name(&name.text) };
        let symbol = SymbolId(self.model.symbols.len() as u32);
        let given = self.bindings.get(&name);
        self.model.symbols.push(Symbol { name, kind: SymbolKind::Derived, least: Some(0), value: given });
        self.model.derived.push(Derived { symbol, value, origin: span.origin() });
        symbol
    }

    /// A name for the size of a called function that no symbol, scalar, parameter or result has.
    fn unused_size_name(&self, name: &str) -> String {
        let model = &self.model;
        let is_taken = |name: &str| {
            model.symbols.iter().any(|symbol| symbol.name == name)
                || model.scalars.iter().any(|scalar| scalar.name == name)
                || self.reserved_names.contains(name)
        };
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| !is_taken(name)).unwrap_or_default()
    }
}
