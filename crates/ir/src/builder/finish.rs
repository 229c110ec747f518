//! Turns a [`ProgramBuilder`] into an [`UncheckedProgram`], and turns an unchecked program that
//! passes every check into a [`Program`].
//!
//! The handles of a builder number tensors and variables in the order of their declarations. An
//! unchecked program lists inputs before results before temporaries, and gives each statement
//! variables of its own. This module therefore replaces the ids of the handles.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::{BuildError, DeclaredPrecondition, DeclaredStatement, DeclaredVar, Index, ProgramBuilder};
use crate::check::{Definedness, Finding, check, describe, describe_failure};
use crate::expr::{Expr, ExprKind, Origin};
use crate::index::{Atom, Data, IndexExpr};
use crate::precondition::Precondition;
use crate::program::{Program, Range, Symbol, SymbolKind, TensorId, VarId};
use crate::unchecked::{Parts, Source, Statement, Tensor, UncheckedProgram, Var, assemble};
use crate::verify::verify_form;

/// Checks the parts, or returns all mistakes that can be found together.
pub(super) fn finish(builder: ProgramBuilder) -> Result<Program, Vec<BuildError>> {
    let mut mistakes = name_mistakes(&builder);
    mistakes.extend(size_mistakes(&builder.symbols));
    let mut unchecked_builder = UncheckedProgramBuilder::new(&builder);
    for statement in &builder.statements {
        if let Err(mistake) = unchecked_builder.statement(statement) {
            mistakes.push(mistake);
        }
    }
    let unchecked = unchecked_builder.finish().map_err(|mistake| vec![mistake]);
    match mistakes.is_empty() {
        true => check_unchecked(unchecked?),
        false => Err(mistakes),
    }
}

/// Checks the unchecked program, for all sizes or at the given ones.
pub(crate) fn check_unchecked(mut unchecked: UncheckedProgram) -> Result<Program, Vec<BuildError>> {
    let form = assemble(unchecked.clone(), &vec![Definedness::Proved; unchecked.tensors.len()]);
    form.iter().try_for_each(|form| verify_form(form).map_err(|mistake| vec![mistake.into()]))?;
    let general = unchecked.specialize();
    let report = check(&unchecked);
    let errors = report.findings.iter().filter(|finding| finding.is_error());
    let error = |finding| check_error(finding, &unchecked, general.as_ref());
    let mut mistakes: Vec<BuildError> = errors.map(error).collect();
    let tensors = unchecked.tensors.iter().zip(&report.definedness);
    let read_first =
        tensors.filter(|(tensor, supply)| tensor.source == Source::Result && **supply == Definedness::Caller);
    mistakes.extend(read_first.map(|(tensor, _)| BuildError::ReadOutput(tensor.name.clone())));
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let general = general.and_then(|unchecked| assemble(unchecked, &report.definedness)).map(Arc::new);
    let program =
        assemble(unchecked, &report.definedness).expect("a builder leaves no gaps in its unchecked program");
    Ok(Program { general, ..program })
}

fn check_error(
    finding: &Finding,
    unchecked: &UncheckedProgram,
    general: Option<&UncheckedProgram>,
) -> BuildError {
    let text = match (finding, general) {
        (Finding::PreconditionFails(at), Some(general)) => {
            describe_failure(&general.preconditions[*at], unchecked)
        }
        _ => describe(finding, unchecked),
    };
    BuildError::CheckFailed { finding: Box::new(finding.clone()), text }
}

