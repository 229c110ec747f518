//! Names for the loops and buffers that steps create. No such name occurs in the program.

use tilewright_ir::Program;
use tilewright_schedule::StatementName;

/// The separator of generated names. No name of the program has this separator before its last
/// part.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    mark: String,
}

impl Names {
    /// Chooses a separator that fits the names of a program.
    pub fn of(program: &Program) -> Names {
        let vars = program.vars.iter().map(|var| &var.name);
        let taken: Vec<&String> = vars.chain(program.tensors.iter().map(|tensor| &tensor.name)).collect();
        let mut mark = "_".to_string();
        while taken.iter().any(|name| is_marked(name, &mark)) {
            mark.push('_');
        }
        Names { mark }
    }

    /// The name of a part of a loop: `i_0`.
    pub fn part(&self, base: &str, part: &str) -> String {
        format!("{}{}{}", plain(base), self.mark, plain(part))
    }

    /// The name of a buffer of a statement: `O_tile`, or `O_tile2` for the second statement that
    /// writes `O`.
    pub fn buffer(&self, statement: &StatementName, what: &str) -> String {
        let ordinal = if statement.ordinal > 1 { statement.ordinal.to_string() } else { String::new() };
        format!("{}{}{}{ordinal}", plain(&statement.tensor), self.mark, plain(what))
    }
}

/// Returns true when a generated name with this separator could equal `name`.
fn is_marked(name: &str, mark: &str) -> bool {
    name.rsplit_once(mark).is_some_and(|(_, part)| !part.contains('_'))
}

/// Replaces the dots of a name, which only names of the program contain, by underscores.
fn plain(name: &str) -> String {
    name.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_program_are_kept_clear_of() {
        assert!(is_marked("i_0", "_"));
        assert!(!is_marked("i_0", "__"));
        assert!(!is_marked("image", "_"));
    }
}
