//! Builds an [`ast`](crate::ast) from tokens, by recursive descent.
//!
//! The parser reports a mistake once, skips to the next statement or function, and continues.
//! Nesting is limited, so that no text can exhaust the stack here or in later passes over the tree.
//!
//! This file holds the cursor, the error recovery and the grammar of functions; `scalar_function`,
//! `statement`, `tuple` and `expression` hold the rest of the grammar.

mod definition;
mod expression;
mod hints;
mod requires;
mod scalar_function;
mod statement;
mod stored;
mod tuple;

use std::collections::HashSet;

use crate::ast::{Declaration, Expr, Function, Module, Name, Param, Type, type_named};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::{Token, TokenKind, lex};
use crate::span::Span;
use tilewright_ir::DType;

/// The maximal depth of expressions and loops. In a chain such as `a + b + c`, each operator counts
/// as one level.
pub const MOST_NESTING: usize = 300;
/// The maximal number of syntax errors that are listed.
const MOST_ERRORS: usize = 50;

/// A parsed file and its syntax errors.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The part of the file that could be parsed.
    pub ast: Module,
    /// The syntax errors.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a file.
pub fn parse(source: &str) -> Parsed {
    if source.len() > u32::MAX as usize {
        let diagnostic = Diagnostic::error(Code::TooComplex, Span::default(), "the file is larger than 4 GB");
        return Parsed { ast: Module::default(), diagnostics: vec![diagnostic] };
    }
    let (tokens, diagnostics) = lex(source);
    let lines_with_invalid_characters: HashSet<u32> =
        diagnostics.iter().map(|found| line_start(source, found.primary.0)).collect();
    let mut parser =
        Parser { source, tokens, at: 0, depth: 0, type_params: Vec::new(), diagnostics: Vec::new() };
    let mut ast = parser.module();
    // The parser's messages about a line with invalid characters are consequences of those
    // characters.
    let parser_found = parser
        .diagnostics
        .into_iter()
        .filter(|found| !lines_with_invalid_characters.contains(&line_start(source, found.primary.0)));
    let mut diagnostics = diagnostics;
    diagnostics.extend(parser_found);
    if !diagnostics.is_empty() {
        ast.functions
            .iter_mut()
            .for_each(|function| function.is_incomplete |= !lines_with_invalid_characters.is_empty());
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.primary.0);
    if diagnostics.len() > MOST_ERRORS {
        let left_out = diagnostics.len() - MOST_ERRORS;
        diagnostics.truncate(MOST_ERRORS);
        if let Some(last) = diagnostics.last_mut() {
            last.notes.push(format!("{left_out} further syntax errors are not shown"));
        }
    }
    Parsed { ast, diagnostics }
}

/// The start of the line that contains the span.
fn line_start(source: &str, span: Span) -> u32 {
    let before = source.as_bytes().get(..span.start as usize).unwrap_or_default();
    before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u32 + 1)
}

/// Marks a mistake that has been reported; the caller recovers.
struct Reported;

type Parse<T> = Result<T, Reported>;

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    /// The type parameters of the function that is being parsed.
    type_params: Vec<Name>,
    diagnostics: Vec<Diagnostic>,
}

