//! Finds the words of a table in a text, with their negations.
//!
//! A text is read in clauses. The first clause that says something decides, and a later one counts only if it consists
//! of known words: `VALID: the format is invalid` is valid, `valid, invalid` is a contradiction. A negation belongs to
//! the next known word, so that `not valid` and `VALID: it does not say when` differ.

use alloc::{string::String, vec::Vec};

use super::WordGroup;

/// How a known word is negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Negation {
    Affirmed,
    /// `to be fixed`, `will be fixed`
    Intended,
    /// `not fixed`
    Denied,
    /// `cannot be fixed`
    Impossible,
}

/// A known word in a clause.
#[derive(Debug)]
pub(super) struct WordHit<M> {
    pub meaning: M,
    is_clear: bool,
    pub negation: Negation,
}

/// What a clause says.
#[derive(Debug)]
pub(super) struct ClauseReading<M> {
    pub hits: Vec<WordHit<M>>,
    /// Whether the clause has no unknown word.
    is_pure: bool,
}

/// One entry of a table, split into the words that are compared.
pub(super) struct KnownPhrase<M> {
    pub meaning: M,
    is_clear: bool,
    pub phrase_words: Vec<String>,
}

/// The most words of a text that are read; what follows is prose.
const MAX_WORDS: usize = 40;
/// How many words after `not` a known word is still negated by it; `cannot` reaches to the end of its clause.
const NEGATION_REACH: usize = 3;
/// Words that are left out before anything is compared.
const SKIPPED_WORDS: &[&str] =
    &["a", "an", "the", "is", "it", "its", "be", "been", "was", "are", "this", "do", "does", "did", "has", "have"];
/// Words that say nothing but may stand next to known ones.
const NEUTRAL_WORDS: &[&str] = &[
    "finding",
    "findings",
    "claim",
    "issue",
    "problem",
    "bug",
    "verdict",
    "status",
    "severity",
    "result",
    "i",
    "we",
    "my",
    "would",
    "still",
    "really",
    "very",
    "quite",
    "clearly",
    "definitely",
    "probably",
    "likely",
    "also",
    "and",
    "or",
    "fully",
    "completely",
    "now",
    "already",
    "successfully",
    "so",
];
/// Words that begin a reason, which is not read.
const REASON_WORDS: &[&str] = &["because", "since", "as", "that", "due"];
/// Words that begin another clause.
const CONTRAST_WORDS: &[&str] = &["but", "although", "though", "however", "except", "yet"];

/// Splits a text into clauses of lower-case words, up to the first reason. Blanks, hyphens and underscores separate
/// words; other punctuation separates clauses.
pub(super) fn split_clauses(answer_text: &str) -> Vec<Vec<String>> {
    let mut clauses: Vec<Vec<String>> = Vec::from([Vec::new()]);
    let mut word_count = 0;
    // Apostrophes are left out, so that `can't` is one word.
    let text_chars: Vec<char> =
        answer_text.chars().take(4_000).filter(|character| !matches!(character, '\'' | '’')).collect();
    let is_alphanumeric_at = |index: usize| text_chars.get(index).is_some_and(|character| character.is_alphanumeric());
    let mut index = 0;
    while index < text_chars.len() && word_count < MAX_WORDS {
        let word_start = index;
        while is_alphanumeric_at(index) {
            index += 1;
        }
        if index > word_start {
            let word: String =
                text_chars[word_start..index].iter().flat_map(|character| character.to_lowercase()).collect();
            word_count += 1;
            match word.as_str() {
                reason_word if REASON_WORDS.contains(&reason_word) => break,
                contrast_word if CONTRAST_WORDS.contains(&contrast_word) => clauses.push(Vec::new()),
                _ => clauses.last_mut().into_iter().for_each(|clause| clause.push(word.clone())),
            }
            continue;
        }
        // A hyphen inside of a word joins its parts; one between blanks is a dash.
        let joins_words = matches!(text_chars[index], '-' | '_')
            && index > 0
            && is_alphanumeric_at(index - 1)
            && is_alphanumeric_at(index + 1);
        if !text_chars[index].is_whitespace() && !joins_words {
            clauses.push(Vec::new());
        }
        index += 1;
    }
    clauses.into_iter().map(normalize_words).filter(|clause| !clause.is_empty()).collect()
}

