//! Parses hand-written search spaces, called templates: a schedule with placeholders, and the knobs
//! that fill them.
//!
//! ```text
//! # How TVM's template for matrix products cuts the loops.
//! knob m = factors M in 4
//! knob k = factors K in 2
//! knob unroll = one of 1, 4, 16
//! knob inner = either "reorder O.ki, O.ii" or "reorder O.ii, O.ki"
//! split O.i -> i0, i1:{m.1}, i2:{m.2}, i3:{m.3}
//! split O.k -> ko, ki:{k.1}
//! {inner}
//! ```
//!
//! A knob must come before the steps that use it. `factors M in 4` has all factorisations of `M`
//! into four factors. `M` may be a number, a size of the program, or a loop such as `O.i`, which
//! stands for its trip count. `{m.1}` is the second factor; the first factor is the trip count that
//! remains for the outermost loop. Statements that no step names get the default schedule.

use thiserror::Error;
use tilewright_ir::Program;
use tilewright_schedule::text::parse;
use tilewright_schedule::{Schedule, StatementName, Step, complete};
use tilewright_target::Target;

use super::Plan;
use super::rejection::Rejection;
use super::stage::stages;
use crate::knob::{Divisors, Domain, Knob, Knobs, Point, Value};

/// The largest number of factors in a factorisation.
const MAX_PARTS: usize = 8;
/// The largest size to factorise. No tensor has so many elements, and finding the divisors would
/// take long.
const LARGEST_EXTENT: i64 = 1 << 40;

/// Why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {reason}")]
pub struct TemplateError {
    /// The line number, from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub reason: String,
}

/// A schedule with placeholders.
#[derive(Clone, Debug)]
pub(super) struct Template<'a> {
    program: &'a Program,
    target: Target<'a>,
    pieces: Vec<Piece>,
    knobs: Knobs,
}

/// A piece of the template's text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// Literal text.
    Text(String),
    /// The value of a knob, by index; for a factorisation, also the index of a factor.
    Knob(usize, Option<usize>),
}

impl<'a> Template<'a> {
    /// Parses a template.
    pub fn parse(
        text: &str,
        program: &'a Program,
        target: Target<'a>,
    ) -> Result<(Knobs, Template<'a>), TemplateError> {
        let (mut list, mut pieces) = (Vec::new(), Vec::new());
        for (at, line) in text.lines().enumerate() {
            let wrong = |why: String| TemplateError { line: at + 1, reason: why };
            let step = line.split('#').next().unwrap_or_default();
            match step.trim().strip_prefix("knob ") {
                Some(knob) => list.push(parse_knob(knob, program, &list).map_err(wrong)?),
                None => pieces.extend(parse_line(step, &list).map_err(wrong)?),
            }
            pieces.push(Piece::Text("\n".to_owned()));
        }
        if list.is_empty() {
            return Err(TemplateError {
                line: 1,
                reason: "the template has no knob: add one, such as `knob m = factors M in 4`".to_owned(),
            });
        }
        let knobs = Knobs::new(list);
        let template = Template { program, target, pieces, knobs: knobs.clone() };
        template.check_points()?;
        Ok((knobs, template))
    }

    /// Checks that the first point is a valid schedule text, and also every point that differs from
    /// it by another text of one knob.
    fn check_points(&self) -> Result<(), TemplateError> {
        let Some(first) = self.knobs.nth(0) else { return Ok(()) };
        self.check_schedule(&first)?;
        for (at, knob) in self.knobs.iter().enumerate() {
            if let Domain::Categorical(own) = &knob.domain {
                for choice in 1..own.choices().len() {
                    let mut other = first.clone();
                    other.set_choice(at, choice);
                    self.check_schedule(&other)?;
                }
            }
        }
        Ok(())
    }

    fn check_schedule(&self, point: &Point) -> Result<(), TemplateError> {
        let text = self.text(point);
        let parsed = parse(&text);
        let wrong = parsed.diagnostics.iter().find(|diagnostic| diagnostic.is_error());
        wrong.map_or(Ok(()), |diagnostic| {
            let before = text.get(..diagnostic.primary.0.start as usize).unwrap_or_default();
            Err(TemplateError { line: before.matches('\n').count() + 1, reason: diagnostic.message.clone() })
        })
    }

