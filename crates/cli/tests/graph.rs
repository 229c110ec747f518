//! Tests of `tilewright show --stage graph`, and of the picture in the documentation.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::Folder;

const SIZES: &str = "--sizes M=20,N=33,K=7";

fn is_drawing(text: &str) -> bool {
    text.starts_with("<svg ") && text.ends_with("</svg>\n")
}

#[test]
fn a_program_is_drawn_with_and_without_sizes() {
    let folder = Folder::new();
    let open = folder.succeeds("show mm.tw --stage graph");
    assert!(is_drawing(&open) && open.contains(">float32(M, K)</text>"), "{open}");
    let sized = folder.succeeds(&format!("show mm.tw --stage graph {SIZES}"));
    assert!(is_drawing(&sized) && sized.contains(">float32(20, 7)</text>"), "{sized}");
    assert!(!sized.contains("class=\"frame\""), "{sized}");
    let one = folder.succeeds("show several.tw:double_all --stage graph");
    assert!(is_drawing(&one) && one.contains(">double_all</text>"), "{one}");
}

#[test]
fn a_schedule_is_drawn_for_its_target() {
    let folder = Folder::new();
    folder.write("mm.sched", "parallel C.i\nvectorize C.j\n");
    let given = folder.succeeds(&format!("show mm.tw --stage graph {SIZES} --schedule mm.sched"));
    assert!(is_drawing(&given) && given.contains(">1: parallel i:20, "), "{given}");
    let default = folder.succeeds(&format!("show mm.tw --stage graph {SIZES} --schedule default"));
    assert!(is_drawing(&default) && default.contains("class=\"frame\""), "{default}");
    let gpu = folder.succeeds(&format!("show mm.tw --stage graph {SIZES} --schedule default --target cuda"));
    assert!(is_drawing(&gpu) && gpu.contains(">kernel 1: block.x "), "{gpu}");
}

#[test]
fn what_cannot_be_drawn_is_an_error() {
    let folder = Folder::new();
    folder.write("far.sched", "vectorize C.z\n");
    folder.fails("show bad.tw --stage graph", 1, &["error["]);
    folder.fails("show mm.tw --stage graph --schedule default", 1, &["`mm` needs values for M, K, N"]);
    folder.fails(
        &format!("show mm.tw --stage graph {SIZES} --schedule far.sched"),
        1,
        &["far.sched:1:11", "has no loop `z`"],
    );
    folder.fails(&format!("show mm.tw --stage graph {SIZES} --schedule none.sched"), 1, &["none.sched"]);
}

/// The text between the first `start` and the next `end`.
fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    text.split_once(start).unwrap().1.split_once(end).unwrap().0
}

#[test]
fn the_picture_of_the_documentation_is_up_to_date() {
    let docs: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = fs::read_to_string(docs.join("schedules.md")).unwrap();
    let section = between(&text, "### A picture\n", "\n## ");
    let folder = Folder::new();
    folder.write("sharpen.tw", between(section, "```tw\n", "```"));
    folder.write("sharpen.sched", between(section, "```sched\n", "```"));
    let command = between(section, "vectorize out.xv\n```\n\n```\ntilewright ", " > sharpen.svg");
    let drawn = folder.succeeds(command);
    assert!(drawn.contains(">at out.yo, scratch(10, 1024)</text>"), "{drawn}");
    let committed = fs::read_to_string(docs.join("images/graph.svg")).unwrap();
    assert!(committed == drawn, "docs/images/graph.svg is out of date: run scripts/graph_picture.py");
}
