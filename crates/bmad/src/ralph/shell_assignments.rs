//! Reads assignments of constants from a shell script without running it.
//!
//! Read are `KEY=value`, `KEY="value"`, `KEY='value'`, `export KEY=value`, `KEY=(a b)`, and a default for the key itself,
//! `KEY="${KEY:-value}"`. A line with anything else gives no value at all and is named, and so is every line of a block such
//! as `if … fi`: whether its assignments happen is known only to a shell.

use std::fmt;

/// What a script assigns, and which lines were not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptAssignments {
    /// In the order of the file; a name may occur more than once.
    pub assignments: Vec<ShellAssignment>,
    pub unread: Vec<UnreadLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellAssignment {
    pub name: String,
    pub value: ShellValue,
    pub line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellValue {
    Text(String),
    List(Vec<String>),
    /// `${KEY:-value}` in an assignment to `KEY`: the value counts only if `KEY` has none yet.
    OwnDefault(String),
}

/// A line that gave no value. The reason never repeats what the line says, since it may hold a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadLine {
    pub line: usize,
    pub cause: UnreadCause,
}

/// Why a line was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadCause {
    NotAnAssignment,
    CommandSubstitution,
    Expansion,
    UnclosedQuote,
    UnclosedList,
    /// A character that ends a command or redirects it.
    ShellOperator,
    InsideBlock,
}

impl fmt::Display for UnreadCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            UnreadCause::NotAnAssignment => "not an assignment of a constant (nothing is executed)",
            UnreadCause::CommandSubstitution => "it has a command substitution (nothing is executed)",
            UnreadCause::Expansion => "it uses a variable; only a default such as KEY=\"${KEY:-value}\" is understood",
            UnreadCause::UnclosedQuote => "a quote is not closed",
            UnreadCause::UnclosedList => "a list is not closed",
            UnreadCause::ShellOperator => "it has a shell operator (nothing is executed)",
            UnreadCause::InsideBlock => "it is in a block such as `if … fi` (nothing is executed)",
        })
    }
}

/// Reads a script.
pub fn read_shell_script(script_text: &str) -> ScriptAssignments {
    // Files from Windows end their lines with a carriage return, which would become part of unquoted values.
    let script_text = script_text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut script = ScriptAssignments::default();
    let mut cursor = ScriptCursor { text: &script_text, offset: 0, line: 1 };
    let mut block_depth: usize = 0;
    while cursor.peek().is_some() {
        let statement_start = cursor.clone();
        match cursor.read_statement_line() {
            Ok(assignments) if block_depth == 0 => script.assignments.extend(assignments),
            Ok(assignments) => script.unread.extend(
                assignments
                    .iter()
                    .map(|assignment| UnreadLine { line: assignment.line, cause: UnreadCause::InsideBlock }),
            ),
            Err(cause) => {
                script.unread.push(UnreadLine { line: statement_start.line, cause });
                cursor = statement_start;
                let bare_text = cursor.skip_statement_line();
                block_depth = count_blocks(&bare_text, block_depth);
            }
        }
    }
    script
}

/// A position in a script.
#[derive(Clone, Debug)]
struct ScriptCursor<'t> {
    text: &'t str,
    offset: usize,
    /// The line of the position, from 1.
    line: usize,
}

