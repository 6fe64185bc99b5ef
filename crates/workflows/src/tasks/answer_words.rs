//! The words in which agents state a severity, a verdict or the result of a fix: one table for each.
//!
//! The tables feed the parser of answers, the JSON Schemas and the question that follows an unknown word.
//! `docs/agent-protocol.md` shows them, and a test compares the page with them.
//!
//! [`clauses`] finds the words in a text; what they amount to together is decided here.

mod clauses;

use alloc::{format, string::String, vec::Vec};

use crate::{
    findings::finding::Severity,
    tasks::claims::{ChallengeVerdict, ClaimStatus, UnknownWord},
};
use clauses::{Negation, WordHit, collect_phrases, decide_meaning, read_clauses, split_clauses};
use tribunal_engine::text::truncate_chars;

/// The words for one meaning.
#[derive(Debug)]
pub struct WordGroup<M: 'static> {
    pub meaning: M,
    /// The word that prompts and schemas ask for.
    pub name: &'static str,
    /// Whether prompts and schemas offer this meaning. What they do not offer is understood all the same.
    pub is_offered: bool,
    /// Words that count anywhere in a clause.
    pub clear_words: &'static [&'static str],
    /// Everyday words that count only in a clause of nothing but known words: `no` says a lot, `no owner is named` does not.
    pub plain_words: &'static [&'static str],
}

impl<M> WordGroup<M> {
    /// Returns all words, the clear ones first.
    pub fn all_words(&self) -> impl Iterator<Item = &'static str> + use<M> {
        self.clear_words.iter().chain(self.plain_words).copied()
    }
}

/// The words for severities, most severe first.
pub static SEVERITY_WORDS: [WordGroup<Severity>; 4] = [
    WordGroup {
        meaning: Severity::Critical,
        name: "critical",
        is_offered: true,
        clear_words: &["critical", "blocker", "blocking", "fatal", "severe", "showstopper", "P0"],
        plain_words: &[],
    },
    WordGroup {
        meaning: Severity::High,
        name: "high",
        is_offered: true,
        clear_words: &["high", "major", "serious", "important", "P1"],
        plain_words: &[],
    },
    // `minor` counts as medium and not as low, so it keeps a pass from being dry.
    WordGroup {
        meaning: Severity::Medium,
        name: "medium",
        is_offered: true,
        clear_words: &["medium", "med", "moderate", "minor", "P2"],
        plain_words: &[],
    },
    WordGroup {
        meaning: Severity::Low,
        name: "low",
        is_offered: true,
        clear_words: &["low", "trivial", "info", "informational", "nit", "nitpick", "cosmetic", "negligible", "P3"],
        plain_words: &[],
    },
];

/// The words for verdicts.
pub static VERDICT_WORDS: [WordGroup<ChallengeVerdict>; 3] = [
    WordGroup {
        meaning: ChallengeVerdict::Valid,
        name: "VALID",
        is_offered: true,
        clear_words: &[
            "valid",
            "uphold",
            "upheld",
            "confirm",
            "confirms",
            "confirmed",
            "true positive",
            "cannot refute",
            "not refuted",
            "not a false positive",
        ],
        plain_words: &[
            "agree",
            "agreed",
            "true",
            "correct",
            "accept",
            "accepted",
            "yes",
            "real",
            "right",
            "hold",
            "holds",
            "genuine",
            "legitimate",
            "justified",
            "proven",
            "verified",
        ],
    },
    WordGroup {
        meaning: ChallengeVerdict::Invalid,
        name: "INVALID",
        is_offered: true,
        clear_words: &[
            "invalid",
            "refute",
            "refuted",
            "reject",
            "rejected",
            "dismiss",
            "dismissed",
            "disagree",
            "disagreed",
            "false positive",
            "unfounded",
            "not a bug",
            "not an issue",
            "not a problem",
        ],
        plain_words: &[
            "false",
            "incorrect",
            "wrong",
            "no",
            "untrue",
            "unjustified",
            "overruled",
            "denied",
            "no bug",
            "no issue",
            "no problem",
        ],
    },
    WordGroup {
        meaning: ChallengeVerdict::Ambiguous,
        name: "AMBIGUOUS",
        is_offered: true,
        clear_words: &[
            "ambiguous",
            "unclear",
            "unsure",
            "not sure",
            "uncertain",
            "undecided",
            "inconclusive",
            "cannot tell",
            "cannot say",
            "cannot decide",
            "cannot confirm",
            "cannot verify",
            "cannot determine",
            "not confirmed",
            "unconfirmed",
            "not verified",
            "unverified",
        ],
        plain_words: &[
            "unknown",
            "partly",
            "partially",
            "partial",
            "maybe",
            "perhaps",
            "possibly",
            "depends",
            "mixed",
            "debatable",
            "disputed",
            "neither",
            "both",
        ],
    },
];

