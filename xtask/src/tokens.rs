//! Finds identifiers in Rust source as tokens: never in comments or strings, but also inside macro calls.
//!
//! The syntax tree of `syn` stops at macro calls, so a visitor does not see a `dbg!` inside an `assert!`; tokens show it. What
//! needs the tree (sizes) is in `tidy/sizes.rs`.

use proc_macro2::{TokenStream, TokenTree};

/// Calls `visit` once for every token, at every depth, with that token and all that follow it in the same group.
pub fn visit_tokens(tokens: &TokenStream, visit: &mut dyn FnMut(&[TokenTree])) {
    let token_trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut remaining_tokens = token_trees.as_slice();
    while let [token_tree, following_tokens @ ..] = remaining_tokens {
        visit(remaining_tokens);
        remaining_tokens = following_tokens;
        if let TokenTree::Group(group) = token_tree {
            visit_tokens(&group.stream(), visit);
        }
    }
}

/// The lines on which these identifiers follow each other, for example `extern crate std`.
pub fn find_word_lines(tokens: &TokenStream, identifiers: &[&str]) -> Vec<usize> {
    let mut matching_lines = Vec::new();
    visit_tokens(tokens, &mut |remaining_tokens| {
        let is_match = remaining_tokens.len() >= identifiers.len()
            && remaining_tokens.iter().zip(identifiers).all(|(token_tree, identifier)| is_word(token_tree, identifier));
        if is_match {
            matching_lines.extend(remaining_tokens.first().map(line_number));
        }
    });
    matching_lines
}

pub fn is_word(token_tree: &TokenTree, identifier: &str) -> bool {
    matches!(token_tree, TokenTree::Ident(ident) if ident == identifier)
}

pub fn is_punct(token_tree: &TokenTree, character: char) -> bool {
    matches!(token_tree, TokenTree::Punct(punct) if punct.as_char() == character)
}

pub fn line_number(token_tree: &TokenTree) -> usize {
    token_tree.span().start().line
}
