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
const MAX_NESTING: usize = 24;

/// A word without its quotes. A character that a shell would act on is one of the marks below; a quoted one is itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShellWord(pub String);

/// Stands for a `$` before `{NAME}` or `(COMMANDS)`.
pub(crate) const DOLLAR_MARK: char = '\u{1}';
pub(crate) const STAR_MARK: char = '\u{2}';
pub(crate) const QUESTION_MARK: char = '\u{3}';
pub(crate) const BRACKET_MARK: char = '\u{4}';
pub(crate) const TILDE_MARK: char = '\u{5}';

impl ShellWord {
    /// The word with its marks turned back into characters, for comparisons and messages.
    pub fn to_plain_text(&self) -> String {
        self.0.chars().map(unmark_char).collect()
    }
}

/// Turns a mark back into the character it stands for.
pub(crate) fn unmark_char(mark: char) -> char {
    match mark {
        DOLLAR_MARK => '$',
        STAR_MARK => '*',
        QUESTION_MARK => '?',
        BRACKET_MARK => '[',
        TILDE_MARK => '~',
        // These marks stand for unknown values in expansions.
        '\u{6}'..='\u{8}' => '…',
        ordinary_char => ordinary_char,
    }
}

/// A step of a script, in the order of execution.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScriptItem {
    Call(ShellCall),
    /// A subshell or a substitution begins: what it changes is forgotten when it ends.
    EnterSubshell,
    LeaveSubshell,
}

/// One simple command with its words and redirections.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ShellCall {
    pub assignments: Vec<(String, ShellWord)>,
    pub words: Vec<ShellWord>,
    /// The files that its output is redirected to.
    pub output_files: Vec<ShellWord>,
    /// Its input, if the command line itself contains it (a here-document or a here-string).
    pub stdin_text: Option<String>,
    /// The number of its pipeline; calls of one pipeline share it.
    pub pipeline_number: usize,
    pub is_background: bool,
}

impl ShellCall {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.assignments.is_empty() && self.output_files.is_empty()
    }
}

/// A parsed command line.
#[derive(Debug, Default)]
pub(crate) struct ShellScript {
    pub items: Vec<ScriptItem>,
    /// The names of the functions that the script defines.
    pub functions: Vec<String>,
}

pub(crate) fn parse_script(script_text: &str) -> ShellScript {
    let mut parser = ShellParser::new(script_text, 0);
    parser.parse_list(false);
    parser.script
}

struct ShellParser<'t> {
    source_text: &'t str,
    offset: usize,
    depth: usize,
    script: ShellScript,
    current_call: ShellCall,
    /// The last number given to a pipeline.
    last_pipeline: usize,
    pending_documents: Vec<HereDocument>,
}

/// A here-document whose text begins after the current line.
struct HereDocument {
    delimiter: String,
    strips_tabs: bool,
    /// The index of the call it belongs to, once that call is complete.
    item_index: Option<usize>,
}

