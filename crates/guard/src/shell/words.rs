//! Reads words with their quotes, variables and substitutions.

use alloc::string::String;

use super::{
    BRACKET_MARK, DOLLAR_MARK, MAX_NESTING, QUESTION_MARK, STAR_MARK, ScriptItem, ShellParser, ShellWord, TILDE_MARK,
};

/// The number of characters of a substitution that are kept in its word.
const MAX_EXPANSION_CHARS: usize = 200;

impl ShellParser<'_> {
    /// Reads one word, up to a blank or an operator.
    pub(super) fn parse_word(&mut self) -> ShellWord {
        let mut word_text = String::new();
        let start_offset = self.offset;
        while let Some(character) = self.peek() {
            match character {
                '<' | '>' if self.peek_second() == Some('(') => {
                    self.skip_chars(2);
                    self.parse_substitution(&mut word_text);
                }
                // `x=( … )` is an array; its elements are not commands.
                '(' if word_text.ends_with('=') => {
                    self.skip_chars(1);
                    self.skip_arithmetic(1);
                }
                // In a test this is a comparison. Without consuming it the parser would never advance.
                '<' | '>' if self.offset == start_offset && self.is_in_test() => {
                    self.skip_chars(1);
                    word_text.push(character);
                }
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                _ => {
                    self.skip_chars(1);
                    self.parse_unquoted(character, &mut word_text);
                }
            }
        }
        ShellWord(word_text)
    }

    /// Handles a character outside of quotes that was already read, with everything it introduces.
    fn parse_unquoted(&mut self, first_char: char, word_text: &mut String) {
        match first_char {
            '\\' => match self.bump() {
                Some('\n') | None => {}
                Some(escaped) => push_literal(escaped, word_text),
            },
            '\'' => {
                let quoted_length = self.remaining_text().find('\'').unwrap_or(self.remaining_text().len());
                self.remaining_text()
                    .chars()
                    .take_while(|character| *character != '\'')
                    .for_each(|character| push_literal(character, word_text));
                self.offset = (self.offset + quoted_length + 1).min(self.source_text.len());
            }
            '"' => self.parse_double_quoted(word_text),
            '`' => self.parse_backticks(word_text),
            '$' if self.peek() == Some('\'') => {
                self.skip_chars(1);
                self.parse_ansi_quoted(word_text);
            }
            // `$"…"` is a translatable string: the quotes that follow are read as usual.
            '$' if self.peek() == Some('"') => {}
            '$' => self.parse_dollar(word_text),
            '*' => word_text.push(STAR_MARK),
            '?' => word_text.push(QUESTION_MARK),
            // `[` and `[[` are commands and not wildcards.
            '[' if word_text == "[" || word_text.is_empty() && matches!(self.peek(), None | Some(' ' | '[')) => {
                word_text.push('[')
            }
            '[' => word_text.push(BRACKET_MARK),
            // A tilde is the home directory only at the start of a word or of an assigned value.
            '~' if word_text.is_empty() || word_text.ends_with('=') => word_text.push(TILDE_MARK),
            plain_char => push_literal(plain_char, word_text),
        }
    }

    /// Reads the inside of double quotes, where variables and substitutions still count.
    fn parse_double_quoted(&mut self, word_text: &mut String) {
        while let Some(character) = self.bump() {
            match character {
                '"' => return,
                '$' => self.parse_dollar(word_text),
                '`' => self.parse_backticks(word_text),
                '\\' => match self.bump() {
                    Some('\n') | None => {}
                    // In double quotes a backslash escapes only these characters; before others it is itself.
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => push_literal(escaped, word_text),
                    Some(plain_char) => {
                        word_text.push('\\');
                        push_literal(plain_char, word_text);
                    }
                },
                plain_char => push_literal(plain_char, word_text),
            }
        }
    }

    /// Reads the inside of `$'…'`.
    fn parse_ansi_quoted(&mut self, word_text: &mut String) {
        while let Some(character) = self.bump() {
            match character {
                '\'' => return,
                '\\' => match self.bump() {
                    // The exact character does not matter for any check. Other escapes are taken for their letter.
                    Some('n' | 't' | 'r') => word_text.push(' '),
                    Some(escaped) => push_literal(escaped, word_text),
                    None => {}
                },
                plain_char => push_literal(plain_char, word_text),
            }
        }
    }

    /// Reads what follows a `$`.
    fn parse_dollar(&mut self, word_text: &mut String) {
        match self.peek() {
            Some('(') if self.peek_second() == Some('(') => {
                self.skip_chars(2);
                self.skip_arithmetic(2);
                word_text.push_str("\u{1}{#}");
            }
            Some('(') => {
                self.skip_chars(1);
                self.parse_substitution(word_text);
            }
            Some('{') => {
                self.skip_chars(1);
                let parameter = self.remaining_text().split('}').next().unwrap_or_default();
                self.offset = (self.offset + parameter.len() + 1).min(self.source_text.len());
                push_variable(parameter, word_text);
            }
            Some(first_char) if first_char.is_ascii_alphabetic() || first_char == '_' => {
                let following_text = self.remaining_text();
                let name_end = following_text
                    .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
                    .unwrap_or(following_text.len());
                let variable_name = following_text.get(..name_end).unwrap_or_default();
                self.offset += variable_name.len();
                push_variable(variable_name, word_text);
            }
            // The values of special parameters are unknown, and so is the result of arithmetic: both are an unnamed variable.
            Some(special_char) if special_char.is_ascii_digit() || "?$@*#!-".contains(special_char) => {
                self.skip_chars(1);
                word_text.push_str("\u{1}{#}");
            }
            _ => word_text.push('$'),
        }
    }

    /// Reads what follows `$(`; the commands in it are calls like any others.
    fn parse_substitution(&mut self, word_text: &mut String) {
        let start_offset = self.offset;
        self.parse_nested();
        let command_text = self.source_text.get(start_offset..self.offset).unwrap_or_default();
        push_substitution(command_text.strip_suffix(')').unwrap_or(command_text), word_text);
    }

    /// Reads a substitution in backticks, with a parser of its own because escapes must be removed from its text first.
    fn parse_backticks(&mut self, word_text: &mut String) {
        let mut command_text = String::new();
        while let Some(character) = self.bump() {
            match character {
                '`' => break,
                '\\' => match self.bump() {
                    Some(escaped @ ('`' | '\\' | '$')) => command_text.push(escaped),
                    Some(plain_char) => command_text.extend(['\\', plain_char]),
                    None => {}
                },
                plain_char => command_text.push(plain_char),
            }
        }
        push_substitution(&command_text, word_text);
        // The word keeps its text even if the nesting is too deep for its commands to be read.
        if self.depth >= MAX_NESTING {
            return;
        }
        let mut inner_parser = ShellParser::new(&command_text, self.depth + 1);
        // Pipeline numbers go on, so that calls inside and outside never share one by accident.
        inner_parser.last_pipeline = self.last_pipeline + 1;
        inner_parser.current_call.pipeline_number = inner_parser.last_pipeline;
        inner_parser.parse_list(false);
        self.last_pipeline = inner_parser.last_pipeline;
        self.script.items.push(ScriptItem::EnterSubshell);
        self.script.items.append(&mut inner_parser.script.items);
        self.script.items.push(ScriptItem::LeaveSubshell);
    }
}

/// Adds a character of the text; one that looks like a mark is replaced.
fn push_literal(character: char, word_text: &mut String) {
    word_text.push(if character < '\t' { '\u{fffd}' } else { character });
}

/// Adds a variable to the word, as a mark and `{NAME}`.
fn push_variable(variable_name: &str, word_text: &mut String) {
    word_text.extend([DOLLAR_MARK, '{']);
    variable_name
        .chars()
        .take(MAX_EXPANSION_CHARS)
        .filter(|character| *character != '}')
        .for_each(|character| push_literal(character, word_text));
    word_text.push('}');
}

/// Adds a command substitution to the word, as a mark and `(COMMANDS)`.
fn push_substitution(command_text: &str, word_text: &mut String) {
    // Without a command there is no output, and the word around it is all there is.
    if command_text.trim().is_empty() {
        return;
    }
    word_text.extend([DOLLAR_MARK, '(']);
    command_text
        .chars()
        .take(MAX_EXPANSION_CHARS)
        .filter(|character| *character != ')')
        .for_each(|character| push_literal(character, word_text));
    word_text.push(')');
}