/// Reports names that are no names, and names that are taken. Sizes and tensors have separate name
/// spaces; scalars and variables belong to both.
fn name_mistakes(builder: &ProgramBuilder) -> Vec<BuildError> {
    let is_size = |symbol: &&Symbol| symbol.kind == SymbolKind::Size;
    let sizes: Vec<&String> = builder.symbols.iter().filter(is_size).map(|symbol| &symbol.name).collect();
    let tensors: Vec<&String> = builder.tensors.iter().map(|tensor| &tensor.name).collect();
    // Several variables may share a name: they are usually in different statements.
    let vars: BTreeSet<&String> = builder.vars.iter().map(|var| &var.name).collect();
    let shared: Vec<&String> = builder.scalars.iter().map(|scalar| &scalar.name).chain(vars).collect();
    let all = [&builder.name].into_iter().chain(sizes.iter().chain(&tensors).chain(&shared).copied());
    let invalid = all.filter(|name| !is_name(name)).map(|name| BuildError::InvalidName(name.clone()));
    let taken = [repeated_names(&sizes, &shared), repeated_names(&tensors, &shared)];
    let taken: BTreeSet<&String> = taken.into_iter().flatten().collect();
    invalid.chain(taken.into_iter().map(|name| BuildError::NameTaken(name.clone()))).collect()
}

fn repeated_names<'a>(names: &[&'a String], others: &[&'a String]) -> Vec<&'a String> {
    let mut seen = HashSet::new();
    names.iter().chain(others).copied().filter(|name| !seen.insert(*name)).collect()
}

fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit())
}

pub(crate) fn size_mistakes(symbols: &[Symbol]) -> Vec<BuildError> {
    let small = symbols.iter().filter_map(|symbol| {
        let (value, least) = symbol.value.zip(symbol.least).filter(|(value, least)| value < least)?;
        Some(BuildError::SizeTooSmall { name: symbol.name.clone(), least, value })
    });
    small.collect()
}

/// The variables of one statement: of each declared variable, the variable in the unchecked
/// program.
type VarMap = HashMap<VarId, VarId>;

/// An unchecked program in the making.
struct UncheckedProgramBuilder<'b> {
    builder: &'b ProgramBuilder,
    /// The id in the unchecked program of each declared tensor.
    tensors: Vec<TensorId>,
    /// The variables of ordered loops in the unchecked program, by their declared variables.
    loops: VarMap,
    vars: Vec<Var>,
    statements: Vec<Statement>,
}

