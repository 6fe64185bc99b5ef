//! Scores keywords where no status block says how far the work has come.

use super::{Analysis, Before, Spoken};

/// Phrases that suggest that the work is complete.
const COMPLETION: &[&str] = &[
    "all tasks complete",
    "project complete",
    "ready for review",
    "done",
    "complete",
    "completed",
    "finished",
];
const NOTHING_TO_DO: &[&str] = &[
    "nothing to do",
    "nothing left to do",
    "no changes",
    "no work remaining",
    "already implemented",
    "up to date",
];
const TESTING: &[&str] = &["running tests", "npm test", "cargo test", "go test", "bats", "pytest", "jest"];
const BUILDING: &[&str] = &["implementing", "creating", "writing", "adding", "function", "class"];
/// Words that negate a phrase if they come right before it.
const DENIALS: &[&str] =
    &["not", "never", "isn't", "aren't", "wasn't", "hasn't", "cannot", "can't", "nor", "before"];

/// The score from which on the work counts as done.
const ENOUGH: u32 = 40;
/// A run that makes progress prints at most this many error lines.
const ERRORS: usize = 5;

/// Adds points and reasons for the phrases of a response.
pub(super) fn weigh(analysis: &mut Analysis, spoken: &Spoken, before: &Before) {
    let mut signal = false;
    let signs = [(COMPLETION, 10, "says"), (NOTHING_TO_DO, 15, "says that there is nothing to do:")];
    for (phrases, points, says) in signs {
        if let Some(phrase) = phrases.iter().find(|phrase| has(&spoken.answer, phrase, DENIALS)) {
            signal = true;
            analysis.score += points;
            analysis.reasons.push(format!("{says} “{phrase}” (+{points})"));
        }
    }
    // An agent that has nothing left to do tends to answer much shorter than before.
    let (now, last) = (analysis.length, before.last_len.unwrap_or(0));
    if last > 0 && now.saturating_mul(2) < last {
        analysis.score += 10;
        analysis.reasons.push(format!("less than half as long as the last one: {now} of {last} bytes (+10)"));
    }
    analysis.done = signal || analysis.score >= ENOUGH;
    // Testing and errors show in what it said and ran, not only in its final answer.
    let work = [spoken.said.as_str(), spoken.ran.as_str()];
    let any = |phrases: &[&'static str]| {
        phrases.iter().copied().find(|phrase| work.iter().any(|text| has(text, phrase, &[])))
    };
    if let (Some(test), None) = (any(TESTING), any(BUILDING)) {
        analysis.test_only = true;
        analysis.reasons.push(format!("only tests: “{test}”, and no word of any building"));
    }
    let errors = work.iter().flat_map(|text| text.lines()).filter(|line| is_error(line)).count();
    if errors > ERRORS {
        analysis.stuck = true;
        analysis.reasons.push(format!("stuck: {errors} lines of error"));
    }
    if analysis.reasons.is_empty() {
        analysis.reasons.push("no status block, and no word that says it is done".to_string());
    }
}

/// Whether a text contains a phrase as whole words, in any case and without a negation directly before it.
fn has(text: &str, phrase: &str, denials: &[&str]) -> bool {
    text.lines().any(|line| {
        // The negations are listed with the plain apostrophe.
        let line = line.to_lowercase().replace('’', "'");
        line.match_indices(phrase).any(|(at, _)| {
            let (ahead, behind) = (&line[..at], &line[at + phrase.len()..]);
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let whole = !ahead.ends_with(word) && !behind.starts_with(word);
            // Two words back is enough for "not yet done"; further back, the negation belongs to something else.
            let mut last = ahead.split_whitespace().rev().take(2);
            whole && !last.any(|word| denials.contains(&word))
        })
    })
}

/// Whether a line reports an error, rather than merely mentioning one or being a JSON field of that name.
fn is_error(line: &str) -> bool {
    let start = line.trim_start();
    if start.starts_with('"') && start.contains("\":") {
        return false;
    }
    let begins = ["Error:", "ERROR:", "error:", "error[", "FATAL", "Fatal", "fatal:", "panicked at"];
    let has = [
        "]: error",
        "Link: error",
        "Error occurred",
        "failed with error",
        "Exception",
        "exception:",
        " FATAL",
    ];
    begins.iter().any(|word| start.starts_with(word)) || has.iter().any(|word| line.contains(word))
}
