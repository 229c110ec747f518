//! Translates a schedule for one program into one for another program that differs only in its
//! names.
//!
//! The loop that a name means depends on the steps before it: `P.i` is a loop of `P`, or of the
//! statement that `P` is computed inside, or a part of either. So the steps are applied to both
//! programs side by side. Each name in a step is looked up in the draft of the first program, which
//! gives an id. The id is then written with its name in the draft of the second. The ids agree
//! because the programs differ in nothing but names.

use tilewright_ir::Program;
use tilewright_target::Target;

use crate::draft::{Draft, Legal, StatementId};
use crate::illegal::{Illegal, Refusal};
use crate::step::{LoopLevel, LoopName, PromoteScope, Schedule, StatementName, Step, Storage};
use crate::steps::{self, split::MOST_LOOPS};

/// The way to name the loops and buffers that steps make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamingScheme {
    /// `x0`, `x1`, … for loops and `b0`, `b1`, … for buffers, independent of their old names.
    Numbered,
    /// Names derived from the split or promoted name: the parts of `i` are `io` and `ii`.
    Derived,
}

/// A schedule translated to other names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenamedSchedule {
    /// The translated steps, up to and including the first that is refused.
    pub schedule: Schedule,
    /// The refusal that ended the translation.
    pub refusal: Option<Refusal>,
}

/// Translates the steps for `from` to the names of `to`, which has the same tensors, variables and
/// statements. A refused step is the last of the result; names in it that mean nothing stay as they
/// are.
pub fn rename<'t>(
    schedule: &Schedule,
    from: &'t Program,
    to: &'t Program,
    target: impl Into<Target<'t>>,
    new_names: NamingScheme,
) -> RenamedSchedule {
    let target = target.into();
    let mut renamed = RenamedSchedule { schedule: Schedule::default(), refusal: None };
    let drafts = Draft::new(from, target).and_then(|from| Ok((from, Draft::new(to, target)?)));
    let mut pair = match drafts {
        Ok((from, to)) => DraftPair { from, to, new_names },
        Err(reason) => return RenamedSchedule { refusal: Some(Refusal { step: None, reason }), ..renamed },
    };
    for (at, step) in schedule.steps.iter().enumerate() {
        let spelled = pair.translate(step);
        let applied = pair.apply_step(step, &spelled);
        renamed.schedule.steps.push(spelled);
        if let Err(reason) = applied {
            renamed.refusal = Some(Refusal { step: Some(at), reason });
            break;
        }
    }
    renamed
}

/// The drafts of both programs after the same steps.
struct DraftPair<'a> {
    from: Draft<'a>,
    to: Draft<'a>,
    new_names: NamingScheme,
}

