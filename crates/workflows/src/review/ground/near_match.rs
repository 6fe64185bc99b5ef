//! Finds a text near the named line that almost equals a quote.
//!
//! Words are aligned with words. A few may differ, but never one that could change the meaning: numbers, names, operators,
//! negations and similar words must all be there, in the same order, and no others. Quotes of a few words are not
//! compared at all: almost the same would mean nothing for them.

use alloc::{string::String, vec, vec::Vec};
use core::ops::Range;

use super::fold::FOLDED_MASK;
use tribunal_engine::text::words::{are_opposites, changes_meaning, is_plain_word, is_typo, stem_word};

/// A quote with fewer words must match verbatim.
const MIN_QUOTE_WORDS: usize = 6;
/// Longer quotes are not compared: the work grows with the words of the quote times those of the window.
const MAX_QUOTE_WORDS: usize = 300;
/// The most words around the named line that are compared.
const MAX_WINDOW_WORDS: usize = 3000;
/// The least share of a quote that must match, in percent.
pub(super) const MIN_PERCENT: u32 = 85;

/// The cost of an inserted, omitted or replaced word; another form of the same word costs half.
const WORD_COST: u32 = 2;
const IMPOSSIBLE_COST: u32 = u32::MAX / 4;

/// Where the quote was found, and how much of it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NearMatch {
    pub byte_range: Range<usize>,
    pub percent: u32,
}

/// Finds the part of the window that almost equals the quote. Both are folded.
pub(super) fn find_near_match(folded_quote: &str, window: &str) -> Option<NearMatch> {
    // One more than the maximum is enough to see that the quote is too long.
    let quote_words: Vec<ComparedWord> = split_words(folded_quote).take(MAX_QUOTE_WORDS + 1).collect();
    if !(MIN_QUOTE_WORDS..=MAX_QUOTE_WORDS).contains(&quote_words.len()) {
        return None;
    }
    let window_words: Vec<ComparedWord> = split_words(window).take(MAX_WINDOW_WORDS).collect();
    let alignment = align_words(&quote_words, &window_words)?;
    // Rounded against the quote, so that a quote below the threshold never passes by rounding.
    let percent = 100 - (alignment.cost * 100).div_ceil(quote_words.len() as u32 * WORD_COST).min(100);
    let byte_range =
        window_words.get(alignment.first_word)?.byte_range.start..window_words.get(alignment.last_word)?.byte_range.end;
    (percent >= MIN_PERCENT).then_some(NearMatch { byte_range, percent })
}

/// A word of a text with what the comparison needs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ComparedWord {
    byte_range: Range<usize>,
    /// In lower case, unless it has more than letters.
    word: String,
    stem: String,
    /// The word must match exactly.
    must_match: bool,
}

fn split_words(text_part: &str) -> impl Iterator<Item = ComparedWord> + '_ {
    let pieces = text_part.split(' ').scan(0, |offset, raw_word| {
        let start = *offset;
        *offset += raw_word.len() + 1;
        Some((start, raw_word))
    });
    pieces.filter_map(|(start, raw_word)| compared_word(start, raw_word))
}

fn compared_word(start: usize, raw_word: &str) -> Option<ComparedWord> {
    let word = raw_word.trim_matches(['"', '\'', '(', ')', '[', ']', '{', '}', ',', '.', ';', ':', '?']);
    // A word that contains a mask is compared as the mask alone.
    let word = if raw_word.contains(FOLDED_MASK) { FOLDED_MASK } else { word.trim_end_matches('!') };
    // Dashes and the borders of tables come and go with the layout.
    if word.chars().all(|character| character == '-' || character == '|') {
        return None;
    }
    let has_only_letters = is_plain_word(word);
    let word: String = if has_only_letters { word.to_lowercase() } else { word.into() };
    let must_match = !has_only_letters || changes_meaning(&word);
    Some(ComparedWord { byte_range: start..start + raw_word.len(), stem: stem_word(&word), word, must_match })
}

#[derive(Clone, Copy, Debug)]
struct WordAlignment {
    cost: u32,
    first_word: usize,
    last_word: usize,
}

