//! Schedules as text: parsing, the messages for errors, and that written text reads back as the
//! same schedule.

#![allow(clippy::unwrap_used, reason = "a test that lacks its text has failed")]

use std::fmt::Write;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tilewright_ir::nest::Axis;
use tilewright_schedule::text::{LONGEST_TEXT, MOST_STEPS, parse};
use tilewright_schedule::{
    LayoutDim, LoopLevel, LoopName, ParallelUnit, PromoteScope, Schedule, StatementName, Step, Storage,
};
use tilewright_syntax::Code;
use tilewright_syntax::diagnostic::Style;

fn in_c(name: &str) -> LoopName {
    StatementName::first("C").loop_named(name)
}

fn step(text: &str) -> Step {
    let parsed = parse(text);
    assert_eq!(parsed.diagnostics, [], "{text}");
    assert_eq!(parsed.schedule.steps.len(), 1, "{text}");
    parsed.schedule.steps[0].clone()
}

/// All messages about a text, rendered.
fn messages(source: &str) -> String {
    let parsed = parse(source);
    let drawn: Vec<String> =
        parsed.diagnostics.iter().map(|found| found.render("s.sched", source, Style::default())).collect();
    drawn.join("\n\n")
}

#[test]
fn every_step_is_read_as_the_vocabulary_shows_it() {
    let split = |inner: &[(&str, i64)]| Step::Split {
        target: in_c("i"),
        outer: "io".to_owned(),
        inner: inner.iter().map(|(name, iterations)| ((*name).to_owned(), *iterations)).collect(),
    };
    assert_eq!(step("split C.i -> io, ii:12"), split(&[("ii", 12)]));
    assert_eq!(step("split C.i → io, im:6, ii:2"), split(&[("im", 6), ("ii", 2)]));
    assert_eq!(
        step("fuse C.io, C.jo -> t"),
        Step::Fuse { loops: vec![in_c("io"), in_c("jo")], name: "t".to_owned() }
    );
    assert_eq!(
        step("reorder C.jo, C.ko, C.io"),
        Step::Reorder { loops: vec![in_c("jo"), in_c("ko"), in_c("io")] }
    );
    assert_eq!(step("unroll C.ii"), Step::Unroll(in_c("ii")));
    assert_eq!(step("vectorize C.j"), Step::Vectorize(in_c("j")));
    assert_eq!(step("parallel C.jo"), Step::Parallel(in_c("jo")));
    assert_eq!(step("inline P"), Step::Inline { tensor: "P".to_owned() });
    let compute_at = |storage| Step::ComputeAt { tensor: "P".to_owned(), at: in_c("io"), storage };
    assert_eq!(step("compute_at P, C.io"), compute_at(None));
    let stored = |at, fold| compute_at(Some(Storage { at, fold }));
    let outer = LoopLevel::Loop(in_c("i"));
    assert_eq!(step("compute_at P, C.io store_at C.i"), stored(outer.clone(), None));
    assert_eq!(step("compute_at P, C.io store_at C.i fold 4"), stored(outer, Some(4)));
    assert_eq!(step("compute_at P, C.io store_at root"), stored(LoopLevel::Root, None));
    let compute_with = |ahead| Step::ComputeWith { target: in_c("i"), with: in_c("ki"), ahead };
    assert_eq!(step("compute_with C.i, C.ki"), compute_with(0));
    assert_eq!(step("compute_with C.i, C.ki ahead 2"), compute_with(2));
    assert_eq!(step("rfactor C.ki -> Cp"), Step::Rfactor { target: in_c("ki"), name: "Cp".to_owned() });
    assert_eq!(step("scan C.ki -> Cs"), Step::Scan { target: in_c("ki"), name: "Cs".to_owned() });
    let ahead = |of: &str| Step::Prefetch { tensor: "B".to_owned(), at: in_c("ki"), ahead: 4, of: in_c(of) };
    assert_eq!(step("prefetch B at C.ki ahead 4"), ahead("ki"));
    assert_eq!(step("prefetch B at C.ki ahead 4 of C.ko"), ahead("ko"));
}

