//! Rules for the roles in a review, recognised by our own prompts.
//!
//! Answers go through the client's tool for answers to a schema if it offers one, otherwise as text, so the same rule works for
//! every client. A repeated request in the same conversation has another last text: a test needs rules of its own for that.

use serde_json::{Value, json};

use super::scenario::{Call, Pattern, Rule, Step, When};

/// A rule for any reviewer in this round.
pub fn reviewer(round: u32, findings: &[Value]) -> Rule {
    answers(&format!(r"(?s)You are one reviewer of a panel.*\. Round {round}\."), &findings_of(findings))
}

/// A rule for the reviewer in one seat in this round.
pub fn seat(seat: &str, round: u32, findings: &[Value]) -> Rule {
    answers(&format!(r"(?s)\. Round {round}\..*Your seat: {seat}\."), &findings_of(findings))
}

/// A rule for any challenger of the finding that contains this text.
pub fn challenger(words: &str, verdicts: &[Value]) -> Rule {
    let pattern = format!("(?s)You are a challenger.*disputed findings.*{}", regex::escape(words));
    answers(&pattern, &json!({ "verdicts": verdicts }))
}

/// A rule for the fixer of findings that contain this text: it reads each file, edits it, and reports what it did.
pub fn fixer(words: &str, edits: &[Edit<'_>], fixes: &[Value]) -> Rule {
    let look = edits.iter().map(|edit| Call::Read(edit.path.to_string()));
    let change = edits.iter().map(|edit| Call::Edit {
        path: edit.path.to_string(),
        old: edit.old.to_string(),
        new: edit.new.to_string(),
    });
    let steps = [Step::calls(look), Step::calls(change), Step::structured(json!({ "fixes": fixes }))];
    Rule::when(fixing(words), steps)
}

/// The condition that a fixer is asked about findings that contain this text.
pub fn fixing(words: &str) -> When {
    matching(&format!("(?s)You are a fixer.*assigned findings.*{}", regex::escape(words)))
}

/// A change of a file, by its old and new text.
#[derive(Clone, Copy, Debug)]
pub struct Edit<'a> {
    pub path: &'a str,
    pub old: &'a str,
    pub new: &'a str,
}

pub fn finding(severity: &str, description: &str, quote: &str) -> Value {
    json!({"severity": severity, "category": "test", "description": description, "quote": quote})
}

pub fn findings_of(findings: &[Value]) -> Value {
    json!({ "findings": findings })
}

pub fn fixed(id: &str) -> Value {
    json!({
        "id": id,
        "status": "FIXED",
        "fix_description": "repaired",
        "files_modified": [],
        "verification": "read again",
        "memory_saved": false,
    })
}

pub fn verdict(id: &str, verdict: &str, counter_evidence: &str) -> Value {
    json!({"id": id, "verdict": verdict, "reason": "the text says so", "counter_evidence": counter_evidence})
}

fn answers(pattern: &str, answer: &Value) -> Rule {
    Rule::when(matching(pattern), [Step::structured(answer.clone())])
}

/// The condition that the last text matches a pattern. The patterns here are our own and always valid; an invalid one matches
/// nothing.
fn matching(pattern: &str) -> When {
    let pattern =
        regex::Regex::new(pattern).map_or_else(|_| Pattern::Text(pattern.to_string()), Pattern::Regex);
    When { last: Some(pattern), ..When::default() }
}
