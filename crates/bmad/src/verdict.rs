//! Verdicts that BMAD's own checks write into their reports: readiness, the trace gate, a code review. The words of all eras
//! are known. A verdict counts where a report states it, never in a sentence that mentions one; a template's list of choices
//! is none.
//!
//! What follows from a verdict is not decided here.

use tribunal_json::Serialize;

use crate::{
    markdown::{MarkdownLine, MarkdownLineKind, MarkdownPage, normalize_title},
    problem::{FileProblem, rules},
    yaml::{self, YamlNode},
};

/// Whether a plan can be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadinessVerdict {
    /// `READY`; from 6.11 on `PASS`.
    Ready,
    /// `NEEDS WORK`; from 6.11 on `CONCERNS`.
    NeedsWork,
    /// `NOT READY`; from 6.11 on `FAIL`.
    NotReady,
}

/// Whether the requirements are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceVerdict {
    Pass,
    Concerns,
    Fail,
    /// The gate failed, and a named user takes responsibility.
    Waived,
    NotEvaluated,
}

/// The outcome of a code review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeReviewVerdict {
    Approve,
    ChangesRequested,
    Blocked,
}

/// A verdict and where it is stated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatedVerdict<V> {
    pub verdict: V,
    pub said: String,
    pub line: usize,
    /// The rationale, where the report gives one; a waiver needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
}

/// The verdict of a report, and problems with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictReading<V> {
    /// The verdict; `None` if the report states none.
    pub stated: Option<StatedVerdict<V>>,
    pub problems: Vec<FileProblem>,
}

impl ReadinessVerdict {
    const WORDS: [(&'static str, ReadinessVerdict); 9] = [
        ("NOT READY", ReadinessVerdict::NotReady),
        ("NEEDS WORK", ReadinessVerdict::NeedsWork),
        ("READY WITH CONDITIONS", ReadinessVerdict::NeedsWork),
        ("READY", ReadinessVerdict::Ready),
        ("CONCERNS", ReadinessVerdict::NeedsWork),
        ("PASS", ReadinessVerdict::Ready),
        ("PASSED", ReadinessVerdict::Ready),
        ("FAIL", ReadinessVerdict::NotReady),
        ("FAILED", ReadinessVerdict::NotReady),
    ];

    /// Parses a stated verdict, such as `✅ READY` or `**NEEDS WORK** (two gaps)`.
    pub fn parse(verdict_text: &str) -> Option<ReadinessVerdict> {
        parse_verdict_words(verdict_text, &Self::WORDS)
    }

    /// Reads the verdict of an implementation readiness report.
    pub fn from_report(report_path: &str, report_text: &str) -> VerdictReading<ReadinessVerdict> {
        let is_verdict_label = |label: &str| {
            matches!(
                label,
                "overall readiness status"
                    | "readiness status"
                    | "overall readiness"
                    | "overall status"
                    | "readiness verdict"
                    | "readiness"
                    | "verdict"
                    | "gate"
                    | "gate verdict"
                    | "overall assessment"
            )
        };
        let markdown = MarkdownPage::parse(report_text);
        let stated = find_last_verdict(&markdown, &is_verdict_label, &Self::parse)
            .or_else(|| find_in_front_matter(&markdown, &["verdict"], Self::parse));
        build_reading(report_path, stated, "READY, NEEDS WORK or NOT READY under `### Overall Readiness Status`")
    }
}

impl TraceVerdict {
    const WORDS: [(&'static str, TraceVerdict); 7] = [
        ("NOT EVALUATED", TraceVerdict::NotEvaluated),
        ("CONCERNS", TraceVerdict::Concerns),
        ("WAIVED", TraceVerdict::Waived),
        ("PASS", TraceVerdict::Pass),
        ("PASSED", TraceVerdict::Pass),
        ("FAIL", TraceVerdict::Fail),
        ("FAILED", TraceVerdict::Fail),
    ];

    pub fn parse(verdict_text: &str) -> Option<TraceVerdict> {
        parse_verdict_words(verdict_text, &Self::WORDS)
    }

    /// Reads the decision of a traceability matrix, or of a `gate-decision.json`.
    pub fn from_report(report_path: &str, report_text: &str) -> VerdictReading<TraceVerdict> {
        if report_text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
            return Self::from_json(report_path, report_text);
        }
        let markdown = MarkdownPage::parse(report_text);
        let is_verdict_label = |label: &str| {
            matches!(label, "gate decision" | "quality gate decision" | "gate status" | "decision" | "gate verdict")
        };
        let mut stated = find_last_verdict(&markdown, &is_verdict_label, &Self::parse);
        if let Some(stated) = &mut stated {
            stated.rationale = find_rationale(&markdown);
        }
        // Reports of the test architect may repeat the decision as YAML for other tools.
        let yaml_decision = find_yaml_decision(&markdown);
        let mut problems = Vec::new();
        if let (Some(stated), Some(yaml_decision)) = (&stated, &yaml_decision)
            && stated.verdict != yaml_decision.verdict
        {
            let message = format!(
                "the report says {} on line {}, but its YAML says {}",
                stated.said, stated.line, yaml_decision.said
            );
            let problem = FileProblem::warning("trace-differs", report_path, message).at_line(yaml_decision.line);
            problems.push(
                problem.with_reason("The text of the report takes precedence.").with_advice("run the trace again"),
            );
        }
        // A later decision that is not understood would be the one that counts, so it must not be passed over in silence.
        let is_gate_label = |label: &str| label.contains("gate") && is_verdict_label(label);
        let understood_line = stated.as_ref().map_or(0, |stated| stated.line);
        let unknown_decision = find_last_verdict(&markdown, &is_gate_label, &|decision_text| {
            (Self::parse(decision_text).is_none() && is_filled_in(decision_text)).then_some(())
        });
        // Where the decision is in YAML, a sentence only introduces it.
        let is_decision =
            |decision_text: &str| yaml_decision.is_none() || decision_text.split_whitespace().count() <= 3;
        let unknown_decision =
            unknown_decision.filter(|decision| decision.line > understood_line && is_decision(&decision.said));
        problems
            .extend(unknown_decision.map(|decision| unknown_gate_problem(report_path, &decision.said, decision.line)));
        let mut reading = build_reading(
            report_path,
            stated.or(yaml_decision),
            "PASS, CONCERNS, FAIL or WAIVED after `GATE DECISION:`",
        );
        reading.problems.extend(problems);
        check_waiver(report_path, reading)
    }

