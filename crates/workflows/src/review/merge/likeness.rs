//! Decides whether two claims mean the same.
//!
//! A claim is *about* words: those of its description that are neither stop words nor used for every kind of issue. Words
//! of the quote itself count little, since everything that can be said about a line uses them; the remaining words
//! distinguish two issues of one line. Two claims are the same only if their evidence overlaps: requirements that were
//! written from one template have the same flaws side by side, in the same words. Claims that are near each other may be
//! the same; how much they must share for that depends on how near they are. A quote that occurs several times may be meant
//! at any of these places, so claims about it are the same only in the same words.
//!
//! Word forms and synonyms are known for English only; in other languages the same words must be used. No agent is asked
//! and nothing is remembered: the same two claims always get the same answer.

use alloc::{collections::BTreeSet, string::String, vec::Vec};

use crate::findings::finding::{Evidence, FindingPlace};
use tribunal_engine::text::{
    fold_case_and_spaces, plain_char,
    words::{is_in_list, is_plain_word, is_stop_word, stem_word},
};

/// The parts of a claim or a finding that are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComparedClaim<'a> {
    pub place: &'a FindingPlace,
    pub evidence: &'a Evidence,
    pub description: &'a str,
    /// The quote occurs at several places, so that it is not certain which one is meant.
    pub is_ambiguous: bool,
}

impl<'a> ComparedClaim<'a> {
    fn claim_text(self) -> ClaimText<'a> {
        ClaimText { evidence: self.evidence, text: self.description }
    }
}

/// How similar two claims are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClaimLikeness {
    Apart,
    Unsure,
    Same,
}

/// The most lines between two quotes that may be about one thing.
const MAX_LINES_APART: u32 = 3;
/// The weights of a word of the claim itself, and of one that occurs in the quote.
const OWN_WORD_WEIGHT: u32 = 10;
const QUOTED_WORD_WEIGHT: u32 = 3;

pub(super) fn compare_claims(left: ComparedClaim<'_>, right: ComparedClaim<'_>) -> ClaimLikeness {
    let distance = evidence_closeness(left, right);
    let likeness = compare_descriptions(left.claim_text(), right.claim_text(), distance);
    let is_certain = !(left.is_ambiguous || right.is_ambiguous)
        || fold_case_and_spaces(left.description) == fold_case_and_spaces(right.description);
    match distance {
        EvidenceCloseness::Overlap if is_certain => likeness,
        _ => likeness.min(ClaimLikeness::Unsure),
    }
}

/// Compares two descriptions of the same evidence.
pub(super) fn compare_meaning(evidence: &Evidence, left_text: &str, right_text: &str) -> ClaimLikeness {
    let (left, right) = (ClaimText { evidence, text: left_text }, ClaimText { evidence, text: right_text });
    compare_descriptions(left, right, EvidenceCloseness::Overlap)
}

/// What a claim says about its evidence.
#[derive(Clone, Copy)]
struct ClaimText<'c> {
    evidence: &'c Evidence,
    text: &'c str,
}

