//! Refuses code that should not be committed: silenced lints without a reason, and macros that mean "not finished".
//!
//! It searches the tokens, and so also inside macro calls but never in strings or comments.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::Breach;
use crate::tokens::{self, is_punct, is_word, line};
use crate::tree::Source;

const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];
const ALLOW: &str = "`allow` silences a lint for good: write #[expect(…, reason = \"…\")]";
const NO_REASON: &str = "`expect` without a reason: write #[expect(…, reason = \"…\")]";

pub fn check(source: &Source) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut breach = |line, message: String| breaches.push(Breach::at_line(&source.path, line, message));
    tokens::each(&source.tokens, &mut |rest| {
        if let Some(attribute) = attribute_at(rest) {
            lint_breaches(&attribute, &mut breach);
        }
        if let [TokenTree::Ident(name), bang, TokenTree::Group(_), ..] = rest
            && is_punct(bang, '!')
            && UNFINISHED.iter().any(|word| name == word)
        {
            breach(name.span().start().line, format!("`{name}!` is left over"));
        }
    });
    breaches
}

/// The inside of `#[…]` or `#![…]`, if one begins here.
fn attribute_at(rest: &[TokenTree]) -> Option<TokenStream> {
    let group = match rest {
        [hash, TokenTree::Group(group), ..] if is_punct(hash, '#') => group,
        [hash, bang, TokenTree::Group(group), ..] if is_punct(hash, '#') && is_punct(bang, '!') => group,
        _ => return None,
    };
    // In a macro definition a `#` may stand before other groups.
    (group.delimiter() == Delimiter::Bracket).then(|| group.stream())
}

/// Checks the inside of one attribute; `cfg_attr` may contain several after its condition.
fn lint_breaches(attribute: &TokenStream, breach: &mut dyn FnMut(usize, String)) {
    let trees: Vec<TokenTree> = attribute.clone().into_iter().collect();
    let [name, TokenTree::Group(arguments), ..] = trees.as_slice() else {
        return;
    };
    if is_word(name, "allow") {
        breach(line(name), ALLOW.to_owned());
    } else if is_word(name, "expect") && !has_reason(&arguments.stream()) {
        breach(line(name), NO_REASON.to_owned());
    } else if is_word(name, "cfg_attr") {
        let parts: Vec<TokenTree> = arguments.stream().into_iter().collect();
        for part in parts.split(|tree| is_punct(tree, ',')).skip(1) {
            lint_breaches(&part.iter().cloned().collect(), breach);
        }
    }
}

fn has_reason(arguments: &TokenStream) -> bool {
    let mut found = false;
    tokens::each(arguments, &mut |rest| {
        if let [name, equals, TokenTree::Literal(reason), ..] = rest {
            // The literal still has its quotes here.
            let blank = reason.to_string().trim_matches(['"', ' ']).is_empty();
            found |= is_word(name, "reason") && is_punct(equals, '=') && !blank;
        }
    });
    found
}
