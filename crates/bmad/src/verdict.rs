//! Verdicts that BMAD's own checks write into their reports: readiness, the trace gate, a code review. The words of all eras
//! are known. A verdict counts where a report states it, never in a sentence that mentions one; a template's list of choices
//! is none.
//!
//! What follows from a verdict is not decided here.

use serde::Serialize;

use crate::{
    page::{Kind, Line, Page, plain},
    problem::{Problem, rules},
    yaml::{self, Node},
};

/// Whether a plan can be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Readiness {
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
pub enum Trace {
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
pub enum CodeReview {
    Approve,
    ChangesRequested,
    Blocked,
}

/// A verdict and where it is stated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stated<V> {
    pub verdict: V,
    pub said: String,
    pub line: usize,
    /// The rationale, where the report gives one; a waiver needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
}

/// The verdict of a report, and problems with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reading<V> {
    /// The verdict; `None` if the report states none.
    pub stated: Option<Stated<V>>,
    pub problems: Vec<Problem>,
}

impl Readiness {
    const WORDS: [(&'static str, Readiness); 9] = [
        ("NOT READY", Readiness::NotReady),
        ("NEEDS WORK", Readiness::NeedsWork),
        ("READY WITH CONDITIONS", Readiness::NeedsWork),
        ("READY", Readiness::Ready),
        ("CONCERNS", Readiness::NeedsWork),
        ("PASS", Readiness::Ready),
        ("PASSED", Readiness::Ready),
        ("FAIL", Readiness::NotReady),
        ("FAILED", Readiness::NotReady),
    ];

    /// Parses a stated verdict, such as `✅ READY` or `**NEEDS WORK** (two gaps)`.
    pub fn parse(said: &str) -> Option<Readiness> {
        word(said, &Self::WORDS)
    }

    /// Reads the verdict of an implementation readiness report.
    pub fn read(path: &str, text: &str) -> Reading<Readiness> {
        let is_ours = |label: &str| {
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
        let page = Page::of(text);
        let stated =
            last_stated(&page, &is_ours, &Self::parse).or_else(|| in_front(&page, &["verdict"], Self::parse));
        reading(path, stated, "READY, NEEDS WORK or NOT READY under `### Overall Readiness Status`")
    }
}

impl Trace {
    const WORDS: [(&'static str, Trace); 7] = [
        ("NOT EVALUATED", Trace::NotEvaluated),
        ("CONCERNS", Trace::Concerns),
        ("WAIVED", Trace::Waived),
        ("PASS", Trace::Pass),
        ("PASSED", Trace::Pass),
        ("FAIL", Trace::Fail),
        ("FAILED", Trace::Fail),
    ];

    pub fn parse(said: &str) -> Option<Trace> {
        word(said, &Self::WORDS)
    }

    /// Reads the decision of a traceability matrix, or of a `gate-decision.json`.
    pub fn read(path: &str, text: &str) -> Reading<Trace> {
        if text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
            return Self::of_json(path, text);
        }
        let page = Page::of(text);
        let is_ours = |label: &str| {
            matches!(
                label,
                "gate decision" | "quality gate decision" | "gate status" | "decision" | "gate verdict"
            )
        };
        let mut stated = last_stated(&page, &is_ours, &Self::parse);
        if let Some(stated) = &mut stated {
            stated.rationale = rationale(&page);
        }
        // Reports of the test architect may repeat the decision as YAML for other tools.
        let snippet = snippet(&page);
        let mut problems = Vec::new();
        if let (Some(stated), Some(snippet)) = (&stated, &snippet)
            && stated.verdict != snippet.verdict
        {
            let what =
                format!("the report says {} on line {}, its YAML {}", stated.said, stated.line, snippet.said);
            let problem = Problem::warning("trace-differs", path, what).at(snippet.line);
            problems.push(problem.why("the report's counts").todo("run the trace again"));
        }
        // A later decision that is not understood would be the one that counts, so it must not be passed over in silence.
        let is_gate = |label: &str| label.contains("gate") && is_ours(label);
        let understood = stated.as_ref().map_or(0, |stated| stated.line);
        let unknown = last_stated(&page, &is_gate, &|said| {
            (Self::parse(said).is_none() && is_filled(said)).then_some(())
        });
        // Where the decision is in YAML, a sentence only introduces it.
        let counts = |said: &str| snippet.is_none() || said.split_whitespace().count() <= 3;
        let unknown = unknown.filter(|one| one.line > understood && counts(&one.said));
        problems.extend(unknown.map(|one| unknown_gate(path, &one.said, one.line)));
        let mut reading =
            reading(path, stated.or(snippet), "PASS, CONCERNS, FAIL or WAIVED behind `GATE DECISION:`");
        reading.problems.extend(problems);
        waived(path, reading)
    }

    /// Reads the decision of a `gate-decision.json`.
    fn of_json(path: &str, text: &str) -> Reading<Trace> {
        // Every JSON text is also YAML, and the YAML reader knows the lines.
        let node = yaml::parse(text).ok();
        let field = node.as_ref().and_then(|node| node.get("gate_status").or_else(|| node.get("decision")));
        let said = field.and_then(|field| Some((field.text()?, field.line)));
        let stated = said.and_then(|(said, line)| {
            let rationale = node.as_ref()?.get("rationale").and_then(Node::text).map(str::to_string);
            Some(Stated { verdict: Trace::parse(said)?, said: said.to_string(), line, rationale })
        });
        let unknown = said.filter(|(said, _)| Trace::parse(said).is_none() && is_filled(said));
        let mut reading =
            reading(path, stated, "PASS, CONCERNS, FAIL, WAIVED or NOT_EVALUATED as `gate_status`");
        reading.problems.extend(unknown.map(|(said, line)| unknown_gate(path, said, line)));
        waived(path, reading)
    }
}

/// The problem of a gate whose decision is not known: it may be a refusal.
fn unknown_gate(path: &str, said: &str, line: usize) -> Problem {
    let said: String = said.chars().take(60).collect();
    let problem =
        Problem::warning("trace-unknown", path, format!("the gate says {said:?}, which is no verdict"));
    problem.at(line).why("it may be a no").todo("write PASS, CONCERNS, FAIL or WAIVED there")
}

/// Whether a text is neither a placeholder nor a list of choices such as `{PASS | FAIL}`.
fn is_filled(said: &str) -> bool {
    is_written(said) && !said.contains(['|', '{']) && !said.contains(" / ")
}

/// A waiver without a written rationale gives a problem, since nothing shows who is responsible.
fn waived(path: &str, mut reading: Reading<Trace>) -> Reading<Trace> {
    let bare = |stated: &&Stated<Trace>| stated.verdict == Trace::Waived && stated.rationale.is_none();
    if let Some(stated) = reading.stated.as_ref().filter(bare) {
        let problem = Problem::warning("trace-waived-bare", path, "the gate is waived, and nothing says why");
        reading.problems.push(problem.at(stated.line).todo("write the reason down, and who answers for it"));
    }
    reading
}

impl CodeReview {
    const WORDS: [(&'static str, CodeReview); 7] = [
        ("CHANGES REQUESTED", CodeReview::ChangesRequested),
        ("REQUEST CHANGES", CodeReview::ChangesRequested),
        ("CHANGES REQUIRED", CodeReview::ChangesRequested),
        ("APPROVED", CodeReview::Approve),
        ("APPROVE", CodeReview::Approve),
        ("BLOCKED", CodeReview::Blocked),
        ("BLOCK", CodeReview::Blocked),
    ];

    pub fn parse(said: &str) -> Option<CodeReview> {
        word(said, &Self::WORDS)
    }
}

/// The verdict that a text states: the text begins with it, and no other choice stands beside it.
fn word<V: Copy + PartialEq>(said: &str, words: &[(&str, V)]) -> Option<V> {
    let line = said.lines().next().unwrap_or_default();
    // Emphasis, check marks and emoji may come first; a brace stays, since it marks a placeholder.
    let line = line.trim_start_matches(|c: char| !(c.is_alphanumeric() || "{[<".contains(c)));
    let line = line.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(line);
    let folded: String =
        line.chars().map(|c| if matches!(c, '_' | '-') { ' ' } else { c.to_ascii_uppercase() }).collect();
    // A word that continues is another word: `READYING`.
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
    let begins = |text: &str| {
        // The longest match wins: `READY WITH CONDITIONS` is not `READY`.
        let found = words.iter().filter(|(word, _)| text.strip_prefix(word).is_some_and(ends));
        found.max_by_key(|(word, _)| word.len()).copied()
    };
    let (found, verdict) = begins(&folded)?;
    let rest = folded[found.len()..].trim_start_matches(['*', '_', '`', ' ']);
    // `READY / NEEDS WORK`, `PASS | FAIL` and `READY OR NOT` are choices of a template.
    let choices = rest.trim_start_matches(['/', '|', ',', ' ']);
    let choices = choices.strip_prefix("OR ").unwrap_or(choices).trim_start();
    if choices.len() < rest.len() && begins(choices).is_some() {
        return None;
    }
    // `READY when the gaps are closed` is no verdict, but these continuations are.
    let followers = ["FOR IMPLEMENTATION", "FOR DEVELOPMENT", "FOR SPRINT", "TO PROCEED", "TO IMPLEMENT"];
    let goes_on = rest.starts_with(|c: char| c.is_alphanumeric())
        && !followers.iter().any(|follower| rest.starts_with(follower));
    (!goes_on).then_some(verdict)
}

/// The last verdict behind an accepted heading or label: reports are appended to, so the last one counts.
fn last_stated<V>(
    page: &Page<'_>,
    is_ours: &dyn Fn(&str) -> bool,
    parse: &dyn Fn(&str) -> Option<V>,
) -> Option<Stated<V>> {
    let mut last = None;
    let mut under = false;
    for line in page.lines.iter().filter(|line| line.kind == Kind::Prose && !line.is_blank()) {
        let heading = line.heading();
        let text = heading.map_or_else(|| unlisted(line), |(_, title)| title);
        let labelled = label(text, is_ours);
        // Under an accepted heading only the first line counts; later lines explain.
        let value = labelled.or_else(|| (under && heading.is_none()).then_some(text));
        let said = value
            .map(|value| value.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`')));
        if let Some((said, verdict)) = said.and_then(|said| Some((said, parse(said)?))) {
            last = Some(Stated { verdict, said: said.to_string(), line: line.number, rationale: None });
        }
        under = heading.is_some_and(|(_, title)| is_ours(&plain(title)));
    }
    last
}

/// The text behind `label:`, if the label is accepted.
fn label<'t>(text: &'t str, is_ours: &dyn Fn(&str) -> bool) -> Option<&'t str> {
    let (label, value) = text.split_once(':')?;
    let label = plain(label);
    (is_ours(&label)).then_some(value)
}

/// A line without its list mark and without `Status:`, which adds nothing below a heading.
fn unlisted<'t>(line: &Line<'t>) -> &'t str {
    let text = line.text.trim().trim_start_matches(['-', '+', '>', ' ']);
    // `**Status:** READY` and `Status: READY` say no more than `READY`.
    match text.split_once(':') {
        Some((label, value)) if plain(label) == "status" => value,
        _ => text,
    }
}

/// The verdict in the front matter, under the first of these keys.
fn in_front<V>(page: &Page<'_>, keys: &[&str], parse: fn(&str) -> Option<V>) -> Option<Stated<V>> {
    let front = yaml::parse(page.front_matter()?).ok()?;
    let node = keys.iter().find_map(|key| front.get(key))?;
    let said = node.text()?;
    Some(Stated { verdict: parse(said)?, said: said.to_string(), line: node.line + 1, rationale: None })
}

/// The field `gate_decision.decision` in a code block of YAML.
fn snippet(page: &Page<'_>) -> Option<Stated<Trace>> {
    let code = page.lines.iter().enumerate().filter(|(_, line)| line.kind == Kind::Code);
    let from = code.clone().find(|(_, line)| line.text.trim() == "gate_decision:").map(|(index, _)| index)?;
    // The block is read line by line, since an excerpt or a template need not be valid YAML.
    let indent = |line: &Line<'_>| line.text.len() - line.text.trim_start().len();
    let own = indent(&page.lines[from]);
    let inside = page.lines[from + 1..]
        .iter()
        .take_while(|line| line.kind == Kind::Code && (line.is_blank() || indent(line) > own));
    let mut stated = None;
    let mut rationale = None;
    for line in inside {
        let Some((key, value)) = line.text.trim().split_once(':') else { continue };
        let value = value.split(" #").next().unwrap_or(value).trim().trim_matches(['"', '\'']);
        match key.trim() {
            // Indentation is ignored, so a nested key may have the same name; the first one is the gate's own.
            "decision" if stated.is_none() => {
                stated = Trace::parse(value).map(|verdict| (verdict, value, line.number))
            }
            "reason" | "rationale" if !value.is_empty() => rationale = Some(value.to_string()),
            _ => {}
        }
    }
    let (verdict, said, line) = stated?;
    Some(Stated { verdict, said: said.to_string(), line, rationale })
}

/// The first line under `Rationale`, or the text behind `Waiver Reason:`.
fn rationale(page: &Page<'_>) -> Option<String> {
    let reason = page.lines.iter().filter(|line| line.is_prose()).find_map(|line| {
        let text = line.text.trim().trim_start_matches(['-', '*', ' ']);
        let (label, value) = text.split_once(':')?;
        let value = value.trim_matches(['*', ' ', '\t']);
        (plain(label) == "waiver reason" && is_written(value)).then(|| value.to_string())
    });
    reason.or_else(|| {
        let section = page.section(|title| title == "rationale")?;
        let mut lines =
            page.lines[section.lines].iter().filter(|line| line.is_prose() && line.heading().is_none());
        lines.find(|line| is_written(line.text.trim())).map(|line| line.text.trim().to_string())
    })
}

/// Whether a text is neither empty nor a horizontal rule nor a placeholder.
fn is_written(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric) && !text.starts_with('{') && !text.starts_with('[')
}

/// A reading with a problem if the report states no verdict.
fn reading<V>(path: &str, stated: Option<Stated<V>>, wanted: &str) -> Reading<V> {
    let mut problems = Vec::new();
    if stated.is_none() {
        let problem = Problem::warning(rules::VERDICT_MISSING, path, "the report states no verdict");
        problems.push(problem.why("it counts as not done").todo(format!("it has to state {wanted}")));
    }
    Reading { stated, problems }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_of_every_era_are_known_and_choices_are_none() {
        for (said, verdict) in [
            ("READY", Some(Readiness::Ready)),
            ("**✅ READY FOR IMPLEMENTATION**", Some(Readiness::Ready)),
            ("🟠 NEEDS WORK (two gaps)", Some(Readiness::NeedsWork)),
            ("Not Ready — no architecture", Some(Readiness::NotReady)),
            ("not-ready", Some(Readiness::NotReady)),
            ("[NEEDS WORK]", Some(Readiness::NeedsWork)),
            ("PASS", Some(Readiness::Ready)),
            ("CONCERNS: two", Some(Readiness::NeedsWork)),
            ("FAIL", Some(Readiness::NotReady)),
            ("FAILED", Some(Readiness::NotReady)),
            ("❌ Failed (3 gaps)", Some(Readiness::NotReady)),
            ("PASSED", Some(Readiness::Ready)),
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
            assert_eq!(Readiness::parse(said), verdict, "{said}");
        }
        for (said, verdict) in [
            ("PASS ✅", Some(Trace::Pass)),
            ("⚠️ CONCERNS", Some(Trace::Concerns)),
            ("WAIVED 🔓", Some(Trace::Waived)),
            ("NOT_EVALUATED", Some(Trace::NotEvaluated)),
            ("{PASS | CONCERNS | FAIL | WAIVED}", None),
            ("\"{PASS | CONCERNS}\"", None),
            ("PASSING", None),
            ("❌ FAILED", Some(Trace::Fail)),
            ("PASSED", Some(Trace::Pass)),
            ("FAILURE", None),
        ] {
            assert_eq!(Trace::parse(said), verdict, "{said}");
        }
        for (said, verdict) in [
            ("Approve", Some(CodeReview::Approve)),
            ("✅ Approved", Some(CodeReview::Approve)),
            ("Changes Requested (3 items)", Some(CodeReview::ChangesRequested)),
            ("**BLOCKED**", Some(CodeReview::Blocked)),
            ("Approve/Changes Requested/Blocked", None),
            ("Approval is near", None),
        ] {
            assert_eq!(CodeReview::parse(said), verdict, "{said}");
        }
    }

    fn ready(text: &str) -> String {
        let reading = Readiness::read("r.md", text);
        let stated = reading.stated.map(|stated| format!("{:?} {}", stated.verdict, stated.line));
        stated.unwrap_or_else(|| reading.problems.iter().map(|problem| problem.rule).collect())
    }

    #[test]
    fn readiness_stands_under_its_heading() {
        for (text, found) in [
            (
                "# R\n\nWe are READY, nearly.\n\n### Overall Readiness Status\n\n**NEEDS WORK**\n",
                "NeedsWork 7",
            ),
            ("### Overall Readiness Status: NOT READY\n", "NotReady 1"),
            ("### Overall Readiness Status\n\n**Status:** ✅ READY\n", "Ready 3"),
            ("## Overall Readiness Status\n[READY/NEEDS WORK/NOT READY]\n", "verdict-missing"),
            ("## Overall Readiness Status\nAll is well.\nREADY\n", "verdict-missing"),
            ("```\n### Overall Readiness Status\nREADY\n```\n", "verdict-missing"),
            (
                "### Overall Readiness Status\nNEEDS WORK\n# Again\n### Overall Readiness Status\nREADY\n",
                "Ready 5",
            ),
            ("# Implementation readiness\n\n**Verdict:** FAIL\n", "NotReady 3"),
            ("---\nverdict: CONCERNS\n---\n# x\n", "NeedsWork 2"),
            ("", "verdict-missing"),
        ] {
            assert_eq!(ready(text), found, "{text}");
        }
    }

    fn trace(text: &str) -> String {
        let Reading { stated, problems } = Trace::read("t.md", text);
        let mut said = stated.map_or("none".into(), |stated| {
            format!("{:?} {} {}", stated.verdict, stated.line, stated.rationale.unwrap_or_default())
        });
        problems.iter().for_each(|problem| said.push_str(&format!(" [{}]", problem.rule)));
        said.trim_end().to_string()
    }

    #[test]
    fn the_gate_s_decision_is_found_in_headings_snippets_and_json() {
        let yaml = "```yaml\nx:\n  gate_decision:\n    decision: \"FAIL\"\n    waiver:\n      reason: \"late\"\n```\n";
        for (text, found) in [
            (
                "#### For PASS Decision ✅\n### GATE DECISION: ⚠️ CONCERNS\n### Rationale\n\nOne gap.\n",
                "Concerns 2 One gap.",
            ),
            ("### GATE DECISION: {PASS | CONCERNS | FAIL | WAIVED}\n", "none [verdict-missing]"),
            ("- **Original Decision**: ❌ FAIL\n- **Decision**: PASS ✅\n", "Pass 2"),
            (yaml, "Fail 4 late"),
            (&format!("## Gate Decision: PASS\n{yaml}"), "Pass 1  [trace-differs]"),
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
            (&format!("## Gate Decision\n\nAs it was decided in May:\n{yaml}"), "Fail 7 late"),
        ] {
            assert_eq!(trace(text), found, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_falling_over(text in "(?s)([-#{}|:*a\n ]|READY|FAIL|GATE DECISION|```\n\
            |gate_decision:\n|decision: ){0,40}") {
            let _ = Readiness::read("x", &text);
            let _ = Trace::read("x", &text);
            let _ = CodeReview::parse(&text);
        }
    }
}
