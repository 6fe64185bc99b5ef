//! The state file: what a session is bound to, in a form that the user can read and edit.
//!
//! `.claude/review-loop-state.yaml` is ours: comments and blank lines, `---`, YAML, `---`, the prompt (which may contain `---`).
//! `.claude/ralph-loop.local.md` is the loop of another tool in nearly the same format. Both are read in the same way, and both
//! are edited by replacing single values, so that everything the user wrote into them stays. The file is authoritative for
//! limits, promise and prompt, but not for findings, if the journal knows the run.

use std::ops::Range;

use tribunal_bmad::yaml::{self, Form, Node};
use tribunal_core::{
    ids::RunId,
    session::{Bound, MOST_REFUSALS, UPPER_BOUND, Work},
    stamp,
};

/// Our own state file.
pub const OURS: &str = ".claude/review-loop-state.yaml";
/// The state file of another tool.
pub const THEIRS: &str = ".claude/ralph-loop.local.md";
/// A heading above the prompt that is not part of it.
const HEADING: &str = "# Original Prompt";

/// The content of a state file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub active: bool,
    /// The session; empty if the file names none.
    pub session: String,
    /// The run; `None` if no journal knows it.
    pub run: Option<RunId>,
    pub work: Work,
    pub refusals: u32,
    pub max_refusals: u32,
    pub promise: Option<String>,
    pub open: u32,
    /// The number of failures and its limit; zero means that there is no limit.
    pub failures: (u32, u32),
    /// Refusals since the session last did something, if no journal counts them.
    pub in_a_row: u32,
    /// When something last happened, as far as the file says.
    pub touched_ms: Option<u64>,
    pub prompt: String,
}

/// The positions of the parts of a state file.
struct Parts {
    yaml: Range<usize>,
    prompt: Range<usize>,
}

/// Finds the YAML between the two lines of dashes, and the prompt below. Without any dashes all of it is YAML.
fn parts(text: &str) -> Result<Parts, String> {
    let (mut at, mut yaml) = (0, None);
    // Editors may put a byte order mark at the start, and lines may end with CR LF.
    for line in text.split_inclusive('\n') {
        let word = line.trim_start_matches('\u{feff}').trim_end();
        let next = at + line.len();
        match (yaml, word) {
            (None, "---") => yaml = Some(next),
            (Some(start), "---") => return Ok(Parts { yaml: start..at, prompt: next..text.len() }),
            // Text before the first dashes that is no comment means that there is no header.
            (None, _) if !word.is_empty() && !word.trim_start().starts_with('#') => break,
            _ => {}
        }
        at = next;
    }
    match yaml {
        Some(_) => Err("there is no second line of `---`".to_string()),
        None => Ok(Parts { yaml: 0..text.len(), prompt: text.len()..text.len() }),
    }
}

impl State {
    /// Parses a state file. The error describes for the user what is wrong with it.
    pub fn read(text: &str) -> Result<State, String> {
        let parts = parts(text)?;
        let tree = tree(text, &parts)?;
        let word = |name: &str| tree.get(name).and_then(Node::text).map(str::trim).unwrap_or_default();
        let number = |names: &[&str]| {
            // Tools use different names for the same counter; the first one that is present counts.
            let found = names.iter().map(|name| (name, word(name))).find(|(_, word)| !word.is_empty());
            match found.map(|(name, word)| (name, word.parse::<u32>())) {
                None => Ok(None),
                Some((_, Ok(number))) => Ok(Some(number)),
                Some((name, Err(_))) => Err(format!("`{name}` is no number: {}", word(name))),
            }
        };
        let of = |name: &str| number(&[name]).map(Option::unwrap_or_default);
        let active = match word("active") {
            "true" | "yes" | "True" => true,
            "false" | "no" | "False" => false,
            "" => return Err("it does not say whether it is `active`".to_string()),
            other => return Err(format!("`active` is neither true nor false: {other}")),
        };
        let is_loop = tree.get("iteration").is_some() || word("workflow_name") == "loop";
        let most = number(&["max_rounds", "max_iterations"])?.unwrap_or(MOST_REFUSALS);
        let session = [word("session_id"), word("session")].into_iter().find(|word| !word.is_empty());
        let promise = Some(word("completion_promise")).filter(|word| !matches!(*word, "" | "null" | "~"));
        Ok(State {
            active,
            session: session.unwrap_or_default().to_string(),
            run: Some(word("run")).filter(|run| !run.is_empty()).map(RunId::new),
            work: if is_loop { Work::Loop } else { Work::Review },
            refusals: number(&["current_round", "iteration"])?.unwrap_or(0),
            // Other tools use zero for "without limit". Here nothing is without limit.
            max_refusals: if most == 0 { MOST_REFUSALS } else { most.min(UPPER_BOUND) },
            promise: promise.map(String::from),
            open: of("pending_count")?.saturating_add(of("in_progress_count")?),
            failures: (of("consecutive_failures")?, of("max_consecutive_failures")?),
            in_a_row: of("in_a_row")?,
            touched_ms: [word("last_updated"), word("started_at")].into_iter().find_map(stamp::wall_ms),
            prompt: prompt(&text[parts.prompt]),
        })
    }
}

fn tree(text: &str, parts: &Parts) -> Result<Node, String> {
    let before = text[..parts.yaml.start].lines().count();
    yaml::parse(&text[parts.yaml.clone()]).map_err(|broken| {
        // The YAML parser counts from its own start, the user counts from the start of the file.
        let line = broken.line.map(|line| format!("line {}: ", line + before)).unwrap_or_default();
        format!("{line}{}", broken.what)
    })
}