#[test]
fn promotions_have_a_place_a_scope_and_perhaps_a_layout() {
    let dim = |dimension, modulo, divide| LayoutDim { dimension, modulo, divide };
    let promote = |tensor: &str, at, name: &str, scope, layout| Step::Promote {
        tensor: tensor.to_owned(),
        at,
        name: name.to_owned(),
        scope,
        gathered: false,
        layout,
        pad: 0,
    };
    assert_eq!(
        step("promote B at C.ko -> Bp packed (d1/32, d0, d1%32)"),
        promote(
            "B",
            LoopLevel::Loop(in_c("ko")),
            "Bp",
            PromoteScope::Packed,
            vec![dim(1, None, Some(32)), dim(0, None, None), dim(1, Some(32), None)],
        )
    );
    assert_eq!(
        step("promote C at C.io -> acc registers"),
        promote("C", LoopLevel::Loop(in_c("io")), "acc", PromoteScope::Registers, vec![])
    );
    assert_eq!(
        step("promote W at root -> Wp packed (d0%64/8)"),
        promote("W", LoopLevel::Root, "Wp", PromoteScope::Packed, vec![dim(0, Some(64), Some(8))])
    );
}

#[test]
fn promotions_may_gather_before_they_are_laid_out() {
    let gathered = step("promote LUT at C.l -> rows shared gathered (d2, d0, d1) pad 4");
    assert!(matches!(&gathered, Step::Promote { gathered: true, layout, pad: 4, .. } if layout.len() == 3));
    assert!(matches!(step("promote LUT at C.l -> gathered packed"), Step::Promote { gathered: false, .. }));
}

#[test]
fn a_gpu_has_words_of_its_own() {
    let unit = |to| Step::Bind { target: in_c("io"), to };
    assert_eq!(step("bind C.io -> block.y"), unit(ParallelUnit::Block(Axis::Y)));
    assert_eq!(step("bind C.io -> thread . x"), unit(ParallelUnit::Thread(Axis::X)));
    assert_eq!(step("pipeline C.ko stages 3"), Step::Pipeline { target: in_c("ko"), stages: 3 });
    let padded = step("promote B at C.ko -> Bs shared (d1, d0) pad 4");
    assert!(matches!(&padded, Step::Promote { scope: PromoteScope::Shared, pad: 4, .. }), "{padded:?}");
    for (text, message) in [
        ("bind C.io -> block.w", "there is no `block.w`"),
        ("bind C.io -> warp.x", "`block.x`"),
        ("promote B at C.ko -> Bp packed pad 4", "only buffers in shared memory"),
        ("pipeline C.ko 3", "`stages` and a number"),
    ] {
        let parsed = parse(text);
        let told: Vec<String> = parsed.diagnostics.iter().map(|one| format!("{one:?}")).collect();
        assert!(parsed.has_errors() && told.join(" ").contains(message), "{text}: {told:?}");
    }
}

#[test]
fn statements_have_numbers_and_names_are_those_of_the_language() {
    let second = StatementName { tensor: "C".to_owned(), ordinal: 2 };
    assert_eq!(step("unroll C[2].i"), Step::Unroll(second.loop_named("i")));
    assert_eq!(step("unroll C[1].i"), Step::Unroll(in_c("i")));
    assert_eq!(step("unroll 1LUT.2i"), Step::Unroll(StatementName::first("1LUT").loop_named("2i")));
    assert_eq!(step(" unroll\tC . i \r\n"), Step::Unroll(in_c("i")));
    // The temporary `t` of a called function `f`.
    assert_eq!(step("unroll f.t.i"), Step::Unroll(StatementName::first("f.t").loop_named("i")));
    assert_eq!(step("inline f.t"), Step::Inline { tensor: "f.t".to_owned() });
    // Keywords are recognised by their place.
    assert_eq!(step("split split.at -> root, at:2").to_string(), "split split.at -> root, at:2");
    assert_eq!(
        step("promote at at root.packed -> packed packed").to_string(),
        "promote at at root.packed -> packed packed"
    );
}

#[test]
fn comments_and_blank_lines_mean_nothing() {
    let parsed = parse("# tiles\n\n   \t\r\nunroll C.ii # small\n#unroll C.j\nparallel C.io");
    assert_eq!(parsed.diagnostics, []);
    assert_eq!(parsed.schedule.to_string(), "unroll C.ii\nparallel C.io\n");
    assert_eq!(parse("").schedule, Schedule::default());
}

#[test]
fn a_step_and_what_it_names_can_be_found_in_the_text() {
    let source = "unroll C.ii\n  promote B at C[2] . ko -> Bp packed (d1 / 32, d0) # why\n";
    let parsed = parse(source);
    let spans = &parsed.spans[1];
    assert_eq!(spans.step.text(source), "promote B at C[2] . ko -> Bp packed (d1 / 32, d0)");
    assert_eq!(spans.span_of("C[2].ko").text(source), "C[2] . ko");
    assert_eq!(spans.span_of("B").text(source), "B");
    assert_eq!(spans.span_of("Bp").text(source), "Bp");
    assert_eq!(spans.span_of("nowhere"), spans.step);
    assert_eq!(spans.layout.iter().map(|span| span.text(source)).collect::<Vec<_>>(), ["d1 / 32", "d0"]);
}

