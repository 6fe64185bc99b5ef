//! Absences: checks that what a reviewer missed is really absent.
//!
//! Terms are words, not letters: `log` is not found in `catalog`, but in `logs` and `logging` ([`stem_word`]). A term of
//! several words must occur as one phrase, also across line breaks. Names from code (`user_id`, `getUser`) must match
//! exactly. `delet*` matches every word with this prefix.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::text::{
    plain_char,
    words::{is_plain, stem},
};

/// A term as it is searched for; a sequence has at least one stem.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    Words(Vec<String>),
    Prefix(String),
    Name(String),
}

/// Returns the stems of all words, each with its line from 1. Computed once and searched often.
pub(super) fn stems(text: &str) -> Vec<(String, u32)> {
    (1..).zip(text.lines()).flat_map(|(number, line)| words(line).map(move |word| (word, number))).collect()
}

/// Some lines of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// The number of the first line.
    pub line: u32,
    pub text: &'a str,
    /// The stems of these lines only.
    pub stems: &'a [(String, u32)],
}

/// Returns the term that occurs first, with its line; `None` if none of them occurs.
pub(super) fn find_term<'t>(part: Part<'_>, terms: &'t [String]) -> Option<(&'t str, u32)> {
    let terms = terms.iter().map(|term| term.trim()).filter(|term| !term.is_empty());
    // The earliest line is reported, whichever term it belongs to.
    let found = terms.filter_map(|term| Some((term, first_line(part, &parse(term))?)));
    found.min_by_key(|(_, line)| *line)
}

fn first_line(part: Part<'_>, wanted: &Wanted) -> Option<u32> {
    match wanted {
        // Names from code are searched in the text itself: stems have lost case and punctuation.
        Wanted::Name(name) => {
            (part.line..).zip(part.text.lines()).find(|(_, line)| names(line, name)).map(|(n, _)| n)
        }
        Wanted::Prefix(start) => {
            part.stems.iter().find(|(word, _)| word.starts_with(start)).map(|(_, line)| *line)
        }
        Wanted::Words(stems) => {
            // Stems of neighbouring lines are adjacent, so a phrase is also found across a line break.
            let here =
                |window: &[(String, u32)]| window.iter().zip(stems).all(|((word, _), stem)| word == stem);
            part.stems.windows(stems.len()).find(|window| here(window)).map(|window| window[0].1)
        }
    }
}

fn parse(term: &str) -> Wanted {
    let bare = term.trim_matches('`');
    if let Some(start) = bare.strip_suffix('*').filter(|start| start.len() >= 3 && is_plain(start)) {
        return Wanted::Prefix(start.to_lowercase());
    }
    // `getUser` is a name, `User` at the beginning of a sentence is not.
    let camel = bare.chars().any(char::is_lowercase) && bare.chars().skip(1).any(char::is_uppercase);
    let code = |c: char| matches!(c, '_' | '/' | '(' | ')' | ':' | '.' | '=' | '<' | '>' | '@' | '#' | '$');
    let one = !bare.contains(char::is_whitespace);
    if one && (bare.len() < term.len() || camel || bare.chars().any(code)) {
        return Wanted::Name(bare.to_string());
    }
    let stems: Vec<String> = words(bare).collect();
    // A term of symbols alone has no stem, so it is searched as it is.
    if stems.is_empty() { Wanted::Name(bare.to_string()) } else { Wanted::Words(stems) }
}

/// Returns the stems of a line's words; `time-out` is two words.
fn words(line: &str) -> impl Iterator<Item = String> + '_ {
    let pieces = line.split(|c: char| !(c.is_alphanumeric() || plain_char(c) == '\''));
    let plain = pieces.map(|word| word.chars().map(plain_char).collect::<String>());
    plain.map(|word| stem(word.trim_matches('\''))).filter(|stem| !stem.is_empty())
}

/// Whether the name occurs in the line and not as part of a longer one.
fn names(line: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    // Only name characters on both sides make it a part of a longer name.
    let joins = |one: Option<char>, other: Option<char>| one.is_some_and(part) && other.is_some_and(part);
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        !joins(before.chars().next_back(), name.chars().next())
            && !joins(name.chars().next_back(), after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, terms: &[&str]) -> Option<u32> {
        let terms: Vec<String> = terms.iter().map(ToString::to_string).collect();
        find_term(Part { line: 1, text, stems: &stems(text) }, &terms).map(|(_, line)| line)
    }

    #[test]
    fn words_are_found_in_their_forms_and_not_inside_others() {
        assert_eq!(found("the catalog", &["log"]), None);
        assert_eq!(found("all logs\nare kept", &["logging"]), Some(1));
        assert_eq!(found("x\nDeletion of accounts", &["delete"]), Some(2));
        assert_eq!(found("time-outs matter", &["time-out"]), Some(1));
        assert_eq!(found("their users’ data", &["user"]), Some(1));
        assert_eq!(found("the authority", &["auth"]), None);
        assert_eq!(found("the authority", &["auth*"]), Some(1));
    }

    #[test]
    fn a_term_of_several_words_stands_as_one_also_over_a_line_end() {
        assert_eq!(found("a rate\nlimit is set", &["rate limits"]), Some(1));
        assert_eq!(found("the limit of the rate", &["rate limit"]), None);
    }

    #[test]
    fn names_from_code_are_exact() {
        assert_eq!(found("uses user_ids", &["user_id"]), None);
        assert_eq!(found("uses `user_id`.", &["user_id"]), Some(1));
        assert_eq!(found("calls getuser()", &["getUser"]), None);
        assert_eq!(found("GET /api/v2/items", &["/api/v2"]), Some(1));
        assert_eq!(found("It logs", &["`log`"]), None);
    }

    #[test]
    fn the_first_place_of_any_term_is_told() {
        assert_eq!(found("a\nbeta\nalpha", &["alpha", "beta"]), Some(2));
        assert_eq!(found("a\nb", &["", " "]), None);
        assert_eq!(found("only §", &["§"]), Some(1));
    }
}
