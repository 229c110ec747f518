//! Reads the file of `--template`, in which the user writes a search space, and makes the
//! [`Space`].

use std::fs;
use std::path::Path;

use tilewright::ir::Program;
use tilewright::space::Space;
use tilewright::target::Machine;

use crate::failure::Failure;

/// Reads the text of a template, if the option is given.
pub fn read(path: Option<&Path>) -> Result<Option<String>, Failure> {
    let text = |path: &Path| {
        fs::read_to_string(path).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
    };
    path.map(text).transpose()
}

/// Returns the search space of a template, or the one that the analysis finds if there is no
/// template.
pub fn space<'a>(
    text: Option<&str>,
    program: &'a Program,
    machine: &'a Machine,
) -> Result<Space<'a>, Failure> {
    Space::with_template(text, program, machine)
        .map_err(|error| Failure::Input(format!("the template cannot be used: {error}")))
}