impl<'t> ScriptCursor<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.offset += character.len_utf8();
        self.line += usize::from(character == '\n');
        Some(character)
    }

    /// Moves behind a text if it is next.
    fn take_text(&mut self, expected: &str) -> bool {
        let is_next = self.rest().starts_with(expected);
        if is_next {
            expected.chars().for_each(|_| {
                self.advance();
            });
        }
        is_next
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) || self.rest().starts_with("\\\n") {
            // A backslash at the end of a line continues it.
            if self.advance() == Some('\\') {
                self.advance();
            }
        }
    }

    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|character| character != '\n') {
            self.advance();
        }
    }

    /// Reads one line of the script, its end included. A quoted value may span lines.
    fn read_statement_line(&mut self) -> Result<Vec<ShellAssignment>, UnreadCause> {
        let mut assignments = Vec::new();
        loop {
            self.skip_blanks();
            let is_exported = self.rest().starts_with("export ") || self.rest().starts_with("export\t");
            if is_exported {
                self.take_text("export");
                self.skip_blanks();
            }
            loop {
                match self.peek() {
                    None => return Ok(assignments),
                    Some('#') => {
                        self.skip_comment();
                        self.advance();
                        return Ok(assignments);
                    }
                    Some('\n') => {
                        self.advance();
                        return Ok(assignments);
                    }
                    Some(';') if assignments.is_empty() => return Err(UnreadCause::ShellOperator),
                    Some(';') => {
                        self.advance();
                        break;
                    }
                    Some(_) => assignments.extend(self.read_assignment(is_exported)?),
                }
                self.skip_blanks();
            }
        }
    }

    /// Reads `KEY=value`. `export KEY` alone assigns nothing.
    fn read_assignment(&mut self, is_exported: bool) -> Result<Option<ShellAssignment>, UnreadCause> {
        let line = self.line;
        let name_end = self
            .rest()
            .find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
            .unwrap_or(self.rest().len());
        let name = self.rest()[..name_end].to_string();
        if name.is_empty() || name.starts_with(|character: char| character.is_ascii_digit()) {
            return Err(self.cause_of_other_line());
        }
        self.offset += name_end;
        if !self.take_text("=") {
            let ends_here = matches!(self.peek(), None | Some(' ' | '\t' | '\n' | ';'));
            return if is_exported && ends_here { Ok(None) } else { Err(self.cause_of_other_line()) };
        }
        let value = if self.peek() == Some('(') {
            ShellValue::List(self.read_list()?)
        } else if let Some(default_text) = self.read_own_default(&name)? {
            ShellValue::OwnDefault(default_text)
        } else {
            ShellValue::Text(self.read_word(false)?)
        };
        match self.peek() {
            None | Some(' ' | '\t' | '\n' | ';') => Ok(Some(ShellAssignment { name, value, line })),
            Some(_) => Err(UnreadCause::ShellOperator),
        }
    }

    /// The cause for a line that is not an assignment: a substitution in it is worth naming.
    fn cause_of_other_line(&self) -> UnreadCause {
        let line_text = self.rest().lines().next().unwrap_or_default();
        if line_text.contains("$(") || line_text.contains('`') {
            UnreadCause::CommandSubstitution
        } else {
            UnreadCause::NotAnAssignment
        }
    }

    /// Reads one word, quotes removed, up to a blank, a line end or a semicolon.
    fn read_word(&mut self, in_list: bool) -> Result<String, UnreadCause> {
        let mut word = String::new();
        // A tilde at the start stands for a home directory.
        if self.peek() == Some('~') {
            return Err(UnreadCause::Expansion);
        }
        loop {
            match self.peek() {
                None | Some(' ' | '\t' | '\n' | ';') => return Ok(word),
                Some(')') if in_list => return Ok(word),
                Some('\'') => {
                    self.advance();
                    loop {
                        match self.advance().ok_or(UnreadCause::UnclosedQuote)? {
                            '\'' => break,
                            character => word.push(character),
                        }
                    }
                }
                Some('"') => {
                    self.advance();
                    self.read_quoted(&mut word)?;
                }
                Some('\\') => {
                    self.advance();
                    match self.advance() {
                        Some('\n') => {}
                        Some(character) => word.push(character),
                        None => word.push('\\'),
                    }
                }
                Some('$') => self.read_dollar(&mut word, true)?,
                Some('`') => return Err(UnreadCause::CommandSubstitution),
                Some('&' | '|' | '<' | '>' | '(' | ')') => return Err(UnreadCause::ShellOperator),
                Some(character) => {
                    self.advance();
                    word.push(character);
                }
            }
        }
    }

    /// Reads the inside of double quotes and the closing quote.
    fn read_quoted(&mut self, word: &mut String) -> Result<(), UnreadCause> {
        loop {
            match self.peek().ok_or(UnreadCause::UnclosedQuote)? {
                '"' => {
                    self.advance();
                    return Ok(());
                }
                '\\' => self.read_quoted_escape(word),
                '$' => self.read_dollar(word, false)?,
                '`' => return Err(UnreadCause::CommandSubstitution),
                character => {
                    self.advance();
                    word.push(character);
                }
            }
        }
    }

    /// In double quotes a backslash is an ordinary character unless one of these follows it.
    fn read_quoted_escape(&mut self, word: &mut String) {
        self.advance();
        match self.peek() {
            Some('\n') => {
                self.advance();
            }
            Some(character @ ('$' | '`' | '"' | '\\')) => {
                self.advance();
                word.push(character);
            }
            _ => word.push('\\'),
        }
    }

    /// A dollar sign that begins no expansion is an ordinary character.
    fn read_dollar(&mut self, word: &mut String, is_unquoted: bool) -> Result<(), UnreadCause> {
        self.advance();
        match self.peek() {
            Some('(') => Err(UnreadCause::CommandSubstitution),
            // `$'…'` and `$"…"` are further kinds of quotes outside of quotes.
            Some('\'' | '"') if is_unquoted => Err(UnreadCause::Expansion),
            Some(character) if character.is_ascii_alphanumeric() || "{[_@*#?-!$".contains(character) => {
                Err(UnreadCause::Expansion)
            }
            _ => {
                word.push('$');
                Ok(())
            }
        }
    }

    /// Reads `${KEY:-value}`, with or without double quotes around it, if this is the whole value of `KEY`.
    fn read_own_default(&mut self, name: &str) -> Result<Option<String>, UnreadCause> {
        let value_start = self.clone();
        let is_quoted = self.take_text("\"");
        let opens_default = self.take_text("${") && self.take_text(name) && {
            // `:-` and `-` differ only for a variable that is set and empty, which counts as not set here.
            self.take_text(":-") || self.take_text("-")
        };
        if !opens_default {
            *self = value_start;
            return Ok(None);
        }
        let mut default_text = String::new();
        loop {
            match self.peek().ok_or(UnreadCause::UnclosedQuote)? {
                '}' => {
                    self.advance();
                    break;
                }
                '\\' if is_quoted => {
                    if !self.take_text("\\}") {
                        self.read_quoted_escape(&mut default_text);
                        continue;
                    }
                    default_text.push('}');
                }
                '$' => self.read_dollar(&mut default_text, true)?,
                '`' => return Err(UnreadCause::CommandSubstitution),
                // Quotes, braces and escapes in a default have rules of their own, which a constant does not need.
                '"' | '{' => return Err(UnreadCause::Expansion),
                '\'' | '\\' | '\n' if !is_quoted => return Err(UnreadCause::Expansion),
                character => {
                    self.advance();
                    default_text.push(character);
                }
            }
        }
        // Text behind the default would make the value depend on the variable in another way.
        if (is_quoted && !self.take_text("\"")) || !matches!(self.peek(), None | Some(' ' | '\t' | '\n' | ';')) {
            return Err(UnreadCause::Expansion);
        }
        Ok(Some(default_text))
    }

    /// Reads `(a "b c" d)`, which may span lines.
    fn read_list(&mut self) -> Result<Vec<String>, UnreadCause> {
        self.advance();
        let mut words = Vec::new();
        loop {
            match self.peek().ok_or(UnreadCause::UnclosedList)? {
                ')' => {
                    self.advance();
                    return Ok(words);
                }
                ' ' | '\t' | '\n' => {
                    self.advance();
                }
                '#' => self.skip_comment(),
                // `[3]=x` sets one element by its index.
                '[' => return Err(UnreadCause::Expansion),
                ';' => return Err(UnreadCause::ShellOperator),
                _ => words.push(self.read_word(true)?),
            }
        }
    }

    /// Skips a line that was not read, with all that belongs to it: open quotes, parentheses and here-documents. Returns its
    /// text without what is quoted.
    fn skip_statement_line(&mut self) -> String {
        let mut bare_text = String::new();
        let mut parenthesis_depth: usize = 0;
        let mut document_end: Option<String> = None;
        while let Some(character) = self.advance() {
            match character {
                '\n' if parenthesis_depth == 0 => break,
                '\\' => {
                    self.advance();
                    bare_text.push('_');
                }
                '\'' | '"' | '`' => {
                    self.skip_quote(character);
                    bare_text.push('_');
                }
                '#' if bare_text.is_empty() || bare_text.ends_with([' ', '\t', '\n', ';']) => self.skip_comment(),
                '(' => {
                    parenthesis_depth += 1;
                    bare_text.push('(');
                }
                ')' => {
                    parenthesis_depth = parenthesis_depth.saturating_sub(1);
                    bare_text.push(')');
                }
                // `<<<` takes a word, not the lines below.
                '<' if self.rest().starts_with("<<") => {
                    self.take_text("<<");
                }
                '<' if self.take_text("<") => document_end = self.peek_document_end().or(document_end),
                _ => bare_text.push(character),
            }
        }
        if let Some(document_end) = document_end {
            self.skip_document(&document_end);
        }
        bare_text
    }

    fn skip_quote(&mut self, quote: char) {
        while let Some(character) = self.advance() {
            if character == quote {
                return;
            }
            if character == '\\' && quote != '\'' {
                self.advance();
            }
        }
    }

    /// The word that ends the here-document whose `<<` is behind the position.
    fn peek_document_end(&self) -> Option<String> {
        let after_mark = self.rest().trim_start_matches('-').trim_start_matches([' ', '\t']);
        let end_word: String = after_mark
            .chars()
            .take_while(|character| !character.is_whitespace() && !";&|<>()".contains(*character))
            .filter(|character| !matches!(character, '\'' | '"' | '\\'))
            .collect();
        Some(end_word).filter(|end_word| !end_word.is_empty())
    }

    fn skip_document(&mut self, document_end: &str) {
        while self.peek().is_some() {
            let line_text = self.rest().lines().next().unwrap_or_default();
            let is_end = line_text.trim_start_matches('\t') == document_end;
            self.skip_comment();
            self.advance();
            if is_end {
                return;
            }
        }
    }
}

