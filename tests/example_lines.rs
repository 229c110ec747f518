//! The command lines that the examples give to run themselves, for tests that use their functions
//! and sizes: `#[path]` brings this file into them.

#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::path::{Path, PathBuf};

use tilewright_ir::{Number, Program};
use tilewright_syntax::{Bindings, check, parse};

use super::examples::examples;

/// A program as a command line names it: `FILE[:NAME] --sizes M=4,N=5 --in sigma=0.1`. Of the
/// inputs, only numbers matter here.
pub struct Line {
    pub path: PathBuf,
    name: Option<String>,
    pub sizes: Vec<(String, i64)>,
    pub scalars: Vec<(String, f64)>,
}

/// The line that each example has in its text, after `# tilewright run`.
pub fn own_lines() -> Vec<String> {
    let line = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        text.lines().find_map(|line| line.strip_prefix("# tilewright run ")).map(str::to_owned)
    };
    let lines: Option<Vec<String>> = examples().iter().map(line).collect();
    lines.expect("every example says how to run it")
}

impl Line {
    pub fn new(line: &str) -> Line {
        let mut words = line.split_whitespace();
        let named = words.next().unwrap();
        let (file, name) =
            named.split_once(':').map_or((named, None), |(file, name)| (file, Some(name.to_owned())));
        let words: Vec<&str> = words.collect();
        let values = |option: &'static str| {
            let given = words.windows(2).filter(move |pair| pair[0] == option);
            given.flat_map(|pair| pair[1].split(',')).filter_map(|pair| pair.split_once('='))
        };
        let sizes =
            values("--sizes").map(|(size, value)| (size.to_owned(), value.parse().unwrap())).collect();
        let scalars =
            values("--in").filter_map(|(scalar, value)| Some((scalar.to_owned(), value.parse().ok()?)));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        Line { path, name, sizes, scalars: scalars.collect() }
    }

    /// The program at `factor` times the sizes of the line, where the checker accepts it.
    pub fn program(&self, factor: i64) -> Result<Program, String> {
        let mut bindings: Bindings = self.sizes.iter().map(|(size, value)| (size, factor * value)).collect();
        for (scalar, value) in &self.scalars {
            bindings.set_scalar(scalar, Number::Float(*value));
        }
        let parsed = parse(&fs::read_to_string(&self.path).unwrap());
        let name = self.name.as_ref().unwrap_or(&parsed.ast.functions[0].name.text);
        let checked = check(&parsed.ast, name, &bindings);
        checked.program.ok_or_else(|| format!("{}: {:?}", self.path.display(), checked.diagnostics))
    }
}