impl<'b> UncheckedProgramBuilder<'b> {
    fn new(builder: &'b ProgramBuilder) -> UncheckedProgramBuilder<'b> {
        let mut order: Vec<usize> = (0..builder.tensors.len()).collect();
        order.sort_by_key(|at| source_order(builder.tensors[*at].source));
        let mut tensors = vec![TensorId(0); order.len()];
        order.iter().enumerate().for_each(|(place, at)| tensors[*at] = TensorId(place as u32));
        UncheckedProgramBuilder {
            builder,
            tensors,
            loops: VarMap::new(),
            vars: Vec::new(),
            statements: Vec::new(),
        }
    }

    fn finish(self) -> Result<UncheckedProgram, BuildError> {
        let mut tensors: Vec<(TensorId, Tensor)> = Vec::new();
        for (at, declared) in self.builder.tensors.iter().enumerate() {
            let shape: Result<Vec<IndexExpr>, BuildError> = declared
                .shape
                .iter()
                .map(|extent| self.renamed_extent(extent, &declared.name, &VarMap::new()))
                .collect();
            let tensor = Tensor {
                name: declared.name.clone(),
                dtype: Some(declared.dtype),
                shape: Some(shape?),
                has_inferred_shape: false,
                source: declared.source,
                is_suspect: false,
                origin: Origin::default(),
            };
            tensors.push((self.tensors[at], tensor));
        }
        tensors.sort_by_key(|(id, _)| *id);
        Ok(UncheckedProgram {
            name: self.builder.name.clone(),
            symbols: self.builder.symbols.clone(),
            scalars: self.builder.scalars.clone(),
            derived: Vec::new(),
            preconditions: self.preconditions()?,
            tensors: tensors.into_iter().map(|(_, tensor)| tensor).collect(),
            vars: self.vars,
            statements: self.statements,
            is_incomplete: false,
        })
    }

    fn preconditions(&self) -> Result<Vec<Precondition>, BuildError> {
        let side = |index: &Index| self.renamed_extent(index, "a precondition", &VarMap::new());
        let renamed = |declared: &DeclaredPrecondition| {
            let (left, right) = (side(&declared.left)?, side(&declared.right)?);
            Ok(Precondition { op: declared.op, left, right, origin: Origin::default() })
        };
        self.builder.preconditions.iter().map(renamed).collect()
    }

    fn statement(&mut self, written: &DeclaredStatement) -> Result<(), BuildError> {
        let declared =
            self.builder.tensors.get(written.target.tensor.id.index()).ok_or(BuildError::ForeignHandle)?;
        let of_target = |error| BuildError::TypeMismatch { tensor: declared.name.clone(), error };
        let value = written.value.clone().stored_as(declared.dtype).map_err(of_target)?;
        let indices: Result<Vec<IndexExpr>, _> =
            written.target.indices.iter().map(|index| index.0.clone()).collect();
        let mut indices = indices.map_err(of_target)?;
        let loops: Result<Vec<VarId>, BuildError> =
            written.loops.iter().map(|declared| self.loop_var(*declared)).collect();
        let loops = loops?;
        let renamed = self.copy_vars(&indices, &value, &written.loops)?;
        for index in &mut indices {
            *index = self.rename_index(index, &renamed)?;
        }
        let value = self.rename_value(value, &renamed)?;
        if indices.len() != declared.shape.len() {
            return Err(rank_mistake(&declared.name, declared.shape.len(), indices.len()));
        }
        let mut vars: Vec<VarId> = renamed.values().copied().filter(|var| !loops.contains(var)).collect();
        vars.sort();
        self.statements.push(Statement {
            target: self.tensors[written.target.tensor.id.index()],
            update: written.update,
            loops,
            vars,
            parts: Some(Parts::new(indices, value)),
            origin: Origin::default(),
        });
        Ok(())
    }

    /// The variable of an ordered loop in the unchecked program.
    fn loop_var(&mut self, declared: VarId) -> Result<VarId, BuildError> {
        if let Some(var) = self.loops.get(&declared) {
            return Ok(*var);
        }
        let var = self.add_var(&self.builder.vars[declared.index()])?;
        self.loops.insert(declared, var);
        Ok(var)
    }

    fn add_var(&mut self, declared: &DeclaredVar) -> Result<VarId, BuildError> {
        let none = VarMap::new();
        let range = Range {
            from: self.renamed_extent(&declared.from, &declared.name, &none)?,
            to: self.renamed_extent(&declared.to, &declared.name, &none)?,
        };
        self.vars.push(Var { name: declared.name.clone(), range: Some(range) });
        Ok(VarId(self.vars.len() as u32 - 1))
    }

    /// Gives a statement a copy of each variable that it mentions, in the order of their first
    /// mention. The variables of the loops around it are shared.
    fn copy_vars(
        &mut self,
        indices: &[IndexExpr],
        value: &Expr,
        around: &[VarId],
    ) -> Result<VarMap, BuildError> {
        let mut renamed: VarMap = around.iter().map(|declared| (*declared, self.loops[declared])).collect();
        for var in mentioned_vars(indices, value) {
            let declared = self.builder.vars.get(var.index()).ok_or(BuildError::ForeignHandle)?;
            match renamed.contains_key(&var) {
                true => {}
                false if declared.is_ordered => return Err(BuildError::OutsideLoop(declared.name.clone())),
                false => {
                    let own = self.add_var(declared)?;
                    renamed.insert(var, own);
                }
            }
        }
        let names: Vec<&String> = renamed.values().map(|var| &self.vars[var.index()].name).collect();
        match repeated_names(&names, &[]).first() {
            Some(name) => Err(BuildError::NameTaken((*name).clone())),
            None => Ok(renamed),
        }
    }

    /// A bound or extent of the tensor or variable `name`.
    fn renamed_extent(&self, index: &Index, name: &str, renamed: &VarMap) -> Result<IndexExpr, BuildError> {
        let of_name = |error| BuildError::TypeMismatch { tensor: name.to_owned(), error };
        self.rename_index(&index.0.clone().map_err(of_name)?, renamed)
    }

    /// The index with the ids of the unchecked program.
    fn rename_index(&self, index: &IndexExpr, renamed: &VarMap) -> Result<IndexExpr, BuildError> {
        let mut mistake = None;
        let mut replace = |atom: &Atom| {
            let replaced = match atom {
                Atom::Var(var) => renamed.get(var).map(|var| Some(IndexExpr::var(*var))),
                Atom::Symbol(symbol) => (symbol.index() < self.builder.symbols.len()).then_some(None),
                _ => Some(None),
            };
            if replaced.is_none() {
                mistake = Some(BuildError::ForeignHandle);
            }
            replaced.flatten()
        };
        let result = index.substitute(&mut replace);
        match mistake {
            Some(mistake) => Err(mistake),
            None => self.rename_data(&result),
        }
    }

    /// The index with the tensors of the unchecked program in its data, whose variables are renamed
    /// already.
    fn rename_data(&self, index: &IndexExpr) -> Result<IndexExpr, BuildError> {
        let mut mistake = None;
        let result = index.substitute(&mut |atom| {
            let Atom::Data(data) = atom else { return None };
            let mut value = data.value.clone();
            mistake = mistake.take().or(self.rename_tensors(&mut value).err());
            let data = Data { value, declared: data.declared.clone() };
            Some(IndexExpr::atom(Atom::Data(Arc::new(data))))
        });
        mistake.map_or(Ok(result), Err)
    }

    fn rename_value(&self, mut value: Expr, renamed: &VarMap) -> Result<Expr, BuildError> {
        let mut mistake = None;
        value.map_indices(&mut |index| match self.rename_index(index, renamed) {
            Ok(index) => index,
            Err(found) => {
                mistake = Some(found);
                index.clone()
            }
        });
        self.rename_tensors(&mut value)?;
        mistake.map_or(Ok(value), Err)
    }

    /// Replaces the tensors of all accesses outside of subscripts.
    fn rename_tensors(&self, value: &mut Expr) -> Result<(), BuildError> {
        if let ExprKind::Load(access) = &mut value.kind {
            let at = access.tensor.index();
            let declared = self.builder.tensors.get(at).ok_or(BuildError::ForeignHandle)?;
            if access.indices.len() != declared.shape.len() {
                return Err(rank_mistake(&declared.name, declared.shape.len(), access.indices.len()));
            }
            access.tensor = self.tensors[at];
        }
        value.operands_mut().iter_mut().try_for_each(|operand| self.rename_tensors(operand))
    }
}

fn rank_mistake(tensor: &str, rank: usize, found: usize) -> BuildError {
    BuildError::RankMismatch { tensor: tensor.to_owned(), rank, found }
}

/// Inputs come before results, and results before temporaries.
fn source_order(source: Source) -> u8 {
    match source {
        Source::Input { .. } => 0,
        Source::Result | Source::Updated => 1,
        Source::Temporary => 2,
    }
}

/// The variables of a statement, in the order of their first mention.
fn mentioned_vars(indices: &[IndexExpr], value: &Expr) -> Vec<VarId> {
    let mut vars = Vec::new();
    let mut add = |index: &IndexExpr| {
        index.visit_atoms(&mut |atom| {
            if let Atom::Var(var) = atom
                && !vars.contains(var)
            {
                vars.push(*var);
            }
        });
    };
    indices.iter().for_each(&mut add);
    value.clone().map_indices(&mut |index| {
        add(index);
        index.clone()
    });
    vars
}
