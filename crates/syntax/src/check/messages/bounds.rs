//! Makes the messages about empty ranges, and about accesses outside of their tensors.

use tilewright_ir::check::{AccessId, Witness};
use tilewright_ir::print::Names;
use tilewright_ir::{Access, Atom, IndexExpr, Term, VarId, print};

use super::MessageContext;
use crate::check::reason::{Reason, ReasonKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

impl MessageContext<'_> {
    pub(super) fn empty_range(&self, var: VarId) -> Diagnostic {
        let info = self.model.var(var);
        let message = format!("the range of `{}` is empty: {}", info.name, self.range_text(var));
        let first = info.reasons.first();
        let (span, label) =
            first.map_or((info.span, String::new()), |reason| (reason.span, reason.kind.to_string()));
        let mut diagnostic = Diagnostic::error(Code::EmptyRange, span, message).label(label);
        for Reason { span, kind } in info.reasons.iter().skip(1).take(2) {
            diagnostic = diagnostic.secondary_label(*span, kind.to_string());
        }
        diagnostic.note("a range runs up to, not including, its end")
    }

    fn range_text(&self, var: VarId) -> String {
        let range = self.unchecked.var(var).range.as_ref();
        range.map(|range| print::range(range, self.unchecked)).unwrap_or_default()
    }

    /// The access itself. Its origin is the position of the tensor's name or of the whole access.
    fn access(&self, id: AccessId) -> Access {
        match id.read {
            Some(read) => self.read(id.statement, read).access.clone(),
            None => Access {
                tensor: self.statement(id.statement).target,
                indices: self.parts(id.statement).indices.clone(),
                origin: self.statement(id.statement).target_span.origin(),
            },
        }
    }

    /// `values` are the index and the extent of the counterexample.
    pub(super) fn out_of_bounds(
        &self,
        id: AccessId,
        dimension: usize,
        values: (i64, i64),
        witness: &Witness,
    ) -> Diagnostic {
        let access = self.with_origin(self.access(id));
        let name = &self.model.tensor(access.tensor).text;
        let verb = if id.read.is_some() { "reads" } else { "writes" };
        let message = format!("`{}` {verb} outside of `{name}`", self.written_access(id, &access));
        let mut diagnostic = Diagnostic::error(Code::OutOfBounds, access.origin.into(), message)
            .label(self.index_label(&access, dimension, values, witness));
        diagnostic = self.with_sizes(witness, diagnostic);
        for var in witness.vars.keys() {
            diagnostic = self.explain_range(diagnostic, *var);
        }
        if values.0 < 0 && !witness.vars.is_empty() {
            diagnostic = diagnostic.note("a variable starts at 0 unless `where` declares another range");
        }
        diagnostic = self.explain_symbol(diagnostic, &access.indices[dimension]);
        if let Some(help) = self.repaired.help(id, self.unchecked) {
            diagnostic = diagnostic.help(help);
        }
        match id.read {
            Some(_) if self.view_access(id, &access).is_some() => diagnostic.help(
                "shorten the range with `where`, or let the rule of the view hold in this dimension too",
            ),
            Some(_) => diagnostic.help(self.read_help(&access, dimension, values.0)),
            None => diagnostic.help("shorten the range with `where`, or declare a larger size"),
        }
    }

    /// The text of an access. One through a view is shown as it was written.
    fn written_access(&self, id: AccessId, access: &Access) -> String {
        self.view_access(id, access).unwrap_or_else(|| print::access(access, self))
    }

    /// The text of an access through a view.
    fn view_access(&self, id: AccessId, access: &Access) -> Option<String> {
        let span: Span = access.origin.into();
        let mut reads = self.statement(id.statement).view_reads.iter();
        reads.find(|read| id.read.is_some() && read.span == span).map(|read| read.access.clone())
    }

    fn index_label(
        &self,
        access: &Access,
        dimension: usize,
        (index, extent): (i64, i64),
        witness: &Witness,
    ) -> String {
        let name = &self.model.tensor(access.tensor).text;
        let place = match access.indices.len() {
            1 => String::new(),
            _ => format!(" in dimension {}", self.place_of(access.tensor, dimension)),
        };
        let at = self.vars_text(witness);
        let at = if at.is_empty() { String::new() } else { format!("at {at} ") };
        let first = self.origin(access.tensor, dimension, witness);
        let (index, last) = (first + index, first + extent - 1);
        format!("{at}the index is {index}, but the indices of `{name}` are {first} to {last}{place}")
    }

    /// Adds the range of a variable and its origin to the message.
    fn explain_range(&self, diagnostic: Diagnostic, var: VarId) -> Diagnostic {
        let info = self.model.var(var);
        if info.range.is_none() {
            return diagnostic;
        }
        let text = format!("{} is in {}", info.name, self.range_text(var));
        match info.reasons.first() {
            Some(Reason { span, kind: kind @ (ReasonKind::Where | ReasonKind::Loop) }) => {
                diagnostic.secondary_label(*span, format!("{text}, {kind}"))
            }
            Some(Reason { kind, .. }) => diagnostic.note(format!("{text}: {kind}")),
            None => diagnostic.note(text),
        }
    }

    /// Adds a note if the index is a size or scalar alone, which may be meant as a variable.
    fn explain_symbol(&self, diagnostic: Diagnostic, index: &IndexExpr) -> Diagnostic {
        let [Term { factors, coefficient: 1 }] = index.terms() else { return diagnostic };
        let ([Atom::Symbol(symbol)], 0) = (factors.as_slice(), index.constant_part()) else {
            return diagnostic;
        };
        let symbol = &self.unchecked.symbols[symbol.index()];
        let what = symbol.kind.noun();
        diagnostic.note(format!("`{}` is a {what} here, not a variable", symbol.name))
    }

    /// `stored` is the index from the first element of the tensor.
    fn read_help(&self, access: &Access, dimension: usize, stored: i64) -> String {
        let text = |expr: &IndexExpr| print::index(expr, self.unchecked);
        let subscript = text(&access.indices[dimension]);
        let shape = self.unchecked.tensor(access.tensor).shape.as_ref();
        let extent = shape.and_then(|shape| shape.get(dimension)).cloned().unwrap_or_default();
        let first = self.symbolic_origin(access.tensor, dimension);
        let end = first.add(&extent);
        let guard = match stored < 0 {
            true => format!("{subscript} >= {}", text(&first)),
            false => format!("{subscript} < {}", text(&end)),
        };
        let name = &self.model.tensor(access.tensor).text;
        let (access, last) = (print::access(access, self), text(&end.offset(-1)));
        format!(
            "shorten the range with `where`, or guard the access: `({guard}) ? {access} : 0`, or clamp the index: `clamp({subscript}, {}, {last})`, or read beyond the edge by a rule: `v = repeat({name})`",
            text(&first)
        )
    }

    pub(super) fn unproved_bounds(&self, id: AccessId) -> Diagnostic {
        let access = self.with_origin(self.access(id));
        let (text, name) = (self.written_access(id, &access), &self.model.tensor(access.tensor).text);
        let message = format!("`{text}` could not be proved to stay within `{name}`");
        Diagnostic::warning(Code::OutOfBounds, access.origin.into(), message)
            .note("no counterexample was found; the access is checked when the program runs")
            .help("a `clamp` or a condition around the access makes it certain")
    }
}
