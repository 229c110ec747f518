//! Resolves the named integers at the beginning of a body: `int tiles = (N + 15) / 16`.
//!
//! A named integer is notation: its expression of sizes and integer scalars replaces the name, in
//! extents, bounds, subscripts and values.

use tilewright_ir::DType;

use super::{Resolver, Scope};
use crate::ast::{Definition, Function};
use crate::check::value::{Value, ValueKind};
use crate::check::{lower, types};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::Suffix;

impl Resolver<'_> {
    /// Adds the named integers of a function to its scope, as sizes.
    pub(super) fn definitions(&mut self, function: &Function, scope: &mut Scope) {
        for definition in &function.definitions {
            let name = &definition.name;
            let value = self.definition(definition, scope);
            // After a mistake any number will do, so that the name is not reported as undefined.
            let value = value.unwrap_or(Value::new(ValueKind::Int(1, Suffix::None), name.span));
            scope.sizes.entry(name.text.clone()).or_insert(value);
        }
    }

    /// The expression of a named integer, or `None` after a report.
    fn definition(&mut self, definition: &Definition, scope: &Scope) -> Option<Value> {
        let Definition { ty, name, value } = definition;
        let taken = [
            (scope.sizes.contains_key(&name.text), "a size"),
            (scope.scalars.contains_key(&name.text), "a scalar parameter"),
            (scope.tensors.contains_key(&name.text), "a tensor"),
        ];
        if let Some((_, what)) = taken.iter().find(|(is_taken, _)| *is_taken) {
            self.report_collision(name, what, None);
            return None;
        }
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
        Some(value)
    }

    /// Reports a named integer that is no expression of sizes and integer scalars.
    fn refuse_data(&mut self, value: &Value) -> Option<()> {
        let dtype = types::type_of(value, &self.model).or_default();
        let error = |message: String| Diagnostic::error(Code::InvalidSize, value.span, message);
        if let Some(dtype) = dtype.filter(|dtype| !dtype.is_integer()) {
            let message = format!("a named integer must be an integer, and this is {dtype}");
            self.report(error(message).help("`/` on integers rounds toward minus infinity"));
            return None;
        }
        let mut float = None;
        value.walk(&mut |part| match part.kind {
            ValueKind::Scalar(scalar) if self.model.scalars[scalar.index()].dtype.is_float() => {
                float = Some((part.span, self.model.scalars[scalar.index()].name.clone()));
            }
            _ => {}
        });
        if let Some((span, name)) = float {
            let message = format!("a named integer cannot depend on the float `{name}`");
            self.report(
                Diagnostic::error(Code::InvalidSize, span, message)
                    .note("sizes are known when a kernel is compiled; floats are passed with every call")
                    .help("make the integer itself a parameter, and compute it in the caller"),
            );
            return None;
        }
        let index = lower::index(value, &mut self.model)?;
        if index.has_data() || !index.vars().is_empty() {
            let message = "a named integer may depend on sizes and integer scalars only".to_owned();
            self.report(error(message).label("this depends on data"));
            return None;
        }
        Some(())
    }
}
