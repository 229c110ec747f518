//! Identifiers for buffers and variables.

use std::collections::BTreeSet;

use tilewright_ir::{LoopNest, TensorId, VarId};

/// Words that mean something in one of the languages, or to the text around.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "constant",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "event_t",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "global",
    "goto",
    "half",
    "if",
    "image2d_t",
    "inline",
    "int",
    "kernel",
    "local",
    "long",
    "main",
    "mutable",
    "namespace",
    "new",
    "not",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "restrict",
    "return",
    "sampler_t",
    "short",
    "signed",
    "size_t",
    "sizeof",
    "static",
    "status",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typename",
    "uchar",
    "uint",
    "ulong",
    "union",
    "unsigned",
    "ushort",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
];

/// A name for every buffer and variable of a nest, each only once.
pub(super) struct Identifiers {
    buffers: Vec<String>,
    vars: Vec<String>,
    taken: BTreeSet<String>,
}

impl Identifiers {
    pub(super) fn of(nest: &LoopNest) -> Identifiers {
        let mut taken = BTreeSet::new();
        let buffers = nest.buffers.iter().map(|buffer| unused(&buffer.name, &mut taken)).collect();
        let vars = nest.vars.iter().map(|var| unused(&var.name, &mut taken)).collect();
        Identifiers { buffers, vars, taken }
    }

    pub(super) fn buffer(&self, id: TensorId) -> &str {
        &self.buffers[id.index()]
    }

    pub(super) fn var(&self, id: VarId) -> &str {
        &self.vars[id.index()]
    }

    /// A name like this for something inside a kernel, which is none of these and not in `local`; it is put there.
    pub(super) fn local(&self, like: &str, local: &mut BTreeSet<String>) -> String {
        let mut taken = &self.taken | local;
        let name = unused(like, &mut taken);
        local.insert(name.clone());
        name
    }
}

/// The name as an identifier that nothing else has.
fn unused(name: &str, taken: &mut BTreeSet<String>) -> String {
    let base = identifier(name);
    let numbered = (1..).map(|number| format!("{base}_{number}"));
    let mut names = std::iter::once(base.clone()).chain(numbered);
    let name = names.find(|name| !taken.contains(name)).expect("there is always another number");
    taken.insert(name.clone());
    name
}

/// A name without what C does not allow in one. What the languages and their headers define begins with other letters, or
/// is all capitals, or is a word of its own: so a name that could be theirs gets a mark.
pub(super) fn identifier(name: &str) -> String {
    let letters = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let mut plain: String = name.chars().map(letters).collect();
    let starts_well = plain.starts_with(|c: char| c.is_ascii_alphabetic());
    if !starts_well || plain.starts_with("tw_") {
        plain.insert_str(0, "v_");
    }
    let is_macro =
        plain.len() > 2 && plain.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
    let is_function = tilewright_ir::Builtin::ALL.iter().any(|builtin| plain.starts_with(builtin.name()));
    if RESERVED.contains(&plain.as_str()) || is_macro || is_function {
        plain.push('_');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_differ() {
        assert_eq!(identifier("C"), "C");
        assert_eq!(identifier("2LUT"), "v_2LUT");
        assert_eq!(identifier("blur.rows"), "blur_rows");
        assert_eq!(identifier("for"), "for_");
        assert_eq!(identifier("INFINITY"), "INFINITY_");
        assert_eq!(identifier("exp"), "exp_");
        let mut taken = BTreeSet::new();
        assert_eq!(unused("i", &mut taken), "i");
        assert_eq!(unused("i", &mut taken), "i_1");
    }
}
