//! What words come to where no status block says it.

use super::{Analysis, Before, Spoken};

/// A response that has one of these may mean it.
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
/// Before a keyword, they turn it round.
const DENIALS: &[&str] =
    &["not", "never", "isn't", "aren't", "wasn't", "hasn't", "cannot", "can't", "nor", "before"];

const ENOUGH: u32 = 40;
/// More lines of error than a run that gets somewhere has.
const ERRORS: usize = 5;

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
    let (now, last) = (analysis.length, before.last_len.unwrap_or(0));
    if last > 0 && now.saturating_mul(2) < last {
        analysis.score += 10;
        analysis.reasons.push(format!("less than half as long as the last one: {now} of {last} bytes (+10)"));
    }
    analysis.done = signal || analysis.score >= ENOUGH;
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

/// As whole words, in any case, and not right behind one that turns it round.
fn has(text: &str, phrase: &str, denials: &[&str]) -> bool {
    text.lines().any(|line| {
        let line = line.to_lowercase().replace('’', "'");
        line.match_indices(phrase).any(|(at, _)| {
            let (ahead, behind) = (&line[..at], &line[at + phrase.len()..]);
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let whole = !ahead.ends_with(word) && !behind.starts_with(word);
            let mut last = ahead.split_whitespace().rev().take(2);
            whole && !last.any(|word| denials.contains(&word))
        })
    })
}

/// A line that reports an error, not one that has the word in it or is a JSON field of that name.
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