#[test]
fn lines_with_mistakes_are_left_out_and_the_others_read() {
    let parsed = parse("unroll C.ii\nsplit C.i ->\nvectorize C.j\nfuse\nparallel C.io\n");
    assert_eq!(parsed.schedule.to_string(), "unroll C.ii\nvectorize C.j\nparallel C.io\n");
    assert_eq!(parsed.spans.len(), 3);
    assert_eq!(parsed.diagnostics.len(), 2);
    assert!(parsed.has_errors());
}

macro_rules! message_tests {
    ($($name:ident: $source:expr,)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(messages($source));
        }
    )*};
}

message_tests! {
    unknown_steps: "vectorise C.j\nSPLIT C.i -> io, ii:4\ntile C.i, C.j\n12 C.i\n// tiles\n@@ C.i",
    incomplete_prefetches: "prefetch\nprefetch B\nprefetch B at C.k\nprefetch B at C.k ahead 0\n\
        prefetch B at root ahead 1\nprefetch B at C.k ahead 2 C.i\nprefetch B at C.k ahead 2 of i",
    missing_arrows: "split C.i io, ii:12\nfuse C.io, C.jo\nsplit C.i => io, ii:12\nrfactor C.ki\n\
        promote B at C.ko Bp packed",
    numbers_of_parts: "split C.i -> io:4, ii:12\nsplit C.i -> io, im, ii:2\nsplit C.i -> io, ii 12\n\
        split C.i -> io, ii:0\nsplit C.i -> io, ii:-4\nsplit C.i -> io, ii:n\nsplit C.i -> io, ii:0x10\n\
        split C.i -> io, ii:4.5",
    loops_without_a_statement: "split i -> io, ii:12\nreorder C[2].i, j\nunroll C[2]\npromote B at ko -> Bp packed",
    broken_loop_names: "unroll C.\nunroll C[0].i\nunroll C[x].i\nunroll C[2.i\nunroll .i\nunroll C.2\nunroll",
    names_that_are_given: "split C.i -> C.io, C.ii:4\nfuse C.i, C.j -> C.t\nsplit C.i -> , ii:4\nrfactor C.k -> 8",
    names_that_stand_twice: "split C.i -> ii, ii:4\nsplit C.i -> a, b:4, a:2, b:8\nreorder C.i, C.j, C.i\n\
        fuse C.i, C[1].i -> t",
    tensors: "inline P[2]\ninline\ncompute_at P C.io\ncompute_at P[2], C.io\ncompute_at P, io",
    promotions: "promote B, C.ko -> Bp packed\npromote B at -> Bp packed\npromote B at root -> f.Bp packed\npromote B at root -> Bp\n\
        promote B at root -> Bp register\npromote B at root -> Bp shared",
    layouts: "promote B at root -> Bp packed d1/32\npromote B at root -> Bp packed ()\n\
        promote B at root -> Bp packed (d1/32, d0\npromote B at root -> Bp packed (1/32, d0)\n\
        promote B at root -> Bp packed (i)\npromote B at root -> Bp packed (d1/8%4)\n\
        promote B at root -> Bp packed (d1/0, d0%)\npromote B at root -> Bp packed (d1 d0)\n\
        promote B at root -> Bp packed (d)",
    what_follows_a_step: "unroll C.ii, C.i\nunroll C.ii C.i\nreorder C.i C.j\nunroll C.ii; unroll C.i\n\
        unroll C.ii unroll C.i\ninline P // small\nsplit C.i -> io, ii:4)\n\
        promote B at root -> Bp packed (d0) d1",
    numbers_that_are_too_large: "split C.i -> io, ii:9223372036854775808\n\
        promote B at root -> Bp packed (d99999999999999999999)\nunroll C[99999999999999999999].i",
    lists_of_one: "split C.i -> io\nfuse C.i -> t\nreorder C.i",
}

#[test]
fn the_largest_numbers_are_read() {
    step("split C.i -> io, ii:9223372036854775807");
    step("unroll C[9223372036854775807].i");
}

#[test]
fn absurd_texts_are_refused() {
    let steps = "unroll C.i\n".repeat(MOST_STEPS + 5);
    let parsed = parse(&steps);
    assert_eq!(parsed.schedule.steps.len(), MOST_STEPS);
    assert_eq!(parsed.diagnostics.iter().map(|found| found.code).collect::<Vec<_>>(), [Code::TooComplex]);
    let long = "#".repeat(LONGEST_TEXT + 1);
    assert_eq!(parse(&long).diagnostics[0].code, Code::TooComplex);
    assert_eq!(parse(&long[1..]).diagnostics, []);
}

