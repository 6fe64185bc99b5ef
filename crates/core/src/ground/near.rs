//! Finds a text near the named line that almost equals a quote.
//!
//! Words are aligned with words. A few may differ, but never one that could change the meaning: numbers, names, operators,
//! negations and similar words must all be there, in the same order, and no others. Quotes of a few words are not
//! compared at all: almost the same would mean nothing for them.

use alloc::{string::String, vec, vec::Vec};
use core::ops::Range;

use super::fold::MASK;
use crate::text::words::{are_opposites, is_plain, is_slip, is_telling, stem};

/// A quote with fewer words must match verbatim.
const FEWEST_WORDS: usize = 6;
/// Longer quotes are not compared: such a quote does not show one thing.
const MOST_WORDS: usize = 300;
/// The most words around the named line that are compared.
const MOST_AROUND: usize = 3000;
/// The least share of a quote that must match, in percent.
pub(super) const THRESHOLD: u32 = 85;

/// The cost of an inserted, omitted or replaced word; another form of the same word costs half.
const WORD: u32 = 2;
const NEVER: u32 = u32::MAX / 4;

/// Where the quote was found, and how much of it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Near {
    pub bytes: Range<usize>,
    pub percent: u32,
}

/// Finds the part of `text` that almost equals the quote. Both are folded.
pub(super) fn find(quote: &str, text: &str) -> Option<Near> {
    // One more than the maximum is enough to see that the quote is too long.
    let wanted: Vec<Token> = tokens(quote).take(MOST_WORDS + 1).collect();
    if !(FEWEST_WORDS..=MOST_WORDS).contains(&wanted.len()) {
        return None;
    }
    let there: Vec<Token> = tokens(text).take(MOST_AROUND).collect();
    let best = align(&wanted, &there)?;
    // Rounded against the quote, so that a quote below the threshold never passes by rounding.
    let percent = 100 - (best.cost * 100).div_ceil(wanted.len() as u32 * WORD).min(100);
    let bytes = there.get(best.first)?.at.start..there.get(best.last)?.at.end;
    (percent >= THRESHOLD).then_some(Near { bytes, percent })
}

/// A word of a text with what the comparison needs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    at: Range<usize>,
    /// In lower case, unless it has more than letters.
    word: String,
    stem: String,
    /// The word must match exactly.
    fixed: bool,
}

fn tokens(text: &str) -> impl Iterator<Item = Token> + '_ {
    let pieces = text.split(' ').scan(0, |at, piece| {
        let start = *at;
        *at += piece.len() + 1;
        Some((start, piece))
    });
    pieces.filter_map(|(start, piece)| token(start, piece))
}

fn token(start: usize, piece: &str) -> Option<Token> {
    let word = piece.trim_matches(['"', '\'', '(', ')', '[', ']', '{', '}', ',', '.', ';', ':', '?']);
    // A word that contains a mask is compared as the mask alone.
    let word = if piece.contains(MASK) { MASK } else { word.trim_end_matches('!') };
    // Dashes and the borders of tables come and go with the layout.
    if word.chars().all(|c| c == '-' || c == '|') {
        return None;
    }
    let plain = is_plain(word);
    let word: String = if plain { word.to_lowercase() } else { word.into() };
    let fixed = !plain || is_telling(&word);
    Some(Token { at: start..start + piece.len(), stem: stem(&word), word, fixed })
}

#[derive(Clone, Copy, Debug)]
struct Alignment {
    cost: u32,
    first: usize,
    last: usize,
}

/// Finds the cheapest alignment of `wanted` within `there`, the earliest of equals. The first and the last word must match:
/// otherwise a word that changes the meaning could hide just outside.
fn align(wanted: &[Token], there: &[Token]) -> Option<Alignment> {
    // Edit distance with one row for each word of the quote; the quote may begin anywhere in the text.
    let mut row = vec![Reading::IMPOSSIBLE; there.len()];
    for (index, word) in wanted.iter().enumerate() {
        let mut next = vec![Reading::IMPOSSIBLE; there.len()];
        for at in 0..there.len() {
            // The first word of the quote fixes where the match begins, so it must match at least as a form.
            let change = exchange(word, &there[at]);
            next[at] = if index == 0 {
                Reading { cost: if change < WORD { change } else { NEVER }, first: at }
            } else {
                let end = index + 1 == wanted.len();
                let before = if at == 0 { Reading::IMPOSSIBLE } else { row[at - 1] };
                let replaced = before.plus(if end && change >= WORD { NEVER } else { change });
                let left_out = row[at].plus(if word.fixed || end { NEVER } else { WORD });
                let more = if at == 0 || end || there[at].fixed { NEVER } else { WORD };
                let before = if at == 0 { Reading::IMPOSSIBLE } else { next[at - 1] };
                let added = before.plus(more);
                replaced.min(left_out).min(added)
            };
            if index == 0 && at > 0 && !there[at].fixed {
                // Inserted words between the first and the second word of the quote.
                next[at] = next[at].min(next[at - 1].plus(WORD));
            }
        }
        row = next;
    }
    let (last, Reading { cost, first }) =
        // The position breaks ties, so that the earliest of equally good matches wins.
        row.into_iter().enumerate().min_by_key(|(at, reading)| (reading.cost, *at))?;
    (cost < NEVER).then_some(Alignment { cost, first, last })
}

