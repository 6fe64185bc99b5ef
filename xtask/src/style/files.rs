//! Measures one file: lines, functions, names, comments.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Spacing, TokenTree};

use super::tokens::each_production_token;
use crate::tokens::{is_punct, line};
use crate::tree::Source;

const KEYWORDS: &str = "as break const continue crate else enum extern false fn for if impl in let loop match mod move \
     mut pub ref return self Self static struct super trait true type unsafe use where while async await dyn union yield";

#[derive(Debug, Default)]
pub struct FileFigures {
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

pub fn measure_file(source: &Source) -> FileFigures {
    let keywords: BTreeSet<&str> = KEYWORDS.split(' ').collect();
    let mut figures = FileFigures::default();
    let mut code = BTreeSet::new();
    let mut after_quote = false;
    each_production_token(&source.tokens, &mut |rest| {
        let Some(tree) = rest.first() else { return };
        // The name of a lifetime is not an identifier.
        let lifetime = std::mem::replace(&mut after_quote, is_quote(tree));
        let span = tree.span();
        match tree {
            // Of a group only the lines of its delimiters count; its content is visited separately.
            TokenTree::Group(_) => code.extend([span.start().line, span.end().line]),
            _ => code.extend(span.start().line..=span.end().line),
        }
        let TokenTree::Ident(word) = tree else { return };
        let word = word.to_string();
        if !lifetime && !keywords.contains(word.as_str()) {
            figures.identifiers += 1;
            figures.identifier_letters += word.chars().count();
        }
        let [_, TokenTree::Ident(name), after @ ..] = rest else { return };
        match word.as_str() {
            "fn" => {
                figures.function_names.push(name.to_string());
                figures.function_lines.extend(last_line(after).map(|last| last + 1 - line(tree)));
            }
            // A function pointer type has no name after `fn`, so it is not counted above.
            "struct" | "enum" | "trait" => figures.type_names.push(name.to_string()),
            _ => {}
        }
    });
    // Tokens of tests were left out above, but their comments and blank lines are only known by their ranges.
    let tests = test_lines(source);
    let outside = |line: &usize| !tests.iter().any(|(first, last)| (*first..=*last).contains(line));
    figures.lines = (1..=source.text.lines().count()).filter(outside).count();
    figures.code_lines = code.len();
    for (number, text) in source.text.lines().enumerate().filter(|(number, _)| outside(&(number + 1))) {
        // A comment after code counts, too; a string that contains `//` does not begin its line with it.
        let text = text.trim_start();
        if text.starts_with("//!") || (text.starts_with("///") && !text.starts_with("////")) {
            figures.doc_lines += 1;
        } else if (text.starts_with("//") && !code.contains(&(number + 1))) || text.contains(" // ") {
            figures.comment_lines += 1;
        }
    }
    figures
}

fn is_quote(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == '\'' && punct.spacing() == Spacing::Joint)
}

/// The line on which the body of a function ends; `None` if it has no body.
fn last_line(after: &[TokenTree]) -> Option<usize> {
    for tree in after {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                return Some(group.span_close().end().line);
            }
            tree if is_punct(tree, ';') => return None,
            _ => {}
        }
    }
    None
}

/// The first and last line of every test item, including its attribute.
fn test_lines(source: &Source) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    crate::tokens::each(&source.tokens, &mut |rest| {
        if let [hash, TokenTree::Group(attribute), after @ ..] = rest
            && is_punct(hash, '#')
            && super::tokens::is_for_tests(attribute)
        {
            // An item ends with its braces, or with a semicolon if it has none.
            let ends = |tree: &&TokenTree| {
                is_punct(tree, ';')
                    || matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
            };
            let last = after.iter().find(ends).map_or(line(hash), |tree| tree.span().end().line);
            ranges.push((line(hash), last));
        }
    });
    ranges
}
