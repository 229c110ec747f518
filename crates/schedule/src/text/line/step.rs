//! Parses each kind of step from the tokens of its line: one function for each step, such as
//! `split`, and for each part that only one step has, such as the layout of `promote`.

use std::collections::HashMap;

use tilewright_syntax::diagnostic::most_similar;
use tilewright_syntax::{Code, Diagnostic, Span};

use super::{Cursor, Parse, Reported, quoted};
use crate::step::{LayoutDim, LoopLevel, LoopName, ParallelUnit, PromoteScope, Step, Storage};
use crate::text::keyword::Keyword;
use crate::text::token::Kind;

impl Cursor<'_> {
    pub(super) fn step(&mut self) -> Parse<Step> {
        let keyword = self.keyword()?;
        self.keyword = Some(keyword);
        match keyword {
            Keyword::Split => self.split(),
            Keyword::Fuse => self.fuse(),
            Keyword::Reorder => self.reorder(),
            Keyword::Unroll => self.one_loop(Step::Unroll),
            Keyword::Vectorize => self.one_loop(Step::Vectorize),
            Keyword::Parallel => self.one_loop(Step::Parallel),
            Keyword::Bind => self.bind(),
            Keyword::Inline => self.inline(),
            Keyword::Clone => self.clone_for(),
            Keyword::ComputeAt => self.compute_at(),
            Keyword::ComputeWith => self.compute_with(),
            Keyword::Promote => self.promote(),
            Keyword::Rfactor => self.rfactor(),
            Keyword::Scan => self.scan(),
            Keyword::Pipeline => self.pipeline(),
            Keyword::Prefetch => self.prefetch(),
        }
    }

    /// The keyword that begins the step.
    fn keyword(&mut self) -> Parse<Keyword> {
        let known = Keyword::ALL.map(Keyword::name);
        let steps = format!("the steps are {}", known.join(", "));
        if self.kind() != Kind::Word {
            let diagnostic = self.unexpected("a step").note(steps);
            return self.report(match self.source[self.span().start as usize..].starts_with("//") {
                true => diagnostic.help("comments begin with `#`"),
                false => diagnostic,
            });
        }
        let word = self.text();
        if let Some(keyword) = Keyword::named(word) {
            self.advance();
            return Ok(keyword);
        }
        // A comparison with a word of any length would take too long.
        let typed: String = word.chars().take(40).collect::<String>().to_lowercase();
        let meant = known.into_iter().find(|name| *name == typed).or_else(|| most_similar(&typed, known));
        let diagnostic =
            Diagnostic::error(Code::Syntax, self.span(), format!("there is no step `{}`", quoted(word)))
                .note(steps);
        self.report(match meant {
            Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
            None => diagnostic,
        })
    }

    fn split(&mut self) -> Parse<Step> {
        let target = self.loop_name(None)?;
        self.expect_arrow("the names of the parts")?;
        let (outer, span) = self.new_name("the name of the outermost part")?;
        if self.kind() == Kind::Colon {
            self.report_outer_iterations(&outer)?;
        }
        let mut seen = HashMap::from([(outer.clone(), span)]);
        let mut inner = Vec::new();
        while self.eat(Kind::Comma) {
            let (name, span) = self.new_name("the name of a part")?;
            self.expect_distinct(&mut seen, name.clone(), span)?;
            let iterations = self.iterations(&name)?;
            inner.push((name, iterations));
        }
        self.expect_end("`,` or ")?;
        if inner.is_empty() {
            let message = "a split into one part only gives the loop another name";
            let diagnostic = self.with_example(Diagnostic::warning(Code::Syntax, span, message));
            self.report_and_continue(diagnostic)?;
        }
        Ok(Step::Split { target, outer, inner })
    }

    /// Reports a number of iterations on the first part.
    fn report_outer_iterations(&mut self, name: &str) -> Parse<()> {
        let colon = self.advance();
        self.number("a number of iterations")?;
        let diagnostic = self
            .error(colon.to(self.previous()), "the first part takes no number of iterations")
            .label("the other parts determine its number of iterations")
            .help(format!("write `{}`", quoted(name)));
        self.report_and_continue(diagnostic)
    }

    /// `:12` after the name of a part.
    fn iterations(&mut self, name: &str) -> Parse<i64> {
        if self.eat(Kind::Colon) {
            return self.number("a number of iterations");
        }
        let end = self.previous().end;
        let diagnostic = self
            .error(Span { start: end, end }, format!("`{}` has no number of iterations", quoted(name)))
            .label("expected `:` and a number")
            .help("every part but the first has one");
        self.report_and_continue(diagnostic)?;
        // If neither the next part nor the end of the line follows, a second message would not
        // help.
        if matches!(self.kind(), Kind::Comma | Kind::End) { Ok(1) } else { Err(Reported) }
    }

    fn fuse(&mut self) -> Parse<Step> {
        let loops = self.loops()?;
        self.expect_arrow("the name of the new loop, or `,` and another loop")?;
        let (name, _) = self.new_name("the name of the new loop")?;
        self.expect_end("")?;
        Ok(Step::Fuse { loops, name })
    }

    fn reorder(&mut self) -> Parse<Step> {
        let loops = self.loops()?;
        self.expect_end("`,` or ")?;
        Ok(Step::Reorder { loops })
    }

    fn one_loop(&mut self, step: fn(LoopName) -> Step) -> Parse<Step> {
        let target = self.loop_name(None)?;
        if self.kind() == Kind::Comma {
            let diagnostic =
                self.unexpected("the end of the line").help("this step takes one loop: repeat the step");
            return self.report(diagnostic);
        }
        self.expect_end("")?;
        Ok(step(target))
    }

    fn bind(&mut self) -> Parse<Step> {
        let target = self.loop_name(None)?;
        self.expect_arrow("`block.x` or `thread.x`")?;
        let to = self.unit()?;
        self.expect_end("")?;
        Ok(Step::Bind { target, to })
    }

    /// `block.x`, `thread.y`, and so on.
    fn unit(&mut self) -> Parse<ParallelUnit> {
        let wanted = "`block.x`, `block.y`, `block.z`, `thread.x`, `thread.y` or `thread.z`";
        let word =
            |this: &Self| if this.kind() == Kind::Word { this.text().to_owned() } else { String::new() };
        let (start, first) = (self.span(), word(self));
        if !matches!(first.as_str(), "block" | "thread") || self.kind_after_next() != Kind::Dot {
            return self.expected(wanted);
        }
        self.advance();
        self.advance();
        let named = format!("{first}.{}", word(self));
        match ParallelUnit::ALL.into_iter().find(|unit| unit.to_string() == named) {
            Some(unit) => {
                self.advance();
                Ok(unit)
            }
            None => {
                let diagnostic =
                    self.error(start.to(self.span()), format!("there is no `{}`", quoted(&named)));
                self.report(diagnostic.help(format!("it is one of {wanted}")))
            }
        }
    }

    fn inline(&mut self) -> Parse<Step> {
        let tensor = self.tensor()?;
        self.expect_end("")?;
        Ok(Step::Inline { tensor })
    }

    fn clone_for(&mut self) -> Parse<Step> {
        let tensor = self.tensor()?;
        self.expect_arrow("the name of the second temporary")?;
        let (name, _) = self.new_name("the name of the second temporary")?;
        self.expect_word("for", "`for` and the statements that read it")?;
        let readers = self.statements()?;
        self.expect_end("`,` or ")?;
        Ok(Step::Clone { tensor, name, readers })
    }

    fn compute_at(&mut self) -> Parse<Step> {
        let tensor = self.tensor()?;
        self.expect(Kind::Comma, "`,` and a loop")?;
        let at = self.loop_name(None)?;
        let storage = if self.is_at_word("store_at") { Some(self.storage()?) } else { None };
        self.expect_end(match &storage {
            None => "`store_at` and a loop, or ",
            Some(Storage { fold: None, .. }) => "`fold` and a number of rows, or ",
            Some(_) => "",
        })?;
        Ok(Step::ComputeAt { tensor, at, storage })
    }

    fn compute_with(&mut self) -> Parse<Step> {
        let target = self.loop_name(None)?;
        self.expect(Kind::Comma, "`,` and the loop that it joins")?;
        let with = self.loop_name(None)?;
        let is_ahead = self.is_at_word("ahead");
        if is_ahead {
            self.advance();
        }
        let ahead = if is_ahead { self.number("a number of iterations")? } else { 0 };
        self.expect_end(if is_ahead { "" } else { "`ahead` and a number of iterations, or " })?;
        Ok(Step::ComputeWith { target, with, ahead })
    }

    fn storage(&mut self) -> Parse<Storage> {
        self.advance();
        let at = self.place()?;
        let is_folded = self.is_at_word("fold");
        if is_folded {
            self.advance();
        }
        let fold = if is_folded { Some(self.number("a number of rows")?) } else { None };
        Ok(Storage { at, fold })
    }

    fn promote(&mut self) -> Parse<Step> {
        let tensor = self.tensor()?;
        self.expect_word("at", "`at` and a loop, or `at root`")?;
        let at = self.place()?;
        self.expect_arrow("the name of the buffer")?;
        let (name, _) = self.new_name("the name of the buffer")?;
        let scope = self.scope()?;
        let gathered = self.is_at_word("gathered");
        if gathered {
            self.advance();
        }
        let layout = if self.kind() == Kind::LeftParen { self.layout()? } else { Vec::new() };
        let pad = if self.is_at_word("pad") { self.pad(scope)? } else { 0 };
        self.expect_end(if layout.is_empty() { "a layout in parentheses or " } else { "" })?;
        Ok(Step::Promote { tensor, at, name, scope, gathered, layout, pad })
    }

    /// `pad 4`, after a buffer in shared memory.
    fn pad(&mut self, scope: PromoteScope) -> Parse<i64> {
        let start = self.advance();
        let pad = self.number("a number of elements")?;
        if scope != PromoteScope::Shared {
            let message = "only buffers in shared memory can be padded";
            let diagnostic = self.error(start.to(self.previous()), message);
            return self.report(diagnostic);
        }
        Ok(pad)
    }

    /// `root` or a loop. A tensor may be called `root`; its loops are `root.i`.
    fn place(&mut self) -> Parse<LoopLevel> {
        if self.is_at_word("root") && !matches!(self.kind_after_next(), Kind::Dot | Kind::LeftBracket) {
            let span = self.advance();
            self.names.push(("root".to_owned(), span));
            return Ok(LoopLevel::Root);
        }
        if self.kind() != Kind::Word {
            return self.expected("a loop, `STATEMENT.LOOP`, or `root`");
        }
        self.loop_name(None).map(LoopLevel::Loop)
    }

    fn scope(&mut self) -> Parse<PromoteScope> {
        let scopes = [PromoteScope::Packed, PromoteScope::Shared, PromoteScope::Registers];
        let text = if self.kind() == Kind::Word { self.text() } else { "" };
        if let Some(scope) = scopes.into_iter().find(|scope| scope.to_string() == text) {
            self.advance();
            return Ok(scope);
        }
        let diagnostic = self.unexpected("`packed`, `shared` or `registers`, the memory of the buffer");
        let typed: String = text.chars().take(40).collect();
        self.report(match most_similar(&typed, ["packed", "shared", "registers"]) {
            Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
            None => diagnostic,
        })
    }

    /// `(d1/32, d0, d1%32)`.
    fn layout(&mut self) -> Parse<Vec<LayoutDim>> {
        self.advance();
        if self.kind() == Kind::RightParen {
            let diagnostic = self.unexpected("a dimension, such as `d0`").help(
                "leave the parentheses out if the buffer's dimensions are the tensor's, in the same order",
            );
            return self.report(diagnostic);
        }
        let mut layout = Vec::new();
        loop {
            let start = self.span();
            layout.push(self.layout_dim()?);
            self.layout.push(start.to(self.previous()));
            if self.eat(Kind::RightParen) {
                return Ok(layout);
            }
            self.expect(Kind::Comma, "`,` or `)`")?;
        }
    }

    /// `d1`, `d1/32`, `d1%32` or `d1%64/8`.
    fn layout_dim(&mut self) -> Parse<LayoutDim> {
        let start = self.span();
        let dimension = self.dimension()?;
        let modulo = self.number_after(Kind::Percent)?;
        let divide = self.number_after(Kind::Slash)?;
        if let (None, Some(divide), Kind::Percent) = (modulo, divide, self.kind()) {
            return self.report_remainder_order(start, dimension, divide);
        }
        Ok(LayoutDim { dimension, modulo, divide })
    }

    /// The number after an operator, if the operator is there.
    fn number_after(&mut self, operator: Kind) -> Parse<Option<i64>> {
        match self.eat(operator) {
            true => self.number("a number of at least 1").map(Some),
            false => Ok(None),
        }
    }

    /// `d` and a number, which is a dimension of the tensor.
    fn dimension(&mut self) -> Parse<usize> {
        let digits = self.text().strip_prefix('d').filter(|digits| {
            self.kind() == Kind::Word
                && !digits.is_empty()
                && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        let Some(digits) = digits else {
            let diagnostic = self.unexpected("a dimension of the tensor, such as `d0`").help(
                "`d0` is the tensor's first dimension, `d1` the second; `d1/32` and `d1%32` are parts of one",
            );
            return self.report(diagnostic);
        };
        let span = self.advance();
        let dimension = self.value(digits, span)?;
        self.as_usize(dimension)
    }

    /// Reports `d1/8%4`, which must be written `d1%32/8`.
    fn report_remainder_order(&mut self, start: Span, dimension: usize, divide: i64) -> Parse<LayoutDim> {
        let wrong = self.advance();
        let modulo = self.number("a number of at least 1")?;
        let diagnostic = self
            .error(start.to(self.previous()), "the remainder comes before the quotient")
            .secondary_label(wrong, "the remainder is here");
        self.report(match modulo.checked_mul(divide) {
            Some(modulo) => diagnostic.help(format!("the same is `d{dimension}%{modulo}/{divide}`")),
            None => diagnostic,
        })
    }

    fn rfactor(&mut self) -> Parse<Step> {
        let target = self.loop_name(None)?;
        self.expect_arrow("the name of the partial totals")?;
        let (name, _) = self.new_name("the name of the partial totals")?;
        self.expect_end("")?;
        Ok(Step::Rfactor { target, name })
    }

    fn scan(&mut self) -> Parse<Step> {
        let target = self.loop_name(None)?;
        self.expect_arrow("the name of the values before the parts")?;
        let (name, _) = self.new_name("the name of the values before the parts")?;
        self.expect_end("")?;
        Ok(Step::Scan { target, name })
    }

    fn pipeline(&mut self) -> Parse<Step> {
        let target = self.loop_name(None)?;
        self.expect_word("stages", "`stages` and a number")?;
        let stages = self.number("a number of stages")?;
        self.expect_end("")?;
        Ok(Step::Pipeline { target, stages })
    }

    fn prefetch(&mut self) -> Parse<Step> {
        let tensor = self.tensor()?;
        self.expect_word("at", "`at` and a loop")?;
        let at = self.loop_name(None)?;
        self.expect_word("ahead", "`ahead` and a number of iterations")?;
        let ahead = self.number("a number of iterations")?;
        let of = match self.kind() {
            Kind::End => at.clone(),
            _ => {
                self.expect_word("of", "`of` and a loop, or the end of the line")?;
                self.loop_name(Some(&at))?
            }
        };
        self.expect_end("")?;
        Ok(Step::Prefetch { tensor, at, ahead, of })
    }

    /// A word that must stand at this place of the step.
    fn expect_word(&mut self, word: &str, what: &str) -> Parse<()> {
        if !self.is_at_word(word) {
            return self.expected(what);
        }
        self.advance();
        Ok(())
    }

    /// `->`, which stands before the names that a step gives.
    fn expect_arrow(&mut self, before: &str) -> Parse<()> {
        if self.eat(Kind::Arrow) {
            return Ok(());
        }
        self.expected(&format!("`->` and {before}"))
    }
}