    fn text(&self, point: &Point) -> String {
        self.fill(&self.pieces, point)
    }

    fn fill(&self, pieces: &[Piece], point: &Point) -> String {
        let said = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Knob(at, part) => self.value_text(*at, *part, point),
        });
        said.collect()
    }

    fn value_text(&self, knob: usize, part: Option<usize>, point: &Point) -> String {
        match (&point.0[knob], &self.knobs[knob].domain) {
            (Value::Factors(factors), _) => factors[part.unwrap_or(0)].to_string(),
            (Value::Choice(at), Domain::Ordinal(own)) => own.values()[*at].to_string(),
            (Value::Choice(at), Domain::Categorical(own)) => {
                // This text was checked when its knob was parsed. It can refer only to earlier
                // knobs.
                let pieces = parse_line(&own.choices()[*at], &self.knobs[..knob]).unwrap_or_default();
                self.fill(&pieces, point)
            }
            _ => String::new(),
        }
    }
}

impl Plan for Template<'_> {
    /// Returns the schedule that a point stands for.
    fn decode(&self, point: &Point) -> Result<Schedule, Rejection> {
        let parsed = parse(&self.text(point));
        if parsed.has_errors() {
            return Err(Rejection::Illegal("invalid schedule text"));
        }
        let done = scheduled_statements(&parsed.schedule);
        complete(self.program, parsed.schedule, &done, self.target)
            .map_err(|refusal| Rejection::from(&refusal.reason))
    }

    /// Returns the only starting point: no loop is split.
    fn starting_points(&self, _: &Knobs) -> Vec<Point> {
        self.knobs.nth(0).into_iter().collect()
    }
}

/// The statements whose loops the schedule names.
fn scheduled_statements(schedule: &Schedule) -> Vec<StatementName> {
    let loops = schedule.steps.iter().filter_map(|step| match step {
        Step::Split { target, .. } | Step::Bind { target, .. } => Some(target),
        Step::Rfactor { target, .. } | Step::Scan { target, .. } => Some(target),
        Step::Unroll(target) | Step::Vectorize(target) | Step::Parallel(target) => Some(target),
        Step::Fuse { loops, .. } | Step::Reorder { loops } => loops.first(),
        _ => None,
    });
    loops.map(|target| target.statement.clone()).collect()
}

/// Parses `NAME = factors M in 4`, `NAME = one of 1, 2, 4` or `NAME = either "…" or "…"`.
fn parse_knob(text: &str, program: &Program, others: &[Knob]) -> Result<Knob, String> {
    let form =
        "write `knob m = factors M in 4`, `knob u = one of 1, 2, 4` or `knob o = either \"…\" or \"…\"`";
    let (name, domain) = text.split_once('=').ok_or(form)?;
    let (name, domain) = (name.trim(), domain.trim());
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Err(format!("`{name}` is not a knob name: use letters, digits and `_`"));
    }
    if others.iter().any(|other| other.name == name) {
        return Err(format!("the name `{name}` belongs to an earlier knob"));
    }
    if let Some(factors) = domain.strip_prefix("factors ") {
        return factorisation(name, factors, program);
    }
    if let Some(values) = domain.strip_prefix("one of ") {
        let values = values.split(',').map(|value| value.trim().parse::<i64>());
        let values: Vec<i64> =
            values.collect::<Result<_, _>>().map_err(|_| "`one of` takes whole numbers".to_owned())?;
        return Ok(Knob::ordinal(name, values));
    }
    let texts = domain.strip_prefix("either ").ok_or(form)?.trim();
    let texts = texts.strip_prefix('"').and_then(|texts| texts.strip_suffix('"')).ok_or(form)?;
    let texts: Vec<&str> = texts.split("\" or \"").collect();
    for piece in texts.iter().map(|text| parse_line(text, others)).collect::<Result<Vec<_>, _>>()?.concat() {
        if let Piece::Knob(at, _) = piece
            && matches!(others[at].domain, Domain::Categorical(_))
        {
            return Err(format!(
                "the texts of `{name}` use `{}`, which is also a choice of texts",
                others[at].name
            ));
        }
    }
    Ok(Knob::categorical(name, texts))
}

