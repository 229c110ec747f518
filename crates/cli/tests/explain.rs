//! Tests of `show --stage schedule --explain`, `show --report` and `bench --report`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::path::Path;

use support::Folder;

const BLUR: &str = "def blur(float(H, W) image) -> (out) {
  bright(y, x) = 2 * image(y, x) + 1
  rows(y, x) = bright(y, x) + bright(y, x + 1) + bright(y, x + 2)
  out(y, x) = rows(y, x) + rows(y + 1, x) + rows(y + 2, x)
}
";
const SIZES: &str = "--sizes H=130,W=258";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("blur.tw", BLUR);
    folder.write(
        "blur.sched",
        "inline bright\nsplit out.y -> yo, yi:16\ncompute_at rows, out.yo\nparallel out.yo\nsplit out.x -> xo, xv:16\nvectorize out.xv\nsplit rows.x -> xo, xv:16\nvectorize rows.xv\n",
    );
    folder
}

/// The line of a statement.
fn line<'t>(text: &'t str, statement: &str) -> &'t str {
    let is_own = |line: &&str| line.split_whitespace().next() == Some(statement);
    text.lines().find(is_own).unwrap_or_else(|| panic!("no {statement} in {text}"))
}

#[test]
fn a_given_schedule_is_explained() {
    let folder = folder();
    let text =
        folder.succeeds(&format!("show blur.tw {SIZES} --stage schedule --explain --schedule blur.sched"));
    assert!(text.starts_with("schedule  blur.sched\nexpected  "), "{text}");
    assert!(line(&text, "bright").contains("inlined") && line(&text, "bright").contains("at root"), "{text}");
    assert!(
        line(&text, "rows").contains("at out.yo") && line(&text, "rows").contains("scratch(18, 256)"),
        "{text}"
    );
    assert!(line(&text, "rows").contains(" of ") && line(&text, "rows").ends_with(" more"), "{text}");
    assert!(line(&text, "out").ends_with("no other stage reads it"), "{text}");
    // Columns are aligned: all lines of the table have the place in the same column.
    let column = |statement: &str, place: &str| line(&text, statement).find(place).unwrap();
    assert_eq!(column("bright", "inlined"), column("rows", "at out.yo"));
}

#[test]
fn every_origin_and_target_is_explained() {
    let folder = folder();
    for (options, origin) in [
        ("", "default, "),
        ("--schedule default", "default, "),
        ("--schedule auto", "auto: "),
        ("--target cuda", "default, "),
        ("--target opencl --schedule auto", "auto: "),
    ] {
        let text = folder.succeeds(&format!("show blur.tw {SIZES} --stage schedule --explain {options}"));
        assert!(text.starts_with(&format!("schedule  {origin}")), "{options}: {text}");
        for statement in ["bright", "rows", "out"] {
            line(&text, statement);
        }
    }
}

#[test]
fn wrong_usage_is_refused() {
    let folder = folder();
    folder.fails(
        &format!("show blur.tw {SIZES} --stage loops --explain"),
        2,
        &["--explain is for --stage schedule"],
    );
    folder.fails(&format!("show blur.tw {SIZES} --report page.html --explain"), 2, &["--stage schedule"]);
    folder.fails(&format!("show blur.tw {SIZES}"), 2, &["--stage"]);
    folder.fails("show blur.tw --report page.html", 1, &["`blur` needs values for H, W"]);
    folder.fails(
        &format!("show blur.tw {SIZES} --report none/page.html"),
        1,
        &["--report none/page.html cannot be written"],
    );
    assert!(!folder.path("page.html").exists());
}

#[test]
fn show_writes_a_page_of_predictions() {
    let folder = folder();
    let nothing = folder.succeeds(&format!("show blur.tw {SIZES} --report page.html --schedule blur.sched"));
    assert_eq!(nothing, "");
    let page = fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
    assert!(page.contains("<h1>blur H=130, W=258</h1>") && !page.contains("class=\"measured\""), "{page}");
    assert!(page.contains("show blur.tw --sizes H=130,W=258 --report page.html"), "{page}");
    let both = folder.succeeds(&format!("show blur.tw {SIZES} --stage schedule --report both.html"));
    assert!(both.contains("out.") && folder.path("both.html").exists(), "{both}");
}

#[test]
fn bench_writes_a_page_with_measurements() {
    let folder = folder();
    let table = folder.succeeds(&format!(
        "bench blur.tw {SIZES} --time 1ms --samples 3 --schedule blur.sched --report page.html"
    ));
    assert!(table.contains("median"), "{table}");
    let page = fs::read_to_string(folder.path("page.html")).unwrap();
    assert_eq!(page.matches("class=\"measured\"").count(), 1, "{page}");
    // A nest for each stage: each is measured.
    folder.write("apart.sched", "parallel out.y\n");
    folder.succeeds(&format!(
        "bench blur.tw {SIZES} --time 1ms --samples 3 --schedule apart.sched --report page.html"
    ));
    let page = fs::read_to_string(folder.path("page.html")).unwrap();
    assert_eq!(page.matches("class=\"measured\"").count(), 3, "{page}");
    assert_eq!(page.matches("<br/>measured ").count(), 3, "{page}");
}

/// The output in the documentation has the statements of its program, in their places.
#[test]
fn the_explanation_of_the_documentation_is_up_to_date() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schedules.md");
    let text = fs::read_to_string(docs).unwrap();
    let between =
        |start: &str, end: &str| text.split_once(start).unwrap().1.split_once(end).unwrap().0.to_owned();
    let folder = Folder::new();
    folder.write(
        "sharpen.tw",
        between("### A picture\n", "\n## ").split_once("```tw\n").unwrap().1.split_once("```").unwrap().0,
    );
    folder.write(
        "sharpen.sched",
        between("```sched\ninline detail", "```").replacen("\n", "inline detail\n", 1),
    );
    let section = between("### Why a stage is where it is\n", "\n## ");
    let shown = section.split_once("```\ntilewright ").unwrap().1.split_once("\n```").unwrap().0;
    let (command, printed) = shown.split_once('\n').unwrap();
    let found = folder.succeeds(command);
    for statement in ["across", "blur", "detail", "out"] {
        let place = |text: &str| {
            let own =
                line(text, statement).split("  ").filter(|cell| !cell.is_empty()).nth(1).unwrap().to_owned();
            own.trim().to_owned()
        };
        assert_eq!(place(printed), place(&found), "{found}");
    }
}
