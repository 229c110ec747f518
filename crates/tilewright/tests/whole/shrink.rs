//! Makes a failing case smaller, as long as it fails in the same way.
//!
//! The passes remove steps, statements, loops, results and parameters, replace expressions by their
//! parts, and reduce sizes and numbers. All passes work on the text, so that the result is a
//! program that can be kept.

use std::time::{Duration, Instant};

use tilewright_schedule::{Schedule, Step};

use super::case::{Case, Kind, Oracle, Outcome};
use super::source::{Node, Source};
use crate::random::guarded;

/// Returns the smallest case found within a time limit that fails in the same way.
pub fn shrink(mut case: Case, kind: Kind, time: Duration) -> Case {
    let end = Instant::now() + time;
    let fails = |case: &Case| matches!(case.outcome(), Outcome::Failed(found) if found.kind == kind);
    let passes: [fn(&Case) -> Vec<Case>; 6] =
        [fewer_steps, fewer_nodes, fewer_names, simpler_lines, smaller_sizes, smaller_numbers];
    loop {
        let before = case.clone();
        for pass in passes {
            let mut at = 0;
            let mut candidates = pass(&case);
            while at < candidates.len() && Instant::now() < end {
                if candidates[at] != case && fails(&candidates[at]) {
                    case = candidates.swap_remove(at);
                    candidates = pass(&case);
                } else {
                    at += 1;
                }
            }
        }
        if case == before || Instant::now() >= end {
            return case;
        }
    }
}

fn fewer_steps(case: &Case) -> Vec<Case> {
    let Some(schedule) = &case.schedule else { return Vec::new() };
    let count = schedule.steps.len();
    let without = |from: usize, to: usize| {
        let mut steps = schedule.steps.clone();
        steps.drain(from..to);
        Case { schedule: Some(Schedule { steps }), ..case.clone() }
    };
    let mut found = Vec::new();
    if count > 3 {
        found.extend([without(0, count / 2), without(count / 2, count)]);
    }
    found.extend((0..count).rev().map(|at| without(at, at + 1)));
    for (at, step) in schedule.steps.iter().enumerate() {
        let Step::Split { inner, .. } = step else { continue };
        for (part, (_, factor)) in inner.iter().enumerate() {
            for less in 1..(*factor).min(4) {
                let mut steps = schedule.steps.clone();
                if let Step::Split { inner, .. } = &mut steps[at] {
                    inner[part].1 = less;
                }
                found.push(Case { schedule: Some(Schedule { steps }), ..case.clone() });
            }
        }
    }
    found
}

/// Returns the case with another program, without the steps that are refused for it.
fn with_source(case: &Case, source: Source) -> Case {
    let mut changed = Case { source, ..case.clone() };
    let Some(schedule) = &mut changed.schedule else { return changed };
    let Ok(oracle) = Oracle::of(&changed.source, case.data) else { return changed };
    let target = case.place.target();
    while let Ok(Err(refusal)) = guarded(|| tilewright_schedule::apply(&oracle.program, schedule, target))
        && let Some(step) = refusal.step
    {
        schedule.steps.remove(step);
    }
    changed
}

/// Returns every way to change one node of a list, at any depth. Each result of `change` replaces
/// the node.
fn with_changed_node(nodes: &[Node], change: &dyn Fn(&Node) -> Vec<Vec<Node>>) -> Vec<Vec<Node>> {
    let mut found = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let mut replaced = change(node);
        if let Node::For { var, from, to, body } = node {
            let around = |body| vec![Node::For { var: var.clone(), from: *from, to: to.clone(), body }];
            replaced.extend(with_changed_node(body, change).into_iter().map(around));
        }
        for new in replaced {
            found.push([&nodes[..at], &new[..], &nodes[at + 1..]].concat());
        }
    }
    found
}

fn with_changed_nodes(case: &Case, change: &dyn Fn(&Node) -> Vec<Vec<Node>>) -> Vec<Source> {
    let mut found = Vec::new();
    for at in 0..case.source.functions.len() {
        for body in with_changed_node(&case.source.functions[at].body, change) {
            let mut source = case.source.clone();
            source.functions[at].body = body;
            found.push(source);
        }
    }
    found
}

fn with_sources(case: &Case, sources: Vec<Source>) -> Vec<Case> {
    sources.into_iter().map(|source| with_source(case, source)).collect()
}

fn fewer_nodes(case: &Case) -> Vec<Case> {
    let change = |node: &Node| {
        let mut found = vec![Vec::new()];
        if let Node::For { var, from, body, .. } = node {
            found.push(body.iter().map(|node| node.with_word(var, &from.to_string())).collect());
        }
        found
    };
    let mut sources = Vec::new();
    for at in 0..case.source.functions.len() - 1 {
        let mut source = case.source.clone();
        source.functions.remove(at);
        sources.push(source);
    }
    sources.extend(with_changed_nodes(case, &change));
    with_sources(case, sources)
}