/// The words for the results of fixes.
pub static CLAIM_WORDS: [WordGroup<ClaimStatus>; 3] = [
    WordGroup {
        meaning: ClaimStatus::Fixed,
        name: "FIXED",
        is_offered: true,
        clear_words: &["fixed", "resolved", "done"],
        plain_words: &[
            "fix",
            "complete",
            "completed",
            "finished",
            "solved",
            "corrected",
            "repaired",
            "addressed",
            "applied",
            "implemented",
            "success",
            "successful",
            "succeeded",
            "ok",
            "okay",
            "yes",
            "closed",
        ],
    },
    WordGroup {
        meaning: ClaimStatus::Blocked,
        name: "BLOCKED",
        is_offered: true,
        clear_words: &["blocked", "cannot fix", "cannot be fixed", "won't fix", "wontfix"],
        plain_words: &[
            "cannot",
            "unable",
            "impossible",
            "stuck",
            "skip",
            "skipped",
            "deferred",
            "declined",
            "refused",
            "escalated",
            "on hold",
            "needs a decision",
            "needs input",
            "needs clarification",
        ],
    },
    WordGroup {
        meaning: ClaimStatus::Unfixed,
        name: "NOT FIXED",
        is_offered: false,
        clear_words: &[
            "not fixed",
            "unfixed",
            "unresolved",
            "partially",
            "partly",
            "in part",
            "almost",
            "nearly",
            "incomplete",
        ],
        plain_words: &[
            "open",
            "pending",
            "todo",
            "in progress",
            "partial",
            "failed",
            "failure",
            "no",
            "unchanged",
            "not started",
        ],
    },
];

/// Finds the severity that a text names; of several, the most severe.
pub fn read_severity(severity_text: &str) -> Option<Severity> {
    let clauses = read_clauses(severity_text, &SEVERITY_WORDS);
    let all_hits = clauses.iter().flat_map(|clause| &clause.hits);
    // `low (not critical)` is low. The order is most severe first, so the minimum is the most severe one.
    all_hits.filter(|hit| !matches!(hit.negation, Negation::Denied | Negation::Impossible)).map(|hit| hit.meaning).min()
}

/// Finds the verdict that a text states. `None` if it has no known word; a contradiction is ambiguous.
pub fn read_verdict(verdict_text: &str) -> Option<ChallengeVerdict> {
    use ChallengeVerdict::{Ambiguous, Invalid, Valid};
    let resolve_hit = |hit: &WordHit<ChallengeVerdict>| match (hit.meaning, hit.negation) {
        (verdict, Negation::Affirmed) => Some(verdict),
        (Valid, Negation::Denied) => Some(Invalid),
        // `not invalid` does not say that the finding is right, and `cannot agree` not that it is wrong.
        (Valid | Invalid, _) => Some(Ambiguous),
        (Ambiguous, _) => None,
    };
    decide_meaning(&read_clauses(verdict_text, &VERDICT_WORDS), resolve_hit, Ambiguous)
}