/// Parses `M in 4`.
fn factorisation(name: &str, text: &str, program: &Program) -> Result<Knob, String> {
    let (size, parts) = text.split_once(" in ").ok_or("write `factors M in 4`")?;
    let size = size.trim();
    let symbol = || program.symbols.iter().find(|symbol| symbol.name == size).and_then(|symbol| symbol.value);
    let extent = size.parse::<i64>().ok().or_else(symbol).or_else(|| trip_count(size, program));
    let extent = extent.filter(|extent| (1..=LARGEST_EXTENT).contains(extent));
    let extent = extent.ok_or_else(|| {
        format!("`{size}` is not a size, a loop of this program or a number from 1 to {LARGEST_EXTENT}")
    })?;
    let parts = parts.trim().parse::<usize>().ok().filter(|parts| (1..=MAX_PARTS).contains(parts));
    let parts = parts.ok_or_else(|| format!("the number of factors must be from 1 to {MAX_PARTS}"))?;
    Ok(Knob::factorisation(name, extent, parts, Divisors::Exact))
}

/// The trip count of the loop `STATEMENT.LOOP`.
fn trip_count(text: &str, program: &Program) -> Option<i64> {
    let (statement, name) = text.rsplit_once('.')?;
    let stages = stages(program);
    let stage = stages.iter().find(|stage| stage.name.to_string() == statement)?;
    stage.loops.iter().find(|own| own.name == name).map(|own| own.trips)
}

/// Parses a step into its pieces.
fn parse_line(line: &str, knobs: &[Knob]) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some((before, from)) = rest.split_once('{') {
        let (place, after) = from.split_once('}').ok_or("`{` has no matching `}`")?;
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(parse_placeholder(place.trim(), knobs)?);
        rest = after;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}

