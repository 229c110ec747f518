//! Checks that every access is inside its buffer and that every load reads a written element.
//!
//! This module cannot check subscripts that depend on data. [`super::values`] compares such
//! subscripts with those of the program.

use tilewright_ir::nest::{Access, Scope};

use super::accesses::{Evaluations, for_each_access};
use super::nest::{Nest, Site};
use super::sources::Sources;
use super::{ProofResult, refuted, undecided};

/// Refutes nests that access memory outside their buffers.
pub fn check(nest: &Nest) -> ProofResult<()> {
    nest.sites
        .iter()
        .try_for_each(|site| for_each_access(site, &mut |access, at| check_inside(nest, site, access, at)))
}

fn check_inside(nest: &Nest, site: &Site, access: &Access, at: &Evaluations) -> ProofResult<()> {
    let buffer = nest.nest.buffer(access.tensor);
    for (index, extent) in access.indices.iter().zip(&buffer.shape) {
        let Some(value) = site.coordinates.affine(index) else { continue };
        let inside = value.nonnegative_set().intersect(&value.scale(-1).offset(extent - 1).nonnegative_set());
        let Some(found) = at.iterations.subtract(&inside).sample()? else { continue };
        if !at.is_certain {
            return undecided(format!("data decides whether an access is outside of `{}`", buffer.name));
        }
        let store = nest.describe(site, &found);
        return refuted(format!("{store} accesses `{}` outside of its extent {extent}", buffer.name));
    }
    Ok(())
}

/// Refutes nests that read memory with undefined content, even if the value is never used.
pub fn check_written(nest: &Nest, sources: &Sources) -> ProofResult<()> {
    for (number, site) in nest.sites.iter().enumerate() {
        for_each_access(site, &mut |access, at| {
            // A store may load its own element in some iterations only.
            if std::ptr::eq(access, &site.store.target) {
                return Ok(());
            }
            let is_argument = matches!(nest.nest.buffer(access.tensor).scope, Scope::Argument(_));
            let load =
                site.loads.iter().position(|own| *own == access).filter(|_| !is_argument && at.is_certain);
            let Some(source) = load.and_then(|load| sources.loads[number].get(load)) else { return Ok(()) };
            match &source.unwritten {
                Some(unwritten) if source.coordinates.len() == site.coordinates.len() => {
                    let Some(found) = unwritten.domain().intersect(&at.iterations).sample()? else {
                        return Ok(());
                    };
                    let name = &nest.nest.buffer(access.tensor).name;
                    let store = nest.describe(site, &found);
                    refuted(format!("{store} reads an element of `{name}` that nothing has written"))
                }
                _ => Ok(()),
            }
        })?;
    }
    Ok(())
}