fn fewer_names(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for (at, function) in case.source.functions.iter().enumerate() {
        for result in 0..function.results.len() {
            let mut source = case.source.clone();
            source.functions[at].results.remove(result);
            found.push(source);
        }
        for param in 0..function.params.len() {
            let mut source = case.source.clone();
            source.functions[at].params.remove(param);
            found.push(source);
        }
    }
    for at in 0..case.source.sizes.len() {
        let mut source = case.source.clone();
        source.sizes.remove(at);
        found.push(source);
    }
    with_sources(case, found)
}

fn simpler_lines(case: &Case) -> Vec<Case> {
    let change = |node: &Node| match node {
        Node::Line(text) => simpler(text).into_iter().map(|line| vec![Node::Line(line)]).collect(),
        Node::For { .. } => Vec::new(),
    };
    with_sources(case, with_changed_nodes(case, &change))
}

/// Returns simpler statements: with a part of the right-hand side replaced by its own part or by a
/// number, or with one clause less.
fn simpler(line: &str) -> Vec<String> {
    let assigns = [" = ", " += ", " +=! ", " *= ", " *=! ", " min= ", " min=! ", " max= ", " max=! "];
    let Some((at, operator)) = assigns.iter().filter_map(|own| line.find(own).map(|at| (at, *own))).min()
    else {
        return Vec::new();
    };
    let begin = at + operator.len();
    let end = line.find(" where ").unwrap_or(line.len());
    let (left, value, clauses) = (&line[..begin], &line[begin..end], &line[end..]);
    let mut found: Vec<String> =
        smaller_values(value).into_iter().map(|value| format!("{left}{value}{clauses}")).collect();
    let listed: Vec<&str> = clauses.trim_start_matches(" where ").split(", ").collect();
    for at in 0..listed.len() {
        let rest = [&listed[..at], &listed[at + 1..]].concat().join(", ");
        let clauses = if rest.is_empty() { String::new() } else { format!(" where {rest}") };
        found.push(format!("{left}{value}{clauses}"));
    }
    found
}

fn smaller_values(value: &str) -> Vec<String> {
    let mut found = vec!["1".to_string()];
    let bytes = value.as_bytes();
    for open in (0..value.len()).filter(|at| bytes[*at] == b'(') {
        let Some(close) = closing(value, open) else { continue };
        let name = value[..open].rfind(|letter: char| !letter.is_alphanumeric()).map_or(0, |at| at + 1);
        let (before, inside, after) = (&value[..name], &value[open + 1..close], &value[close + 1..]);
        if name < open {
            found.push(format!("{before}1{after}"));
        }
        let mut parts = parts_of(inside);
        if name < open {
            // The subscript becomes 0.
            for part in &parts {
                found.push(format!(
                    "{}{}{}",
                    &value[..=open],
                    inside.replacen(part, "0", 1),
                    &value[close..]
                ));
            }
        } else {
            parts.push("1".to_string());
        }
        found.extend(parts.into_iter().map(|part| format!("{before}{part}{after}")));
    }
    found
}

/// Returns the position of the closing parenthesis.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, letter) in text.bytes().enumerate().skip(open) {
        match letter {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits an expression into its operands or arguments outside of parentheses.
fn parts_of(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for word in text.split_inclusive([' ', ',']) {
        let operators =
            [" ", "+ ", "- ", "* ", "/ ", "% ", "? ", ": ", "&& ", "|| ", "< ", "> ", "<= ", ">= ", "== "];
        let part = parts.len() - 1;
        if depth == 0 && operators.contains(&word) {
            parts.push(String::new());
            continue;
        }
        depth += word.matches('(').count() as i64 - word.matches(')').count() as i64;
        parts[part].push_str(word.trim_end_matches(|letter| depth == 0 && letter == ','));
        if depth == 0 && word.ends_with(',') {
            parts.push(String::new());
        }
    }
    parts.iter().map(|part| part.trim().to_string()).filter(|part| !part.is_empty()).collect()
}

fn smaller_sizes(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for (at, (_, value)) in case.source.sizes.iter().enumerate() {
        for less in 1..*value {
            let mut source = case.source.clone();
            source.sizes[at].1 = less;
            found.push(source);
        }
    }
    with_sources(case, found)
}

/// Replaces one number by a smaller one everywhere.
fn smaller_numbers(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for number in 3..10 {
        for less in 2..number {
            let (old, new) = (number.to_string(), less.to_string());
            let mut source = case.source.clone();
            for function in &mut source.functions {
                function.body = function.body.iter().map(|node| node.with_word(&old, &new)).collect();
                for text in function.params.iter_mut().chain(&mut function.results) {
                    *text = super::source::with_word(text, &old, &new);
                }
            }
            found.push(source);
        }
    }
    with_sources(case, found)
}