    /// Reads the decision of a `gate-decision.json`.
    fn from_json(report_path: &str, json_text: &str) -> VerdictReading<TraceVerdict> {
        // Every JSON text is also YAML, and the YAML reader knows the lines.
        let root_node = yaml::parse_yaml(json_text).ok();
        let decision_node =
            root_node.as_ref().and_then(|root_node| root_node.get("gate_status").or_else(|| root_node.get("decision")));
        let decision = decision_node.and_then(|decision_node| Some((decision_node.scalar_text()?, decision_node.line)));
        let stated = decision.and_then(|(decision_text, line_number)| {
            let rationale = root_node.as_ref()?.get("rationale").and_then(YamlNode::scalar_text).map(str::to_string);
            Some(StatedVerdict {
                verdict: TraceVerdict::parse(decision_text)?,
                said: decision_text.to_string(),
                line: line_number,
                rationale,
            })
        });
        let unknown_decision = decision
            .filter(|(decision_text, _)| TraceVerdict::parse(decision_text).is_none() && is_filled_in(decision_text));
        let mut reading =
            build_reading(report_path, stated, "PASS, CONCERNS, FAIL, WAIVED or NOT_EVALUATED as `gate_status`");
        reading.problems.extend(
            unknown_decision
                .map(|(decision_text, line_number)| unknown_gate_problem(report_path, decision_text, line_number)),
        );
        check_waiver(report_path, reading)
    }
}

/// The problem of a gate whose decision is not known: it may be a refusal.
fn unknown_gate_problem(report_path: &str, decision_text: &str, line_number: usize) -> FileProblem {
    let decision_text: String = decision_text.chars().take(60).collect();
    let problem = FileProblem::warning("trace-unknown", report_path, format!("unknown gate verdict {decision_text:?}"));
    problem.at_line(line_number).with_reason("It may be a rejection.").with_advice("use PASS, CONCERNS, FAIL or WAIVED")
}

/// Whether a text is neither a placeholder nor a list of choices such as `{PASS | FAIL}`.
fn is_filled_in(decision_text: &str) -> bool {
    is_written(decision_text) && !decision_text.contains(['|', '{']) && !decision_text.contains(" / ")
}

/// Adds a problem to a waiver without a written rationale.
fn check_waiver(report_path: &str, mut reading: VerdictReading<TraceVerdict>) -> VerdictReading<TraceVerdict> {
    let is_unexplained =
        |stated: &&StatedVerdict<TraceVerdict>| stated.verdict == TraceVerdict::Waived && stated.rationale.is_none();
    if let Some(stated) = reading.stated.as_ref().filter(is_unexplained) {
        let problem = FileProblem::warning("trace-waived-bare", report_path, "the gate is waived without a reason");
        reading.problems.push(problem.at_line(stated.line).with_advice("add the reason and who is responsible for it"));
    }
    reading
}

impl CodeReviewVerdict {
    const WORDS: [(&'static str, CodeReviewVerdict); 7] = [
        ("CHANGES REQUESTED", CodeReviewVerdict::ChangesRequested),
        ("REQUEST CHANGES", CodeReviewVerdict::ChangesRequested),
        ("CHANGES REQUIRED", CodeReviewVerdict::ChangesRequested),
        ("APPROVED", CodeReviewVerdict::Approve),
        ("APPROVE", CodeReviewVerdict::Approve),
        ("BLOCKED", CodeReviewVerdict::Blocked),
        ("BLOCK", CodeReviewVerdict::Blocked),
    ];

    pub fn parse(verdict_text: &str) -> Option<CodeReviewVerdict> {
        parse_verdict_words(verdict_text, &Self::WORDS)
    }
}

/// The verdict that a text states: the text begins with it, and no other choice stands beside it.
fn parse_verdict_words<V: Copy + PartialEq>(verdict_text: &str, verdict_words: &[(&str, V)]) -> Option<V> {
    let first_line = verdict_text.lines().next().unwrap_or_default();
    // Emphasis, check marks and emoji may come first; a brace stays, since it marks a placeholder.
    let first_line =
        first_line.trim_start_matches(|character: char| !(character.is_alphanumeric() || "{[<".contains(character)));
    let first_line = first_line.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(first_line);
    let upper_case: String = first_line
        .chars()
        .map(|character| if matches!(character, '_' | '-') { ' ' } else { character.to_ascii_uppercase() })
        .collect();
    // A word that continues is another word: `READYING`.
    let ends_word = |after_verdict: &str| !after_verdict.starts_with(|character: char| character.is_alphanumeric());
    let longest_match = |text: &str| {
        // The longest match wins: `READY WITH CONDITIONS` is not `READY`.
        let matches =
            verdict_words.iter().filter(|(verdict_word, _)| text.strip_prefix(verdict_word).is_some_and(ends_word));
        matches.max_by_key(|(verdict_word, _)| verdict_word.len()).copied()
    };
    let (matched_word, verdict) = longest_match(&upper_case)?;
    let after_verdict = upper_case[matched_word.len()..].trim_start_matches(['*', '_', '`', ' ']);
    // `READY / NEEDS WORK`, `PASS | FAIL` and `READY OR NOT READY` are choices of a template.
    let after_separator = after_verdict.trim_start_matches(['/', '|', ',', ' ']);
    let after_separator = after_separator.strip_prefix("OR ").unwrap_or(after_separator).trim_start();
    if after_separator.len() < after_verdict.len() && longest_match(after_separator).is_some() {
        return None;
    }
    // `READY when the gaps are closed` is no verdict, but these continuations are.
    let allowed_followers = ["FOR IMPLEMENTATION", "FOR DEVELOPMENT", "FOR SPRINT", "TO PROCEED", "TO IMPLEMENT"];
    let continues = after_verdict.starts_with(|character: char| character.is_alphanumeric())
        && !allowed_followers.iter().any(|allowed| after_verdict.starts_with(allowed));
    (!continues).then_some(verdict)
}

/// The last verdict behind an accepted heading or label: reports are appended to, so the last one counts.
fn find_last_verdict<V>(
    markdown: &MarkdownPage<'_>,
    is_verdict_label: &dyn Fn(&str) -> bool,
    parse_verdict: &dyn Fn(&str) -> Option<V>,
) -> Option<StatedVerdict<V>> {
    let mut last_verdict = None;
    let mut below_heading = false;
    for line in markdown.lines.iter().filter(|line| line.kind == MarkdownLineKind::Prose && !line.is_blank()) {
        let heading = line.heading();
        let line_text = heading.map_or_else(|| strip_list_mark(line), |(_, title)| title);
        let after_label = labelled_value(line_text, is_verdict_label);
        // Under an accepted heading only the first line counts; later lines explain.
        let stated_value = after_label.or_else(|| (below_heading && heading.is_none()).then_some(line_text));
        let verdict_text = stated_value.map(|stated_value| {
            stated_value
                .trim_matches(|character: char| character.is_whitespace() || matches!(character, '*' | '_' | '`'))
        });
        if let Some((verdict_text, verdict)) =
            verdict_text.and_then(|verdict_text| Some((verdict_text, parse_verdict(verdict_text)?)))
        {
            last_verdict =
                Some(StatedVerdict { verdict, said: verdict_text.to_string(), line: line.number, rationale: None });
        }
        below_heading = heading.is_some_and(|(_, title)| is_verdict_label(&normalize_title(title)));
    }
    last_verdict
}

/// The text behind `label:`, if the label is accepted.
fn labelled_value<'t>(line_text: &'t str, is_verdict_label: &dyn Fn(&str) -> bool) -> Option<&'t str> {
    let (label, value) = line_text.split_once(':')?;
    let normalized_label = normalize_title(label);
    (is_verdict_label(&normalized_label)).then_some(value)
}

