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
use tribunal_core::{
    finding::{Evidence, Finding, Severity, Status},
    ids::Hash,
    reason::Outcome,
    stamp::Stamp,
    text::{fold, plain_char},
    tracker,
};

use super::Export;
use crate::{clean, clean_block, escaped_json};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Paths are relative to the project's root. The absolute path is left out, because it is private to its owner.
const ROOT: &str = "%SRCROOT%";
/// The name of our fingerprint; its version changes with the way in which it is computed.
const FINGERPRINT: &str = "tribunalEvidence/v1";

/// Renders the log.
pub(super) fn log(export: &Export<'_>, version: &str) -> String {
    let rules = rules(&export.findings);
    let results: Vec<Value> = export.findings.iter().map(|finding| result(finding, export, &rules)).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "tribunal",
                "semanticVersion": version,
                "version": version,
                "rules": rules.values().map(|rule| rule.value.clone()).collect::<Vec<_>>(),
            } },
            "automationDetails": { "id": automation(export) },
            "invocations": [invocation(export)],
            "originalUriBaseIds": { ROOT: { "description": { "text": "The project's folder." } } },
            "results": results,
        }],
    });
    // Serialised JSON may still contain characters that control a terminal.
    format!("{}\n", escaped_json(&format!("{log:#}")))
}

/// A rule with its position in the log.
struct Rule {
    index: usize,
    value: Value,
}

/// Collects one rule per category, by id.
fn rules(findings: &[&Finding]) -> BTreeMap<String, Rule> {
    // The first spelling of a category gives the rule its name.
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    for finding in findings {
        named.entry(rule_id(&finding.category)).or_insert_with(|| clean(&finding.category));
    }
    let rule = |(index, (id, name)): (usize, (String, String))| {
        let name = if name.is_empty() { id.clone() } else { name };
        let value = json!({ "id": id, "shortDescription": { "text": said(&name) } });
        (id, Rule { index, value })
    };
    named.into_iter().enumerate().map(rule).collect()
}

/// Folds a category to an id: `Error Handling` and `error_handling` become `error-handling`.
fn rule_id(category: &str) -> String {
    let mut id = String::new();
    for c in category.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            id.push(c);
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
        // A category is a word or two; anything longer is an agent's sentence.
        if id.chars().count() >= 60 {
            break;
        }
    }
    let id = id.trim_end_matches('-');
    if id.is_empty() { "finding".to_string() } else { id.to_string() }
}

/// The id of the run within the series of its subject. A scanner replaces an older run of the same series by a newer one.
fn automation(export: &Export<'_>) -> String {
    let subject = export.standing.view.settings.as_ref().map(|settings| settings.subject.slug());
    format!("tribunal/{}/{}", subject.unwrap_or_default(), clean(export.run()))
}

/// Describes the run as SARIF's invocation.
fn invocation(export: &Export<'_>) -> Value {
    let view = export.standing.view;
    let outcome = view.summary().and_then(|summary| summary.outcome);
    let ended = outcome.is_some_and(|outcome| !matches!(outcome, Outcome::Failed | Outcome::Cancelled));
    let mut value = json!({
        "executionSuccessful": ended,
        "startTimeUtc": time(view.started),
        "properties": { "outcome": export.standing.word(), "why": export.why(), "spent": export.spent() },
    });
    // A run without an outcome has not ended.
    if outcome.is_some() {
        value["endTimeUtc"] = time(view.last).into();
    }
    value
}

/// Formats a timestamp as SARIF wants it.
fn time(stamp: Stamp) -> String {
    format!("{}Z", stamp.utc().replace(' ', "T"))
}

/// Renders one finding.
fn result(finding: &Finding, export: &Export<'_>, rules: &BTreeMap<String, Rule>) -> Value {
    let rule = rule_id(&finding.category);
    let (kind, level) = match (&finding.status, finding.severity) {
        // SARIF allows no other level than `none` for results that pass.
        (Status::Fixed, _) => ("pass", "none"),
        (_, Severity::Critical | Severity::High) => ("fail", "error"),
        (_, Severity::Medium) => ("fail", "warning"),
        (_, Severity::Low) => ("fail", "note"),
    };
    json!({
        "ruleIndex": rules.get(&rule).map_or(0, |rule| rule.index),
        "kind": kind,
        "level": level,
        "message": { "text": said(&finding.description) },
        "locations": location(finding, export).into_iter().collect::<Vec<_>>(),
        "partialFingerprints": { FINGERPRINT: fingerprint(&rule, &finding.evidence) },
        "suppressions": suppression(finding).into_iter().collect::<Vec<_>>(),
        "properties": properties(finding, export),
        "ruleId": rule,
    })
}

