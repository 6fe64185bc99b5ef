//! Visits the tokens of a file without its tests and doc comments, at every depth.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::SourcePlace;
use crate::repository::SourceFile;
use crate::tokens::{is_punct, is_word, line_number};

/// Calls `visit` for every token of production code, with that token and all that follow it in the same group.
pub fn visit_production_tokens(tokens: &TokenStream, visit: &mut dyn FnMut(&[TokenTree])) {
    let token_trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut remaining_tokens = token_trees.as_slice();
    loop {
        remaining_tokens = match remaining_tokens {
            [] => return,
            [hash, TokenTree::Group(attribute), following_tokens @ ..]
                if is_punct(hash, '#') && is_doc_comment(attribute) =>
            {
                following_tokens
            }
            [hash, TokenTree::Group(attribute), following_tokens @ ..]
                if is_punct(hash, '#') && is_for_tests(attribute) =>
            {
                skip_item(following_tokens)
            }
            [token_tree, following_tokens @ ..] => {
                visit(remaining_tokens);
                if let TokenTree::Group(group) = token_tree {
                    visit_production_tokens(&group.stream(), visit);
                }
                following_tokens
            }
        };
    }
}

/// Whether an attribute is a doc comment, which the lexer turns into an attribute.
fn is_doc_comment(attribute: &Group) -> bool {
    let token_trees: Vec<TokenTree> = attribute.stream().into_iter().collect();
    matches!(token_trees.as_slice(), [word, equals, TokenTree::Literal(_)] if is_word(word, "doc") && is_punct(equals, '='))
}

/// Whether an attribute marks a test item: `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`.
pub fn is_for_tests(attribute: &Group) -> bool {
    // Tokens are printed with blanks between them; without these the comparison is simple.
    let attribute_text: String = attribute.stream().to_string().split_whitespace().collect();
    attribute.delimiter() == Delimiter::Bracket
        && (attribute_text == "test"
            || attribute_text.starts_with("tokio::test")
            || attribute_text.starts_with("cfg(test")
            || attribute_text.starts_with("cfg(all(test"))
}

/// Skips the item that begins here, up to its braces or its semicolon.
fn skip_item(mut remaining_tokens: &[TokenTree]) -> &[TokenTree] {
    while let [token_tree, following_tokens @ ..] = remaining_tokens {
        remaining_tokens = following_tokens;
        let is_body = matches!(token_tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        if is_body || is_punct(token_tree, ';') {
            break;
        }
    }
    remaining_tokens
}

/// Finds every `.patched("…")`: a place where two builds behave differently.
pub fn find_patched_marks(source: &SourceFile) -> Vec<SourcePlace> {
    let mut marks = Vec::new();
    visit_production_tokens(&source.tokens, &mut |remaining_tokens| {
        if let [dot, method_name, TokenTree::Group(group), ..] = remaining_tokens
            && is_punct(dot, '.')
            && is_word(method_name, "patched")
            && let Some(TokenTree::Literal(mark_literal)) = group.stream().into_iter().next()
        {
            let mark_name = mark_literal.to_string().trim_matches('"').to_owned();
            marks.push(SourcePlace { path: source.path.clone(), line: line_number(method_name), name: mark_name });
        }
    });
    marks
}
