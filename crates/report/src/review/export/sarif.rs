//! Renders SARIF 2.1.0, for code scanners and editors.
//!
//! - A rule is a category of findings. Agents spell categories in many ways, so they are folded to letters, digits and dashes.
//! - A fingerprint is made from the rule and the evidence, but neither from a line number nor from an id: the same flaw keeps
//!   its fingerprint in the next round and in the next run, even if it moves to another line.
//! - A fixed finding is a result that passes. The standard requires its level to be `none`, so its severity is in its properties.
//!   A dismissed or deferred finding fails and is suppressed, with the reason.
//! - Readers turn `[text](target)` in a message into a link, so that pattern is broken up. They fill in `{0}` only if a
//!   result has arguments, and ours have none.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tribunal_engine::{
    ids::Hash,
    reason::RunOutcome,
    text::{fold_case_and_spaces, plain_char},
    timestamp::Timestamp,
};
use tribunal_workflows::{
    findings::{
        finding::{Evidence, Finding, FindingStatus, Severity},
        subject::Subject,
    },
    review::tracker,
};

use super::FindingsExport;
use crate::{clean_block, clean_line, escape_json};

const SCHEMA_URL: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Paths are relative to the project's root. The absolute path is left out, because it is private to its owner.
const ROOT_BASE_ID: &str = "%SRCROOT%";
/// The name of our fingerprint; its version changes with the way in which it is computed.
const FINGERPRINT_NAME: &str = "tribunalEvidence/v1";

/// Renders the log.
pub(super) fn render_log(export: &FindingsExport<'_>, tool_version: &str) -> String {
    let sarif_rules = collect_rules(&export.findings);
    let results: Vec<Value> =
        export.findings.iter().map(|finding| render_result(finding, export, &sarif_rules)).collect();
    let sarif_log = json!({
        "$schema": SCHEMA_URL,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "tribunal",
                "semanticVersion": tool_version,
                "version": tool_version,
                "rules": sarif_rules.values().map(|rule| rule.rule_json.clone()).collect::<Vec<_>>(),
            } },
            "automationDetails": { "id": automation_id(export) },
            "invocations": [render_invocation(export)],
            "originalUriBaseIds": { ROOT_BASE_ID: { "description": { "text": "The project's directory." } } },
            "results": results,
        }],
    });
    // Serialised JSON may still contain characters that control a terminal.
    format!("{}\n", escape_json(&format!("{sarif_log:#}")))
}

/// A rule with its position in the log.
struct SarifRule {
    rule_index: usize,
    rule_json: Value,
}

/// Collects one rule per category, by id.
fn collect_rules(findings: &[&Finding]) -> BTreeMap<String, SarifRule> {
    // The first spelling of a category gives the rule its name.
    let mut rule_names: BTreeMap<String, String> = BTreeMap::new();
    for finding in findings {
        rule_names.entry(fold_rule_id(&finding.category)).or_insert_with(|| clean_line(&finding.category));
    }
    let make_rule = |(rule_index, (category_id, rule_name)): (usize, (String, String))| {
        let rule_name = if rule_name.is_empty() { category_id.clone() } else { rule_name };
        let rule_json = json!({ "id": category_id, "shortDescription": { "text": clean_message(&rule_name) } });
        (category_id, SarifRule { rule_index, rule_json })
    };
    rule_names.into_iter().enumerate().map(make_rule).collect()
}

/// Folds a category to an id: `Error Handling` and `error_handling` become `error-handling`.
fn fold_rule_id(category: &str) -> String {
    let mut folded_id = String::new();
    for character in category.chars().flat_map(char::to_lowercase) {
        if character.is_alphanumeric() {
            folded_id.push(character);
        } else if !folded_id.is_empty() && !folded_id.ends_with('-') {
            folded_id.push('-');
        }
        // A category is a word or two; anything longer is an agent's sentence.
        if folded_id.chars().count() >= 60 {
            break;
        }
    }
    let folded_id = folded_id.trim_end_matches('-');
    if folded_id.is_empty() { "finding".to_string() } else { folded_id.to_string() }
}