/// Finds the result of a fix that a text states; `None` if it has no known word.
pub fn read_claim_status(status_text: &str) -> Option<ClaimStatus> {
    use ClaimStatus::{Blocked, Fixed, Unfixed};
    let resolve_hit = |hit: &WordHit<ClaimStatus>| match (hit.meaning, hit.negation) {
        (status, Negation::Affirmed) => Some(status),
        (Fixed, Negation::Impossible) => Some(Blocked),
        (Fixed, Negation::Denied | Negation::Intended) => Some(Unfixed),
        (Blocked | Unfixed, _) => None,
    };
    let clauses = read_clauses(status_text, &CLAIM_WORDS);
    // "Blocked" wins over "fixed": `fixed in part, blocked by X` needs a decision.
    if clauses.iter().flat_map(|clause| &clause.hits).any(|hit| resolve_hit(hit) == Some(Blocked)) {
        return Some(Blocked);
    }
    decide_meaning(&clauses, resolve_hit, Unfixed)
}

/// Returns the meaning of a text that is exactly one word of the table.
pub fn find_exact_word<M: Copy>(word_text: &str, word_table: &'static [WordGroup<M>]) -> Option<M> {
    let clauses = split_clauses(word_text);
    let [only_clause] = clauses.as_slice() else { return None };
    let mut phrases = collect_phrases(word_table).into_iter();
    phrases.find(|phrase| phrase.phrase_words == *only_clause).map(|phrase| phrase.meaning)
}