impl DraftPair<'_> {
    /// Applies a step to both drafts.
    fn apply_step(&mut self, step: &Step, spelled: &Step) -> Legal<()> {
        steps::apply(&mut self.from, step)?;
        steps::apply(&mut self.to, spelled)?;
        let tables = |draft: &Draft| {
            [draft.loops.len(), draft.buffers.len(), draft.statements.len(), draft.setup.len()]
        };
        if tables(&self.from) == tables(&self.to) {
            return Ok(());
        }
        // A name means something else in the second program, where another name hides it.
        Err(Illegal::NameTaken(spelled.to_string()))
    }

    /// Translates a step to the names of the second program.
    fn translate(&self, step: &Step) -> Step {
        match step {
            Step::Split { target, outer, inner } => {
                let target = self.loop_name(target);
                // A split into more parts is refused, and a hostile text may have very many.
                let parts = 1 + inner.len().min(MOST_LOOPS);
                let mut names = self.part_names(&target.name, parts).into_iter();
                let outer = names.next().unwrap_or_else(|| outer.clone());
                Step::Split {
                    target,
                    outer,
                    inner: names.zip(inner).map(|(name, (_, n))| (name, *n)).collect(),
                }
            }
            Step::Fuse { loops, .. } => {
                let loops = self.loop_names(loops);
                let joined = loops.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join("_");
                Step::Fuse { loops, name: self.new_loop(&joined) }
            }
            Step::Reorder { loops } => Step::Reorder { loops: self.loop_names(loops) },
            Step::Unroll(target) => Step::Unroll(self.loop_name(target)),
            Step::Vectorize(target) => Step::Vectorize(self.loop_name(target)),
            Step::Parallel(target) => Step::Parallel(self.loop_name(target)),
            Step::Bind { target, to } => Step::Bind { target: self.loop_name(target), to: *to },
            Step::Inline { tensor } => Step::Inline { tensor: self.tensor(tensor) },
            Step::Clone { tensor, readers, .. } => {
                let tensor = self.tensor(tensor);
                let name = self.new_buffer(&tensor, "c");
                Step::Clone {
                    tensor,
                    name,
                    readers: readers.iter().map(|name| self.statement(name)).collect(),
                }
            }
            Step::ComputeAt { tensor, at, storage } => {
                let (tensor, at) = (self.tensor(tensor), self.loop_name(at));
                let storage = storage.as_ref().map(|own| Storage { at: self.level(&own.at), fold: own.fold });
                Step::ComputeAt { tensor, at, storage }
            }
            Step::ComputeWith { target, with, ahead } => Step::ComputeWith {
                target: self.loop_name(target),
                with: self.loop_name(with),
                ahead: *ahead,
            },
            Step::Promote { tensor, at, scope, gathered, layout, pad, .. } => {
                let tensor = self.tensor(tensor);
                let at = self.level(at);
                let suffix = match scope {
                    PromoteScope::Packed => "p",
                    PromoteScope::Shared => "s",
                    PromoteScope::Registers => "r",
                };
                let name = self.new_buffer(&tensor, suffix);
                let (scope, gathered, layout) = (*scope, *gathered, layout.clone());
                Step::Promote { tensor, at, name, scope, gathered, layout, pad: *pad }
            }
            Step::Rfactor { target, .. } => {
                let target = self.loop_name(target);
                let name = self.new_buffer(&target.statement.tensor, "t");
                Step::Rfactor { target, name }
            }
            Step::Scan { target, .. } => {
                let target = self.loop_name(target);
                let name = self.new_buffer(&target.statement.tensor, "c");
                Step::Scan { target, name }
            }
            Step::Pipeline { target, stages } => {
                Step::Pipeline { target: self.loop_name(target), stages: *stages }
            }
            Step::Prefetch { tensor, at, ahead, of } => Step::Prefetch {
                tensor: self.tensor(tensor),
                at: self.loop_name(at),
                ahead: *ahead,
                of: self.loop_name(of),
            },
        }
    }

    fn tensor(&self, name: &str) -> String {
        match self.from.find_tensor(name) {
            Ok(id) => self.to.buffers[id.index()].buffer.name.clone(),
            Err(_) => name.to_owned(),
        }
    }

    fn statement(&self, name: &StatementName) -> StatementName {
        self.from.find_statement(name).map_or_else(|_| name.clone(), |id| self.to.statement(id).name.clone())
    }

    fn loop_names(&self, names: &[LoopName]) -> Vec<LoopName> {
        names.iter().map(|name| self.loop_name(name)).collect()
    }

    fn level(&self, level: &LoopLevel) -> LoopLevel {
        match level {
            LoopLevel::Root => LoopLevel::Root,
            LoopLevel::Loop(at) => LoopLevel::Loop(self.loop_name(at)),
        }
    }

    /// Translates the name of a loop. The loop is named by the same statement, or by another
    /// statement inside it where the name would mean a different loop.
    fn loop_name(&self, name: &LoopName) -> LoopName {
        let Ok(var) = self.from.find_loop(name) else {
            return LoopName { statement: self.statement(&name.statement), name: name.name.clone() };
        };
        let own = &self.to.loop_of(var).name;
        let same = self.statement(&name.statement).loop_named(own);
        let names_the_loop = |name: &LoopName| self.to.find_loop(name) == Ok(var);
        let spelled = |id: StatementId| self.to.statement(id).name.loop_named(own);
        let mut others = self.to.statements_in(self.to.body_of(var)).into_iter().map(spelled);
        let same_statement = || Some(same.clone()).filter(names_the_loop);
        let found = match self.new_names {
            // The result must not depend on how the loop was named: use the statement that owns the
            // loop, or else the first statement inside it.
            NamingScheme::Numbered => {
                let owner = self.to.loop_of(var).owner.map(spelled).filter(names_the_loop);
                owner.or_else(|| others.find(names_the_loop))
            }
            NamingScheme::Derived => same_statement().or_else(|| others.find(names_the_loop)),
        };
        found.unwrap_or(same)
    }

    /// Names for the parts of a loop.
    fn part_names(&self, of: &str, parts: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for at in 0..parts {
            let name = match self.new_names {
                NamingScheme::Numbered => format!("x{}", self.to.loops.len() + at),
                NamingScheme::Derived if parts == 2 => {
                    self.unused_name(&format!("{of}{}", ["o", "i"][at]), &names)
                }
                NamingScheme::Derived => self.unused_name(&format!("{of}{at}"), &names),
            };
            names.push(name);
        }
        names
    }

    fn new_loop(&self, derived: &str) -> String {
        match self.new_names {
            NamingScheme::Numbered => format!("x{}", self.to.loops.len()),
            NamingScheme::Derived => self.unused_name(derived, &[]),
        }
    }

    fn new_buffer(&self, of: &str, suffix: &str) -> String {
        match self.new_names {
            // Lowering makes the buffer of a result; until then only the statement records it.
            NamingScheme::Numbered => {
                let results = self.to.statements.iter().filter(|statement| statement.accumulator.is_some());
                format!("b{}", self.to.buffers.len() + results.count())
            }
            NamingScheme::Derived => self.unused_name(&format!("{}_{suffix}", of.replace('.', "_")), &[]),
        }
    }

    /// Returns an unused name that begins with this one.
    fn unused_name(&self, like: &str, more: &[String]) -> String {
        let base: String = if like.len() > LONGEST_NAME { "x".to_owned() } else { like.to_owned() };
        let numbered = (2..).map(|number| format!("{base}{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        names
            .find(|name| !self.is_taken(name) && !more.contains(name))
            .expect("there are more names than loops")
    }

    fn is_taken(&self, name: &str) -> bool {
        self.to.loops.iter().any(|one| one.name == name) || self.to.expect_unused_name(name).is_err()
    }
}

/// The longest name that names of parts are derived from. It stops the growth of names of parts of
/// parts.
const LONGEST_NAME: usize = 24;
