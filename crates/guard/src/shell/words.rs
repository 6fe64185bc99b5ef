//! Reads words with their quotes, variables and substitutions.

use alloc::string::String;

use super::{DEEPEST, DOLLAR, Item, ONE, Parser, SET, STAR, TILDE, Word};

/// The number of characters of a substitution that are kept in its word.
const KEPT: usize = 200;

impl Parser<'_> {
    /// Reads one word, up to a blank or an operator.
    pub(super) fn word(&mut self) -> Word {
        let mut word = String::new();
        let start = self.at;
        while let Some(next) = self.peek() {
            match next {
                '<' | '>' if self.second() == Some('(') => {
                    self.skip(2);
                    self.substitution(&mut word);
                }
                // `x=( … )` is an array; its elements are not commands.
                '(' if word.ends_with('=') => {
                    self.skip(1);
                    self.arithmetic(1);
                }
                // In a test this is a comparison. Without consuming it the parser would never advance.
                '<' | '>' if self.at == start && self.in_test() => {
                    self.skip(1);
                    word.push(next);
                }
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                _ => {
                    self.skip(1);
                    self.piece(next, &mut word);
                }
            }
        }
        Word(word)
    }

    /// Handles a character outside of quotes that was already read, with everything it introduces.
    fn piece(&mut self, next: char, word: &mut String) {
        match next {
            '\\' => match self.bump() {
                Some('\n') | None => {}
                Some(escaped) => literal(escaped, word),
            },
            '\'' => {
                let end = self.rest().find('\'').unwrap_or(self.rest().len());
                self.rest().chars().take_while(|inner| *inner != '\'').for_each(|inner| literal(inner, word));
                self.at = (self.at + end + 1).min(self.text.len());
            }
            '"' => self.double(word),
            '`' => self.backticks(word),
            '$' if self.peek() == Some('\'') => {
                self.skip(1);
                self.ansi(word);
            }
            // `$"…"` is a translatable string: the quotes that follow are read as usual.
            '$' if self.peek() == Some('"') => {}
            '$' => self.dollar(word),
            '*' => word.push(STAR),
            '?' => word.push(ONE),
            // `[` and `[[` are commands and not wildcards.
            '[' if word == "[" || word.is_empty() && matches!(self.peek(), None | Some(' ' | '[')) => {
                word.push('[')
            }
            '[' => word.push(SET),
            // A tilde is the home directory only at the start of a word or of an assigned value.
            '~' if word.is_empty() || word.ends_with('=') => word.push(TILDE),
            other => literal(other, word),
        }
    }

    /// Reads the inside of double quotes, where variables and substitutions still count.
    fn double(&mut self, word: &mut String) {
        while let Some(next) = self.bump() {
            match next {
                '"' => return,
                '$' => self.dollar(word),
                '`' => self.backticks(word),
                '\\' => match self.bump() {
                    Some('\n') | None => {}
                    // In double quotes a backslash escapes only these characters; before others it is itself.
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => literal(escaped, word),
                    Some(other) => {
                        word.push('\\');
                        literal(other, word);
                    }
                },
                other => literal(other, word),
            }
        }
    }

    /// Reads the inside of `$'…'`.
    fn ansi(&mut self, word: &mut String) {
        while let Some(next) = self.bump() {
            match next {
                '\'' => return,
                '\\' => match self.bump() {
                    // The exact character does not matter for any check. Other escapes are taken for their letter.
                    Some('n' | 't' | 'r') => word.push(' '),
                    Some(escaped) => literal(escaped, word),
                    None => {}
                },
                other => literal(other, word),
            }
        }
    }

    /// Reads what follows a `$`.
    fn dollar(&mut self, word: &mut String) {
        match self.peek() {
            Some('(') if self.second() == Some('(') => {
                self.skip(2);
                self.arithmetic(2);
                word.push_str("\u{1}{#}");
            }
            Some('(') => {
                self.skip(1);
                self.substitution(word);
            }
            Some('{') => {
                self.skip(1);
                let inner = self.rest().split('}').next().unwrap_or_default();
                self.at = (self.at + inner.len() + 1).min(self.text.len());
                variable(inner, word);
            }
            Some(first) if first.is_ascii_alphabetic() || first == '_' => {
                let rest = self.rest();
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                let name = rest.get(..end).unwrap_or_default();
                self.at += name.len();
                variable(name, word);
            }
            // The values of special parameters are unknown, and so is the result of arithmetic: both are an unnamed variable.
            Some(special) if special.is_ascii_digit() || "?$@*#!-".contains(special) => {
                self.skip(1);
                word.push_str("\u{1}{#}");
            }
            _ => word.push('$'),
        }
    }

    /// Reads what follows `$(`; the commands in it are calls like any others.
    fn substitution(&mut self, word: &mut String) {
        let start = self.at;
        self.nested();
        let inner = self.text.get(start..self.at).unwrap_or_default();
        substituted(inner.strip_suffix(')').unwrap_or(inner), word);
    }

    /// Reads a substitution in backticks, with a parser of its own because escapes must be removed from its text first.
    fn backticks(&mut self, word: &mut String) {
        let mut inner = String::new();
        while let Some(next) = self.bump() {
            match next {
                '`' => break,
                '\\' => match self.bump() {
                    Some(escaped @ ('`' | '\\' | '$')) => inner.push(escaped),
                    Some(other) => inner.extend(['\\', other]),
                    None => {}
                },
                other => inner.push(other),
            }
        }
        substituted(&inner, word);
        // The word keeps its text even if the nesting is too deep for its commands to be read.
        if self.depth >= DEEPEST {
            return;
        }
        let mut parser = Parser::new(&inner, self.depth + 1);
        // Pipeline numbers go on, so that calls inside and outside never share one by accident.
        parser.pipelines = self.pipelines + 1;
        parser.call.pipeline = parser.pipelines;
        parser.list(false);
        self.pipelines = parser.pipelines;
        self.script.items.push(Item::Enter);
        self.script.items.append(&mut parser.script.items);
        self.script.items.push(Item::Leave);
    }
}

/// Adds a character of the text; one that looks like a mark is replaced.
fn literal(inner: char, word: &mut String) {
    word.push(if inner < '\t' { '\u{fffd}' } else { inner });
}

/// Adds a variable to the word, as a mark and `{NAME}`.
fn variable(name: &str, word: &mut String) {
    word.extend([DOLLAR, '{']);
    name.chars().take(KEPT).filter(|inner| *inner != '}').for_each(|inner| literal(inner, word));
    word.push('}');
}

/// Adds a command substitution to the word, as a mark and `(COMMANDS)`.
fn substituted(inner: &str, word: &mut String) {
    // Without a command there is no output, and the word around it is all there is.
    if inner.trim().is_empty() {
        return;
    }
    word.extend([DOLLAR, '(']);
    inner.chars().take(KEPT).filter(|inner| *inner != ')').for_each(|inner| literal(inner, word));
    word.push(')');
}