/// The cost of reading a quote up to a word, and where that reading began. The cheaper one is less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Reading {
    cost: u32,
    first: usize,
}

impl Reading {
    const IMPOSSIBLE: Reading = Reading { cost: NEVER, first: 0 };

    fn plus(self, more: u32) -> Reading {
        Reading { cost: (self.cost + more).min(NEVER), first: self.first }
    }
}

fn exchange(quoted: &Token, there: &Token) -> u32 {
    // A masked secret cannot be compared, so it matches any word.
    if quoted.word == there.word || there.word == MASK {
        return 0;
    }
    if quoted.fixed || there.fixed || are_opposites(&quoted.word, &there.word) {
        return NEVER;
    }
    if quoted.stem == there.stem || is_slip(&quoted.word, &there.word) { WORD / 2 } else { WORD }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Intro. The service shall keep every order for 30 days, then it archives them in cold_store. \
                        Users may not change an archived order after that. The end.";

    fn near(quote: &str) -> Option<(&'static str, u32)> {
        find(quote, TEXT).map(|near| (&TEXT[near.bytes], near.percent))
    }

    #[test]
    fn a_word_or_two_of_many_may_differ() {
        let first = "The service shall keep every order for 30 days, then it archives them in cold_store.";
        for quote in [
            "the service shall keep every order for 30 days then it archives them in cold_store",
            "The service shall keep every order for 30 days, then archives them in cold_store.",
            "The service shall keep every order for 30 days, then it archives those in cold_store.",
            "The service shall keep every order for 30 days, then it archived them quietly in cold_store.",
            "The sevice shall keep every order for 30 days, then it archives them in cold_store.",
        ] {
            let (text, percent) = near(quote).unwrap_or_else(|| panic!("{quote}"));
            assert_eq!(text, first);
            assert!(percent >= THRESHOLD);
        }
    }

    #[test]
    fn a_quote_that_says_something_else_is_never_near() {
        for quote in [
            "The service shall keep every order for 90 days, then it archives them in cold_store.",
            "The service shall not keep every order for 30 days, then it archives them in cold_store.",
            "The service may keep every order for 30 days, then it archives them in cold_store.",
            "The service shall keep every order for 30 days, then it archives them in warm_store.",
            "The service shall keep order for 30 days, then it archives them in cold_store.",
            "Users may change an archived order after that. The end.",
            "Users may not change an unarchived order after that. The end.",
            "change an archived order after that was agreed on by everybody",
        ] {
            assert_eq!(near(quote), None, "{quote}");
        }
    }

    #[test]
    fn what_was_left_out_at_the_ends_cannot_hide_a_negation() {
        let text = "It shall not delete the customer data of any account that is still in use by somebody.";
        let quote = "It shall delete the customer data of any account that is still in use by somebody.";
        assert_eq!(find(quote, text), None);
        let quote = "Delete the customer data of any account that is still in used by somebody";
        assert!(
            find(quote, text).is_some(),
            "a quote may begin after it; what stands there is kept as evidence"
        );
    }

    #[test]
    fn few_words_must_stand_as_quoted() {
        assert_eq!(near("keeps every order for 30"), None);
        assert_eq!(near("Completely other words that nobody wrote in this text"), None);
        assert_eq!(find("a b c d e f", ""), None);
        assert_eq!(find("", TEXT), None);
    }

    #[test]
    fn a_secret_in_the_text_is_not_compared() {
        let text = "connect to the db with user admin and password [masked] every night";
        let quote = "connect to the db with user admin and password hunter2 each night";
        assert_eq!(find(quote, text), None, "each and every are not the same");
        let quote = "connect to the db with user admin and password hunter2 every night";
        assert_eq!(find(quote, text).map(|near| near.percent), Some(100));
    }
}
