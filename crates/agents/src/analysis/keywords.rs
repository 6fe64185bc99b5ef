//! Scores keywords where no status block says how far the work has come.

use super::{AgentResponse, AnalysisContext, ResponseAnalysis};

/// Phrases that suggest that the work is complete.
const COMPLETION_PHRASES: &[&str] =
    &["all tasks complete", "project complete", "ready for review", "done", "complete", "completed", "finished"];
const NOTHING_TO_DO_PHRASES: &[&str] =
    &["nothing to do", "nothing left to do", "no changes", "no work remaining", "already implemented", "up to date"];
const TESTING_PHRASES: &[&str] = &["running tests", "npm test", "cargo test", "go test", "bats", "pytest", "jest"];
const BUILDING_PHRASES: &[&str] = &["implementing", "creating", "writing", "adding", "function", "class"];
/// Words that negate a phrase if one of them is among the two words before it.
const NEGATIONS: &[&str] = &["not", "never", "isn't", "aren't", "wasn't", "hasn't", "cannot", "can't", "nor", "before"];

/// The score from which on the work counts as done.
const DONE_THRESHOLD: u32 = 40;
/// A run that makes progress prints at most this many error lines.
const MAX_ERROR_LINES: usize = 5;

/// Adds points and reasons for the phrases of a response.
pub(super) fn score_keywords(
    analysis: &mut ResponseAnalysis,
    agent_response: &AgentResponse,
    analysis_context: &AnalysisContext,
) {
    let mut has_done_phrase = false;
    let phrase_groups =
        [(COMPLETION_PHRASES, 10, "says"), (NOTHING_TO_DO_PHRASES, 15, "says that nothing is left to do:")];
    for (phrases, points, reason_prefix) in phrase_groups {
        if let Some(phrase) = phrases.iter().find(|phrase| contains_phrase(&agent_response.answer, phrase, NEGATIONS)) {
            has_done_phrase = true;
            analysis.score += points;
            analysis.reasons.push(format!("{reason_prefix} “{phrase}” (+{points})"));
        }
    }
    // An agent that has nothing left to do tends to answer much shorter than before.
    let (current_length, previous_length) = (analysis.length, analysis_context.previous_length.unwrap_or(0));
    if previous_length > 0 && current_length.saturating_mul(2) < previous_length {
        analysis.score += 10;
        analysis.reasons.push(format!(
            "less than half as long as the last response: {current_length} of {previous_length} bytes (+10)"
        ));
    }
    analysis.done = has_done_phrase || analysis.score >= DONE_THRESHOLD;
    // Testing and errors show in everything the agent said and ran, not only in its final answer.
    let work_texts = [agent_response.all_text.as_str(), agent_response.command_text.as_str()];
    let find_phrase = |phrases: &[&'static str]| {
        phrases
            .iter()
            .copied()
            .find(|phrase| work_texts.iter().any(|work_text| contains_phrase(work_text, phrase, &[])))
    };
    if let (Some(testing_phrase), None) = (find_phrase(TESTING_PHRASES), find_phrase(BUILDING_PHRASES)) {
        analysis.test_only = true;
        analysis.reasons.push(format!("tests only: mentions “{testing_phrase}”, but no implementation work"));
    }
    let error_count =
        work_texts.iter().flat_map(|work_text| work_text.lines()).filter(|work_line| is_error_line(work_line)).count();
    if error_count > MAX_ERROR_LINES {
        analysis.stuck = true;
        analysis.reasons.push(format!("stuck: {error_count} error lines"));
    }
    if analysis.reasons.is_empty() {
        analysis.reasons.push("no status block, and nothing says that the work is done".to_string());
    }
}

/// Whether a text contains a phrase as whole words, in any case and without a negation among the two words before it.
fn contains_phrase(searched_text: &str, phrase: &str, negations: &[&str]) -> bool {
    searched_text.lines().any(|search_line| {
        // The negations are listed with the plain apostrophe.
        let search_line = search_line.to_lowercase().replace('’', "'");
        search_line.match_indices(phrase).any(|(position, _)| {
            let (text_before, text_after) = (&search_line[..position], &search_line[position + phrase.len()..]);
            let is_word_char = |character: char| character.is_alphanumeric() || character == '_';
            let is_whole_word = !text_before.ends_with(is_word_char) && !text_after.starts_with(is_word_char);
            // Two words back is enough for "not yet done"; further back, the negation belongs to something else.
            let mut preceding_words = text_before.split_whitespace().rev().take(2);
            is_whole_word && !preceding_words.any(|word| negations.contains(&word))
        })
    })
}

/// Whether a line reports an error, rather than merely mentioning one or being a JSON field of that name.
fn is_error_line(output_line: &str) -> bool {
    let trimmed_line = output_line.trim_start();
    if trimmed_line.starts_with('"') && trimmed_line.contains("\":") {
        return false;
    }
    let error_prefixes = ["Error:", "ERROR:", "error:", "error[", "FATAL", "Fatal", "fatal:", "panicked at"];
    let error_fragments =
        ["]: error", "Link: error", "Error occurred", "failed with error", "Exception", "exception:", " FATAL"];
    error_prefixes.iter().any(|fragment| trimmed_line.starts_with(fragment))
        || error_fragments.iter().any(|fragment| output_line.contains(fragment))
}
