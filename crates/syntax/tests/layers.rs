//! The layers of ARCHITECTURE.md are those of the `Cargo.toml` files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// For each crate, the crates that it depends on.
type Layers = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The dependencies that the `Cargo.toml` files name, without those of tests.
fn named() -> Layers {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    folders
        .map(|folder| {
            let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            let section =
                text.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap_or("");
            let own = section.lines().filter(|line| line.starts_with("tilewright"));
            let own = own.map(|line| line.split(['.', ' ']).next().unwrap());
            let own = own.map(|name| name.strip_prefix("tilewright-").unwrap_or(name).to_owned());
            (folder.file_name().unwrap().to_string_lossy().into_owned(), own.collect())
        })
        .collect()
}

/// The dependencies that the lines with arrows in ARCHITECTURE.md state.
fn stated() -> Layers {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut stated = Layers::new();
    for line in text.lines().filter(|line| line.starts_with("    ") && line.contains('←')) {
        for chain in line.trim().split("      ") {
            let sides: Vec<Vec<String>> = chain.split('←').map(crates).collect();
            for pair in sides.windows(2) {
                for above in &pair[1] {
                    stated.entry(above.clone()).or_default().extend(pair[0].iter().cloned());
                }
            }
        }
    }
    stated
}

/// The names of one side of an arrow: `a`, or `{ a, b (a remark) }`.
fn crates(side: &str) -> Vec<String> {
    let names = side.trim().trim_matches(['{', '}']).split(',');
    names.map(|name| name.trim().split(' ').next().unwrap().to_owned()).collect()
}

/// All crates below a crate.
fn below(layers: &Layers, name: &str) -> BTreeSet<String> {
    let direct = layers.get(name).cloned().unwrap_or_default();
    let further = direct.iter().flat_map(|own| below(layers, own)).collect::<BTreeSet<_>>();
    &direct | &further
}

#[test]
fn dependencies_are_those_of_the_picture() {
    let (named, stated) = (named(), stated());
    assert!(named.len() >= 15 && stated.len() >= 10, "{named:?}\n{stated:?}");
    for name in named.keys().chain(stated.keys()) {
        assert_eq!(below(&named, name), below(&stated, name), "the crates below `{name}`");
    }
}

/// The Python package also has the command inside.
#[test]
fn front_ends_sit_on_the_library_alone() {
    let named = named();
    for (front_end, wanted) in [("cli", &["tilewright"][..]), ("python", &["cli", "tilewright"])] {
        assert_eq!(named[front_end].iter().collect::<Vec<_>>(), wanted, "{front_end}");
    }
}
