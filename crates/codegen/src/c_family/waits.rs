//! Barriers out of conditions.
//!
//! OpenCL allows a barrier inside of a condition that all threads of a block decide alike. PoCL, which is what many machines
//! without a GPU have, hangs or crashes on some of them inside of loops. So the condition is asked around what is between the
//! barriers instead, and the threads wait whatever it says. Threads that are combined wait too: these all go through the code,
//! and take part where the condition holds.

use tilewright_ir::IndexExpr;
use tilewright_ir::nest::{Allocate, Combining, For, If, Stmt};

/// The same statements, with no barrier inside of a condition, but for conditions that depend on data.
pub(super) fn out_of_conditions(stmts: &[Stmt]) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(stmts.len());
    for stmt in stmts {
        match stmt {
            Stmt::For(own) if own.combining().is_some() => out.push(stmt.clone()),
            Stmt::For(own) if waits(&own.body) => {
                out.push(Stmt::For(For { body: out_of_conditions(&own.body), ..own.clone() }));
            }
            Stmt::Allocate(own) if waits(&own.body) => {
                out.push(Stmt::Allocate(Allocate { body: out_of_conditions(&own.body), ..own.clone() }));
            }
            Stmt::If(own) if is_asked_again(own) => {
                out.extend(asked(own, true, out_of_conditions(&own.then)));
                out.extend(asked(own, false, out_of_conditions(&own.otherwise)));
            }
            other => out.push(other.clone()),
        }
    }
    out
}

/// Whether a condition can be asked several times: it is the same each time.
fn is_asked_again(own: &If) -> bool {
    let waits = waits(&own.then) || waits(&own.otherwise);
    waits && !own.conditions.iter().any(IndexExpr::has_data)
}

/// One side of a choice: what is between barriers, each part where the condition says so.
fn asked(own: &If, holds: bool, side: Vec<Stmt>) -> Vec<Stmt> {
    let (mut out, mut part) = (Vec::new(), Vec::new());
    for stmt in side {
        if !waits(std::slice::from_ref(&stmt)) {
            part.push(stmt);
            continue;
        }
        out.extend(chosen(own, holds, std::mem::take(&mut part)));
        match stmt {
            Stmt::For(inner) if inner.combining().is_some() => {
                out.extend(chosen(own, holds, vec![Stmt::For(inner)]));
            }
            Stmt::For(inner) => {
                out.push(Stmt::For(For { body: asked(own, holds, inner.body.clone()), ..inner }))
            }
            Stmt::Allocate(inner) => {
                out.push(Stmt::Allocate(Allocate { body: asked(own, holds, inner.body.clone()), ..inner }));
            }
            other => out.push(other),
        }
    }
    out.extend(chosen(own, holds, part));
    out
}

fn chosen(own: &If, holds: bool, part: Vec<Stmt>) -> Option<Stmt> {
    if part.is_empty() {
        return None;
    }
    let conditions = match (holds, own.conditions.as_slice()) {
        (true, conditions) => conditions.to_vec(),
        (false, [only]) => vec![only.scale(-1).offset(-1)],
        (false, _) => {
            let conditions = own.conditions.clone();
            return Some(Stmt::If(If { conditions, then: Vec::new(), otherwise: part }));
        }
    };
    Some(Stmt::If(If { conditions, then: part, otherwise: Vec::new() }))
}

/// The combination of threads that a condition is around, if that is all and the condition is the same for all of them.
pub(super) fn combining(own: &If) -> Option<Combining<'_>> {
    match (own.then.as_slice(), own.otherwise.as_slice()) {
        ([Stmt::For(inner)], []) if is_asked_again(own) => inner.combining(),
        _ => None,
    }
}

fn waits(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Sync(_) | Stmt::Combine(_) => true,
        Stmt::For(own) => waits(&own.body),
        Stmt::If(own) => waits(&own.then) || waits(&own.otherwise),
        Stmt::Allocate(own) => waits(&own.body),
        Stmt::Store(_) | Stmt::Prefetch(_) => false,
    })
}