/// How many blocks are open behind a line that was not read.
fn count_blocks(bare_text: &str, open_blocks: usize) -> usize {
    let mut block_depth = open_blocks;
    // A word is a keyword only where a command may begin: `echo if` opens nothing.
    let mut begins_command = true;
    let separated = bare_text.replace(';', " ; ").replace("&&", " ; ").replace("||", " ; ").replace('\n', " ; ");
    for word in separated.replace('(', " ( ").replace(')', " ) ").split_whitespace() {
        match word {
            "if" | "for" | "while" | "until" | "case" | "select" if begins_command => block_depth += 1,
            "fi" | "done" | "esac" if begins_command => block_depth = block_depth.saturating_sub(1),
            // A brace is counted anywhere: that of `function name {` stands behind a word.
            "{" => block_depth += 1,
            "}" => block_depth = block_depth.saturating_sub(1),
            _ => {}
        }
        begins_command = matches!(word, ";" | "(" | ")" | "{" | "then" | "do" | "else" | "elif" | "!");
    }
    block_depth
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render_script(script_text: &str) -> Vec<String> {
        let script = read_shell_script(script_text);
        let assignments = script.assignments.iter().map(|assignment| {
            let value = match &assignment.value {
                ShellValue::Text(text) => text.clone(),
                ShellValue::List(words) => format!("{words:?}"),
                ShellValue::OwnDefault(default_text) => format!("or {default_text}"),
            };
            format!("{}: {}={value}", assignment.line, assignment.name)
        });
        let unread = script.unread.iter().map(|unread| format!("{}: {:?}", unread.line, unread.cause));
        assignments.chain(unread).collect()
    }

    #[test]
    fn constants_are_read_as_a_shell_would_read_them() {
        for (script_text, expected) in [
            ("A=1\nB=\"two words\"\nC='it is $HOME'\n", &["1: A=1", "2: B=two words", "3: C=it is $HOME"][..]),
            ("export A=1 B=2; C=3 # end", &["1: A=1", "1: B=2", "1: C=3"]),
            ("  # comment with a ' quote\n\nexport A\nA=x#y", &["4: A=x#y"]),
            ("A=a\\ b\"c\\\"\\$\\n\"'d'", &["1: A=a bc\"$\\nd"]),
            ("A=\"one\ntwo\"\nB=2\n", &["1: A=one\ntwo", "3: B=2"]),
            ("A=\nB=\"\"\r\nC=x\r\n", &["1: A=", "2: B=", "3: C=x"]),
            ("A=one\\\ntwo\nB=3", &["1: A=onetwo", "3: B=3"]),
            ("A=\"${A:-a b}\"\nB=${B-c}\nC=\"${C:-}\"", &["1: A=or a b", "2: B=or c", "3: C=or "]),
            ("A=\"${A:-Bash(git *);x}\"", &["1: A=or Bash(git *);x"]),
            ("A=(a 'b c' # d\n \"e\")\nB=()", &["1: A=[\"a\", \"b c\", \"e\"]", "3: B=[]"]),
            ("A=5$\nB=\"5 $ \"", &["1: A=5$", "2: B=5 $ "]),
        ] {
            assert_eq!(render_script(script_text), expected, "{script_text:?}");
        }
    }

    #[test]
    fn what_needs_a_shell_gives_no_value() {
        for (script_text, expected) in [
            ("A=$(date)\nB=1", &["2: B=1", "1: CommandSubstitution"][..]),
            ("A=\"`date`\"", &["1: CommandSubstitution"]),
            ("A=1 B=$(date)", &["1: CommandSubstitution"]),
            ("A=\"${A:-$(date)}\"", &["1: CommandSubstitution"]),
            ("A=\"$HOME/x\"", &["1: Expansion"]),
            ("A=\"${B:-c}\"", &["1: Expansion"]),
            ("A=\"${A:-c}d\"", &["1: Expansion"]),
            ("A=\"${A:?}\"", &["1: Expansion"]),
            ("A=$'x'\nB=~/x", &["1: Expansion", "2: Expansion"]),
            ("A=1 make\nA+=2\nA[0]=3", &["1: NotAnAssignment", "2: NotAnAssignment", "3: NotAnAssignment"]),
            ("A=1 && B=2\nA=1 | x\nA=<(x)", &["1: NotAnAssignment", "2: NotAnAssignment", "3: ShellOperator"]),
            ("source ~/.x\n. x\necho $(date)", &["1: NotAnAssignment", "2: NotAnAssignment", "3: CommandSubstitution"]),
            ("A=\"never closed\nB=2\n", &["1: UnclosedQuote"]),
            ("A=(a\nB=2\n", &["1: UnclosedList"]),
            ("A=([3]=x)\nA=(a;b)", &["1: Expansion", "2: ShellOperator"]),
        ] {
            assert_eq!(render_script(script_text), expected, "{script_text:?}");
        }
    }

    #[test]
    fn assignments_that_may_not_happen_are_not_read() {
        for (script_text, expected) in [
            (
                "if true; then\n  A=1\nfi\nB=2",
                &["4: B=2", "1: NotAnAssignment", "2: InsideBlock", "3: NotAnAssignment"][..],
            ),
            ("if x; then A=1; fi\nB=2", &["2: B=2", "1: NotAnAssignment"]),
            ("f() {\nA=1\n}\nB=2", &["4: B=2", "1: NotAnAssignment", "2: InsideBlock", "3: NotAnAssignment"]),
            ("function f {\nA=1\n}\nB=2", &["4: B=2", "1: NotAnAssignment", "2: InsideBlock", "3: NotAnAssignment"]),
            ("echo if\nB=2", &["2: B=2", "1: NotAnAssignment"]),
            ("cat <<'END'\nA=1\nEND\nB=2", &["4: B=2", "1: NotAnAssignment"]),
            ("cat <<< x\nB=2", &["2: B=2", "1: NotAnAssignment"]),
            ("echo 'a\nA=1\n'\nB=2", &["4: B=2", "1: NotAnAssignment"]),
            ("X=$(\nA=1\n)\nB=2", &["4: B=2", "1: CommandSubstitution"]),
        ] {
            assert_eq!(render_script(script_text), expected, "{script_text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(script_text in "(?s).{0,80}") {
            let _ = read_shell_script(&script_text);
        }

        #[test]
        fn a_line_with_a_substitution_gives_no_value(
            script_text in "((export )?[AB]=|\\$\\(x?|`x?`|\"|\\$\\{A:-|\\}|\\)|;| |\n|x|if |fi|<<x|\\(|.){0,30}"
        ) {
            // Without single quotes, escapes and comments every substitution would be performed by a shell.
            prop_assume!(!script_text.contains(['\'', '\\', '#']));
            let lines: Vec<&str> = script_text.split('\n').collect();
            for assignment in read_shell_script(&script_text).assignments {
                let line_text = lines[assignment.line - 1];
                prop_assert!(!line_text.contains("$(") && !line_text.contains('`'), "{assignment:?}");
                if let ShellValue::Text(value) | ShellValue::OwnDefault(value) = assignment.value {
                    prop_assert!(!value.contains("$(") && !value.contains('`'), "{value:?}");
                }
            }
        }
    }
}
