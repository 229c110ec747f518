//! The pages about scheduled programs: complete, well-formed, and free of markup from the user.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;

use std::path::{Path, PathBuf};

use examples::examples;
use resvg::usvg::roxmltree::{Document, Node};
use tilewright_ir::{LoopNest, Program, verify_nest};
use tilewright_report::{MeasuredTimes, ProgramPage};
use tilewright_schedule::{Schedule, apply, schedule_by_rules, text};
use tilewright_search::explain::explain;
use tilewright_search::kind::cost_model;
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::{Cpu, Gpu, GpuApi, Target, VectorInstructions};

/// Longer programs have no other kinds of loops, and explaining them takes long.
const MOST_STATEMENTS: usize = 24;
/// The boxes that explain the colours of loops.
const LEGEND_DRAWINGS: usize = 6;

fn cpu() -> Cpu {
    Cpu { cores: 2, vectors: VectorInstructions::Avx512, caches: vec![32 << 10, 1 << 20] }
}

fn program(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    let name = &parsed.ast.functions.last().unwrap().name.text;
    let checked = check(&parsed.ast, name, &sizes.iter().copied().collect());
    checked.program.unwrap_or_else(|| panic!("{source}\nis refused: {:?}", checked.diagnostics))
}

/// Every function of the examples and the image pipelines, at the first sizes that it accepts.
fn programs() -> Vec<(String, Program)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pipelines");
    let pipelines = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = examples().into_iter().chain(pipelines).collect();
    let mut found = Vec::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "tw")) {
        let parsed = parse(&std::fs::read_to_string(path).unwrap());
        let Some(last) = parsed.ast.functions.last() else { continue };
        let Some(open) = check(&parsed.ast, &last.name.text, &Bindings::default()).program else { continue };
        let at = |size: &i64| open.at_sizes(&vec![*size; open.symbols.len()]).ok();
        let sized = [33, 16, 8, 5, 4, 3, 2, 1].iter().find_map(at);
        let sized = sized.filter(|program| program.statements().len() <= MOST_STATEMENTS);
        found.extend(sized.map(|program| (path.display().to_string(), program)));
    }
    found
}

fn page(program: &Program, schedule: &Schedule, target: Target, measured: bool, told: &str) -> String {
    let nest = apply(program, schedule, target).unwrap();
    let explanation = explain(program, schedule, &nest, target, &*cost_model(target)).unwrap();
    let roots: Vec<f64> = explanation.roots.iter().map(|time| 2.0 * time).collect();
    let measured = measured.then(|| MeasuredTimes { whole: roots.iter().sum(), roots });
    let (origin, source, nest, explanation) = (told.to_owned(), told, &nest, &explanation);
    ProgramPage { program, source, schedule, origin, nest, explanation, target, measured }.html()
}

/// The page as XML: every element is closed, so all readers see the same tree.
fn parsed(page: &str) -> Document<'_> {
    let markup = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    Document::parse(markup).unwrap_or_else(|error| panic!("{error}\n{markup}"))
}

fn count(document: &Document, tag: &str) -> usize {
    document.descendants().filter(|node| node.tag_name().name() == tag).count()
}

fn number(node: &Node, name: &str) -> f64 {
    node.attribute(name).unwrap_or_else(|| panic!("no {name} in {node:?}")).parse().unwrap()
}

/// Checks that labels of loops are inside the box around them, and boxes inside the drawing.
fn check_drawings(name: &str, document: &Document) {
    let is_picture =
        |node: &Node| node.attribute("class") == Some("loops") && node.attribute("role") == Some("img");
    for drawing in document.descendants().filter(is_picture) {
        let (width, height) = (number(&drawing, "width"), number(&drawing, "height"));
        for own in drawing.descendants().filter(|node| node.tag_name().name() == "rect") {
            let (left, top) = (number(&own, "x"), number(&own, "y"));
            let (right, bottom) = (left + number(&own, "width"), top + number(&own, "height"));
            assert!(left >= 0.0 && top >= 0.0 && right <= width && bottom <= height, "{name}: {own:?}");
        }
        let label = drawing.attribute("aria-label").unwrap();
        for text in drawing.descendants().filter(|node| node.tag_name().name() == "title") {
            assert!(label.contains(text.text().unwrap()), "{name}: {label} lacks {text:?}");
        }
    }
}