#[test]
fn many_mistakes_are_counted_not_listed() {
    let parsed = parse(&"split C.i -> t\nwhatever\n".repeat(100));
    assert_eq!(parsed.diagnostics.len(), 50);
    assert!(parsed.diagnostics.iter().all(|found| found.is_error()));
    assert_eq!(parsed.diagnostics[49].notes.last().unwrap(), "150 further messages are not shown");
    let line = format!("split C.i -> a{}", ", a:0".repeat(100_000));
    assert_eq!(parse(&line).diagnostics.len(), 50);
}

#[test]
fn long_lines_are_read_and_their_mistakes_drawn() {
    let word = "n".repeat(1 << 20);
    for source in [
        format!("split C.i -> io, {word}"),
        format!("{word} C.i"),
        format!("1{word}"),
        format!("unroll {}", "C.".repeat(1 << 19)),
        format!("unroll C.i {}", "@-".repeat(1 << 19)),
        format!("promote B at root -> Bp packed ({}", "(".repeat(1 << 20)),
        "9".repeat(1 << 20),
    ] {
        let drawn = messages(&source);
        assert!(drawn.starts_with("error["), "{}", &source[..20]);
        assert!(drawn.len() < 5000, "{} bytes about {}", drawn.len(), &source[..20]);
    }
}

/// The fenced blocks of a document: the language tag and the text of each.
fn blocks(document: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(mark) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push((mark, body.join("\n")));
    }
    blocks
}

#[test]
fn the_document_is_true() {
    let document = include_str!("../../../docs/schedules.md");
    let blocks = blocks(document);
    let mut read = 0;
    for (_, source) in blocks.iter().filter(|(mark, _)| *mark == "sched") {
        assert_eq!(messages(source), "");
        read += 1;
    }
    let mut refused = 0;
    for pair in blocks.windows(2).filter(|pair| pair[0].0 == "sched-error") {
        let drawn = messages(&pair[0].1).replace("s.sched", "example.sched");
        assert_eq!(drawn, pair[1].1, "{}", pair[0].1);
        refused += 1;
    }
    assert!(read > 20 && refused == 2, "{read} and {refused} blocks found");
}

fn name() -> impl Strategy<Value = String> {
    let words: &[&str] = &["split", "at", "root", "packed", "registers", "d1", "1LUT", "2i", "_", "in"];
    prop_oneof![select(words).prop_map(str::to_owned), "[a-zA-Z_][a-zA-Z0-9_]{0,5}"]
}

fn tensor() -> impl Strategy<Value = String> {
    prop_oneof![4 => name(), 1 => (name(), name()).prop_map(|(function, name)| format!("{function}.{name}"))]
}

fn loop_name() -> impl Strategy<Value = LoopName> {
    (tensor(), prop_oneof![Just(1), 2usize..5], name())
        .prop_map(|(tensor, ordinal, name)| StatementName { tensor, ordinal }.loop_named(name))
}

fn loops() -> impl Strategy<Value = Vec<LoopName>> {
    btree_set(loop_name(), 2..5).prop_map(|loops| loops.into_iter().collect::<Vec<_>>()).prop_shuffle()
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![1..100i64, 1..=i64::MAX]
}

fn split() -> impl Strategy<Value = Step> {
    let names =
        btree_set(name(), 1..5).prop_map(|names| names.into_iter().collect::<Vec<_>>()).prop_shuffle();
    (loop_name(), names, vec(number(), 4)).prop_map(|(target, names, numbers)| Step::Split {
        target,
        outer: names[0].clone(),
        inner: names[1..].iter().cloned().zip(numbers).collect(),
    })
}

fn place() -> impl Strategy<Value = LoopLevel> {
    prop_oneof![Just(LoopLevel::Root), loop_name().prop_map(LoopLevel::Loop)]
}

fn promote() -> impl Strategy<Value = Step> {
    let place = place();
    let padded = (Just(PromoteScope::Shared), prop_oneof![Just(0), number()]);
    let plain = (select(&[PromoteScope::Packed, PromoteScope::Registers]), Just(0));
    let scope = prop_oneof![padded, plain];
    let dim = (0usize..70, option::of(number()), option::of(number()))
        .prop_map(|(dimension, modulo, divide)| LayoutDim { dimension, modulo, divide });
    (tensor(), place, name(), scope, any::<bool>(), vec(dim, 0..5)).prop_map(
        |(tensor, at, name, (scope, pad), gathered, layout)| Step::Promote {
            tensor,
            at,
            name,
            scope,
            gathered,
            layout,
            pad,
        },
    )
}

