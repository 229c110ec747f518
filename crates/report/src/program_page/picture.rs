//! Makes the picture of a loop nest as nested parts ([`Part`]): loops, the buffers that exist in
//! their iterations, and the statements that they run.
//!
//! The picture leaves out what repeats. Unrolled copies of a statement are one part. If both sides
//! of a choice run the same statements, such as whole and partial tiles, the picture has the first
//! side and a note.

use std::collections::BTreeSet;

use tilewright_ir::nest::{ClaimRole, For, If, LoopKind, Scope, Stmt, Store, Sync};
use tilewright_ir::{LoopNest, print, walk};

use crate::graph::buffer_text;

/// A part of the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Perfectly nested loops, outermost first, with what the innermost one contains.
    Loops(Vec<LoopLabel>, Vec<Part>),
    /// A buffer that exists for what follows.
    Buffer(String),
    /// A statement of the program.
    Statement(String),
    /// A copy, or a step of a reduction that the schedule adds.
    Copy(String),
    /// Remarks for the reader.
    Note(String),
}

/// A loop as text, or `also partial` where other code runs partial tiles and borders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopLabel {
    /// The class of the kind of loop in the style sheet.
    pub class: &'static str,
    /// The kind, the name and the number of iterations.
    pub text: String,
}

/// The picture of some statements of a nest. `name` names the statements of the program.
pub fn picture(nest: &LoopNest, stmts: &[Stmt], name: &dyn Fn(usize) -> String) -> Vec<Part> {
    Painter { nest, name }.parts(stmts)
}

struct Painter<'a> {
    nest: &'a LoopNest,
    name: &'a dyn Fn(usize) -> String,
}

impl Painter<'_> {
    fn parts(&self, stmts: &[Stmt]) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for part in stmts.iter().flat_map(|stmt| self.of_statement(stmt)) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts
    }

    fn of_statement(&self, stmt: &Stmt) -> Vec<Part> {
        match stmt {
            Stmt::For(own) => vec![self.nested_loops(own)],
            Stmt::If(own) => self.choice(own),
            Stmt::Allocate(own) => {
                let buffer = self.nest.buffer(own.buffer);
                let text =
                    format!("{}: {} {}", buffer.name, buffer.dtype, buffer_text(buffer).unwrap_or_default());
                std::iter::once(Part::Buffer(text)).chain(self.parts(&own.body)).collect()
            }
            Stmt::Store(own) => vec![self.store(own)],
            Stmt::Combine(own) => {
                let buffer = &self.nest.buffer(own.store.target.tensor).name;
                vec![Part::Copy(format!("combine {buffer}"))]
            }
            Stmt::Sync(Sync::Barrier) => vec![Part::Note("barrier".to_owned())],
            Stmt::Sync(Sync::Commit | Sync::Wait(_)) => Vec::new(),
            Stmt::Prefetch(own) => {
                vec![Part::Note(format!("prefetch {}", self.nest.buffer(own.element.tensor).name))]
            }
        }
    }

    /// A loop with the loops that are alone inside it, in all iterations or in whole tiles.
    fn nested_loops(&self, outer: &For) -> Part {
        let (mut loops, mut body) = (vec![self.label(outer)], outer.body.as_slice());
        let mut has_partial_tiles = false;
        loop {
            match body {
                [Stmt::For(next)] => {
                    loops.push(self.label(next));
                    body = &next.body;
                }
                [Stmt::If(own)] if runs_the_same(own) => {
                    has_partial_tiles = true;
                    body = &own.then;
                }
                _ => break,
            }
        }
        let text = "also partial".to_owned();
        loops.extend(has_partial_tiles.then_some(LoopLabel { class: "partial", text }));
        Part::Loops(loops, self.parts(body))
    }

    fn label(&self, own: &For) -> LoopLabel {
        let (class, kind) = match own.kind {
            LoopKind::Serial => ("serial", String::new()),
            LoopKind::Parallel => ("parallel", "parallel ".to_owned()),
            LoopKind::Vector => ("vector", "vector ".to_owned()),
            LoopKind::Unrolled => ("unroll", "unroll ".to_owned()),
            LoopKind::Block(axis) => ("block", format!("block.{} ", axis.name())),
            LoopKind::Thread(axis) => ("thread", format!("thread.{} ", axis.name())),
        };
        let extent = print::index(&own.extent, self.nest);
        LoopLabel { class, text: format!("{kind}{}: {extent}", self.nest.var_name(own.var)) }
    }

    fn choice(&self, own: &If) -> Vec<Part> {
        let mut then = self.parts(&own.then);
        if own.otherwise.is_empty() {
            return then;
        }
        if runs_the_same(own) {
            then.push(Part::Note("and the same with conditions, for partial tiles and borders".to_owned()));
            return then;
        }
        then.insert(0, Part::Note("in some iterations:".to_owned()));
        then.push(Part::Note("in the others:".to_owned()));
        then.into_iter().chain(self.parts(&own.otherwise)).collect()
    }

    fn store(&self, own: &Store) -> Part {
        let buffer = self.nest.buffer(own.target.tensor);
        let Some(claim) = &own.claim else { return Part::Copy(format!("copy to {}", buffer.name)) };
        let name = (self.name)(claim.statement);
        match claim.role {
            ClaimRole::Value if claim.part.is_some() => Part::Copy(format!("{name}, in parts")),
            ClaimRole::Value => Part::Statement(name),
            ClaimRole::Neutral => Part::Copy(format!("start of {name}")),
            ClaimRole::Carry if buffer.scope == Scope::Register => Part::Copy(format!("load {name}")),
            ClaimRole::Carry => Part::Copy(format!("store {name}")),
            ClaimRole::Total => Part::Copy(format!("total of {name}")),
        }
    }
}

/// Whether both sides of a choice run the same statements, such as whole and partial tiles.
fn runs_the_same(own: &If) -> bool {
    !own.otherwise.is_empty() && stores_of(&own.otherwise).is_subset(&stores_of(&own.then))
}

/// The statements and buffers that stores belong to.
fn stores_of(stmts: &[Stmt]) -> BTreeSet<(Option<usize>, &'static str)> {
    let mut found = BTreeSet::new();
    walk::visit(stmts, &mut |stmt| {
        if let Some(store) = stmt.store() {
            let statement = store.claim.as_ref().map(|claim| claim.statement);
            found.insert((statement, if statement.is_some() { "" } else { "copy" }));
        }
    });
    found
}
