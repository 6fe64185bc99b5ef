//! Measures one file: lines, functions, names, comments.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Spacing, TokenTree};

use super::tokens::visit_production_tokens;
use crate::repository::SourceFile;
use crate::tokens::{is_punct, line_number};

const KEYWORDS: &str = "as break const continue crate else enum extern false fn for if impl in let loop match mod move \
     mut pub ref return self Self static struct super trait true type unsafe use where while async await dyn union yield";

#[derive(Debug, Default)]
pub struct FileFigures {
    pub path: String,
    /// The number of lines outside of tests.
    pub lines: usize,
    pub code_lines: usize,
    pub doc_lines: usize,
    pub comment_lines: usize,
    pub function_lines: Vec<usize>,
    pub function_names: Vec<String>,
    pub type_names: Vec<String>,
    /// The number of identifiers by occurrence, without keywords, and the sum of their lengths.
    pub identifiers: usize,
    pub identifier_letters: usize,
}

pub fn measure_file(source: &SourceFile) -> FileFigures {
    let keywords: BTreeSet<&str> = KEYWORDS.split(' ').collect();
    let mut figures = FileFigures { path: source.path.clone(), ..FileFigures::default() };
    let mut code_lines = BTreeSet::new();
    let mut after_quote = false;
    visit_production_tokens(&source.tokens, &mut |remaining_tokens| {
        let Some(token_tree) = remaining_tokens.first() else { return };
        // The name of a lifetime is not an identifier.
        let is_lifetime_name = std::mem::replace(&mut after_quote, is_quote(token_tree));
        let span = token_tree.span();
        match token_tree {
            // Of a group only the lines of its delimiters count; its content is visited separately.
            TokenTree::Group(_) => code_lines.extend([span.start().line, span.end().line]),
            _ => code_lines.extend(span.start().line..=span.end().line),
        }
        let TokenTree::Ident(ident_token) = token_tree else { return };
        let identifier = ident_token.to_string();
        if !is_lifetime_name && !keywords.contains(identifier.as_str()) {
            figures.identifiers += 1;
            figures.identifier_letters += identifier.chars().count();
        }
        let [_, TokenTree::Ident(name), following_tokens @ ..] = remaining_tokens else { return };
        match identifier.as_str() {
            "fn" => {
                figures.function_names.push(name.to_string());
                figures
                    .function_lines
                    .extend(find_body_end(following_tokens).map(|end_line| end_line + 1 - line_number(token_tree)));
            }
            // A function pointer type has no name after `fn`, so it is not counted above.
            "struct" | "enum" | "trait" => figures.type_names.push(name.to_string()),
            _ => {}
        }
    });
    // Tokens of tests were left out above, but their comments and blank lines are only known by their ranges.
    let test_ranges = find_test_ranges(source);
    let is_outside_tests =
        |line: &usize| !test_ranges.iter().any(|(first, end_line)| (*first..=*end_line).contains(line));
    figures.lines = (1..=source.text.lines().count()).filter(is_outside_tests).count();
    figures.code_lines = code_lines.len();
    for (line_index, line_text) in
        source.text.lines().enumerate().filter(|(line_index, _)| is_outside_tests(&(line_index + 1)))
    {
        // A comment after code counts, too; a string that contains `//` does not begin its line with it.
        let line_text = line_text.trim_start();
        if line_text.starts_with("//!") || (line_text.starts_with("///") && !line_text.starts_with("////")) {
            figures.doc_lines += 1;
        } else if (line_text.starts_with("//") && !code_lines.contains(&(line_index + 1))) || line_text.contains(" // ")
        {
            figures.comment_lines += 1;
        }
    }
    figures
}

fn is_quote(token_tree: &TokenTree) -> bool {
    matches!(token_tree, TokenTree::Punct(punct) if punct.as_char() == '\'' && punct.spacing() == Spacing::Joint)
}

/// The line on which the body of a function ends; `None` if it has no body.
fn find_body_end(following_tokens: &[TokenTree]) -> Option<usize> {
    for token_tree in following_tokens {
        match token_tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                return Some(group.span_close().end().line);
            }
            token_tree if is_punct(token_tree, ';') => return None,
            _ => {}
        }
    }
    None
}

/// The first and last line of every test item, including its attribute.
fn find_test_ranges(source: &SourceFile) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    crate::tokens::visit_tokens(&source.tokens, &mut |remaining_tokens| {
        if let [hash, TokenTree::Group(attribute), following_tokens @ ..] = remaining_tokens
            && is_punct(hash, '#')
            && super::tokens::is_for_tests(attribute)
        {
            // An item ends with its braces, or with a semicolon if it has none.
            let is_item_end = |token_tree: &&TokenTree| {
                is_punct(token_tree, ';')
                    || matches!(token_tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
            };
            let end_line = following_tokens
                .iter()
                .find(is_item_end)
                .map_or(line_number(hash), |token_tree| token_tree.span().end().line);
            ranges.push((line_number(hash), end_line));
        }
    });
    ranges
}