/// Describes the words of an answer that are in no table, and the words that are: the correction for the agent.
pub fn describe_unknown_words<M>(
    field_name: &str,
    unknown_words: &[UnknownWord],
    word_table: &'static [WordGroup<M>],
) -> String {
    let unknown_parts: Vec<String> = unknown_words
        .iter()
        .map(|unknown| format!("`{}` for {}", truncate_chars(&unknown.word, 40), unknown.id))
        .collect();
    let offered_groups = word_table.iter().filter(|group| group.is_offered);
    let group_parts: Vec<String> = offered_groups
        .map(|group| {
            let other_words = group.all_words().filter(|word| !word.eq_ignore_ascii_case(group.name));
            format!("{} (or {})", group.name, other_words.collect::<Vec<&str>>().join(", "))
        })
        .collect();
    format!("unknown {field_name} {}; accepted words: {}", unknown_parts.join(", "), group_parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribunal_engine::ids::FindingId;

    #[test]
    fn every_word_of_every_table_has_its_meaning_in_any_spelling() {
        fn check_table<M: Copy + PartialEq + core::fmt::Debug>(
            word_table: &'static [WordGroup<M>],
            read_text: fn(&str) -> Option<M>,
        ) {
            for group in word_table {
                for word in group.all_words() {
                    for spelling in [
                        String::from(word),
                        word.to_uppercase(),
                        word.replace(' ', "_"),
                        word.replace(' ', "-"),
                        format!("**{word}**"),
                        format!("`{word}`: the text says so."),
                    ] {
                        assert_eq!(read_text(&spelling), Some(group.meaning), "{spelling}");
                    }
                    assert_eq!(find_exact_word(word, word_table), Some(group.meaning), "{word}");
                }
                assert_eq!(read_text(group.name), Some(group.meaning));
            }
        }
        check_table(&SEVERITY_WORDS, read_severity);
        check_table(&VERDICT_WORDS, read_verdict);
        check_table(&CLAIM_WORDS, read_claim_status);
    }

    #[test]
    fn verdicts_are_read_with_their_negations() {
        use ChallengeVerdict::{Ambiguous, Invalid, Valid};
        for (verdict_text, expected) in [
            ("not valid", Some(Invalid)),
            ("Not a valid finding", Some(Invalid)),
            ("This isn't real", Some(Invalid)),
            ("I do not agree", Some(Invalid)),
            ("it doesn't hold", Some(Invalid)),
            ("no longer valid", Some(Invalid)),
            ("no valid finding", Some(Invalid)),
            ("No.", Some(Invalid)),
            ("not confirmed", Some(Ambiguous)),
            ("cannot confirm", Some(Ambiguous)),
            ("I could not confirm this", Some(Ambiguous)),
            ("can't be confirmed", Some(Ambiguous)),
            ("to be confirmed", Some(Ambiguous)),
            ("unable to verify", Some(Ambiguous)),
            ("not invalid", Some(Ambiguous)),
            ("not a false positive", Some(Valid)),
            ("Could not refute it", Some(Valid)),
            ("partially valid", Some(Ambiguous)),
            ("possibly true", Some(Ambiguous)),
            ("probably valid", Some(Valid)),
            ("not ambiguous", None),
        ] {
            assert_eq!(read_verdict(verdict_text), expected, "{verdict_text}");
        }
    }

    #[test]
    fn a_reason_after_the_verdict_does_not_change_it() {
        use ChallengeVerdict::{Ambiguous, Invalid, Valid};
        for (verdict_text, expected) in [
            ("VALID: it does not say when", Some(Valid)),
            ("VALID - the date is in an invalid format", Some(Valid)),
            ("valid because the number is wrong", Some(Valid)),
            ("INVALID (the owner is confirmed in line 3)", Some(Invalid)),
            ("My verdict: upheld", Some(Valid)),
            ("The quoted sentence really has two readings, so this is valid", Some(Valid)),
            ("valid, invalid", Some(Ambiguous)),
            ("VALID / INVALID / AMBIGUOUS", Some(Ambiguous)),
            ("valid but partly wrong", Some(Ambiguous)),
            ("yes and no", Some(Ambiguous)),
            // Everyday words in a sentence say nothing about the finding.
            ("The text says that no owner is named", None),
            ("the right section has a real example", None),
            ("meh", None),
            ("", None),
            ("invalidated", None),
        ] {
            assert_eq!(read_verdict(verdict_text), expected, "{verdict_text}");
        }
    }

    #[test]
    fn results_of_fixes_are_read_with_their_negations() {
        use ClaimStatus::{Blocked, Fixed, Unfixed};
        for (status_text, expected) in [
            ("Fixed ✅", Some(Fixed)),
            ("done; will need a note", Some(Fixed)),
            ("fixed, not tested", Some(Fixed)),
            ("Already fixed", Some(Fixed)),
            ("not fixed", Some(Unfixed)),
            ("partially fixed", Some(Unfixed)),
            ("will be done", Some(Unfixed)),
            ("to be fixed", Some(Unfixed)),
            ("almost done", Some(Unfixed)),
            ("fixed, still open", Some(Unfixed)),
            ("cannot be fixed", Some(Blocked)),
            ("could not fix it", Some(Blocked)),
            ("unable to fix", Some(Blocked)),
            ("I cannot see how this could ever be fixed", Some(Blocked)),
            ("BLOCKED (needs a decision)", Some(Blocked)),
            ("fixed in part, blocked by X", Some(Blocked)),
            ("won't fix", Some(Blocked)),
            ("not blocked", None),
            ("abandoned", None),
            ("undone", None),
            ("prefixed", None),
            ("LOOP_COMPLETE", None),
        ] {
            assert_eq!(read_claim_status(status_text), expected, "{status_text}");
        }
    }

    #[test]
    fn of_several_severities_the_most_severe_counts_unless_it_is_denied() {
        for (severity_text, expected) in [
            ("medium/high", Some(Severity::High)),
            ("**High** (must fix)", Some(Severity::High)),
            ("low (not critical)", Some(Severity::Low)),
            ("low, non-blocking", Some(Severity::Low)),
            ("P2", Some(Severity::Medium)),
            ("gruesome", None),
        ] {
            assert_eq!(read_severity(severity_text), expected, "{severity_text}");
        }
    }

    #[test]
    fn a_correction_names_the_finding_its_word_and_every_accepted_word() {
        let unknown_words = [UnknownWord { id: FindingId(3), word: "meh".into() }];
        let correction = describe_unknown_words("verdict", &unknown_words, &VERDICT_WORDS);
        assert!(
            correction.starts_with("unknown verdict `meh` for F3; accepted words: VALID (or uphold, upheld, "),
            "{correction}"
        );
        for word in VERDICT_WORDS.iter().flat_map(WordGroup::all_words) {
            assert!(correction.to_lowercase().contains(word), "{word} in {correction}");
        }
        let correction = describe_unknown_words("status", &unknown_words, &CLAIM_WORDS);
        assert!(correction.contains("FIXED (or ") && !correction.contains("NOT FIXED"), "{correction}");
    }
}