/// The id of the run within the series of its subject. A scanner replaces an older run of the same series by a newer one.
fn automation_id(export: &FindingsExport<'_>) -> String {
    let subject_slug = export.subject().map(Subject::file_slug);
    format!("tribunal/{}/{}", subject_slug.unwrap_or_default(), clean_line(export.run_id()))
}

/// Describes the run as SARIF's invocation.
fn render_invocation(export: &FindingsExport<'_>) -> Value {
    let run_view = export.run_standing.run_view;
    let outcome = run_view.run_summary().and_then(|summary| summary.outcome);
    let is_successful = outcome.is_some_and(|outcome| !matches!(outcome, RunOutcome::Failed | RunOutcome::Cancelled));
    let mut invocation_json = json!({
        "executionSuccessful": is_successful,
        "startTimeUtc": format_time(run_view.start_time),
        "properties": { "outcome": export.run_standing.state_name(), "why": export.state_reason(), "spent": export.describe_spending() },
    });
    // A run without an outcome has not ended.
    if outcome.is_some() {
        invocation_json["endTimeUtc"] = format_time(run_view.last_time).into();
    }
    invocation_json
}

/// Formats a timestamp as SARIF wants it.
fn format_time(timestamp: Timestamp) -> String {
    format!("{}Z", timestamp.format_utc().replace(' ', "T"))
}

/// Renders one finding.
fn render_result(finding: &Finding, export: &FindingsExport<'_>, sarif_rules: &BTreeMap<String, SarifRule>) -> Value {
    let rule_key = fold_rule_id(&finding.category);
    let (result_kind, result_level) = match (&finding.status, finding.severity) {
        // SARIF allows no other level than `none` for results that pass.
        (FindingStatus::Fixed, _) => ("pass", "none"),
        (_, Severity::Critical | Severity::High) => ("fail", "error"),
        (_, Severity::Medium) => ("fail", "warning"),
        (_, Severity::Low) => ("fail", "note"),
    };
    json!({
        "ruleIndex": sarif_rules.get(&rule_key).map_or(0, |rule| rule.rule_index),
        "kind": result_kind,
        "level": result_level,
        "message": { "text": clean_message(&finding.description) },
        "locations": find_location(finding, export).into_iter().collect::<Vec<_>>(),
        "partialFingerprints": { FINGERPRINT_NAME: evidence_fingerprint(&rule_key, &finding.evidence) },
        "suppressions": describe_suppression(finding).into_iter().collect::<Vec<_>>(),
        "properties": collect_properties(finding, export),
        "ruleId": rule_key,
    })
}

/// Cleans a message for readers: no control characters, no links, never empty.
fn clean_message(message_text: &str) -> String {
    let message_text = clean_block(message_text.trim()).replace("\r\n", "\n").replace("](", "] (");
    if message_text.is_empty() { "No description.".to_string() } else { message_text }
}

/// The place of a finding; if it was not found in the text, the file that was under review.
fn find_location(finding: &Finding, export: &FindingsExport<'_>) -> Option<Value> {
    let reviewed_file = || export.subject().and_then(Subject::file_path);
    let file_path = finding.place.as_ref().map(|place| place.file.as_str()).or_else(reviewed_file)?;
    let mut physical = json!({ "artifactLocation": { "uri": encode_uri(file_path)?, "uriBaseId": ROOT_BASE_ID } });
    if let Some(place) = &finding.place {
        // SARIF counts lines from 1.
        let first_line = place.line.max(1);
        physical["region"] = json!({ "startLine": first_line, "endLine": place.end_line.max(first_line) });
    }
    Some(json!({ "physicalLocation": physical }))
}

