//! A command line, split as a shell would split it.
//!
//! Quotes, substitutions, subshells, pipes, redirections, comments and here-documents are told apart, so that a mention is no
//! call. What a shell would make of a character that means something to it (`$`, `*`, `~`) is only marked, see [`Word`].
//! Nothing is expanded and nothing is run; what cannot be read is left out. Arithmetic, arrays and patterns of `case` are passed
//! over.

mod words;

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::mem::take;

/// Deeper than this nobody nests by hand; the rest is not read.
const DEEPEST: usize = 24;

/// A word without its quotes. What a shell would act on is one of the marks below; the same character between quotes is itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word(pub String);

/// `$`, before `{NAME}` or `(COMMANDS)`.
pub(crate) const DOLLAR: char = '\u{1}';
pub(crate) const STAR: char = '\u{2}';
pub(crate) const ONE: char = '\u{3}';
pub(crate) const SET: char = '\u{4}';
pub(crate) const TILDE: char = '\u{5}';

impl Word {
    /// As it was meant, for comparing and for showing.
    pub fn plain(&self) -> String {
        self.0.chars().map(unmarked).collect()
    }
}

pub(crate) fn unmarked(mark: char) -> char {
    match mark {
        DOLLAR => '$',
        STAR => '*',
        ONE => '?',
        SET => '[',
        TILDE => '~',
        // What is not known, in a reading.
        '\u{6}'..='\u{8}' => '…',
        other => other,
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Call(Call),
    /// A subshell or a substitution begins: what it changes is forgotten when it ends.
    Enter,
    Leave,
}

/// One command with its words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub sets: Vec<(String, Word)>,
    pub words: Vec<Word>,
    /// Files that its output goes to.
    pub into: Vec<Word>,
    /// What its input is, where that stands in the command line.
    pub fed: Option<String>,
    /// Calls of one pipeline have the same number.
    pub pipeline: usize,
    pub background: bool,
}

