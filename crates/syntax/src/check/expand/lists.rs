//! Expands lists of tensors in signatures and calls.
//!
//! A parameter `float(H[n], W[n]) g[n]` becomes `n` parameters `g[0]`, `g[1]` and so on, each with
//! sizes of its own: `float(H[0], W[0]) g[0]`. A call passes a list by its name, and a target that
//! receives a list becomes one target for each tensor.

use std::borrow::Cow;

use super::statics::{call_statics, static_value};
use super::{Expansion, Instance, Statics, is_generic};
use crate::ast::{Declaration, Expr, ExprKind, Function, Module, Name, Param, Type};
use crate::check::resolve::MOST_STATEMENTS;
use crate::diagnostic::{Code, Diagnostic};

impl Expansion<'_> {
    /// The parameters that a parameter stands for: one for each tensor of a list.
    pub(super) fn parameter(&mut self, param: &Param) -> Vec<Param> {
        let Some(count) = &param.name.element else {
            let mut param = param.clone();
            self.ty(&mut param.ty);
            return vec![param];
        };
        let Some(count) = self.length(&param.name, count) else { return Vec::new() };
        self.elements.entry(param.name.text.clone()).or_default().extend(0..count);
        let parameter = |at| {
            let ty = self.ty_in_list(&param.ty, (at, count));
            Param { ty, name: element_name(&param.name, at), ..param.clone() }
        };
        (0..count).map(parameter).collect()
    }

    /// The results that a result stands for: one for each tensor of a list.
    pub(super) fn result(&mut self, result: &Declaration) -> Vec<Declaration> {
        let Some(count) = &result.name.element else {
            let mut ty = result.ty.clone();
            ty.iter_mut().for_each(|ty| self.ty(ty));
            return vec![Declaration { ty, ..result.clone() }];
        };
        let Some(count) = self.length(&result.name, count) else { return Vec::new() };
        self.result_lists.push((result.name.clone(), count));
        let element = |at| {
            let ty = result.ty.as_ref().map(|ty| self.ty_in_list(ty, (at, count)));
            Declaration { ty, name: element_name(&result.name, at), ..result.clone() }
        };
        (0..count).map(element).collect()
    }

    /// The number of tensors in a list of the signature, or `None` after a report.
    fn length(&mut self, list: &Name, count: &Expr) -> Option<i64> {
        let count = self.number(count, "the number of tensors in a list")?;
        if count < 1 || count as usize > MOST_STATEMENTS {
            let message = format!("a list has 1 to {MOST_STATEMENTS} tensors, and this one has {count}");
            self.diagnostics.push(Diagnostic::error(Code::InvalidSize, list.span, message));
            return None;
        }
        Some(count)
    }

    /// The type of one tensor of a list, by its number and the length of the list.
    fn ty_in_list(&mut self, ty: &Type, place: (i64, i64)) -> Type {
        let mut ty = ty.clone();
        self.place_in_list = Some(place);
        self.ty(&mut ty);
        self.place_in_list = None;
        ty
    }

    /// Makes `H[n]` in the type of a list the size of one of its tensors.
    pub(super) fn size_in_list(&mut self, size: &mut Name, (at, count): (i64, i64)) {
        let Some(own) = size.element.take() else { return };
        if static_value(&own, &self.statics) != Some(count) {
            let message =
                format!("the list has {count} tensors, and so it has {count} sizes `{}`", size.text);
            let help = format!(
                "write the number of the list's tensors in the square brackets of `{}` too",
                size.text
            );
            self.diagnostics.push(Diagnostic::error(Code::InvalidSize, own.span, message).help(help));
        }
        size.text = format!("{}[{at}]", size.text);
    }

    /// Expands the name of a tensor that a statement defines, and adds it to its list.
    pub(super) fn target(&mut self, target: &mut Name) {
        let number = target.element.as_deref().and_then(|number| static_value(number, &self.statics));
        if let Some(number) = number {
            let list = self.new_name(&target.text).unwrap_or(&target.text).clone();
            self.elements.entry(list).or_default().insert(number);
        }
        self.name(target);
    }

    /// Expands the arguments of a call. The name of a list becomes its tensors.
    pub(super) fn arguments(&mut self, arguments: &mut Vec<Expr>) {
        for argument in arguments.iter_mut() {
            if let ExprKind::Name(text) = &argument.kind {
                let list = Name::new(text.clone(), argument.span);
                self.list_argument(&list).into_iter().for_each(|kind| argument.kind = kind);
            }
        }
        self.expressions(arguments);
    }

    /// The tensors of a list that is passed to a function, if there is a list of this name.
    fn list_argument(&mut self, list: &Name) -> Option<ExprKind> {
        let own = self.new_name(&list.text).unwrap_or(&list.text).clone();
        let elements = self.elements.get(&own)?;
        let count = elements.len() as i64;
        if let Some(missing) = (0..count).find(|at| !elements.contains(at)) {
            let message = format!("the list `{0}` has no tensor `{0}[{missing}]`", list.text);
            let help = "a list that is passed to a function is defined before the call, from number 0 on";
            self.diagnostics.push(Diagnostic::error(Code::UndefinedName, list.span, message).help(help));
            return None;
        }
        let element = |at| Expr::new(ExprKind::Name(format!("{own}[{at}]")), list.span);
        Some(ExprKind::List(list.text.clone(), (0..count).map(element).collect()))
    }

    /// The targets of a call, with all elements of a target that receives a list.
    pub(super) fn targets(&mut self, targets: &[Name], callee: &Name, arguments: &[Expr]) -> Vec<Name> {
        let function = self.module.function(&callee.text);
        let mut all = Vec::new();
        for (at, written) in targets.iter().enumerate() {
            let mut target = written.clone();
            self.target(&mut target);
            let count = function
                .and_then(|function| function.results.get(at)?.name.element.as_deref())
                .zip(function)
                .and_then(|(count, function)| {
                    static_value(count, &call_statics(function, arguments, &self.statics))
                });
            match count {
                Some(count) => {
                    self.refuse_surplus_elements(written, callee, count);
                    let elements = 0..count.clamp(0, MOST_STATEMENTS as i64);
                    self.elements.entry(target.text.clone()).or_default().extend(elements.clone());
                    all.extend(elements.map(|at| element_name(&target, at)));
                }
                None => all.push(target),
            }
        }
        all
    }

    /// Refuses a target that cannot receive all tensors of the list that a call returns.
    fn refuse_surplus_elements(&mut self, target: &Name, callee: &Name, count: i64) {
        let name = &target.text;
        let returned = format!("`{}` returns a list of {count} tensors", callee.text);
        if target.element.is_some() {
            let message = format!("{returned}, but the target is one tensor");
            let help =
                format!("give the whole list a name: `{name} = {}(…)`, then use `{name}[0]`", callee.text);
            self.diagnostics.push(Diagnostic::error(Code::RankMismatch, target.span, message).help(help));
            return;
        }
        let own = self.result_lists.iter().find(|(own, _)| own.text == *name);
        if let Some((own, wanted)) = own.filter(|(_, wanted)| *wanted < count) {
            let message = format!("{returned}, but the result `{name}` has {wanted}");
            let help = format!(
                "write `-> ({name}[{count}])`, or give the list another name and define each `{name}[…]` by it"
            );
            let diagnostic = Diagnostic::error(Code::RankMismatch, target.span, message);
            self.diagnostics.push(diagnostic.secondary_label(own.span, "the result").help(help));
        }
    }
}