/// A line without its list mark and without `Status:`, which adds nothing below a heading.
fn strip_list_mark<'t>(line: &MarkdownLine<'t>) -> &'t str {
    let line_text = line.text.trim().trim_start_matches(['-', '+', '>', ' ']);
    // `**Status:** READY` and `Status: READY` say no more than `READY`.
    match line_text.split_once(':') {
        Some((label, value)) if normalize_title(label) == "status" => value,
        _ => line_text,
    }
}

/// The verdict in the front matter, under the first of these keys.
fn find_in_front_matter<V>(
    markdown: &MarkdownPage<'_>,
    verdict_keys: &[&str],
    parse_verdict: fn(&str) -> Option<V>,
) -> Option<StatedVerdict<V>> {
    let front_matter = yaml::parse_yaml(markdown.front_matter()?).ok()?;
    let verdict_node = verdict_keys.iter().find_map(|verdict_key| front_matter.get(verdict_key))?;
    let verdict_text = verdict_node.scalar_text()?;
    Some(StatedVerdict {
        verdict: parse_verdict(verdict_text)?,
        said: verdict_text.to_string(),
        line: verdict_node.line + 1,
        rationale: None,
    })
}

/// The field `gate_decision.decision` in a code block of YAML.
fn find_yaml_decision(markdown: &MarkdownPage<'_>) -> Option<StatedVerdict<TraceVerdict>> {
    let code_lines = markdown.lines.iter().enumerate().filter(|(_, line)| line.kind == MarkdownLineKind::Code);
    let first_index =
        code_lines.clone().find(|(_, line)| line.text.trim() == "gate_decision:").map(|(index, _)| index)?;
    // The block is read line by line, since an excerpt or a template need not be valid YAML.
    let indent_of = |line: &MarkdownLine<'_>| line.text.len() - line.text.trim_start().len();
    let own_indent = indent_of(&markdown.lines[first_index]);
    let block_lines = markdown.lines[first_index + 1..]
        .iter()
        .take_while(|line| line.kind == MarkdownLineKind::Code && (line.is_blank() || indent_of(line) > own_indent));
    let mut stated = None;
    let mut rationale = None;
    for line in block_lines {
        let Some((field_key, field_value)) = line.text.trim().split_once(':') else { continue };
        let field_value = field_value.split(" #").next().unwrap_or(field_value).trim().trim_matches(['"', '\'']);
        match field_key.trim() {
            // Indentation is ignored, so a nested key may have the same name; the first one with a verdict counts.
            "decision" if stated.is_none() => {
                stated = TraceVerdict::parse(field_value).map(|verdict| (verdict, field_value, line.number))
            }
            "reason" | "rationale" if !field_value.is_empty() => rationale = Some(field_value.to_string()),
            _ => {}
        }
    }
    let (verdict, decision_text, line) = stated?;
    Some(StatedVerdict { verdict, said: decision_text.to_string(), line, rationale })
}