impl Call {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.sets.is_empty() && self.into.is_empty()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Script {
    pub items: Vec<Item>,
    /// Names of functions that it defines.
    pub functions: Vec<String>,
}

pub(crate) fn parse(text: &str) -> Script {
    let mut parser = Parser::new(text, 0);
    parser.list(false);
    parser.script
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    script: Script,
    call: Call,
    /// The last number given to a pipeline.
    pipelines: usize,
    here: Vec<Here>,
}

/// A here-document that begins after this line.
struct Here {
    end: String,
    tabs: bool,
    /// The item it belongs to, once that is complete.
    of: Option<usize>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, depth: usize) -> Parser<'t> {
        Parser {
            text,
            at: 0,
            depth,
            script: Script::default(),
            call: Call::default(),
            pipelines: 0,
            here: Vec::new(),
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.bump();
        }
    }

    /// Commands up to the end of the text, or to the bracket that ends a substitution.
    fn list(&mut self, inner: bool) {
        let mut cases = 0_usize;
        loop {
            match self.peek() {
                None => return self.finish(false),
                Some(' ' | '\t' | '\r') => self.skip(1),
                Some('\\') if self.second() == Some('\n') => self.skip(2),
                Some('\n') => {
                    self.finish(false);
                    self.skip(1);
                    self.here_documents();
                }
                Some(';') => {
                    self.finish(false);
                    self.skip(1);
                }
                Some('#') => self.comment(),
                Some('&' | '|') => self.operator(),
                Some('<' | '>') if self.second() != Some('(') && !self.in_test() => self.redirect(),
                Some('(') => self.bracket(),
                Some(')') => {
                    self.skip(1);
                    if inner && cases == 0 {
                        return self.finish(false);
                    }
                    self.forget_pattern();
                }
                Some(_) => {
                    let word = self.word();
                    match word.0.as_str() {
                        "case" if self.call.is_empty() => cases += 1,
                        "esac" if self.call.is_empty() => cases = cases.saturating_sub(1),
                        _ => {}
                    }
                    self.take_word(word);
                }
            }
        }
    }

    /// `[[ a > b ]]` compares.
    fn in_test(&self) -> bool {
        self.call.words.first().is_some_and(|word| word.0 == "[[")
    }

    fn comment(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    /// `&`, `&&`, `&>`, `|`, `||`, `|&`.
    fn operator(&mut self) {
        match (self.bump(), self.peek()) {
            (Some('&'), Some('>')) => self.redirect(),
            (Some('&'), Some('&')) | (Some('|'), Some('|')) => {
                self.skip(1);
                self.finish(false);
            }
            (Some('&'), _) => {
                self.call.background = true;
                self.finish(false);
            }
            (_, and) => {
                if and == Some('&') {
                    self.skip(1);
                }
                self.finish(true);
            }
        }
    }

    /// What was read so far is a call; what follows belongs to its pipeline or begins another.
    fn finish(&mut self, pipe: bool) {
        let pipeline = self.call.pipeline;
        let call = take(&mut self.call);
        if !call.is_empty() {
            let index = self.script.items.len();
            self.here.iter_mut().filter(|here| here.of.is_none()).for_each(|here| here.of = Some(index));
            self.script.items.push(Item::Call(call));
        }
        if !pipe {
            self.pipelines += 1;
        }
        self.call.pipeline = if pipe { pipeline } else { self.pipelines };
    }

    /// What stands before the bracket in `case x in a | b) …`.
    fn forget_pattern(&mut self) {
        let pipeline = self.call.pipeline;
        while let Some(Item::Call(call)) = self.script.items.last()
            && call.pipeline == pipeline
        {
            self.script.items.pop();
        }
        self.call = Call::default();
        self.finish(false);
    }

    /// A function's brackets, arithmetic, or a subshell.
    fn bracket(&mut self) {
        self.skip(1);
        if self.rest().trim_start_matches([' ', '\t']).starts_with(')')
            && let [name] = self.call.words.as_slice()
        {
            self.script.functions.push(name.plain());
            self.call = Call { pipeline: self.call.pipeline, ..Call::default() };
            while self.bump() != Some(')') {}
            return;
        }
        if self.call.is_empty() && self.peek() == Some('(') {
            return self.arithmetic(1);
        }
        self.finish(false);
        self.nested();
    }

    /// Passes over everything up to the closing bracket.
    fn arithmetic(&mut self, mut open: usize) {
        while open > 0 {
            match self.bump() {
                Some('(') => open += 1,
                Some(')') => open -= 1,
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Commands in brackets, the first of which was read.
    fn nested(&mut self) {
        if self.depth >= DEEPEST {
            self.at = self.text.len();
            return;
        }
        let outer = take(&mut self.call);
        self.pipelines += 1;
        self.call.pipeline = self.pipelines;
        self.script.items.push(Item::Enter);
        self.depth += 1;
        self.list(true);
        self.depth -= 1;
        self.script.items.push(Item::Leave);
        self.call = outer;
    }

    fn here_documents(&mut self) {
        for here in take(&mut self.here) {
            let mut body = String::new();
            while !self.rest().is_empty() {
                let line = self.rest().split_inclusive('\n').next().unwrap_or_default();
                self.at += line.len();
                let bare = line.trim_end_matches(['\n', '\r']);
                let bare = if here.tabs { bare.trim_start_matches('\t') } else { bare };
                if bare == here.end {
                    break;
                }
                body.push_str(line);
            }
            if let Some(Item::Call(call)) = here.of.and_then(|index| self.script.items.get_mut(index)) {
                call.fed = Some(body);
            }
        }
    }

    /// `>`, `>>`, `>|`, `>&`, `<`, `<>`, `<<`, `<<-`, `<<<`, with what follows.
    fn redirect(&mut self) {
        let start = self.at;
        while let Some('<' | '>' | '|' | '&') = self.peek() {
            self.skip(1);
        }
        let sign = self.text.get(start..self.at).unwrap_or_default();
        let tabs = sign == "<<" && self.peek() == Some('-');
        if tabs {
            self.skip(1);
        }
        while let Some(' ' | '\t') = self.peek() {
            self.skip(1);
        }
        let word = self.word();
        match sign {
            "<<" => self.here.push(Here { end: word.plain(), tabs, of: None }),
            "<<<" => self.call.fed = Some(word.plain()),
            ">&" if word.0.chars().all(|digit| digit.is_ascii_digit() || digit == '-') => {}
            _ if sign.contains('>') && !word.0.is_empty() => self.call.into.push(word),
            _ => {}
        }
    }

    fn take_word(&mut self, word: Word) {
        const RESERVED: [&str; 14] = [
            "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "case", "esac", "!", "{", "}",
        ];
        let call = &mut self.call;
        let number = !word.0.is_empty() && word.0.chars().all(|digit| digit.is_ascii_digit());
        if number && matches!(self.text.get(self.at..).and_then(|rest| rest.chars().next()), Some('<' | '>'))
        {
            // `2> file`: the number is no word.
            return;
        }
        if call.words.is_empty() && call.sets.is_empty() && RESERVED.contains(&word.0.as_str()) {
            return;
        }
        match assignment(&word).filter(|_| call.words.is_empty()) {
            Some((name, value)) => call.sets.push((name, value)),
            None => call.words.push(word),
        }
    }
}

/// `NAME=VALUE`.
pub(crate) fn assignment(word: &Word) -> Option<(String, Word)> {
    let (name, value) = word.0.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let first = name.chars().next()?;
    let named = (first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|inner| inner.is_ascii_alphanumeric() || inner == '_');
    named.then(|| (name.to_string(), Word(value.to_string())))
}
