//! Makes names for the loops and buffers that schedule steps create. No such name occurs in the
//! program.

use tilewright_ir::Program;
use tilewright_schedule::StatementName;

/// The separator of generated names. No name of the program has this separator before its last
/// part.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    separator: String,
}

impl Names {
    /// Chooses a separator that fits the names of a program.
    pub fn for_program(program: &Program) -> Names {
        let vars = program.vars.iter().map(|var| &var.name);
        let taken: Vec<&String> = vars.chain(program.tensors.iter().map(|tensor| &tensor.name)).collect();
        let mut mark = "_".to_string();
        while taken.iter().any(|name| could_collide(name, &mark)) {
            mark.push('_');
        }
        Names { separator: mark }
    }

    /// The name of a part of a loop: `i_0`.
    pub fn part(&self, base: &str, part: &str) -> String {
        format!("{}{}{}", without_dots(base), self.separator, without_dots(part))
    }

    /// The name of a buffer of a statement: `O_tile`, or `O_tile2` for the second statement that
    /// writes `O`.
    pub fn buffer(&self, statement: &StatementName, purpose: &str) -> String {
        let ordinal = if statement.ordinal > 1 { statement.ordinal.to_string() } else { String::new() };
        format!("{}{}{}{ordinal}", without_dots(&statement.tensor), self.separator, without_dots(purpose))
    }
}

/// Returns true when a generated name with this separator could equal `name`.
fn could_collide(name: &str, mark: &str) -> bool {
    name.rsplit_once(mark).is_some_and(|(_, part)| !part.contains('_'))
}

/// Replaces the dots of a name, which only names of the program contain, by underscores.
fn without_dots(name: &str) -> String {
    name.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_never_equal_names_of_the_program() {
        assert!(could_collide("i_0", "_"));
        assert!(!could_collide("i_0", "__"));
        assert!(!could_collide("image", "_"));
    }
}
