//! Rules for the roles in a review, recognised by our own prompts.
//!
//! Answers go through the client's tool for answers to a schema if it offers one, otherwise as text, so the same rule works for
//! every client. A repeated request in the same conversation has another last text: a test needs rules of its own for that.

use serde_json::{Value, json};

use super::scenario::{AnswerStep, RuleCondition, ScenarioCall, ScenarioRule, TextPattern};

/// A rule for any reviewer in this round.
pub fn reviewer_rule(round: u32, findings: &[Value]) -> ScenarioRule {
    answer_rule(&format!(r"(?s)You are one reviewer of a panel.*\. Round {round}\."), &findings_json(findings))
}

/// A rule for any reviewer, in this round, of a change that contains this file.
pub fn change_reviewer_rule(round: u32, changed_path: &str, findings: &[Value]) -> ScenarioRule {
    let changed_path = regex::escape(changed_path);
    let pattern = format!(r"(?s)You are one reviewer of a panel.*\. Round {round}\..*{changed_path}");
    answer_rule(&pattern, &findings_json(findings))
}

/// A rule for the reviewer in one seat in this round.
pub fn seat_rule(seat_name: &str, round: u32, findings: &[Value]) -> ScenarioRule {
    answer_rule(&format!(r"(?s)\. Round {round}\..*Your role: {seat_name}\."), &findings_json(findings))
}

/// A rule for any challenger of the finding that contains this text.
pub fn challenger_rule(finding_text: &str, verdicts: &[Value]) -> ScenarioRule {
    let pattern = format!("(?s)You are a challenger.*disputed findings.*{}", regex::escape(finding_text));
    answer_rule(&pattern, &json!({ "verdicts": verdicts }))
}

/// A rule for the fixer of findings that contain this text: it reads each file, edits it, and reports what it did.
pub fn fixer_rule(finding_text: &str, edits: &[ScriptedEdit<'_>], fixes: &[Value]) -> ScenarioRule {
    let read_calls = edits.iter().map(|edit| ScenarioCall::Read(edit.path.to_string()));
    let edit_calls = edits.iter().map(|edit| ScenarioCall::Edit {
        path: edit.path.to_string(),
        old: edit.old_text.to_string(),
        new: edit.new_text.to_string(),
    });
    let steps = [
        AnswerStep::from_calls(read_calls),
        AnswerStep::from_calls(edit_calls),
        AnswerStep::from_structured(json!({ "fixes": fixes })),
    ];
    ScenarioRule::on_condition(fixer_condition(finding_text), steps)
}

/// A rule for the judge of a change that contains this text.
pub fn judge_rule(changed_text: &str, verdicts: &[Value]) -> ScenarioRule {
    let pattern = format!("(?s)You are a judge.*{}", regex::escape(changed_text));
    answer_rule(&pattern, &json!({ "verdicts": verdicts }))
}

/// What a judge answers that has no rule: every finding is repaired, and every part of the change is needed. `None` if the text
/// is not for a judge.
pub(super) fn confirm_repairs(prompt: &str) -> Option<AnswerStep> {
    let (findings, parts) = tribunal_agents::prompt::read_judged(prompt);
    let ids = findings.iter().map(|finding| finding.id.to_string()).chain(parts.into_iter().map(|part| part.id));
    let verdicts: Vec<Value> = ids.map(|id| verdict_json(&id, "VALID", "")).collect();
    (!findings.is_empty()).then(|| AnswerStep::from_structured(json!({ "verdicts": verdicts })))
}

/// The condition that a fixer is asked about findings that contain this text.
pub fn fixer_condition(finding_text: &str) -> RuleCondition {
    matching_condition(&format!("(?s)You are a fixer.*assigned findings.*{}", regex::escape(finding_text)))
}

/// A change of a file, by its old and new text.
#[derive(Clone, Copy, Debug)]
pub struct ScriptedEdit<'a> {
    pub path: &'a str,
    pub old_text: &'a str,
    pub new_text: &'a str,
}

pub fn finding_json(severity: &str, description: &str, quote: &str) -> Value {
    json!({"severity": severity, "category": "test", "description": description, "quote": quote})
}

pub fn findings_json(findings: &[Value]) -> Value {
    json!({ "findings": findings })
}

pub fn fixed_json(finding_id: &str) -> Value {
    json!({
        "id": finding_id,
        "status": "FIXED",
        "fix_description": "repaired",
        "files_modified": [],
        "verification": "read again",
        "memory_saved": false,
    })
}

pub fn blocked_json(finding_id: &str, reason: &str) -> Value {
    json!({
        "id": finding_id,
        "status": "BLOCKED",
        "fix_description": reason,
        "files_modified": [],
        "verification": "",
        "memory_saved": false,
    })
}

pub fn verdict_json(finding_id: &str, verdict: &str, counter_evidence: &str) -> Value {
    json!({"id": finding_id, "verdict": verdict, "reason": "the text says so", "counter_evidence": counter_evidence})
}

fn answer_rule(pattern: &str, answer: &Value) -> ScenarioRule {
    ScenarioRule::on_condition(matching_condition(pattern), [AnswerStep::from_structured(answer.clone())])
}

/// The condition that the last text matches a pattern. The patterns here are our own and always valid; an invalid one would be
/// searched for as plain text.
fn matching_condition(pattern: &str) -> RuleCondition {
    let text_pattern =
        regex::Regex::new(pattern).map_or_else(|_| TextPattern::Text(pattern.to_string()), TextPattern::Regex);
    RuleCondition { last: Some(text_pattern), ..RuleCondition::default() }
}