fn element_name(list: &Name, at: i64) -> Name {
    Name::new(format!("{}[{at}]", list.text), list.span)
}

/// The function with a parameter for each tensor of its lists, under the names of the program:
/// `float(H_0) g_0` for the first tensor of `float(H[n]) g[n]`. A list whose length is not known
/// stays as it is.
pub(in crate::check) fn signature(function: &Function, statics: Statics) -> Cow<'_, Function> {
    let has_list = function.params.iter().any(|param| param.name.element.is_some());
    if !has_list || is_generic(function) {
        return Cow::Borrowed(function);
    }
    let (module, instance) = (Module::default(), Instance { statics, ..Instance::default() });
    let mut expansion = Expansion::new(&module, function, &instance);
    let mut params = Vec::new();
    for param in &function.params {
        if param.is_static {
            params.push(param.clone());
            continue;
        }
        let mut own = expansion.parameter(param);
        for param in &mut own {
            param.name.text = program_name(&param.name.text);
            param.ty.dims.iter_mut().for_each(name_sizes);
        }
        params.extend(own);
    }
    match expansion.diagnostics.is_empty() {
        true => Cow::Owned(Function { params, ..function.clone() }),
        false => Cow::Borrowed(function),
    }
}

/// Gives the sizes in an extent the names that they have in the program.
fn name_sizes(extent: &mut Expr) {
    match &mut extent.kind {
        ExprKind::Name(text) => *text = program_name(text),
        ExprKind::Unary(_, operand) | ExprKind::Cast(_, operand) => name_sizes(operand),
        ExprKind::Binary(_, operands) => operands.iter_mut().for_each(name_sizes),
        ExprKind::Ternary(operands) => operands.iter_mut().for_each(name_sizes),
        ExprKind::Apply(_, operands) => operands.iter_mut().for_each(name_sizes),
        _ => {}
    }
}

/// The name of a tensor or size in the program: `g_3` for the element `g[3]` of a list.
pub(in crate::check) fn program_name(name: &str) -> String {
    without_marks(name).replace("][", "_").replace('[', "_").replace(']', "")
}

/// Returns true for the name of a tensor that belongs to one iteration of a loop over stages.
pub(in crate::check) fn is_of_iteration(name: &str) -> bool {
    name.contains('\'')
}

/// The text with names as they are written in the program: `t` for `t[0][1]'2`, the tensor of an
/// iteration, and `p[3]` for `p[0]'1[3]`, a tensor of such a list.
pub(in crate::check) fn written_name(text: &str) -> String {
    let mut rest = text;
    let mut written = String::new();
    while let Some(at) = rest.find("]'") {
        let after = rest[at + 2..].trim_start_matches(|digit: char| digit.is_ascii_digit());
        let is_mark = after.len() < rest.len() - at - 2;
        let numbers = |c: char| c.is_ascii_digit() || matches!(c, '[' | ']' | '-');
        let kept = if is_mark { rest[..at].trim_end_matches(numbers) } else { &rest[..at + 2] };
        written.push_str(kept);
        rest = if is_mark { after } else { &rest[at + 2..] };
    }
    written + rest
}

/// The name of an iteration's tensor without its mark: `t[0]` for `t[0]'2`.
fn without_marks(name: &str) -> String {
    let mut parts = name.split('\'');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + part.trim_start_matches(|digit: char| digit.is_ascii_digit()))
}