#[test]
fn every_program_has_a_complete_page() {
    let (cpu, gpu) = (cpu(), Gpu::typical(GpuApi::Cuda));
    let mut pages = 0;
    for (name, program) in programs() {
        for target in [Target::from(&cpu), Target::from(&gpu)] {
            let schedule = schedule_by_rules(&program, target);
            let Ok(nest) = apply(&program, &schedule, target) else { continue };
            let html = page(&program, &schedule, target, pages % 2 == 0, "by rules");
            let document = parsed(&html);
            let pictures = nest.roots().len() + usize::from(!nest.setup.is_empty());
            assert_eq!(count(&document, "svg"), pictures + 2 + LEGEND_DRAWINGS, "{name}");
            assert_eq!(count(&document, "section"), 7, "{name}");
            check_drawings(&name, &document);
            check_prefixes(&name, &nest);
            let without_namespace = html.replace("http://www.w3.org/2000/svg", "");
            for outside in ["http:", "https:", " src=", " href=", "url(", "@import", "<script"] {
                assert!(!without_namespace.contains(outside), "{name} has {outside}");
            }
            pages += 1;
        }
    }
    assert!(pages > 100, "only {pages} pages");
}

/// A nest that ends early is a valid nest: it is what the times of nests are measured with.
fn check_prefixes(name: &str, nest: &LoopNest) {
    let roots = nest.roots().len();
    for count in 1..=roots {
        let start = nest.up_to_root(count);
        assert_eq!(start.roots(), nest.roots()[..count], "{name}");
        verify_nest(&start).unwrap_or_else(|why| panic!("{name} up to nest {count}: {why}"));
    }
    assert_eq!(nest.up_to_root(roots), *nest, "{name}");
}

const BLUR: &str = "def blur(float(H, W) image) -> (out) {
  bright(y, x) = 2 * image(y, x) + 1
  rows(y, x) = bright(y, x) + bright(y, x + 1) + bright(y, x + 2)
  out(y, x) = rows(y, x) + rows(y + 1, x) + rows(y + 2, x)
}";
const STEPS: &str = "inline bright\nsplit out.y -> yo, yi:16\ncompute_at rows, out.yi store_at out.yo fold 4\n\
                     parallel out.yo\nsplit out.x -> xo, xv:16\nvectorize out.xv";

#[test]
fn decisions_and_times_are_on_the_page() {
    let program = program(BLUR, &[("H", 258), ("W", 258)]);
    let cpu = cpu();
    let schedule = text::parse(STEPS).schedule;
    let html = page(&program, &schedule, (&cpu).into(), true, "blur.sched");
    for expected in [
        "<td>rows</td><td>at out.yi, sliding</td><td>scratch(4, 256)</td>",
        "<td>bright</td><td>inlined</td><td></td><td>in its readers</td>",
        "no other stage reads it",
        ">parallel yo: 16</text>",
        ">vector xv: 16</text>",
        ">rows: float32 scratch(4, 256)</text>",
        "2.00 times the prediction",
        "class=\"measured\"",
        "schedule: blur.sched",
        "compute_at rows, out.yi store_at out.yo fold 4",
    ] {
        assert!(html.contains(expected), "no {expected}\n{html}");
    }
    let unmeasured = page(&program, &schedule, (&cpu).into(), false, "");
    assert!(!unmeasured.contains("class=\"measured\"") && unmeasured.contains("bench --report"));
    // Other places of `rows`, with the change of the program's time.
    let document = parsed(&html);
    let is_details = |node: &Node| node.tag_name().name() == "details";
    let text_of = |node: Node| {
        let texts = node.descendants().filter(Node::is_text).filter_map(|node| node.text());
        texts.collect::<Vec<&str>>().concat()
    };
    let texts: Vec<String> = document.descendants().filter(is_details).map(text_of).collect();
    assert!(texts.iter().any(|text| text.contains("at root") && text.contains('%')), "{texts:?}");
}

#[test]
fn nothing_from_the_user_is_markup() {
    let program = program(BLUR, &[("H", 34), ("W", 34)]);
    let cpu = cpu();
    let html = page(&program, &Schedule::default(), (&cpu).into(), true, "<i>&\"'\u{0}</style>");
    assert_eq!(count(&parsed(&html), "i"), 0);
    assert_eq!(html.matches("</style>").count(), 1);
}
