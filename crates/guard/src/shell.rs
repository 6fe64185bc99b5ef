//! Splits a command line as a shell would.
//!
//! The parser tells quotes, substitutions, subshells, pipes, redirections, comments and here-documents apart, so that a mention
//! of a command is not taken for a call. A character that means something to a shell (`$`, `*`, `~`) is only marked, see
//! [`ShellWord`]. Nothing is expanded and nothing is run; what the parser cannot read it leaves out. Arithmetic, arrays and
//! patterns of `case` are skipped.

mod words;

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::mem::take;

/// The limit on nested substitutions, far beyond what is written by hand; deeper text is not read.
const DEEPEST: usize = 24;

/// A word without its quotes. A character that a shell would act on is one of the marks below; a quoted one is itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word(pub String);

/// Stands for a `$` before `{NAME}` or `(COMMANDS)`.
pub(crate) const DOLLAR: char = '\u{1}';
pub(crate) const STAR: char = '\u{2}';
pub(crate) const ONE: char = '\u{3}';
pub(crate) const SET: char = '\u{4}';
pub(crate) const TILDE: char = '\u{5}';

impl Word {
    /// The word with its marks turned back into characters, for comparisons and messages.
    pub fn plain(&self) -> String {
        self.0.chars().map(unmarked).collect()
    }
}

/// Turns a mark back into the character it stands for.
pub(crate) fn unmarked(mark: char) -> char {
    match mark {
        DOLLAR => '$',
        STAR => '*',
        ONE => '?',
        SET => '[',
        TILDE => '~',
        // These marks stand for unknown values in expansions.
        '\u{6}'..='\u{8}' => '…',
        other => other,
    }
}

/// A step of a script, in the order of execution.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Call(Call),
    /// A subshell or a substitution begins: what it changes is forgotten when it ends.
    Enter,
    Leave,
}

/// One simple command with its words and redirections.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub sets: Vec<(String, Word)>,
    pub words: Vec<Word>,
    /// The files that its output is redirected to.
    pub into: Vec<Word>,
    /// Its input, if the command line itself contains it (a here-document or a here-string).
    pub fed: Option<String>,
    /// The number of its pipeline; calls of one pipeline share it.
    pub pipeline: usize,
    pub background: bool,
}

impl Call {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.sets.is_empty() && self.into.is_empty()
    }
}

/// A parsed command line.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub items: Vec<Item>,
    /// The names of the functions that the script defines.
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

/// A here-document whose text begins after the current line.
struct Here {
    end: String,
    tabs: bool,
    /// The index of the call it belongs to, once that call is complete.
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

    /// Reads commands up to the end of the text, or up to the bracket that ends a substitution.
    fn list(&mut self, inner: bool) {
        // Inside `case` a closing bracket ends a pattern and not the substitution, so open `case` statements are counted.
        let mut cases = 0_usize;
        loop {
            match self.peek() {
                None => return self.finish(false),
                Some(' ' | '\t' | '\r') => self.skip(1),
                // A backslash at the end of a line joins it with the next one.
                Some('\\') if self.second() == Some('\n') => self.skip(2),
                Some('\n') => {
                    self.finish(false);
                    self.skip(1);
                    // The texts of here-documents begin on the line after the command.
                    self.here_documents();
                }
                Some(';') => {
                    self.finish(false);
                    self.skip(1);
                }
                Some('#') => self.comment(),
                Some('&' | '|') => self.operator(),
                // `<(` and `>(` are process substitutions and part of a word.
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

    /// Whether the current call is a `[[ … ]]` test, in which `>` compares.
    fn in_test(&self) -> bool {
        self.call.words.first().is_some_and(|word| word.0 == "[[")
    }

    fn comment(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    /// Reads an operator: `&`, `&&`, `&>`, `|`, `||`, `|&`.
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
            // `|&` is a pipe that also carries standard error.
            (_, and) => {
                if and == Some('&') {
                    self.skip(1);
                }
                self.finish(true);
            }
        }
    }

    /// Completes the current call; the next one belongs to the same pipeline or begins another.
    fn finish(&mut self, pipe: bool) {
        let pipeline = self.call.pipeline;
        let call = take(&mut self.call);
        if !call.is_empty() {
            let index = self.script.items.len();
            // The documents announced in this call now know which item gets their text.
            self.here.iter_mut().filter(|here| here.of.is_none()).for_each(|here| here.of = Some(index));
            self.script.items.push(Item::Call(call));
        }
        if !pipe {
            self.pipelines += 1;
        }
        self.call.pipeline = if pipe { pipeline } else { self.pipelines };
    }

    /// Discards the pattern before the bracket in `case x in a | b) …`, which was read as calls.
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

    /// Reads a bracket: of a function definition, of arithmetic, or of a subshell.
    fn bracket(&mut self) {
        self.skip(1);
        // `name()` defines a function. Its body is read like any other commands, although it runs only when the function is
        // called.
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

    /// Skips everything up to the closing bracket.
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

    /// Reads commands in brackets; the opening bracket was already read.
    fn nested(&mut self) {
        // The remaining text is given up, so that hostile input cannot overflow the stack.
        if self.depth >= DEEPEST {
            self.at = self.text.len();
            return;
        }
        // The outer call is still incomplete (`echo $(ls) x`); it goes on after the bracket.
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

    /// Reads the texts of the announced here-documents, in the order in which they were announced.
    fn here_documents(&mut self) {
        for here in take(&mut self.here) {
            let mut body = String::new();
            while !self.rest().is_empty() {
                let line = self.rest().split_inclusive('\n').next().unwrap_or_default();
                self.at += line.len();
                let bare = line.trim_end_matches(['\n', '\r']);
                // `<<-` ignores leading tabs, also before the delimiter.
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

    /// Reads a redirection with its target: `>`, `>>`, `>|`, `>&`, `<`, `<>`, `<<`, `<<-`, `<<<`.
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
            // `2>&1` and `>&-` redirect to a descriptor, not to a file.
            ">&" if word.0.chars().all(|digit| digit.is_ascii_digit() || digit == '-') => {}
            _ if sign.contains('>') && !word.0.is_empty() => self.call.into.push(word),
            _ => {}
        }
    }

    /// Adds a word to the current call: as an assignment, as a word, or not at all.
    fn take_word(&mut self, word: Word) {
        const RESERVED: [&str; 14] = [
            "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "case", "esac", "!", "{", "}",
        ];
        let call = &mut self.call;
        let number = !word.0.is_empty() && word.0.chars().all(|digit| digit.is_ascii_digit());
        if number && matches!(self.text.get(self.at..).and_then(|rest| rest.chars().next()), Some('<' | '>'))
        {
            // In `2> file` the number is a descriptor and not a word.
            return;
        }
        // Reserved words are such only at the start of a command; `echo done` has a plain argument.
        if call.words.is_empty() && call.sets.is_empty() && RESERVED.contains(&word.0.as_str()) {
            return;
        }
        match assignment(&word).filter(|_| call.words.is_empty()) {
            Some((name, value)) => call.sets.push((name, value)),
            None => call.words.push(word),
        }
    }
}

/// Splits an assignment, `NAME=VALUE`; `None` means that the word is none.
pub(crate) fn assignment(word: &Word) -> Option<(String, Word)> {
    let (name, value) = word.0.split_once('=')?;
    // `NAME+=VALUE` appends; for the guard the new part counts as the value.
    let name = name.strip_suffix('+').unwrap_or(name);
    let first = name.chars().next()?;
    let named = (first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|inner| inner.is_ascii_alphanumeric() || inner == '_');
    named.then(|| (name.to_string(), Word(value.to_string())))
}