/// The text behind `Waiver Reason:`, otherwise the first written line under `Rationale`.
fn find_rationale(markdown: &MarkdownPage<'_>) -> Option<String> {
    let reason = markdown.lines.iter().filter(|line| line.is_prose()).find_map(|line| {
        let line_text = line.text.trim().trim_start_matches(['-', '*', ' ']);
        let (label, label_value) = line_text.split_once(':')?;
        let label_value = label_value.trim_matches(['*', ' ', '\t']);
        (normalize_title(label) == "waiver reason" && is_written(label_value)).then(|| label_value.to_string())
    });
    reason.or_else(|| {
        let section = markdown.find_section(|title| title == "rationale")?;
        let mut lines =
            markdown.lines[section.line_range].iter().filter(|line| line.is_prose() && line.heading().is_none());
        lines.find(|line| is_written(line.text.trim())).map(|line| line.text.trim().to_string())
    })
}

/// Whether a text is neither empty nor a horizontal rule nor a placeholder.
fn is_written(field_text: &str) -> bool {
    field_text.chars().any(char::is_alphanumeric) && !field_text.starts_with('{') && !field_text.starts_with('[')
}

/// A reading with a problem if the report states no verdict.
fn build_reading<V>(report_path: &str, stated: Option<StatedVerdict<V>>, expected_verdict: &str) -> VerdictReading<V> {
    let mut problems = Vec::new();
    if stated.is_none() {
        let problem = FileProblem::warning(rules::VERDICT_MISSING, report_path, "the report states no verdict");
        problems.push(problem.with_reason("It counts as not done.").with_advice(format!("add {expected_verdict}")));
    }
    VerdictReading { stated, problems }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_of_every_era_are_known_and_choices_are_none() {
        for (verdict_text, verdict) in [
            ("READY", Some(ReadinessVerdict::Ready)),
            ("**✅ READY FOR IMPLEMENTATION**", Some(ReadinessVerdict::Ready)),
            ("🟠 NEEDS WORK (two gaps)", Some(ReadinessVerdict::NeedsWork)),
            ("Not Ready — no architecture", Some(ReadinessVerdict::NotReady)),
            ("not-ready", Some(ReadinessVerdict::NotReady)),
            ("[NEEDS WORK]", Some(ReadinessVerdict::NeedsWork)),
            ("PASS", Some(ReadinessVerdict::Ready)),
            ("CONCERNS: two", Some(ReadinessVerdict::NeedsWork)),
            ("FAIL", Some(ReadinessVerdict::NotReady)),
            ("FAILED", Some(ReadinessVerdict::NotReady)),
            ("❌ Failed (3 gaps)", Some(ReadinessVerdict::NotReady)),
            ("PASSED", Some(ReadinessVerdict::Ready)),
            ("PASSED / FAILED", None),
            ("READY | NEEDS WORK | NOT READY", None),
            ("[READY/NEEDS WORK/NOT READY]", None),
            ("READY or NOT READY", None),
            ("{status}", None),
            ("READY when the gaps are closed", None),
            ("READYING", None),
            ("It is READY", None),
            ("", None),
        ] {
            assert_eq!(ReadinessVerdict::parse(verdict_text), verdict, "{verdict_text}");
        }
        for (verdict_text, verdict) in [
            ("PASS ✅", Some(TraceVerdict::Pass)),
            ("⚠️ CONCERNS", Some(TraceVerdict::Concerns)),
            ("WAIVED 🔓", Some(TraceVerdict::Waived)),
            ("NOT_EVALUATED", Some(TraceVerdict::NotEvaluated)),
            ("{PASS | CONCERNS | FAIL | WAIVED}", None),
            ("\"{PASS | CONCERNS}\"", None),
            ("PASSING", None),
            ("❌ FAILED", Some(TraceVerdict::Fail)),
            ("PASSED", Some(TraceVerdict::Pass)),
            ("FAILURE", None),
        ] {
            assert_eq!(TraceVerdict::parse(verdict_text), verdict, "{verdict_text}");
        }
        for (verdict_text, verdict) in [
            ("Approve", Some(CodeReviewVerdict::Approve)),
            ("✅ Approved", Some(CodeReviewVerdict::Approve)),
            ("Changes Requested (3 items)", Some(CodeReviewVerdict::ChangesRequested)),
            ("**BLOCKED**", Some(CodeReviewVerdict::Blocked)),
            ("Approve/Changes Requested/Blocked", None),
            ("Approval is near", None),
        ] {
            assert_eq!(CodeReviewVerdict::parse(verdict_text), verdict, "{verdict_text}");
        }
    }

    fn render_readiness(report_text: &str) -> String {
        let reading = ReadinessVerdict::from_report("r.md", report_text);
        let stated = reading.stated.map(|stated| format!("{:?} {}", stated.verdict, stated.line));
        stated.unwrap_or_else(|| reading.problems.iter().map(|problem| problem.rule).collect())
    }

    #[test]
    fn readiness_stands_under_its_heading() {
        for (report_text, expected) in [
            ("# R\n\nWe are READY, nearly.\n\n### Overall Readiness Status\n\n**NEEDS WORK**\n", "NeedsWork 7"),
            ("### Overall Readiness Status: NOT READY\n", "NotReady 1"),
            ("### Overall Readiness Status\n\n**Status:** ✅ READY\n", "Ready 3"),
            ("## Overall Readiness Status\n[READY/NEEDS WORK/NOT READY]\n", "verdict-missing"),
            ("## Overall Readiness Status\nAll is well.\nREADY\n", "verdict-missing"),
            ("```\n### Overall Readiness Status\nREADY\n```\n", "verdict-missing"),
            ("### Overall Readiness Status\nNEEDS WORK\n# Again\n### Overall Readiness Status\nREADY\n", "Ready 5"),
            ("# Implementation readiness\n\n**Verdict:** FAIL\n", "NotReady 3"),
            ("---\nverdict: CONCERNS\n---\n# x\n", "NeedsWork 2"),
            ("", "verdict-missing"),
        ] {
            assert_eq!(render_readiness(report_text), expected, "{report_text}");
        }
    }

    fn render_trace(report_text: &str) -> String {
        let VerdictReading { stated, problems } = TraceVerdict::from_report("t.md", report_text);
        let mut rendered = stated.map_or("none".into(), |stated| {
            format!("{:?} {} {}", stated.verdict, stated.line, stated.rationale.unwrap_or_default())
        });
        problems.iter().for_each(|problem| rendered.push_str(&format!(" [{}]", problem.rule)));
        rendered.trim_end().to_string()
    }

    #[test]
    fn the_gate_decision_is_found_in_headings_yaml_blocks_and_json() {
        let yaml_block =
            "```yaml\nx:\n  gate_decision:\n    decision: \"FAIL\"\n    waiver:\n      reason: \"late\"\n```\n";
        for (report_text, expected) in [
            (
                "#### For PASS Decision ✅\n### GATE DECISION: ⚠️ CONCERNS\n### Rationale\n\nOne gap.\n",
                "Concerns 2 One gap.",
            ),
            ("### GATE DECISION: {PASS | CONCERNS | FAIL | WAIVED}\n", "none [verdict-missing]"),
            ("- **Original Decision**: ❌ FAIL\n- **Decision**: PASS ✅\n", "Pass 2"),
            (yaml_block, "Fail 4 late"),
            (&format!("## Gate Decision: PASS\n{yaml_block}"), "Pass 1  [trace-differs]"),
            ("## Gate Decision\n\nWAIVED\n", "Waived 3  [trace-waived-bare]"),
            ("## Gate Decision\n\nWAIVED\n- **Waiver Reason**: the law\n", "Waived 3 the law"),
            (
                "{\"schema_version\": \"0.1.0\",\n \"gate_status\": \"NOT_EVALUATED\", \"rationale\": \"no tests\"}",
                "NotEvaluated 2 no tests",
            ),
            ("{\"gate_status\": ", "none [verdict-missing]"),
            ("## Gate Decision: FAILED\n", "Fail 1"),
            ("## Gate Decision: REJECTED\n", "none [verdict-missing] [trace-unknown]"),
            ("## Gate Decision\n\nnot yet\n", "none [verdict-missing] [trace-unknown]"),
            ("## Gate Decision: PASS\n\n## Gate Decision: REJECTED\n", "Pass 1  [trace-unknown]"),
            ("## Gate Decision: REJECTED\n\n## Gate Decision: PASS\n", "Pass 3"),
            ("- **Decision**: keep the old tests\n", "none [verdict-missing]"),
            ("{\"gate_status\": \"REJECTED\"}", "none [verdict-missing] [trace-unknown]"),
            ("{\"gate_status\": \"FAILED\"}", "Fail 1"),
            (&format!("## Gate Decision\n\nAs it was decided in May:\n{yaml_block}"), "Fail 7 late"),
        ] {
            assert_eq!(render_trace(report_text), expected, "{report_text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_falling_over(text in "(?s)([-#{}|:*a\n ]|READY|FAIL|GATE DECISION|```\n\
            |gate_decision:\n|decision: ){0,40}") {
            let _ = ReadinessVerdict::from_report("x", &text);
            let _ = TraceVerdict::from_report("x", &text);
            let _ = CodeReviewVerdict::parse(&text);
        }
    }
}