/// Encodes a path below the project's root as a relative reference. `None` if the path leads out of it.
fn encode_uri(file_path: &str) -> Option<String> {
    let mut encoded = String::new();
    for (segment_index, path_segment) in file_path.split('/').filter(|path_segment| *path_segment != ".").enumerate() {
        if path_segment.is_empty() || path_segment == ".." {
            return None;
        }
        if segment_index > 0 {
            encoded.push('/');
        }
        for byte in path_segment.bytes() {
            // These are the unreserved characters of RFC 3986.
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                encoded.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    (!encoded.is_empty()).then_some(encoded)
}

/// Computes the fingerprint. White space, case, the style of quotes and dashes and the order of terms do not matter.
fn evidence_fingerprint(rule_key: &str, evidence: &Evidence) -> String {
    let fold_plain =
        |evidence_text: &str| fold_case_and_spaces(evidence_text).chars().map(plain_char).collect::<String>();
    let hashed_parts = match evidence {
        Evidence::Quote { text: quoted_text } => {
            vec![rule_key.to_string(), "quote".into(), fold_plain(quoted_text)]
        }
        Evidence::Absence { heading, terms } => {
            let mut terms: Vec<String> = terms.iter().map(|absent_term| fold_plain(absent_term)).collect();
            terms.sort();
            terms.dedup();
            [vec![rule_key.to_string(), "absence".into(), fold_plain(heading)], terms].concat()
        }
        // What a check prints differs from run to run.
        Evidence::Check { command, .. } => vec![rule_key.to_string(), "check".into(), fold_plain(command)],
    };
    // Folded text has no line breaks, so the parts cannot run into each other.
    Hash::digest_of(hashed_parts.join("\n").as_bytes()).as_str().to_string()
}

/// Describes why a dismissed or deferred finding needs no action.
fn describe_suppression(finding: &Finding) -> Option<Value> {
    let status_text = tracker::format_status(&finding.status);
    let last_note = clean_line(finding.last_note());
    let justification = if last_note.is_empty() { status_text } else { format!("{status_text}: {last_note}") };
    match finding.status {
        FindingStatus::Dismissed { .. } | FindingStatus::Deferred { .. } => {
            Some(json!({ "kind": "external", "status": "accepted", "justification": justification }))
        }
        FindingStatus::Open | FindingStatus::Assigned | FindingStatus::Fixed | FindingStatus::Blocked { .. } => None,
    }
}

/// Collects what SARIF has no field for.
fn collect_properties(finding: &Finding, export: &FindingsExport<'_>) -> Value {
    let raisers = finding.raisers.iter();
    let raiser_values = raisers.map(
        |raiser| json!({ "role": raiser.role, "agent": clean_line(raiser.agent.as_str()), "round": raiser.round }),
    );
    let mut property_bag = Map::new();
    property_bag.insert("finding".into(), finding.id.to_string().into());
    property_bag.insert("severity".into(), finding.severity.as_str().into());
    property_bag.insert("status".into(), finding.status.as_str().into());
    property_bag.insert("raisers".into(), raiser_values.collect());
    let evidence_json = match &finding.evidence {
        Evidence::Quote { text: quoted_text } => json!({ "quote": clean_block(quoted_text) }),
        Evidence::Absence { heading, terms } => {
            let terms: Vec<String> = terms.iter().map(|absent_term| clean_line(absent_term)).collect();
            json!({ "heading": clean_line(heading), "terms": terms })
        }
        Evidence::Check { command, output } => {
            json!({ "command": clean_line(command), "output": clean_block(output) })
        }
    };
    property_bag.insert("evidence".into(), evidence_json);
    let optional_texts = [
        ("section", finding.place.as_ref().map_or("", |place| place.section.as_str()).to_string()),
        ("suggestedFix", finding.suggested_fix.clone()),
        ("challenged", export.rulings.find_ruling(finding.id).map(|ruling| ruling.describe()).unwrap_or_default()),
        ("last", finding.last_note().to_string()),
    ];
    for (property_name, property_text) in optional_texts {
        let property_text = clean_line(&property_text);
        // An empty text says no more than a missing property.
        if !property_text.is_empty() {
            property_bag.insert(property_name.into(), property_text.into());
        }
    }
    property_bag.into()
}