fn clone_for() -> impl Strategy<Value = Step> {
    let readers = vec((tensor(), 1usize..5), 1..4).prop_filter("each reader once", |readers| {
        (1..readers.len()).all(|at| !readers[..at].contains(&readers[at]))
    });
    (tensor(), name(), readers).prop_map(|(tensor, name, readers)| {
        let readers = readers.into_iter().map(|(tensor, ordinal)| StatementName { tensor, ordinal });
        Step::Clone { tensor, name, readers: readers.collect() }
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        split(),
        (loops(), name()).prop_map(|(loops, name)| Step::Fuse { loops, name }),
        loops().prop_map(|loops| Step::Reorder { loops }),
        loop_name().prop_map(Step::Unroll),
        loop_name().prop_map(Step::Vectorize),
        loop_name().prop_map(Step::Parallel),
        (loop_name(), select(ParallelUnit::ALL.to_vec())).prop_map(|(target, to)| Step::Bind { target, to }),
        (loop_name(), number()).prop_map(|(target, stages)| Step::Pipeline { target, stages }),
        tensor().prop_map(|tensor| Step::Inline { tensor }),
        clone_for(),
        (tensor(), loop_name(), option::of((place(), option::of(1i64..100)))).prop_map(
            |(tensor, at, storage)| {
                let storage = storage.map(|(at, fold)| Storage { at, fold });
                Step::ComputeAt { tensor, at, storage }
            }
        ),
        (loop_name(), loop_name(), prop_oneof![Just(0), number()])
            .prop_map(|(target, with, ahead)| Step::ComputeWith { target, with, ahead }),
        promote(),
        (loop_name(), name()).prop_map(|(target, name)| Step::Rfactor { target, name }),
        (loop_name(), name()).prop_map(|(target, name)| Step::Scan { target, name }),
        (tensor(), loop_name(), number(), loop_name()).prop_map(|(tensor, at, ahead, of)| Step::Prefetch {
            tensor,
            at,
            ahead,
            of
        }),
    ]
}

/// Text made of the pieces of schedules, so that it comes close to being one.
fn nearly_a_schedule() -> impl Strategy<Value = String> {
    let pieces: &[&str] = &[
        "split ",
        "fuse ",
        "reorder ",
        "unroll ",
        "inline ",
        "clone ",
        "for ",
        "compute_at ",
        "compute_with ",
        "promote ",
        "rfactor ",
        "scan ",
        "prefetch ",
        "bind ",
        "block",
        ".x",
        "thread",
        "pipeline ",
        "stages ",
        "shared ",
        "pad ",
        "ahead ",
        "of ",
        "at ",
        "root",
        "packed ",
        "registers ",
        "C",
        ".i",
        "[2]",
        "[",
        "]",
        "(",
        ")",
        "d0",
        "%",
        "/",
        ":",
        ",",
        " -> ",
        "-",
        "0",
        "12",
        "99999999999999999999",
        "1e5",
        "\n",
        "#",
        "é",
        "\u{0}",
        "\r",
        "//",
        ";",
    ];
    vec(select(pieces), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_written_reads_back(steps in vec(any_step(), 0..8)) {
        let schedule = Schedule { steps };
        let text = schedule.to_string();
        let parsed = parse(&text);
        prop_assert!(!parsed.has_errors(), "{}", text);
        prop_assert_eq!(&parsed.schedule, &schedule, "{}", text);
        let mut found = String::new();
        for spans in &parsed.spans {
            writeln!(found, "{}", spans.step.text(&text)).unwrap();
            for (name, span) in &spans.names {
                prop_assert_eq!(name, span.text(&text));
            }
        }
        prop_assert_eq!(found, text);
    }

    #[test]
    fn any_text_is_survived(source in prop_oneof![any::<String>(), nearly_a_schedule()]) {
        let parsed = parse(&source);
        for found in &parsed.diagnostics {
            found.render("s.sched", &source, Style::default());
        }
        prop_assert_eq!(parsed.spans.len(), parsed.schedule.steps.len());
        let lines = source.lines().filter(|line| !line.split('#').next().unwrap_or("").trim().is_empty());
        prop_assert!(parsed.has_errors() || parsed.schedule.steps.len() == lines.count());
        prop_assert_eq!(parse(&parsed.schedule.to_string()).schedule, parsed.schedule);
    }
}
