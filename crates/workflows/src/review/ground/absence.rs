//! Absences: checks that what a reviewer missed is really absent.
//!
//! Terms are words, not letters: `log` is not found in `catalog`, but in `logs` and `logging` ([`stem_word`]). A term of
//! several words must occur as one phrase, also across line breaks. Names from code (`user_id`, `getUser`) must match
//! exactly. `delet*` matches every word with this prefix.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use tribunal_engine::text::{
    plain_char,
    words::{is_plain_word, stem_word},
};

/// A term as it is searched for; a sequence has at least one stem.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SearchTerm {
    StemSequence(Vec<String>),
    WordPrefix(String),
    CodeName(String),
}

/// Returns the stems of all words, each with its line from 1. Computed once and searched often.
pub(super) fn stem_words(file_text: &str) -> Vec<(String, u32)> {
    (1..)
        .zip(file_text.lines())
        .flat_map(|(line_number, line)| line_stems(line).map(move |word| (word, line_number)))
        .collect()
}

/// Some lines of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextPart<'a> {
    /// The number of the first line.
    pub first_line: u32,
    pub part_text: &'a str,
    /// The stems of these lines only.
    pub word_stems: &'a [(String, u32)],
}

/// Returns the term that occurs first, with its line; `None` if none of them occurs.
pub(super) fn find_term<'t>(text_part: TextPart<'_>, search_terms: &'t [String]) -> Option<(&'t str, u32)> {
    let search_terms = search_terms.iter().map(|term| term.trim()).filter(|term| !term.is_empty());
    let found_terms = search_terms.filter_map(|term| Some((term, find_first_line(text_part, &parse_term(term))?)));
    found_terms.min_by_key(|(_, line)| *line)
}

fn find_first_line(text_part: TextPart<'_>, search_term: &SearchTerm) -> Option<u32> {
    match search_term {
        // Names from code are searched in the text itself: stems have lost case and punctuation.
        SearchTerm::CodeName(code_name) => (text_part.first_line..)
            .zip(text_part.part_text.lines())
            .find(|(_, line)| contains_name(line, code_name))
            .map(|(line_number, _)| line_number),
        SearchTerm::WordPrefix(prefix) => {
            text_part.word_stems.iter().find(|(word, _)| word.starts_with(prefix)).map(|(_, line)| *line)
        }
        SearchTerm::StemSequence(stems) => {
            // Stems of neighbouring lines are adjacent, so a phrase is also found across a line break.
            let matches_window =
                |window: &[(String, u32)]| window.iter().zip(stems).all(|((word, _), stem)| word == stem);
            text_part.word_stems.windows(stems.len()).find(|window| matches_window(window)).map(|window| window[0].1)
        }
    }
}

fn parse_term(term: &str) -> SearchTerm {
    let bare_term = term.trim_matches('`');
    if let Some(prefix) = bare_term.strip_suffix('*').filter(|prefix| prefix.len() >= 3 && is_plain_word(prefix)) {
        return SearchTerm::WordPrefix(prefix.to_lowercase());
    }
    // `getUser` is a name, `User` at the beginning of a sentence is not.
    let is_camel_case = bare_term.chars().any(char::is_lowercase) && bare_term.chars().skip(1).any(char::is_uppercase);
    let is_code_character =
        |character: char| matches!(character, '_' | '/' | '(' | ')' | ':' | '.' | '=' | '<' | '>' | '@' | '#' | '$');
    let is_one_word = !bare_term.contains(char::is_whitespace);
    if is_one_word && (bare_term.len() < term.len() || is_camel_case || bare_term.chars().any(is_code_character)) {
        return SearchTerm::CodeName(bare_term.to_string());
    }
    let stems: Vec<String> = line_stems(bare_term).collect();
    // A term of symbols alone has no stem, so it is searched as it is.
    if stems.is_empty() { SearchTerm::CodeName(bare_term.to_string()) } else { SearchTerm::StemSequence(stems) }
}

/// Returns the stems of a line's words; `time-out` is two words.
fn line_stems(line_text: &str) -> impl Iterator<Item = String> + '_ {
    let pieces = line_text.split(|character: char| !(character.is_alphanumeric() || plain_char(character) == '\''));
    let plain_pieces = pieces.map(|word| word.chars().map(plain_char).collect::<String>());
    plain_pieces.map(|word| stem_word(word.trim_matches('\''))).filter(|stem| !stem.is_empty())
}

/// Whether the name occurs in the line and not as part of a longer one.
fn contains_name(line_text: &str, code_name: &str) -> bool {
    let is_name_character = |character: char| character.is_alphanumeric() || character == '_';
    // Only name characters on both sides make it a part of a longer name.
    let are_joined = |left_character: Option<char>, right_character: Option<char>| {
        left_character.is_some_and(is_name_character) && right_character.is_some_and(is_name_character)
    };
    line_text.match_indices(code_name).any(|(offset, _)| {
        let (before, after) = (&line_text[..offset], &line_text[offset + code_name.len()..]);
        !are_joined(before.chars().next_back(), code_name.chars().next())
            && !are_joined(code_name.chars().next_back(), after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_line(text: &str, terms: &[&str]) -> Option<u32> {
        let terms: Vec<String> = terms.iter().map(ToString::to_string).collect();
        find_term(TextPart { first_line: 1, part_text: text, word_stems: &stem_words(text) }, &terms)
            .map(|(_, line)| line)
    }

    #[test]
    fn words_are_found_in_their_forms_and_not_inside_others() {
        assert_eq!(find_line("the catalog", &["log"]), None);
        assert_eq!(find_line("all logs\nare kept", &["logging"]), Some(1));
        assert_eq!(find_line("x\nDeletion of accounts", &["delete"]), Some(2));
        assert_eq!(find_line("time-outs matter", &["time-out"]), Some(1));
        assert_eq!(find_line("their users’ data", &["user"]), Some(1));
        assert_eq!(find_line("the authority", &["auth"]), None);
        assert_eq!(find_line("the authority", &["auth*"]), Some(1));
    }

    #[test]
    fn a_term_of_several_words_matches_as_a_phrase_across_lines() {
        assert_eq!(find_line("a rate\nlimit is set", &["rate limits"]), Some(1));
        assert_eq!(find_line("the limit of the rate", &["rate limit"]), None);
    }

    #[test]
    fn names_from_code_are_exact() {
        assert_eq!(find_line("uses user_ids", &["user_id"]), None);
        assert_eq!(find_line("uses `user_id`.", &["user_id"]), Some(1));
        assert_eq!(find_line("calls getuser()", &["getUser"]), None);
        assert_eq!(find_line("GET /api/v2/items", &["/api/v2"]), Some(1));
        assert_eq!(find_line("It logs", &["`log`"]), None);
    }

    #[test]
    fn the_first_line_of_any_term_is_returned() {
        assert_eq!(find_line("a\nbeta\nalpha", &["alpha", "beta"]), Some(2));
        assert_eq!(find_line("a\nb", &["", " "]), None);
        assert_eq!(find_line("only §", &["§"]), Some(1));
    }
}