/// Unites the spellings of negations and drops words that say nothing.
fn normalize_words(clause_words: Vec<String>) -> Vec<String> {
    let mut normalized: Vec<String> = Vec::new();
    for word in clause_words {
        let united_word = match word.as_str() {
            "cant" | "couldnt" | "unable" => "cannot",
            "dont" | "doesnt" | "didnt" | "isnt" | "wasnt" | "arent" | "wont" | "never" | "non" => "not",
            skipped_word if SKIPPED_WORDS.contains(&skipped_word) => continue,
            other_word => other_word,
        };
        match (normalized.last().map(String::as_str), united_word) {
            (Some("can" | "could"), "not") => replace_last(&mut normalized, "cannot"),
            (Some("will"), "not") | (Some("no"), "longer") => replace_last(&mut normalized, "not"),
            // `unable to fix`
            (Some("cannot"), "to") => {}
            _ => normalized.push(String::from(united_word)),
        }
    }
    normalized
}

fn replace_last(words: &mut Vec<String>, new_word: &str) {
    words.pop();
    words.push(String::from(new_word));
}

pub(super) fn collect_phrases<M: Copy>(word_table: &'static [WordGroup<M>]) -> Vec<KnownPhrase<M>> {
    let mut phrases = Vec::new();
    for group in word_table {
        for (known_words, is_clear) in [(group.clear_words, true), (group.plain_words, false)] {
            for known_word in known_words {
                let phrase_words = split_clauses(known_word).into_iter().flatten().collect();
                phrases.push(KnownPhrase { meaning: group.meaning, is_clear, phrase_words });
            }
        }
    }
    phrases
}

pub(super) fn read_clauses<M: Copy>(answer_text: &str, word_table: &'static [WordGroup<M>]) -> Vec<ClauseReading<M>> {
    let phrases = collect_phrases(word_table);
    split_clauses(answer_text).iter().map(|clause_words| read_clause(clause_words, &phrases)).collect()
}

fn read_clause<M: Copy>(clause_words: &[String], phrases: &[KnownPhrase<M>]) -> ClauseReading<M> {
    let mut reading = ClauseReading { hits: Vec::new(), is_pure: true };
    // The negation that waits for a known word, and where it was.
    let mut pending: Option<(Negation, usize)> = None;
    let mut index = 0;
    while let Some(word) = clause_words.get(index) {
        let rest = &clause_words[index..];
        let own_negation = word_negation(word);
        // `no` is an answer only at the end; otherwise it negates what follows.
        let is_leading_no = word == "no" && rest[1..].iter().any(|next| !NEUTRAL_WORDS.contains(&next.as_str()));
        let longest_phrase = phrases
            .iter()
            .filter(|phrase| rest.starts_with(&phrase.phrase_words))
            .max_by_key(|phrase| phrase.phrase_words.len())
            .filter(|phrase| !(is_leading_no && phrase.phrase_words.len() == 1));
        let Some(phrase) = longest_phrase else {
            match own_negation {
                // `unable to` denies more than `to` alone.
                Some(negation) => pending = pending.max(Some((negation, index))),
                None => reading.is_pure &= NEUTRAL_WORDS.contains(&word.as_str()),
            }
            index += 1;
            continue;
        };
        let negation = match pending.take() {
            Some((Negation::Impossible, _)) => Negation::Impossible,
            Some((negation, position)) if index - position <= NEGATION_REACH => negation,
            _ => Negation::Affirmed,
        };
        reading.hits.push(WordHit { meaning: phrase.meaning, is_clear: phrase.is_clear, negation });
        // `cannot` is an answer by itself and negates what follows it.
        pending = own_negation.filter(|_| phrase.phrase_words.len() == 1).map(|negation| (negation, index));
        index += phrase.phrase_words.len();
    }
    if !reading.is_pure {
        reading.hits.retain(|hit| hit.is_clear);
    }
    reading
}

fn word_negation(word: &str) -> Option<Negation> {
    match word {
        "not" | "no" => Some(Negation::Denied),
        "cannot" => Some(Negation::Impossible),
        "will" | "to" | "should" => Some(Negation::Intended),
        _ => None,
    }
}

/// Decides what the clauses say together: the first that says something, unless a later one consists of nothing but a
/// different answer.
pub(super) fn decide_meaning<M: Copy + PartialEq>(
    clauses: &[ClauseReading<M>],
    resolve_hit: impl Fn(&WordHit<M>) -> Option<M>,
    contradiction: M,
) -> Option<M> {
    let mut answers = clauses.iter().filter_map(|clause| {
        let mut meanings = clause.hits.iter().filter_map(&resolve_hit);
        let first_meaning = meanings.next()?;
        let is_unanimous = meanings.all(|meaning| meaning == first_meaning);
        Some((if is_unanimous { first_meaning } else { contradiction }, clause.is_pure))
    });
    let (decided, _) = answers.next()?;
    let is_contradicted = answers.any(|(later_meaning, is_pure)| is_pure && later_meaning != decided);
    Some(if is_contradicted { contradiction } else { decided })
}