/// Cleans a message for readers: no control characters, no links, never empty.
fn said(text: &str) -> String {
    let text = clean_block(text.trim()).replace("\r\n", "\n").replace("](", "] (");
    if text.is_empty() { "It has no description.".to_string() } else { text }
}

/// The place of a finding; if it was not found in the text, the file that was under review.
fn location(finding: &Finding, export: &Export<'_>) -> Option<Value> {
    let under_review = || export.standing.view.settings.as_ref()?.subject.path();
    let file = finding.place.as_ref().map(|place| place.file.as_str()).or_else(under_review)?;
    let mut physical = json!({ "artifactLocation": { "uri": uri(file)?, "uriBaseId": ROOT } });
    if let Some(place) = &finding.place {
        // SARIF counts lines from 1.
        let first = place.line.max(1);
        physical["region"] = json!({ "startLine": first, "endLine": place.end_line.max(first) });
    }
    Some(json!({ "physicalLocation": physical }))
}

/// Encodes a path below the project's root as a relative reference. `None` if the path leads out of it.
fn uri(path: &str) -> Option<String> {
    let mut out = String::new();
    for (index, part) in path.split('/').filter(|part| *part != ".").enumerate() {
        if part.is_empty() || part == ".." {
            return None;
        }
        if index > 0 {
            out.push('/');
        }
        for byte in part.bytes() {
            // These are the unreserved characters of RFC 3986.
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Computes the fingerprint. White space, case, the style of quotes and dashes and the order of terms do not matter.
fn fingerprint(rule: &str, evidence: &Evidence) -> String {
    let plain = |text: &str| fold(text).chars().map(plain_char).collect::<String>();
    let parts = match evidence {
        Evidence::Quote { text } => vec![rule.to_string(), "quote".into(), plain(text)],
        Evidence::Absence { heading, terms } => {
            let mut terms: Vec<String> = terms.iter().map(|term| plain(term)).collect();
            terms.sort();
            terms.dedup();
            [vec![rule.to_string(), "absence".into(), plain(heading)], terms].concat()
        }
    };
    // Folded text has no line breaks, so the parts cannot run into each other.
    Hash::of(parts.join("\n").as_bytes()).as_str().to_string()
}

/// Describes why a dismissed or deferred finding needs no action.
fn suppression(finding: &Finding) -> Option<Value> {
    let status = tracker::status(&finding.status);
    let note = clean(finding.last_note());
    let justification = if note.is_empty() { status } else { format!("{status}: {note}") };
    match finding.status {
        Status::Dismissed { .. } | Status::Deferred { .. } => {
            Some(json!({ "kind": "external", "status": "accepted", "justification": justification }))
        }
        Status::Open | Status::Assigned | Status::Fixed | Status::Blocked { .. } => None,
    }
}

/// Collects what SARIF has no field for.
fn properties(finding: &Finding, export: &Export<'_>) -> Value {
    let raisers = finding.raisers.iter();
    let raisers =
        raisers.map(|by| json!({ "role": by.role, "agent": clean(by.agent.as_str()), "round": by.round }));
    let mut bag = Map::new();
    bag.insert("finding".into(), finding.id.to_string().into());
    bag.insert("severity".into(), finding.severity.as_str().into());
    bag.insert("status".into(), finding.status.word().into());
    bag.insert("raisers".into(), raisers.collect());
    let evidence = match &finding.evidence {
        Evidence::Quote { text } => json!({ "quote": clean_block(text) }),
        Evidence::Absence { heading, terms } => {
            let terms: Vec<String> = terms.iter().map(|term| clean(term)).collect();
            json!({ "heading": clean(heading), "terms": terms })
        }
    };
    bag.insert("evidence".into(), evidence);
    let texts = [
        ("section", finding.place.as_ref().map_or("", |place| place.section.as_str()).to_string()),
        ("suggestedFix", finding.suggested_fix.clone()),
        ("challenged", export.rulings.get(finding.id).map(|ruling| ruling.says()).unwrap_or_default()),
        ("last", finding.last_note().to_string()),
    ];
    for (name, text) in texts {
        let text = clean(&text);
        // An empty property would only look like a missing value.
        if !text.is_empty() {
            bag.insert(name.into(), text.into());
        }
    }
    bag.into()
}