impl<'t> ShellParser<'t> {
    fn new(source_text: &'t str, depth: usize) -> ShellParser<'t> {
        ShellParser {
            source_text,
            offset: 0,
            depth,
            script: ShellScript::default(),
            current_call: ShellCall::default(),
            last_pipeline: 0,
            pending_documents: Vec::new(),
        }
    }

    fn remaining_text(&self) -> &'t str {
        self.source_text.get(self.offset..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.remaining_text().chars().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.remaining_text().chars().nth(1)
    }

    fn bump(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.offset += character.len_utf8();
        Some(character)
    }

    fn skip_chars(&mut self, count: usize) {
        for _ in 0..count {
            self.bump();
        }
    }

    /// Reads commands up to the end of the text, or up to the bracket that ends a substitution.
    fn parse_list(&mut self, is_substitution: bool) {
        // Inside `case` a closing bracket ends a pattern and not the substitution, so open `case` statements are counted.
        let mut open_cases = 0_usize;
        loop {
            match self.peek() {
                None => return self.finish_call(false),
                Some(' ' | '\t' | '\r') => self.skip_chars(1),
                // A backslash at the end of a line joins it with the next one.
                Some('\\') if self.peek_second() == Some('\n') => self.skip_chars(2),
                Some('\n') => {
                    self.finish_call(false);
                    self.skip_chars(1);
                    // The texts of here-documents begin on the line after the command.
                    self.read_here_documents();
                }
                Some(';') => {
                    self.finish_call(false);
                    self.skip_chars(1);
                }
                Some('#') => self.skip_comment(),
                Some('&' | '|') => self.parse_operator(),
                // `<(` and `>(` are process substitutions and part of a word.
                Some('<' | '>') if self.peek_second() != Some('(') && !self.is_in_test() => self.parse_redirect(),
                Some('(') => self.parse_bracket(),
                Some(')') => {
                    self.skip_chars(1);
                    if is_substitution && open_cases == 0 {
                        return self.finish_call(false);
                    }
                    self.discard_case_pattern();
                }
                Some(_) => {
                    let word = self.parse_word();
                    match word.0.as_str() {
                        "case" if self.current_call.is_empty() => open_cases += 1,
                        "esac" if self.current_call.is_empty() => open_cases = open_cases.saturating_sub(1),
                        _ => {}
                    }
                    self.accept_word(word);
                }
            }
        }
    }

    /// Whether the current call is a `[[ … ]]` test, in which `>` compares.
    fn is_in_test(&self) -> bool {
        self.current_call.words.first().is_some_and(|word| word.0 == "[[")
    }

    fn skip_comment(&mut self) {
        self.offset += self.remaining_text().find('\n').unwrap_or(self.remaining_text().len());
    }

    /// Reads an operator: `&`, `&&`, `&>`, `|`, `||`, `|&`.
    fn parse_operator(&mut self) {
        match (self.bump(), self.peek()) {
            (Some('&'), Some('>')) => self.parse_redirect(),
            (Some('&'), Some('&')) | (Some('|'), Some('|')) => {
                self.skip_chars(1);
                self.finish_call(false);
            }
            (Some('&'), _) => {
                self.current_call.is_background = true;
                self.finish_call(false);
            }
            // `|&` is a pipe that also carries standard error.
            (_, next_char) => {
                if next_char == Some('&') {
                    self.skip_chars(1);
                }
                self.finish_call(true);
            }
        }
    }

    /// Completes the current call; the next one belongs to the same pipeline or begins another.
    fn finish_call(&mut self, is_piped: bool) {
        let pipeline_number = self.current_call.pipeline_number;
        let finished_call = take(&mut self.current_call);
        if !finished_call.is_empty() {
            let call_index = self.script.items.len();
            // The documents announced in this call now know which item gets their text.
            self.pending_documents
                .iter_mut()
                .filter(|document| document.item_index.is_none())
                .for_each(|document| document.item_index = Some(call_index));
            self.script.items.push(ScriptItem::Call(finished_call));
        }
        if !is_piped {
            self.last_pipeline += 1;
        }
        self.current_call.pipeline_number = if is_piped { pipeline_number } else { self.last_pipeline };
    }

    /// Discards the pattern before the bracket in `case x in a | b) …`, which was read as calls.
    fn discard_case_pattern(&mut self) {
        let pipeline_number = self.current_call.pipeline_number;
        while let Some(ScriptItem::Call(call)) = self.script.items.last()
            && call.pipeline_number == pipeline_number
        {
            self.script.items.pop();
        }
        self.current_call = ShellCall::default();
        self.finish_call(false);
    }

    /// Reads a bracket: of a function definition, of arithmetic, or of a subshell.
    fn parse_bracket(&mut self) {
        self.skip_chars(1);
        // `name()` defines a function. Its body is read like any other commands, although it runs only when the function is
        // called.
        if self.remaining_text().trim_start_matches([' ', '\t']).starts_with(')')
            && let [function_name] = self.current_call.words.as_slice()
        {
            self.script.functions.push(function_name.to_plain_text());
            self.current_call =
                ShellCall { pipeline_number: self.current_call.pipeline_number, ..ShellCall::default() };
            while self.bump() != Some(')') {}
            return;
        }
        if self.current_call.is_empty() && self.peek() == Some('(') {
            return self.skip_arithmetic(1);
        }
        self.finish_call(false);
        self.parse_nested();
    }

    /// Skips everything up to the closing bracket.
    fn skip_arithmetic(&mut self, mut open_brackets: usize) {
        while open_brackets > 0 {
            match self.bump() {
                Some('(') => open_brackets += 1,
                Some(')') => open_brackets -= 1,
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Reads commands in brackets; the opening bracket was already read.
    fn parse_nested(&mut self) {
        // The remaining text is given up, so that hostile input cannot overflow the stack.
        if self.depth >= MAX_NESTING {
            self.offset = self.source_text.len();
            return;
        }
        // The outer call is still incomplete (`echo $(ls) x`); it goes on after the bracket.
        let outer_call = take(&mut self.current_call);
        self.last_pipeline += 1;
        self.current_call.pipeline_number = self.last_pipeline;
        self.script.items.push(ScriptItem::EnterSubshell);
        self.depth += 1;
        self.parse_list(true);
        self.depth -= 1;
        self.script.items.push(ScriptItem::LeaveSubshell);
        self.current_call = outer_call;
    }

    /// Reads the texts of the announced here-documents, in the order in which they were announced.
    fn read_here_documents(&mut self) {
        for document in take(&mut self.pending_documents) {
            let mut document_text = String::new();
            while !self.remaining_text().is_empty() {
                let line = self.remaining_text().split_inclusive('\n').next().unwrap_or_default();
                self.offset += line.len();
                let trimmed_line = line.trim_end_matches(['\n', '\r']);
                // `<<-` ignores leading tabs, also before the delimiter.
                let trimmed_line =
                    if document.strips_tabs { trimmed_line.trim_start_matches('\t') } else { trimmed_line };
                if trimmed_line == document.delimiter {
                    break;
                }
                document_text.push_str(line);
            }
            if let Some(ScriptItem::Call(call)) = document.item_index.and_then(|index| self.script.items.get_mut(index))
            {
                call.stdin_text = Some(document_text);
            }
        }
    }

    /// Reads a redirection with its target: `>`, `>>`, `>|`, `>&`, `<`, `<>`, `<<`, `<<-`, `<<<`.
    fn parse_redirect(&mut self) {
        let start_offset = self.offset;
        while let Some('<' | '>' | '|' | '&') = self.peek() {
            self.skip_chars(1);
        }
        let redirect_operator = self.source_text.get(start_offset..self.offset).unwrap_or_default();
        let strips_tabs = redirect_operator == "<<" && self.peek() == Some('-');
        if strips_tabs {
            self.skip_chars(1);
        }
        while let Some(' ' | '\t') = self.peek() {
            self.skip_chars(1);
        }
        let word = self.parse_word();
        match redirect_operator {
            "<<" => self.pending_documents.push(HereDocument {
                delimiter: word.to_plain_text(),
                strips_tabs,
                item_index: None,
            }),
            "<<<" => self.current_call.stdin_text = Some(word.to_plain_text()),
            // `2>&1` and `>&-` redirect to a descriptor, not to a file.
            ">&" if word.0.chars().all(|digit| digit.is_ascii_digit() || digit == '-') => {}
            _ if redirect_operator.contains('>') && !word.0.is_empty() => self.current_call.output_files.push(word),
            _ => {}
        }
    }

    /// Adds a word to the current call: as an assignment, as a word, or not at all.
    fn accept_word(&mut self, word: ShellWord) {
        const RESERVED: [&str; 14] =
            ["if", "then", "else", "elif", "fi", "do", "done", "while", "until", "case", "esac", "!", "{", "}"];
        let current_call = &mut self.current_call;
        let is_number = !word.0.is_empty() && word.0.chars().all(|character| character.is_ascii_digit());
        if is_number
            && matches!(self.source_text.get(self.offset..).and_then(|rest| rest.chars().next()), Some('<' | '>'))
        {
            // In `2> file` the number is a descriptor and not a word.
            return;
        }
        // Reserved words are such only at the start of a command; `echo done` has a plain argument.
        if current_call.words.is_empty() && current_call.assignments.is_empty() && RESERVED.contains(&word.0.as_str()) {
            return;
        }
        match parse_assignment(&word).filter(|_| current_call.words.is_empty()) {
            Some((variable_name, value)) => current_call.assignments.push((variable_name, value)),
            None => current_call.words.push(word),
        }
    }
}

/// Splits an assignment, `NAME=VALUE`; `None` means that the word is not an assignment.
pub(crate) fn parse_assignment(word: &ShellWord) -> Option<(String, ShellWord)> {
    let (variable_name, value) = word.0.split_once('=')?;
    // `NAME+=VALUE` appends; for the guard the new part counts as the value.
    let variable_name = variable_name.strip_suffix('+').unwrap_or(variable_name);
    let first_char = variable_name.chars().next()?;
    let is_valid_name = (first_char.is_ascii_alphabetic() || first_char == '_')
        && variable_name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    is_valid_name.then(|| (variable_name.to_string(), ShellWord(value.to_string())))
}
