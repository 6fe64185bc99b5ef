//! Decides whether two claims mean the same.
//!
//! A claim is *about* words: those of its description that are neither stop words nor used for every kind of issue. Words
//! of the quote itself count little, since everything that can be said about a line uses them; the remaining words
//! distinguish two issues of one line. How much must be shared depends on the evidence: most where quotes are only near
//! each other, least where they overlap.
//!
//! Word forms and synonyms are known for English only; in other languages the same words must be used. No agent is asked
//! and nothing is remembered: the same two claims always get the same answer.

use alloc::{collections::BTreeSet, string::String, vec::Vec};

use crate::{
    finding::{Evidence, Place},
    text::{
        fold, plain_char,
        words::{is_plain, is_small, listed, stem},
    },
};

/// The parts of a claim or a finding that are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    pub place: &'a Place,
    pub evidence: &'a Evidence,
    pub description: &'a str,
}

/// How similar two claims are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    Apart,
    Unsure,
    Same,
}

/// The most lines between two quotes that may be about one thing.
const NEAR_LINES: u32 = 3;
/// The weights of a word of the claim itself, and of one that occurs in the quote.
const OWN: u32 = 10;
const QUOTED: u32 = 3;

pub(super) fn likeness(one: Said<'_>, other: Said<'_>) -> Likeness {
    let closeness = closeness(one, other);
    // The share of common meaning, in percent, from which two claims are the same, and from which they may be.
    let (same, unsure) = match closeness {
        Closeness::Overlap => (30, 25),
        Closeness::SameLines => (50, 35),
        Closeness::Near => (60, 45),
        Closeness::Far => return Likeness::Apart,
    };
    // Identical descriptions need no weighing, even if they consist of common words only.
    if fold(one.description) == fold(other.description) {
        return Likeness::Same;
    }
    let (ours, theirs) = (topic(one.description), topic(other.description));
    if ours.words.is_empty() || theirs.words.is_empty() {
        // A description such as "this is vague" has no topic: it may mean anything.
        return if closeness == Closeness::Overlap { Likeness::Unsure } else { Likeness::Apart };
    }
    let quoted: BTreeSet<String> = quoted(one.evidence).into_iter().chain(quoted(other.evidence)).collect();
    let weight = |word: &String| if quoted.contains(word) { QUOTED } else { OWN };
    let sum = |words: &BTreeSet<String>| words.iter().map(weight).sum::<u32>();
    let shared: u32 = ours.words.intersection(&theirs.words).map(weight).sum();
    // Twice the shared weight of both totals: 100 if both have the same words.
    let percent = shared * 200 / (sum(&ours.words) + sum(&theirs.words));
    let found = match percent {
        percent if percent >= same => Likeness::Same,
        percent if percent >= unsure => Likeness::Unsure,
        _ => Likeness::Apart,
    };
    // "A contradicts B" and "A does not say" are two issues, however many words they share.
    let clash = |a: &Topic, b: &Topic| a.kind == Kind::Contradiction && b.kind == Kind::Unsaid;
    match found {
        Likeness::Same if clash(&ours, &theirs) || clash(&theirs, &ours) => Likeness::Unsure,
        Likeness::Unsure if clash(&ours, &theirs) || clash(&theirs, &ours) => Likeness::Apart,
        found => found,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closeness {
    /// They show the same words, or miss the same thing.
    Overlap,
    SameLines,
    Near,
    Far,
}

fn closeness(one: Said<'_>, other: Said<'_>) -> Closeness {
    if one.place.file != other.place.file {
        return Closeness::Far;
    }
    let lines = one.place.overlaps(other.place);
    if lines && overlap(one.evidence, other.evidence) {
        return Closeness::Overlap;
    }
    let quote = |said: Said<'_>| matches!(said.evidence, Evidence::Quote { .. });
    // Quotes in different sections are about different things, even on neighbouring lines.
    let section = one.place.section == other.place.section;
    // An absence is placed at its heading and is about everything under it. Two absences are about two things.
    match (quote(one), quote(other)) {
        (true, true) if lines => Closeness::SameLines,
        (true, true) if section && apart(one.place, other.place) <= NEAR_LINES => Closeness::Near,
        (true, false) | (false, true) if section => Closeness::Near,
        _ => Closeness::Far,
    }
}

fn apart(one: &Place, other: &Place) -> u32 {
    let after = one.line.saturating_sub(other.end_line);
    after.max(other.line.saturating_sub(one.end_line))
}

/// Whether one quote contains the other or half of its words, or two absences have a common term.
pub(super) fn overlap(one: &Evidence, other: &Evidence) -> bool {
    match (one, other) {
        (Evidence::Quote { text: one }, Evidence::Quote { text: other }) => {
            let (one, other) = (fold(one), fold(other));
            one.contains(&other) || other.contains(&one) || {
                let (one, other) = (stems(&one), stems(&other));
                let shared = one.intersection(&other).count();
                // One common word is too little: it may be a frequent one.
                shared >= 2 && shared * 2 >= one.len().min(other.len())
            }
        }
        (Evidence::Absence { terms: one, .. }, Evidence::Absence { terms: other, .. }) => {
            let key = |term: &String| words(term).into_iter().map(|word| stem(&word)).collect::<Vec<_>>();
            one.iter().any(|term| other.iter().any(|other| key(term) == key(other)))
        }
        _ => false,
    }
}

fn quoted(evidence: &Evidence) -> BTreeSet<String> {
    match evidence {
        Evidence::Quote { text } => stems(text),
        Evidence::Absence { heading, .. } => stems(heading),
    }
}

/// What a description is about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Topic {
    words: BTreeSet<String>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsaid,
    Contradiction,
    Other,
}

fn topic(description: &str) -> Topic {
    let all = words(description);
    let said = |list: &str| all.iter().any(|word| listed(list, word));
    // Contradictions are checked first: their descriptions often also say what is missing.
    let kind = if said(CONTRADICTION) {
        Kind::Contradiction
    } else if said(UNSAID) {
        Kind::Unsaid
    } else {
        Kind::Other
    };
    let own =
        all.iter().filter(|word| ![UNSAID, CONTRADICTION, COMMON].iter().any(|list| listed(list, word)));
    Topic { words: own.map(|word| concept(word)).collect(), kind }
}

/// Words which say that something is left open.
const UNSAID: &str = " absent ambiguous cannot clear clearly define defined definition defines describe described \
    detail given lack lacking lacks measurable mention mentioned mentions missing misses no nothing not omitted \
    specification specified specifies specify state stated states subjective testable unclear undefined unspecified \
    unstated vague verifiable without ";

/// Words which say that two things contradict each other.
const CONTRADICTION: &str = " conflict conflicting conflicts contradict contradicting contradiction contradicts \
    contradictory incompatible inconsistency inconsistent mismatch reconciled ";

/// Words that may occur in every finding.
const COMMON: &str = " acceptance actual actually add allow allows called calls can case cases code concrete could criteria \
    criterion current currently describe document e.g ensure example finding flaw i.e impossible issue leave leaves \
    line may means meant must need needed needs never once only ought paragraph phrase possible prd problem requirement \
    requirements requires require required risk section sentence shall should spec story text unless use used uses \
    using word wording ";

/// Stems of words for one thing; the first one stands for all.
const SYNONYMS: &[&[&str]] = &[
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

fn concept(word: &str) -> String {
    // Names from code have no stem and no synonyms.
    if !is_plain(word) {
        return word.into();
    }
    let key = stem(word);
    let group = SYNONYMS.iter().find(|group| group.contains(&key.as_str()));
    group.map_or(key, |group| String::from(group[0]))
}

fn stems(text: &str) -> BTreeSet<String> {
    words(text).iter().map(|word| concept(word)).collect()
}

/// Returns the words in lower case without stop words: `time-out` is two, `user_id`, `n+1` and `>=` are one.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in text.split_whitespace() {
        let piece: String = piece.chars().map(plain_char).flat_map(char::to_lowercase).collect();
        // Operators and underscores at the edge belong to the word; other punctuation does not.
        let edge = |c: char| !c.is_alphanumeric() && !matches!(c, '<' | '>' | '=' | '_');
        let word = piece.trim_matches(edge).trim_end_matches("'s");
        if word.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '-' | '/')) {
            found.extend(word.split(['-', '/']).map(String::from));
        } else {
            // Code without blanks is split into its names. A number keeps its decimal point.
            let inner =
                |c: char| matches!(c, '(' | ')' | '[' | ']' | '{' | '}' | ';' | ',' | '"' | '\'' | ':' | '!');
            found.extend(word.split(inner).map(|part| String::from(part.trim_matches('.'))));
        }
    }
    found.retain(|word| !word.is_empty() && !is_small(word));
    found
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
                assert_eq!(concept(word), concept(words[0]), "{word}");
            }
        }
        let all: Vec<&str> = SYNONYMS.iter().flat_map(|group| group.iter().copied()).collect();
        let distinct: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len(), "no word stands for two things");
    }

    #[test]
    fn code_is_cut_into_its_names() {
        assert_eq!(
            words("`db.find(id)` panics: N+1, x >= 3!"),
            ["db.find", "id", "panics", "n+1", "x", ">=", "3"]
        );
        assert_eq!(words("the time-out of user_id’s re-try"), ["time", "user_id", "re", "try"]);
    }
}
