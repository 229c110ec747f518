//! The drawings of all examples and image pipelines are well-formed and complete, and their texts
//! fit their boxes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;

use std::path::{Path, PathBuf};

use examples::examples;
use resvg::usvg::roxmltree::{Document, Node};
use tilewright_ir::{Program, Role};
use tilewright_report::graph::{program_graph, scheduled_graph};
use tilewright_schedule::{apply, schedule_by_rules, text};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::{Cpu, Gpu, GpuApi, Target, VectorInstructions};

fn cpu() -> Cpu {
    Cpu { cores: 2, vectors: VectorInstructions::Avx512, caches: vec![32 << 10, 1 << 20] }
}

/// The examples and the image pipelines.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pipelines");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut pipelines: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "tw")).collect();
    pipelines.sort();
    assert!(pipelines.len() > 10, "{pipelines:?}");
    examples().into_iter().chain(pipelines).collect()
}

/// The program of a function with some sizes.
fn program(source: &str, function: &str, sizes: &[(&str, i64)]) -> Program {
    let checked = check(&parse(source).ast, function, &sizes.iter().copied().collect());
    checked.program.unwrap_or_else(|| panic!("{source}\nis refused: {:?}", checked.diagnostics))
}

/// Every function of the files, without sizes.
fn open_programs() -> Vec<(String, Program)> {
    let of_file = |path: PathBuf| {
        let parsed = parse(&std::fs::read_to_string(&path).unwrap());
        let names: Vec<String> = parsed.ast.functions.iter().map(|own| own.name.text.clone()).collect();
        let open = move |name: String| {
            let program = check(&parsed.ast, &name, &Bindings::default()).program?;
            Some((format!("{name} of {}", path.display()), program))
        };
        names.into_iter().filter_map(open).collect::<Vec<_>>()
    };
    files().into_iter().flat_map(of_file).collect()
}

/// Every function of the files at the first sizes that it accepts.
fn programs_at_sizes(sizes: &[i64]) -> Vec<(String, Program)> {
    let at = |(name, open): (String, Program)| {
        let at_size = |size: &i64| open.at_sizes(&vec![*size; open.symbols.len()]).ok();
        sizes.iter().find_map(at_size).map(|program| (name.clone(), program))
    };
    open_programs().into_iter().filter_map(at).collect()
}

/// The width that a text may have in a fixed-width font.
fn text_width(text: &Node) -> f64 {
    let size = match text.attribute("class") {
        Some("heading") => 14.0,
        Some("name") => 12.0,
        _ => 11.0,
    };
    let characters = text.text().unwrap_or_default().chars().count() as f64;
    text.attribute("textLength").map_or(0.61 * size * characters, |width| width.parse().unwrap())
}

fn number(node: &Node, name: &str) -> f64 {
    node.attribute(name).unwrap_or_else(|| panic!("no {name} in {node:?}")).parse().unwrap()
}

/// The boxes of a drawing, which have a class, a title, a rectangle and a name.
fn boxes<'d>(document: &'d Document) -> Vec<Node<'d, 'd>> {
    let is_name = |own: &Node| own.attribute("class") == Some("name");
    document.descendants().filter(is_name).filter_map(|own| own.parent()).collect()
}

/// Checks a drawing, and returns the number of its boxes.
fn check_drawing(name: &str, svg: &str) -> usize {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}\n{svg}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg", "{name}");
    for tag in ["title", "desc", "style"] {
        assert!(root.children().any(|child| child.tag_name().name() == tag), "{name} has no {tag}");
    }
    let (width, height) = (number(&root, "width"), number(&root, "height"));
    let boxes = boxes(&document);
    for own in &boxes {
        assert!(own.children().any(|child| child.tag_name().name() == "title"), "{name}: {own:?}");
        let rectangle = own.children().find(|child| child.tag_name().name() == "rect").unwrap();
        let (left, top) = (number(&rectangle, "x"), number(&rectangle, "y"));
        let (right, bottom) = (left + number(&rectangle, "width"), top + number(&rectangle, "height"));
        assert!(left >= 0.0 && right <= width && bottom <= height, "{name}: {rectangle:?}");
        for text in own.children().filter(|child| child.tag_name().name() == "text") {
            let (x, y) = (number(&text, "x"), number(&text, "y"));
            assert!(left < x && x + text_width(&text) < right, "{name}: {:?}", text.text());
            assert!(top < y && y < bottom, "{name}: {:?}", text.text());
        }
    }
    boxes.len()
}

fn nodes(program: &Program) -> usize {
    program.tensors_with(Role::is_supplied).count() + program.statements().len()
}

#[test]
fn every_program_can_be_drawn() {
    let programs = open_programs();
    assert!(programs.len() > 80, "only {} programs", programs.len());
    for (name, program) in programs {
        assert_eq!(check_drawing(&name, &program_graph(&program)), nodes(&program), "{name}");
    }
}

#[test]
fn every_default_schedule_can_be_drawn() {
    let mut staged = 0;
    let gpu = Gpu::typical(GpuApi::Cuda);
    let cpu = cpu();
    for (name, program) in programs_at_sizes(&[16, 33, 8, 5, 4, 3, 2, 1]) {
        for target in [Target::from(&cpu), Target::from(&gpu)] {
            let Ok(nest) = apply(&program, &schedule_by_rules(&program, target), target) else { continue };
            let boxes = check_drawing(&name, &scheduled_graph(&program, &nest));
            assert!(boxes >= nodes(&program), "{name}");
            staged += boxes - nodes(&program);
        }
    }
    assert!(staged > 20, "only {staged} buffers are staged");
}

const BLUR: &str = "def blur(float(H, W) image, const float(3) weight) -> (out) {
  sharp(y, x) = 2 * image(y, x)
  rows(y, x) +=! weight(k) * sharp(y, x + k) where y in 0:H
  out(y, x) = (rows(max(y - 1, 0), x) + rows(y, x) + rows(min(y + 1, H - 1), x)) / 3
}";

#[test]
fn a_program_as_a_drawing() {
    insta::assert_snapshot!(program_graph(&program(BLUR, "blur", &[])));
}

#[test]
fn a_schedule_as_a_drawing() {
    let program = program(BLUR, "blur", &[("H", 64), ("W", 130)]);
    let steps = "inline sharp\ncompute_at rows, out.y\nparallel out.y\n\
                 split out.x -> xo, xv:16\nvectorize out.xv\nsplit rows.x -> xo, xv:16\nvectorize rows.xv\n\
                 promote weight at root -> taps packed\n";
    let nest = apply(&program, &text::parse(steps).schedule, &cpu()).unwrap();
    insta::assert_snapshot!(scheduled_graph(&program, &nest));
}
