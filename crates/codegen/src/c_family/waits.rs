//! Barriers out of conditions.
//!
//! OpenCL allows a barrier inside of a condition that all threads of a block decide alike. PoCL, which is what many machines
//! without a GPU have, hangs or crashes on some of them inside of loops. So the condition is asked around what is between the
//! barriers instead, and the threads wait whatever it says.

use tilewright_ir::IndexExpr;
use tilewright_ir::nest::{Allocate, For, If, Stmt};

/// The same statements, with no barrier inside of a condition, but for conditions that depend on data.
pub(super) fn out_of_conditions(stmts: &[Stmt]) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(stmts.len());
    for stmt in stmts {
        match stmt {
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
    let (then, otherwise) = if holds { (part, Vec::new()) } else { (Vec::new(), part) };
    Some(Stmt::If(If { conditions: own.conditions.clone(), then, otherwise }))
}

fn waits(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Sync(_) => true,
        Stmt::For(own) => waits(&own.body),
        Stmt::If(own) => waits(&own.then) || waits(&own.otherwise),
        Stmt::Allocate(own) => waits(&own.body),
        // What combines threads also stores, and waits by itself.
        Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Combine(_) => false,
    })
}