fn compare_descriptions(left: ClaimText<'_>, right: ClaimText<'_>, distance: EvidenceCloseness) -> ClaimLikeness {
    let (left_text, right_text) = (left.text, right.text);
    // The share of common meaning, in percent, from which two claims are the same, and from which they may be.
    let (same_percent, unsure_percent) = match distance {
        EvidenceCloseness::Overlap => (30, 25),
        EvidenceCloseness::SameLines => (50, 35),
        EvidenceCloseness::Near => (60, 45),
        EvidenceCloseness::Far => return ClaimLikeness::Apart,
    };
    // Identical descriptions need no weighing, even if they consist of common words only.
    if fold_case_and_spaces(left_text) == fold_case_and_spaces(right_text) {
        return ClaimLikeness::Same;
    }
    let (left_topic, right_topic) = (parse_topic(left_text), parse_topic(right_text));
    if left_topic.concepts.is_empty() || right_topic.concepts.is_empty() {
        // A description such as "this is vague" has no topic: it may mean anything.
        return if distance == EvidenceCloseness::Overlap { ClaimLikeness::Unsure } else { ClaimLikeness::Apart };
    }
    let quoted_concepts: BTreeSet<String> =
        evidence_concepts(left.evidence).into_iter().chain(evidence_concepts(right.evidence)).collect();
    let word_weight = |word: &String| if quoted_concepts.contains(word) { QUOTED_WORD_WEIGHT } else { OWN_WORD_WEIGHT };
    let total_weight = |words: &BTreeSet<String>| words.iter().map(word_weight).sum::<u32>();
    let shared_weight: u32 = left_topic.concepts.intersection(&right_topic.concepts).map(word_weight).sum();
    // Twice the shared weight in percent of both totals together: 100 if both have the same words.
    let percent = shared_weight * 200 / (total_weight(&left_topic.concepts) + total_weight(&right_topic.concepts));
    let by_percent = match percent {
        percent if percent >= same_percent => ClaimLikeness::Same,
        percent if percent >= unsure_percent => ClaimLikeness::Unsure,
        _ => ClaimLikeness::Apart,
    };
    // "A contradicts B" and "A does not say" are two issues, however many words they share.
    let are_different_kinds = |first_topic: &ClaimTopic, second_topic: &ClaimTopic| {
        first_topic.topic_kind == TopicKind::Contradiction && second_topic.topic_kind == TopicKind::Unsaid
    };
    match by_percent {
        ClaimLikeness::Same
            if are_different_kinds(&left_topic, &right_topic) || are_different_kinds(&right_topic, &left_topic) =>
        {
            ClaimLikeness::Unsure
        }
        ClaimLikeness::Unsure
            if are_different_kinds(&left_topic, &right_topic) || are_different_kinds(&right_topic, &left_topic) =>
        {
            ClaimLikeness::Apart
        }
        by_percent => by_percent,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EvidenceCloseness {
    /// They show the same words, or miss the same thing.
    Overlap,
    SameLines,
    Near,
    Far,
}

fn evidence_closeness(left: ComparedClaim<'_>, right: ComparedClaim<'_>) -> EvidenceCloseness {
    if left.place.file != right.place.file {
        return EvidenceCloseness::Far;
    }
    let share_lines = left.place.overlaps_place(right.place);
    if share_lines && evidence_overlaps(left.evidence, right.evidence) {
        return EvidenceCloseness::Overlap;
    }
    let is_quote = |claim: ComparedClaim<'_>| matches!(claim.evidence, Evidence::Quote { .. });
    // Quotes in different sections are about different things, even on neighbouring lines.
    let same_section = left.place.section == right.place.section;
    // An absence is placed at its heading and is about everything under it. Two absences without a common term are about two
    // things.
    match (is_quote(left), is_quote(right)) {
        (true, true) if share_lines => EvidenceCloseness::SameLines,
        (true, true) if same_section && lines_apart(left.place, right.place) <= MAX_LINES_APART => {
            EvidenceCloseness::Near
        }
        (true, false) | (false, true) if same_section => EvidenceCloseness::Near,
        _ => EvidenceCloseness::Far,
    }
}

fn lines_apart(left: &FindingPlace, right: &FindingPlace) -> u32 {
    let gap_after = left.line.saturating_sub(right.end_line);
    gap_after.max(right.line.saturating_sub(left.end_line))
}

/// Whether two quotes have text in common, or two absences a term.
pub(super) fn evidence_overlaps(left: &Evidence, right: &Evidence) -> bool {
    match (left, right) {
        (Evidence::Quote { text: left }, Evidence::Quote { text: right }) => {
            let (left, right) = (fold_case_and_spaces(left), fold_case_and_spaces(right));
            left.contains(&right)
                || right.contains(&left)
                || ends_with_start_of(&left, &right)
                || ends_with_start_of(&right, &left)
        }
        (Evidence::Absence { terms: left_terms, .. }, Evidence::Absence { terms: right_terms, .. }) => {
            let term_stems =
                |term: &String| content_words(term).into_iter().map(|word| stem_word(&word)).collect::<Vec<_>>();
            left_terms
                .iter()
                .any(|term| right_terms.iter().any(|other_term| term_stems(term) == term_stems(other_term)))
        }
        _ => false,
    }
}

/// Whether the first text ends with at least this many words with which the second one begins.
fn ends_with_start_of(first: &str, second: &str) -> bool {
    /// One common word is too little: it may be a frequent one.
    const MIN_SHARED_WORDS: usize = 2;
    let (first_words, second_words): (Vec<&str>, Vec<&str>) = (first.split(' ').collect(), second.split(' ').collect());
    let most_shared = first_words.len().min(second_words.len());
    (MIN_SHARED_WORDS..=most_shared).any(|shared| first_words[first_words.len() - shared..] == second_words[..shared])
}

fn evidence_concepts(evidence: &Evidence) -> BTreeSet<String> {
    match evidence {
        Evidence::Quote { text } => text_concepts(text),
        Evidence::Absence { heading, .. } => text_concepts(heading),
        Evidence::Check { command, .. } => text_concepts(command),
    }
}

/// What a description is about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClaimTopic {
    concepts: BTreeSet<String>,
    topic_kind: TopicKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TopicKind {
    Unsaid,
    Contradiction,
    Other,
}

fn parse_topic(description: &str) -> ClaimTopic {
    let all_words = content_words(description);
    let has_word_of = |word_list: &str| all_words.iter().any(|word| is_in_list(word_list, word));
    // Contradictions are checked first: their descriptions may also contain words such as `not` or `states`.
    let topic_kind = if has_word_of(CONTRADICTION_WORDS) {
        TopicKind::Contradiction
    } else if has_word_of(UNSAID_WORDS) {
        TopicKind::Unsaid
    } else {
        TopicKind::Other
    };
    let topic_words = all_words.iter().filter(|word| {
        ![UNSAID_WORDS, CONTRADICTION_WORDS, COMMON_WORDS].iter().any(|word_list| is_in_list(word_list, word))
    });
    ClaimTopic { concepts: topic_words.map(|word| word_concept(word)).collect(), topic_kind }
}

/// Words which say that something is left open.
const UNSAID_WORDS: &str = " absent ambiguous cannot clear clearly define defined definition defines describe described \
    detail given lack lacking lacks measurable mention mentioned mentions missing misses no nothing not omitted \
    specification specified specifies specify state stated states subjective testable unclear undefined unspecified \
    unstated vague verifiable without ";

/// Words which say that two things contradict each other.
const CONTRADICTION_WORDS: &str = " conflict conflicting conflicts contradict contradicting contradiction contradicts \
    contradictory incompatible inconsistency inconsistent mismatch reconciled ";

/// Words that may occur in every finding.
const COMMON_WORDS: &str = " acceptance actual actually add allow allows called calls can case cases code concrete could criteria \
    criterion current currently describe document e.g ensure example finding flaw i.e impossible issue leave leaves \
    line may means meant must need needed needs never once only ought paragraph phrase possible prd problem requirement \
    requirements requires require required risk section sentence shall should spec story text unless use used uses \
    using word wording ";

/// Stems of words for one thing; the first one stands for all.
const SYNONYM_GROUPS: &[&[&str]] = &[
    &["limit", "max", "maximum", "cap", "bound", "unlimit", "unbound"],
    &["fail", "failur", "fault", "error"],
    &["delet", "remov", "removal", "era", "eras", "erasur"],
    &["keep", "kept", "retain", "retent"],
    &["log", "audit"],
    &["login", "auth", "authenticat", "signin"],
    &["permiss", "access", "authorizat", "authorisat", "authoriz", "authoris"],
    &["expir", "expiri", "expirat", "timeout"],
    &["idempotent", "idempotenci", "idempotenc"],
    &["performanc", "latenci", "slow", "fast"],
    &["secur", "securiti", "insecur", "unsaf"],
    &["encrypt", "unencrypt", "plaintext", "cleartext"],
    &["handl", "unhandl"],
    &["check", "uncheck", "validat", "unvalidat", "sanitiz", "sanitis"],
    &["crash", "panic", "abort"],
    &["concurrent", "concurrenci", "rac", "parallel"],
    &["maintain", "maintenanc"],
    &["user", "customer"],
    &["recover", "recoveri", "restor"],
    &["vers", "version"],
    &["document", "documentat", "undocument"],
    &["test", "untest"],
];

fn word_concept(word: &str) -> String {
    // Names from code have no stem and no synonyms.
    if !is_plain_word(word) {
        return word.into();
    }
    let word_stem = stem_word(word);
    let synonym_group = SYNONYM_GROUPS.iter().find(|synonym_group| synonym_group.contains(&word_stem.as_str()));
    synonym_group.map_or(word_stem, |synonym_group| String::from(synonym_group[0]))
}

fn text_concepts(claim_text: &str) -> BTreeSet<String> {
    content_words(claim_text).iter().map(|word| word_concept(word)).collect()
}

/// Returns the words in lower case without stop words: `time-out` is two, `user_id`, `n+1` and `>=` are one.
fn content_words(claim_text: &str) -> Vec<String> {
    let mut all_words = Vec::new();
    for raw_word in claim_text.split_whitespace() {
        let raw_word: String = raw_word.chars().map(plain_char).flat_map(char::to_lowercase).collect();
        // Operators and underscores at the edge belong to the word; other punctuation does not.
        let is_edge = |character: char| !character.is_alphanumeric() && !matches!(character, '<' | '>' | '=' | '_');
        let word = raw_word.trim_matches(is_edge).trim_end_matches("'s");
        if word.chars().all(|character| character.is_alphabetic() || matches!(character, '\'' | '-' | '/')) {
            all_words.extend(word.split(['-', '/']).map(String::from));
        } else {
            // Code without blanks is split into its names. A number keeps its decimal point.
            let is_separator = |character: char| {
                matches!(character, '(' | ')' | '[' | ']' | '{' | '}' | ';' | ',' | '"' | '\'' | ':' | '!')
            };
            all_words.extend(word.split(is_separator).map(|part| String::from(part.trim_matches('.'))));
        }
    }
    all_words.retain(|word| !word.is_empty() && !is_stop_word(word));
    all_words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_synonym_is_one_concept() {
        for words in [
            &["limit", "maximum", "capped", "bounds", "unlimited", "unbounded"][..],
            &["fail", "failures", "faults", "errors"],
            &["delete", "deletion", "removed", "removal", "erased", "erasure"],
            &["keep", "kept", "retained", "retention"],
            &["log", "logged", "audit", "auditing"],
            &["login", "authentication", "authenticated"],
            &["permission", "permissions", "access", "authorization", "authorized", "authorised"],
            &["expire", "expired", "expiry", "expiration", "timeouts"],
            &["idempotent", "idempotency", "idempotence"],
            &["performance", "latency", "slow"],
            &["secure", "security", "insecure", "unsafe"],
            &["encrypt", "encryption", "unencrypted", "plaintext"],
            &["handle", "handling", "unhandled"],
            &["check", "checked", "unchecked", "validation", "validated", "sanitized"],
            &["crash", "crashes", "panics", "aborted"],
            &["concurrent", "concurrency", "races", "parallel"],
            &["maintain", "maintained", "maintenance"],
            &["user", "users", "customer", "customers"],
            &["recover", "recovery", "restored"],
            &["version", "versions", "versioning"],
            &["document", "documented", "documentation", "undocumented"],
            &["test", "tests", "tested", "untested"],
        ] {
            for word in words {
                assert_eq!(word_concept(word), word_concept(words[0]), "{word}");
            }
        }
        let listed: Vec<&str> = SYNONYM_GROUPS.iter().flat_map(|group| group.iter().copied()).collect();
        let distinct_words: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(distinct_words.len(), listed.len(), "no word stands for two things");
    }

    #[test]
    fn code_is_cut_into_its_names() {
        assert_eq!(
            content_words("`db.find(id)` panics: N+1, x >= 3!"),
            ["db.find", "id", "panics", "n+1", "x", ">=", "3"]
        );
        assert_eq!(content_words("the time-out of user_id’s re-try"), ["time", "user_id", "re", "try"]);
    }
}