impl Parser<'_> {
    fn peek(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    fn peek_ahead(&self, by: usize) -> &TokenKind {
        &self.tokens[(self.at + by).min(self.tokens.len() - 1)].kind
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    /// The span of the token before the current one.
    fn previous_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn starts_line(&self) -> bool {
        self.tokens[self.at].starts_line
    }

    fn advance(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, kind: &TokenKind) -> bool {
        let found = self.peek() == kind;
        if found {
            self.advance();
        }
        found
    }

    fn is_at_word(&self, word: &str) -> bool {
        matches!(self.peek(), TokenKind::Word(text) if text == word)
    }

    fn is_at_type(&self) -> bool {
        matches!(self.peek(), TokenKind::Word(text) if self.element_type(text).is_some())
    }

    /// The element type that a word names. A type parameter counts as float32 until a call tells
    /// its type.
    fn element_type(&self, word: &str) -> Option<(DType, Option<String>)> {
        let is_parameter = self.type_params.iter().any(|name| name.text == word);
        match type_named(word) {
            Some(dtype) => Some((dtype, None)),
            None => is_parameter.then(|| (DType::Float32, Some(word.to_owned()))),
        }
    }

    /// Parses `<T, U>`, if it is there.
    fn type_params(&mut self) -> Parse<Vec<Name>> {
        let mut names = Vec::new();
        if !self.eat(&TokenKind::Less) {
            return Ok(names);
        }
        loop {
            names.push(self.name("a type")?);
            if self.eat(&TokenKind::Greater) {
                return Ok(names);
            }
            self.expect(&TokenKind::Comma, "`,` or `>` after the name of a type")?;
        }
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_at_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn report<T>(&mut self, diagnostic: Diagnostic) -> Parse<T> {
        self.diagnostics.push(diagnostic);
        Err(Reported)
    }

    /// Reports that `what` was expected at the current token.
    fn report_expected<T>(&mut self, what: &str) -> Parse<T> {
        let before = self.previous_span().text(self.source);
        let hint = hints::symbols_hint(before, self.span().text(self.source));
        self.report_expected_with_hint(what, hint)
    }

    /// Like `report_expected`, with a hint about the intended text.
    fn report_expected_with_hint<T>(&mut self, what: &str, hint: Option<String>) -> Parse<T> {
        let found = match self.peek() {
            TokenKind::End => "the end of the file".to_owned(),
            _ => format!("`{}`", self.span().text(self.source)),
        };
        let span = self.span();
        let diagnostic = Diagnostic::error(Code::Syntax, span, format!("expected {what}, found {found}"))
            .label(format!("expected {what}"));
        self.report(hint.into_iter().fold(diagnostic, Diagnostic::help))
    }

    fn expect(&mut self, kind: &TokenKind, what: &str) -> Parse<Span> {
        let span = self.span();
        if self.eat(kind) { Ok(span) } else { self.report_expected(what) }
    }

    fn name(&mut self, what: &str) -> Parse<Name> {
        let span = self.span();
        match self.peek() {
            TokenKind::Word(text) if is_reserved(text) => {
                let message = format!("`{text}` is a word of the language and cannot name {what}");
                let help = match type_named(text) {
                    Some(dtype) => other_name_than_type(text, dtype),
                    None => "choose another name".to_owned(),
                };
                self.report(Diagnostic::error(Code::Syntax, span, message).help(help))
            }
            TokenKind::Word(text) => {
                let text = text.clone();
                self.advance();
                Ok(Name::new(text, span))
            }
            _ => self.report_expected(&format!("the name of {what}")),
        }
    }

    /// Runs `inner` one nesting level deeper, or reports that the nesting is too deep.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MOST_NESTING {
            return self.too_deep();
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn too_deep<T>(&mut self) -> Parse<T> {
        let span = self.span();
        self.report(
            Diagnostic::error(
                Code::TooComplex,
                span,
                format!("nested or chained more than {MOST_NESTING} operators deep"),
            )
            .help("split it into several statements with temporaries"),
        )
    }

    /// Parses items with commas between them, up to and including the closing parenthesis.
    fn list<T>(&mut self, what: &str, mut item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(&TokenKind::RightParen) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(&TokenKind::RightParen) {
                return Ok(items);
            }
            self.expect(&TokenKind::Comma, &format!("`,` or `)` after {what}"))?;
        }
    }

    fn module(&mut self) -> Module {
        let mut module = Module { source: self.source.to_owned(), ..Module::default() };
        while *self.peek() != TokenKind::End {
            if let Err(Reported) = self.item(&mut module) {
                self.type_params.clear();
                self.skip_to_function();
            }
        }
        module
    }

    /// Parses one function of a file.
    fn item(&mut self, module: &mut Module) -> Parse<()> {
        if self.is_at_word("def") {
            module.functions.push(self.function()?);
        } else if self.is_at_word("fn") {
            module.scalar_functions.push(self.scalar_function()?);
        } else {
            let expected = "a function: `def name(…) -> (…) { … }` or `fn name(…) = …`";
            let reported = self.report_expected(expected);
            self.advance();
            return reported;
        }
        Ok(())
    }

    /// Returns true at `fn name(`. The word `fn` alone is an ordinary name.
    fn is_at_scalar_function(&self) -> bool {
        self.is_at_word("fn")
            && matches!(self.peek_ahead(1), TokenKind::Word(_))
            && *self.peek_ahead(2) == TokenKind::LeftParen
    }

    /// Returns true at the first token of a function that begins a line.
    fn is_at_next_function(&self) -> bool {
        self.starts_line() && (self.is_at_word("def") || self.is_at_scalar_function())
    }

    fn skip_to_function(&mut self) {
        while *self.peek() != TokenKind::End && !self.is_at_next_function() {
            self.advance();
        }
    }

    fn function(&mut self) -> Parse<Function> {
        self.advance();
        let name = self.name("a function")?;
        let type_params = self.type_params()?;
        self.type_params = type_params.clone();
        self.expect(&TokenKind::LeftParen, "`(` and the parameters")?;
        let params = self.list("a parameter", Self::param)?;
        self.expect(&TokenKind::Arrow, "`->` and the results")?;
        let results = if self.eat(&TokenKind::LeftParen) {
            self.list("a result", Self::declaration)?
        } else {
            vec![self.declaration()?]
        };
        let requires = self.requires()?;
        let open = self.expect(&TokenKind::LeftBrace, "`{` and the body")?;
        let definitions = self.definitions()?;
        let before = self.diagnostics.len();
        let (body, closed) = self.statements();
        // Another message at the end of the file would only repeat the first one.
        let already_reported = self.diagnostics.last().is_some_and(|last| last.primary.0 == self.span());
        if !closed && !already_reported {
            let span = self.span();
            let diagnostic =
                Diagnostic::error(Code::Syntax, span, format!("the body of `{}` is not closed", name.text))
                    .label("expected `}`")
                    .secondary_label(open, "the body begins here");
            self.diagnostics.push(diagnostic);
        }
        let incomplete = self.diagnostics.len() > before;
        self.type_params.clear();
        Ok(Function {
            name,
            type_params,
            params,
            results,
            requires,
            definitions,
            body,
            is_incomplete: incomplete,
        })
    }

    /// Parses the name of a tensor, or of an element of a list: `g[k + 1]`.
    fn tensor_name(&mut self, what: &str) -> Parse<Name> {
        let mut name = self.name(what)?;
        self.element_of(&mut name)?;
        Ok(name)
    }

    /// Parses the number of an element, if there is one, and adds it to the name.
    fn element_of(&mut self, name: &mut Name) -> Parse<()> {
        if *self.peek() != TokenKind::LeftBracket || self.starts_line() {
            return Ok(());
        }
        let open = self.span();
        self.advance();
        let number = self.expr()?;
        if *self.peek() == TokenKind::Comma {
            let message = "subscripts are written in parentheses";
            let help = "write `A(i, j)`; square brackets are for lists of tensors, which have one index";
            return self.report(Diagnostic::error(Code::Syntax, open, message).help(help));
        }
        self.expect(&TokenKind::RightBracket, "`]`")?;
        name.span = name.span.to(self.previous_span());
        name.element = Some(Box::new(number));
        Ok(())
    }

    /// Parses `static int levels = 8`. The word `static` alone is an ordinary name.
    fn static_param(&mut self) -> Parse<Param> {
        self.advance();
        let ty = self.ty()?;
        if !ty.dims.is_empty() || !ty.dtype.is_integer() {
            let message = "a static parameter is an integer";
            let help = "write `static int levels = 8`";
            return self.report(Diagnostic::error(Code::Syntax, ty.span, message).help(help));
        }
        let name = self.name("a parameter")?;
        let default = if self.eat(&TokenKind::Assign) { Some(self.expr()?) } else { None };
        Ok(Param { constant: false, is_static: true, default, ty, name, stored: None })
    }

    fn param(&mut self) -> Parse<Param> {
        let is_type = |kind: &TokenKind| matches!(kind, TokenKind::Word(text) if type_named(text).is_some());
        if self.is_at_word("static") && is_type(self.peek_ahead(1)) {
            return self.static_param();
        }
        let constant = self.is_at_word("const");
        if constant {
            self.advance();
        }
        if !self.is_at_type() {
            let hint = match self.peek() {
                TokenKind::Word(word) => hints::type_hint(word),
                _ => None,
            };
            return self.report_expected_with_hint("a type and a name, such as `float(M, K) A`", hint);
        }
        let mut ty = self.ty()?;
        let name = self.tensor_name("a parameter")?;
        if ty.dims.is_empty() && name.element.is_some() {
            let message = "a list holds tensors, and this type has no extents";
            let help = "several numbers are a tensor with one dimension: `float(3) a`";
            return self.report(Diagnostic::error(Code::Syntax, name.span, message).help(help));
        }
        let stored = self.stored(&name, Some(&mut ty))?;
        Ok(Param { constant, is_static: false, default: None, ty, name, stored })
    }

    fn declaration(&mut self) -> Parse<Declaration> {
        let mut ty = if self.is_at_type() { Some(self.ty()?) } else { None };
        if let (Some(ty), TokenKind::RightParen | TokenKind::Comma | TokenKind::LeftBrace) =
            (&ty, self.peek())
        {
            return self.report_type_as_name(ty, "a result");
        }
        let name = self.tensor_name("a result")?;
        let stored = self.stored(&name, ty.as_mut())?;
        Ok(Declaration { ty, name, stored })
    }

    /// Reports a type in the place of a name.
    fn report_type_as_name<T>(&mut self, ty: &Type, what: &str) -> Parse<T> {
        let text = ty.span.text(self.source);
        let word = text.split('(').next().unwrap_or_default().trim_end().to_owned();
        let message = format!("`{word}` is a type and cannot name {what}");
        let help = other_name_than_type(&word, ty.dtype);
        self.report(Diagnostic::error(Code::Syntax, ty.span, message).help(help))
    }

    fn ty(&mut self) -> Parse<Type> {
        let start = self.span();
        let element = match self.peek() {
            TokenKind::Word(text) => self.element_type(text),
            _ => None,
        };
        let Some((dtype, parameter)) = element else {
            return self.report_expected("a type");
        };
        self.advance();
        let dims: Vec<Expr> = match *self.peek() == TokenKind::LeftParen {
            true => {
                self.advance();
                self.list("a size", Self::expr)?
            }
            false => Vec::new(),
        };
        Ok(Type { dtype, parameter, dims, span: start.to(self.previous_span()) })
    }
}

/// The help for a type in the place of a name.
fn other_name_than_type(word: &str, dtype: DType) -> String {
    match dtype.name() == word {
        true => "choose another name".to_owned(),
        false => format!("`{word}` is the type {dtype}; choose another name, such as `{word}_size`"),
    }
}

/// Words that cannot be names. `in`, `const`, `exists`, `requires` and `stored` can be names:
/// existing programs call their input `in`.
fn is_reserved(word: &str) -> bool {
    matches!(word, "def" | "where" | "for")
        || expression::literal_word(word).is_some()
        || type_named(word).is_some()
}