/// Finds the cheapest alignment of the quote within the window, the earliest of equals. The first and the last word must
/// match: otherwise a word that changes the meaning could hide just outside.
fn align_words(quote_words: &[ComparedWord], window_words: &[ComparedWord]) -> Option<WordAlignment> {
    // Edit distance with one row for each word of the quote; the quote may begin anywhere in the text.
    let mut previous_row = vec![PartialReading::IMPOSSIBLE; window_words.len()];
    for (quote_index, quote_word) in quote_words.iter().enumerate() {
        let mut next_row = vec![PartialReading::IMPOSSIBLE; window_words.len()];
        for position in 0..window_words.len() {
            // The first word of the quote fixes where the match begins, so it must match at least as a form.
            let exchange_cost = replacement_cost(quote_word, &window_words[position]);
            next_row[position] = if quote_index == 0 {
                PartialReading {
                    cost: if exchange_cost < WORD_COST { exchange_cost } else { IMPOSSIBLE_COST },
                    first_word: position,
                }
            } else {
                let is_last_word = quote_index + 1 == quote_words.len();
                let reading_before =
                    if position == 0 { PartialReading::IMPOSSIBLE } else { previous_row[position - 1] };
                let replaced = reading_before.add_cost(if is_last_word && exchange_cost >= WORD_COST {
                    IMPOSSIBLE_COST
                } else {
                    exchange_cost
                });
                let omitted = previous_row[position].add_cost(if quote_word.must_match || is_last_word {
                    IMPOSSIBLE_COST
                } else {
                    WORD_COST
                });
                let insertion_cost = if position == 0 || is_last_word || window_words[position].must_match {
                    IMPOSSIBLE_COST
                } else {
                    WORD_COST
                };
                let reading_before = if position == 0 { PartialReading::IMPOSSIBLE } else { next_row[position - 1] };
                let inserted = reading_before.add_cost(insertion_cost);
                replaced.min(omitted).min(inserted)
            };
            if quote_index == 0 && position > 0 && !window_words[position].must_match {
                // Words may also be inserted between the first and the second word of the quote.
                next_row[position] = next_row[position].min(next_row[position - 1].add_cost(WORD_COST));
            }
        }
        previous_row = next_row;
    }
    let (last_word, PartialReading { cost, first_word }) =
        // The position breaks ties, so that the earliest of equally good matches wins.
        previous_row.into_iter().enumerate().min_by_key(|(position, reading)| (reading.cost, *position))?;
    (cost < IMPOSSIBLE_COST).then_some(WordAlignment { cost, first_word, last_word })
}

/// The cost of reading a quote up to a word, and where that reading began. The cheaper one is less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PartialReading {
    cost: u32,
    first_word: usize,
}

impl PartialReading {
    const IMPOSSIBLE: PartialReading = PartialReading { cost: IMPOSSIBLE_COST, first_word: 0 };

    fn add_cost(self, added_cost: u32) -> PartialReading {
        PartialReading { cost: (self.cost + added_cost).min(IMPOSSIBLE_COST), first_word: self.first_word }
    }
}

fn replacement_cost(quote_word: &ComparedWord, window_word: &ComparedWord) -> u32 {
    // A masked secret in the text cannot be compared, so it matches any word of the quote.
    if quote_word.word == window_word.word || window_word.word == FOLDED_MASK {
        return 0;
    }
    if quote_word.must_match || window_word.must_match || are_opposites(&quote_word.word, &window_word.word) {
        return IMPOSSIBLE_COST;
    }
    if quote_word.stem == window_word.stem || is_typo(&quote_word.word, &window_word.word) {
        WORD_COST / 2
    } else {
        WORD_COST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Intro. The service shall keep every order for 30 days, then it archives them in cold_store. \
                        Users may not change an archived order after that. The end.";

    fn match_in_text(quote: &str) -> Option<(&'static str, u32)> {
        find_near_match(quote, TEXT).map(|nearest| (&TEXT[nearest.byte_range], nearest.percent))
    }

    #[test]
    fn a_word_or_two_of_many_may_differ() {
        let expected = "The service shall keep every order for 30 days, then it archives them in cold_store.";
        for quote in [
            "the service shall keep every order for 30 days then it archives them in cold_store",
            "The service shall keep every order for 30 days, then archives them in cold_store.",
            "The service shall keep every order for 30 days, then it archives those in cold_store.",
            "The service shall keep every order for 30 days, then it archived them quietly in cold_store.",
            "The sevice shall keep every order for 30 days, then it archives them in cold_store.",
        ] {
            let (matched, percent) = match_in_text(quote).unwrap_or_else(|| panic!("{quote}"));
            assert_eq!(matched, expected);
            assert!(percent >= MIN_PERCENT);
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
            assert_eq!(match_in_text(quote), None, "{quote}");
        }
    }

    #[test]
    fn what_was_left_out_at_the_ends_cannot_hide_a_negation() {
        let text = "It shall not delete the customer data of any account that is still in use by a customer.";
        let quote = "It shall delete the customer data of any account that is still in use by a customer.";
        assert_eq!(find_near_match(quote, text), None);
        let quote = "Delete the customer data of any account that is still in used by a customer";
        assert!(
            find_near_match(quote, text).is_some(),
            "a quote may begin after it; what stands there is kept as evidence"
        );
    }

    #[test]
    fn few_words_must_stand_as_quoted() {
        assert_eq!(match_in_text("keeps every order for 30"), None);
        assert_eq!(match_in_text("Completely other words that are not in this text"), None);
        assert_eq!(find_near_match("a b c d e f", ""), None);
        assert_eq!(find_near_match("", TEXT), None);
    }

    #[test]
    fn a_secret_in_the_text_is_not_compared() {
        let text = "connect to the db with user admin and password [masked] every night";
        let quote = "connect to the db with user admin and password hunter2 each night";
        assert_eq!(find_near_match(quote, text), None, "each and every are not the same");
        let quote = "connect to the db with user admin and password hunter2 every night";
        assert_eq!(find_near_match(quote, text).map(|near| near.percent), Some(100));
    }
}