/// Parses the content of a placeholder: `m.1` or `unroll`.
fn parse_placeholder(place: &str, knobs: &[Knob]) -> Result<Piece, String> {
    let (name, part) = place.split_once('.').map_or((place, None), |(name, part)| (name, Some(part)));
    let at = knobs.iter().position(|knob| knob.name == name);
    let at = at.ok_or_else(|| format!("there is no knob `{name}` before this line"))?;
    let parts = match &knobs[at].domain {
        Domain::Factorisation(own) => own.parts(),
        _ if part.is_some() => return Err(format!("`{name}` has no factors: write {{{name}}}")),
        _ => return Ok(Piece::Knob(at, None)),
    };
    let part = part.and_then(|part| part.parse::<usize>().ok()).filter(|part| *part < parts);
    let part =
        part.ok_or_else(|| format!("write a factor of `{name}`: {{{name}.0}} to {{{name}.{}}}", parts - 1))?;
    Ok(Piece::Knob(at, Some(part)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use tilewright_schedule::apply;
    use tilewright_target::Cpu;

    use super::super::Space;
    use super::*;

    fn gemm(size: i64) -> Program {
        let source = "def gemm(float(M, K) A, float(K, N) B) -> (O) { O(i, j) +=! A(i, k) * B(k, j) }";
        let sizes = [("M", size), ("N", size), ("K", size)].into_iter().collect();
        tilewright_syntax::check(&tilewright_syntax::parse(source).ast, "gemm", &sizes).program.unwrap()
    }

    const CUT: &str = "knob m = factors M in 4\nknob k = factors K in 2\nknob n = factors N in 4\n";

    /// The sizes of section 4 of the paper on G-BFS and N-A2C.
    #[test]
    fn sizes_are_those_of_the_paper() {
        for (size, points) in [(512, 484_000), (1024, 899_756), (2048, 1_589_952)] {
            let (program, cpu) = (gemm(size), Cpu::host());
            assert_eq!(Space::from_template(CUT, &program, &cpu).unwrap().knobs().size(), points);
        }
    }

    #[test]
    fn loops_have_factors_as_sizes_do() {
        let source = "def f(float(N) A) -> (B) { B(i) = A(2*i + 1) }";
        let sizes = [("N", 129)].into_iter().collect();
        let program =
            tilewright_syntax::check(&tilewright_syntax::parse(source).ast, "f", &sizes).program.unwrap();
        let cpu = Cpu::host();
        let space =
            Space::from_template("knob i = factors B.i in 2\nsplit B.i -> a, b:{i.1}", &program, &cpu);
        assert_eq!(space.unwrap().knobs().size(), 7);
    }

    #[test]
    fn points_are_schedules() {
        let (program, cpu) = (gemm(64), Cpu::host());
        let text = format!(
            "{CUT}knob u = one of 1, 8\nknob inner = either \"unroll O.i3\" or \"split O.j -> jo, ji:{{u}}\" # or that\n\
             split O.i -> i0, i1:{{m.1}}, i2:{{m.2}}, i3:{{m.3}}\nsplit O.k -> ko, ki:{{u}}\n{{inner}}\n"
        );
        let space = Space::from_template(&text, &program, &cpu).unwrap();
        let plain = space.decode(&space.initial_point()).unwrap().to_string();
        assert!(
            plain.contains("split O.i -> i0, i1:1, i2:1, i3:1\nsplit O.k -> ko, ki:1\nunroll O.i3"),
            "{plain}"
        );
        let last = space.knobs().nth(space.knobs().size() - 1).unwrap();
        let last = space.decode(&last).unwrap();
        assert!(last.to_string().contains("ki:8") && last.to_string().contains("ji:8"), "{last}");
        assert!(!last.to_string().contains("unroll"), "{last}");
        assert!(apply(&program, &last, &cpu).is_ok());
    }

    #[test]
    fn mistakes_are_pointed_at() {
        let (program, cpu) = (gemm(64), Cpu::host());
        let why = |text: &str| Space::from_template(text, &program, &cpu).err().unwrap().to_string();
        assert_eq!(
            why("split O.i -> a, b:4"),
            "line 1: the template has no knob: add one, such as `knob m = factors M in 4`"
        );
        let kinds = "is not a size, a loop of this program or a number from 1 to 1099511627776";
        assert_eq!(why("knob m = factors Q in 4"), format!("line 1: `Q` {kinds}"));
        assert_eq!(why("knob m = factors O.x in 4"), format!("line 1: `O.x` {kinds}"));
        assert_eq!(
            why("knob o = either \"unroll O.i\" or \"split O.i -> a, b:{u}\""),
            "line 1: there is no knob `u` before this line"
        );
        assert_eq!(
            why("knob a = either \"\" or \"unroll O.i\"\nknob b = either \"\" or \"{a}\""),
            "line 2: the texts of `b` use `a`, which is also a choice of texts"
        );
        assert_eq!(why("knob m = factors M in 9"), "line 1: the number of factors must be from 1 to 8");
        assert_eq!(why("\nknob m = one of 1, x"), "line 2: `one of` takes whole numbers");
        assert_eq!(
            why("knob m = one of 1\nknob m = one of 2"),
            "line 2: the name `m` belongs to an earlier knob"
        );
        assert_eq!(
            why("knob m = factors M in 2\nsplit O.i -> a, b:{m}"),
            "line 2: write a factor of `m`: {m.0} to {m.1}"
        );
        assert_eq!(
            why("knob u = one of 1\nsplit O.i -> a, b:{v}"),
            "line 2: there is no knob `v` before this line"
        );
        assert_eq!(why("knob u = one of 1\nsplit O.i -> a, b:{u"), "line 2: `{` has no matching `}`");
        assert_eq!(why("knob m = factors 99999999999999 in 2"), format!("line 1: `99999999999999` {kinds}"));
        assert!(why("knob u = either \"unroll O.i\" or \"unrol O.i\"\n{u}").starts_with("line 2: "));
        assert!(why("knob u = one of 2\n\nspilt O.i -> a, b:{u}").starts_with("line 3: "));
    }
}
