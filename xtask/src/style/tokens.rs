//! Visits the tokens of a file without its tests and doc comments, at every depth.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::Place;
use crate::tokens::{is_punct, is_word, line};
use crate::tree::Source;

/// Calls `visit` for every token of production code, with that token and all that follow it in the same group.
pub fn each_production_token(tokens: &TokenStream, look: &mut dyn FnMut(&[TokenTree])) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut rest = trees.as_slice();
    loop {
        rest = match rest {
            [] => return,
            [hash, TokenTree::Group(attribute), after @ ..] if is_punct(hash, '#') && is_doc(attribute) => {
                after
            }
            [hash, TokenTree::Group(attribute), after @ ..]
                if is_punct(hash, '#') && is_for_tests(attribute) =>
            {
                skip_item(after)
            }
            [tree, after @ ..] => {
                look(rest);
                if let TokenTree::Group(group) = tree {
                    each_production_token(&group.stream(), look);
                }
                after
            }
        };
    }
}

/// Whether an attribute is a doc comment, which the lexer turns into an attribute.
fn is_doc(attribute: &Group) -> bool {
    let trees: Vec<TokenTree> = attribute.stream().into_iter().collect();
    matches!(trees.as_slice(), [word, equals, TokenTree::Literal(_)] if is_word(word, "doc") && is_punct(equals, '='))
}

/// Whether an attribute marks a test item: `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`.
pub fn is_for_tests(attribute: &Group) -> bool {
    // Tokens are printed with blanks between them; without these the comparison is simple.
    let text: String = attribute.stream().to_string().split_whitespace().collect();
    attribute.delimiter() == Delimiter::Bracket
        && (text == "test"
            || text.starts_with("tokio::test")
            || text.starts_with("cfg(test")
            || text.starts_with("cfg(all(test"))
}

/// Skips the item that begins here, up to its braces or its semicolon.
fn skip_item(mut rest: &[TokenTree]) -> &[TokenTree] {
    while let [tree, after @ ..] = rest {
        rest = after;
        let braces = matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        if braces || is_punct(tree, ';') {
            break;
        }
    }
    rest
}

/// Finds every `.patched("…")`: a place where two builds behave differently.
pub fn find_patched_marks(source: &Source) -> Vec<Place> {
    let mut marks = Vec::new();
    each_production_token(&source.tokens, &mut |rest| {
        if let [dot, word, TokenTree::Group(group), ..] = rest
            && is_punct(dot, '.')
            && is_word(word, "patched")
            && let Some(TokenTree::Literal(name)) = group.stream().into_iter().next()
        {
            let name = name.to_string().trim_matches('"').to_owned();
            marks.push(Place { path: source.path.clone(), line: line(word), name });
        }
    });
    marks
}
