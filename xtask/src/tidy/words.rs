//! Refuses code that should not be committed: silenced lints without a reason, and macros that mean "not finished".
//!
//! It searches the tokens, and so also inside macro calls but never in strings or comments.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::RuleBreach;
use crate::repository::SourceFile;
use crate::tokens::{self, is_punct, is_word, line_number};

const UNFINISHED_MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];
const ALLOW_MESSAGE: &str = "`allow` silences a lint for good: write #[expect(…, reason = \"…\")]";
const NO_REASON_MESSAGE: &str = "`expect` without a reason: write #[expect(…, reason = \"…\")]";

pub fn check_words(source: &SourceFile) -> Vec<RuleBreach> {
    let mut breaches = Vec::new();
    let mut breach = |line, message: String| breaches.push(RuleBreach::at_line(&source.path, line, message));
    tokens::visit_tokens(&source.tokens, &mut |remaining_tokens| {
        if let Some(attribute) = match_attribute(remaining_tokens) {
            check_lint_attribute(&attribute, &mut breach);
        }
        if let [TokenTree::Ident(name), bang, TokenTree::Group(_), ..] = remaining_tokens
            && is_punct(bang, '!')
            && UNFINISHED_MACROS.iter().any(|macro_name| name == macro_name)
        {
            breach(name.span().start().line, format!("`{name}!` is left over"));
        }
    });
    breaches
}

/// The inside of `#[…]` or `#![…]`, if one begins here.
fn match_attribute(remaining_tokens: &[TokenTree]) -> Option<TokenStream> {
    let group = match remaining_tokens {
        [hash, TokenTree::Group(group), ..] if is_punct(hash, '#') => group,
        [hash, bang, TokenTree::Group(group), ..] if is_punct(hash, '#') && is_punct(bang, '!') => group,
        _ => return None,
    };
    // In a macro definition a `#` may stand before other groups.
    (group.delimiter() == Delimiter::Bracket).then(|| group.stream())
}

/// Checks the inside of one attribute; `cfg_attr` may contain several after its condition.
fn check_lint_attribute(attribute: &TokenStream, breach: &mut dyn FnMut(usize, String)) {
    let token_trees: Vec<TokenTree> = attribute.clone().into_iter().collect();
    let [name, TokenTree::Group(arguments), ..] = token_trees.as_slice() else {
        return;
    };
    if is_word(name, "allow") {
        breach(line_number(name), ALLOW_MESSAGE.to_owned());
    } else if is_word(name, "expect") && !has_reason(&arguments.stream()) {
        breach(line_number(name), NO_REASON_MESSAGE.to_owned());
    } else if is_word(name, "cfg_attr") {
        let inner_attributes: Vec<TokenTree> = arguments.stream().into_iter().collect();
        for inner_attribute in inner_attributes.split(|tree| is_punct(tree, ',')).skip(1) {
            check_lint_attribute(&inner_attribute.iter().cloned().collect(), breach);
        }
    }
}

fn has_reason(arguments: &TokenStream) -> bool {
    let mut reason_found = false;
    tokens::visit_tokens(arguments, &mut |remaining_tokens| {
        if let [name, equals, TokenTree::Literal(reason), ..] = remaining_tokens {
            // The literal still has its quotes here.
            let is_blank = reason.to_string().trim_matches(['"', ' ']).is_empty();
            reason_found |= is_word(name, "reason") && is_punct(equals, '=') && !is_blank;
        }
    });
    reason_found
}
