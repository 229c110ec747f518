//! Spaces that the user writes: `--template`.

use std::fs;
use std::path::Path;

use tilewright_ir::Program;
use tilewright_search::space::Space;
use tilewright_target::Machine;

use crate::failure::Failure;

/// The text of a template, if one was asked for.
pub fn read(path: Option<&Path>) -> Result<Option<String>, Failure> {
    let text = |path: &Path| {
        fs::read_to_string(path).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
    };
    path.map(text).transpose()
}

/// Its schedules, or those that the analysis finds where there is none.
pub fn space<'a>(
    text: Option<&str>,
    program: &'a Program,
    machine: &'a Machine,
) -> Result<Space<'a>, Failure> {
    Space::chosen(text, program, machine)
        .map_err(|error| Failure::Input(format!("the template cannot be used: {error}")))
}
