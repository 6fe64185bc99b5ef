//! The lines of a text with their indentation: dashes, keys, and where a block ends.

/// A line with its offset in the text and its indentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndentedLine<'t> {
    pub start: usize,
    pub indent: usize,
    pub content: &'t str,
}

/// Splits a text into lines and measures their indentation.
pub(super) fn split_indented_lines(source_text: &str) -> Vec<IndentedLine<'_>> {
    let mut line_start = 0;
    let mut indented_lines = Vec::new();
    for source_line in source_text.split_inclusive('\n') {
        let trimmed_line = source_line.trim_start_matches([' ', '\t', '\u{a0}']);
        let leading_blanks = &source_line[..source_line.len() - trimmed_line.len()];
        // A tab counts as two columns: YAML forbids tabs, but agents indent with them anyway.
        let indent = leading_blanks.chars().map(|character| if character == '\t' { 2 } else { 1 }).sum();
        indented_lines.push(IndentedLine {
            start: line_start + leading_blanks.len(),
            indent,
            content: trimmed_line.trim_end(),
        });
        line_start += source_line.len();
    }
    indented_lines
}

impl IndentedLine<'_> {
    pub fn is_blank(&self) -> bool {
        self.content.is_empty()
    }

    pub fn is_list_item(&self) -> bool {
        self.content == "-" || self.content.starts_with("- ") || self.content.starts_with("-\t")
    }

    /// The same line without its dash, indented as deep as what follows the dash.
    pub fn without_dash(&self) -> Self {
        let after_dash_text = self.content[1..].trim_start();
        let dash_length = self.content.len() - after_dash_text.len();
        IndentedLine { start: self.start + dash_length, indent: self.indent + 2, content: after_dash_text }
    }
}

/// Splits a line into key and value. Markdown's bold marks around the key are ignored.
pub(super) fn split_key(line_content: &str) -> Option<(&str, &str)> {
    let (key_text, value_text) = line_content.split_once(':')?;
    let key_text = key_text.trim_start_matches(['#', '>', ' ']).trim_matches(['*', '_', '"', '\'', '`', ' ', '“', '”']);
    let is_key_char = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | ' ');
    let value_text = value_text.strip_prefix("**").unwrap_or(value_text);
    // `12:30` and `http://x` contain a colon but no key.
    let is_separated = value_text.is_empty() || value_text.starts_with([' ', '\t', '[', '{', '"', '“']);
    let is_key = !key_text.is_empty() && key_text.len() <= 40 && key_text.chars().all(is_key_char);
    (is_key && is_separated).then(|| (key_text, value_text.trim()))
}

/// Whether there is nothing on a line, or only a comment.
pub(super) fn is_blank_or_comment(line_content: &str) -> bool {
    line_content.is_empty() || line_content.starts_with('#')
}

/// The end of the block that belongs to a line with this indentation.
pub(super) fn find_block_end(source_lines: &[IndentedLine<'_>], start_index: usize, parent_indent: usize) -> usize {
    let is_inside = |source_line: &IndentedLine<'_>| {
        source_line.is_blank()
            || source_line.indent > parent_indent
            || (source_line.indent == parent_indent && source_line.is_list_item())
    };
    start_index
        + source_lines
            .get(start_index..)
            .unwrap_or_default()
            .iter()
            .take_while(|source_line| is_inside(source_line))
            .count()
}

/// Joins the lines of a block scalar, without the indentation that all of them share.
pub(super) fn join_block_text(source_lines: &[IndentedLine<'_>], is_folded: bool) -> String {
    let shared_indent = source_lines
        .iter()
        .filter(|source_line| !source_line.is_blank())
        .map(|source_line| source_line.indent)
        .min()
        .unwrap_or(0);
    let line_texts = source_lines.iter().map(|source_line| {
        format!("{}{}", " ".repeat(source_line.indent.saturating_sub(shared_indent)), source_line.content)
    });
    let line_texts: Vec<String> = if is_folded {
        line_texts.map(|line_text| line_text.trim().to_string()).collect()
    } else {
        line_texts.collect()
    };
    line_texts.join(if is_folded { " " } else { "\n" }).trim().to_string()
}