fn prompt(text: &str) -> String {
    let text = text.trim_start_matches(['\r', '\n']);
    let text = match text.split_once('\n') {
        Some((first, rest)) if first.starts_with(HEADING) => rest,
        None if text.starts_with(HEADING) => "",
        _ => text,
    };
    text.trim().to_string()
}

/// Replaces these values. Values that the file does not have yet are added below the rest of the YAML.
pub fn edited(text: &str, values: &[(&str, String)]) -> Result<String, String> {
    let parts = parts(text)?;
    let tree = tree(text, &parts)?;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut added = String::new();
    for (name, value) in values {
        match tree.get(name).map(|node| (node, node.span.clone())) {
            Some((node, Some(span))) if matches!(node.form, Form::Scalar(_) | Form::Nothing) => {
                edits.push((parts.yaml.start + span.start..parts.yaml.start + span.end, value.clone()));
            }
            Some(_) => return Err(format!("`{name}` is not a single value")),
            None => added.push_str(&format!("{name}: {value}\n")),
        }
    }
    if !added.is_empty() {
        let breaks = if text[..parts.yaml.end].ends_with('\n') || parts.yaml.is_empty() { "" } else { "\n" };
        edits.push((parts.yaml.end..parts.yaml.end, format!("{breaks}{added}")));
    }
    // Edits are applied from the end, so that the earlier positions stay valid.
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut out = text.to_string();
    for (range, value) in edits {
        out.replace_range(range, &value);
    }
    Ok(out)
}

/// Quotes a value so that YAML reads it back.
pub fn quoted(value: &str) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "\"\"".to_string())
}

/// What a new state file says beside what the session is bound to.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    pub subject: String,
    pub section: String,
    pub round: u32,
    pub max_rounds: u32,
    pub fix_iteration: u32,
    pub max_fix_iterations: u32,
    pub confidence: Option<u32>,
    pub target_confidence: Option<u32>,
    pub max_failures: u32,
}

/// Counts that change while the file exists.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub refusals: u32,
    pub total: u32,
    pub open: u32,
    pub assigned: u32,
    pub fixed: u32,
    pub blocked: u32,
    pub failures: u32,
    pub total_failures: u32,
}

impl Counted {
    pub fn values(&self, now: &str) -> Vec<(&'static str, String)> {
        vec![
            ("current_round", self.refusals.to_string()),
            ("total_issues", self.total.to_string()),
            ("pending_count", self.open.to_string()),
            ("in_progress_count", self.assigned.to_string()),
            ("fixed_count", self.fixed.to_string()),
            ("blocked_count", self.blocked.to_string()),
            ("consecutive_failures", self.failures.to_string()),
            ("total_failures", self.total_failures.to_string()),
            ("last_updated", quoted(now)),
        ]
    }
}

/// Renders a new state file.
pub fn render(run: &RunId, bound: &Bound, shown: &Shown, counted: &Counted, now: &str) -> String {
    let work = match bound.work {
        Work::Loop => "loop",
        Work::Review => "review",
    };
    let percent = |value: Option<u32>| value.map_or("null".to_string(), |value| value.to_string());
    let count = |name: &str| {
        let values = counted.values(now);
        values.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value).unwrap_or_default()
    };
    let promise = bound.promise.as_deref().map_or("null".to_string(), quoted);
    let mut lines = vec![
        "# What a session of yours has taken on. Tribunal writes this file; the journal has the truth.".to_string(),
        "# You may change the prompt, the promise and the limit, set `active: false`, or delete it: the session is".into(),
        "# free then, and what is open stays open. `tribunal loop status` says how it stands.".into(),
        "---".into(),
        "active: true".into(),
        format!("session_id: {}", quoted(&bound.session)),
        format!("run: {run}"),
        format!("workflow_name: {work}"),
        format!("section_name: {}", quoted(&shown.section)),
        format!("content_path: {}", quoted(&shown.subject)),
    ];
    if let Some(step) = &bound.step {
        lines.push(format!("step: {}", quoted(step)));
    }
    lines.extend([
        String::new(),
        "# How often the session was sent back, and how often it may be.".into(),
        format!("current_round: {}", count("current_round")),
        format!("max_rounds: {}", bound.max_refusals),
        format!("current_fix_iteration: {}", shown.fix_iteration),
        format!("max_fix_iterations: {}", shown.max_fix_iterations),
        format!("review_round: {}", shown.round),
        format!("max_review_rounds: {}", shown.max_rounds),
        String::new(),
        "initial_confidence: null".into(),
        format!("current_confidence: {}", percent(shown.confidence)),
        format!("target_confidence: {}", percent(shown.target_confidence)),
        String::new(),
    ]);
    for name in ["total_issues", "pending_count", "in_progress_count", "fixed_count", "blocked_count"] {
        lines.push(format!("{name}: {}", count(name)));
    }
    lines.extend([
        String::new(),
        format!("consecutive_failures: {}", count("consecutive_failures")),
        format!("total_failures: {}", count("total_failures")),
        // For tools that look for them; the errors and outputs themselves are in the journal.
        "error_history: []".into(),
        "output_hashes: []".into(),
        format!("max_consecutive_failures: {}", shown.max_failures),
        String::new(),
        format!("started_at: {}", quoted(now)),
        format!("last_updated: {}", quoted(now)),
        format!("completion_promise: {promise}"),
        "---".into(),
        format!("{HEADING} (read again each time the session is sent back)"),
        bound.prompt.clone(),
    ]);
    lines.join("\n") + "\n"
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
