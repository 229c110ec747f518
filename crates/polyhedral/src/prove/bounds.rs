//! Checks that every access is inside its buffer and that every load reads a written element.
//!
//! This module cannot check subscripts that depend on data. [`super::values`] compares such
//! subscripts with those of the program.

use tilewright_ir::Access;
use tilewright_ir::nest::Scope;

use super::nest::{Nest, Site};
use super::reached::{Reached, each_access};
use super::sources::Sources;
use super::{Step, refuted, undecided};

/// Refutes nests that access memory outside their buffers.
pub fn check(nest: &Nest) -> Step<()> {
    nest.sites.iter().try_for_each(|site| each_access(site, &mut |access, at| inside(nest, site, access, at)))
}

fn inside(nest: &Nest, site: &Site, access: &Access, at: &Reached) -> Step<()> {
    let buffer = nest.nest.buffer(access.tensor);
    for (index, extent) in access.indices.iter().zip(&buffer.shape) {
        let Some(value) = site.coordinates.affine(index) else { continue };
        let inside = value.nonnegative().intersect(&value.scale(-1).offset(extent - 1).nonnegative());
        let Some(found) = at.iterations.subtract(&inside).sample()? else { continue };
        if !at.certain {
            return undecided(format!("data decides whether an access leaves `{}`", buffer.name));
        }
        let store = nest.describe(site, &found);
        return refuted(format!("{store} touches `{}` outside of its extent {extent}", buffer.name));
    }
    Ok(())
}

/// Refutes nests that read memory with undefined content, even if the value is never used.
pub fn check_written(nest: &Nest, sources: &Sources) -> Step<()> {
    for (number, site) in nest.sites.iter().enumerate() {
        each_access(site, &mut |access, at| {
            let of_caller = matches!(nest.nest.buffer(access.tensor).scope, Scope::Argument(_));
            let load = site.loads.iter().position(|own| *own == access).filter(|_| !of_caller && at.certain);
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
