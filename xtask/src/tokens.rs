//! Finds identifiers in Rust source as tokens: never in comments or strings, but also inside macro calls.
//!
//! The syntax tree of `syn` stops at macro calls, so a visitor does not see a `dbg!` inside an `assert!`; tokens show it. What
//! needs the tree (sizes) is in `tidy/sizes.rs`.

use proc_macro2::{TokenStream, TokenTree};

/// Calls `visit` once for every token, at every depth, with that token and all that follow it in the same group.
pub fn each(tokens: &TokenStream, look: &mut dyn FnMut(&[TokenTree])) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut rest = trees.as_slice();
    while let [tree, after @ ..] = rest {
        look(rest);
        rest = after;
        if let TokenTree::Group(group) = tree {
            each(&group.stream(), look);
        }
    }
}

/// The lines on which these identifiers follow each other, for example `extern crate std`.
pub fn lines_with(tokens: &TokenStream, words: &[&str]) -> Vec<usize> {
    let mut lines = Vec::new();
    each(tokens, &mut |rest| {
        let in_a_row =
            rest.len() >= words.len() && rest.iter().zip(words).all(|(tree, word)| is_word(tree, word));
        if in_a_row {
            lines.extend(rest.first().map(line));
        }
    });
    lines
}

pub fn is_word(tree: &TokenTree, word: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident == word)
}

pub fn is_punct(tree: &TokenTree, char: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == char)
}

pub fn line(tree: &TokenTree) -> usize {
    tree.span().start().line
}
