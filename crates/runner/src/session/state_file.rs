//! The state file: what a session is bound to, in a form that the user can read and edit.
//!
//! `.claude/review-loop-state.yaml` is ours: comments and blank lines, `---`, YAML, `---`, the prompt (which may contain `---`).
//! `.claude/ralph-loop.local.md` is the loop of another tool in nearly the same format. Both are read in the same way, and both
//! are edited by replacing single values, so that everything the user wrote into them stays. The file is authoritative for
//! limits, promise and prompt, but not for findings, if the journal knows the run.

use std::ops::Range;

use tribunal_bmad::yaml::{self, YamlContent, YamlNode};
use tribunal_engine::{ids::RunId, timestamp};
use tribunal_workflows::session::{DEFAULT_MAX_REFUSALS, MAX_REFUSALS_LIMIT, SessionAssignment, SessionWork};

/// Our own state file.
pub const OWN_STATE_FILE: &str = ".claude/review-loop-state.yaml";
/// The state file of another tool.
pub const RALPH_STATE_FILE: &str = ".claude/ralph-loop.local.md";
/// A heading above the prompt that is not part of it.
const PROMPT_HEADING: &str = "# Original Prompt";

/// The content of a state file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateFile {
    pub is_active: bool,
    /// The session; empty if the file names none.
    pub session_id: String,
    /// The run or loop; `None` if the file names none.
    pub run_id: Option<RunId>,
    pub work: SessionWork,
    pub refusals: u32,
    pub max_refusals: u32,
    pub promise: Option<String>,
    pub open_count: u32,
    /// The number of failures and its limit; zero means that there is no limit.
    pub failures: (u32, u32),
    /// Refusals since the session last did something, if no journal counts them.
    pub refusals_in_a_row: u32,
    /// When something last happened, as far as the file says.
    pub touched_ms: Option<u64>,
    pub prompt: String,
}

/// The positions of the parts of a state file.
struct StateFileParts {
    yaml_range: Range<usize>,
    prompt_range: Range<usize>,
}

/// Finds the YAML between the two lines of dashes, and the prompt below. Without any dashes all of it is YAML.
fn find_parts(file_text: &str) -> Result<StateFileParts, String> {
    let (mut line_start, mut yaml_start) = (0, None);
    // Editors may put a byte order mark at the start, and lines may end with CR LF.
    for file_line in file_text.split_inclusive('\n') {
        let trimmed_line = file_line.trim_start_matches('\u{feff}').trim_end();
        let next_start = line_start + file_line.len();
        match (yaml_start, trimmed_line) {
            (None, "---") => yaml_start = Some(next_start),
            (Some(start), "---") => {
                return Ok(StateFileParts { yaml_range: start..line_start, prompt_range: next_start..file_text.len() });
            }
            // Text before the first dashes that is no comment means that there is no header.
            (None, _) if !trimmed_line.is_empty() && !trimmed_line.trim_start().starts_with('#') => break,
            _ => {}
        }
        line_start = next_start;
    }
    match yaml_start {
        Some(_) => Err("the closing `---` line is missing".to_string()),
        None => Ok(StateFileParts { yaml_range: 0..file_text.len(), prompt_range: file_text.len()..file_text.len() }),
    }
}

impl StateFile {
    /// Parses a state file. The error describes for the user what is wrong with it.
    pub fn parse_state(file_text: &str) -> Result<StateFile, String> {
        let file_parts = find_parts(file_text)?;
        let yaml_tree = parse_yaml(file_text, &file_parts)?;
        let scalar_text = |field_name: &str| {
            yaml_tree.get(field_name).and_then(YamlNode::scalar_text).map(str::trim).unwrap_or_default()
        };
        let parse_number = |field_names: &[&str]| {
            // Tools use different names for the same counter; the first one that is present counts.
            let first_present = field_names
                .iter()
                .map(|field_name| (field_name, scalar_text(field_name)))
                .find(|(_, field_text)| !field_text.is_empty());
            match first_present.map(|(field_name, field_text)| (field_name, field_text.parse::<u32>())) {
                None => Ok(None),
                Some((_, Ok(number))) => Ok(Some(number)),
                Some((field_name, Err(_))) => {
                    Err(format!("`{field_name}` is not a number: {}", scalar_text(field_name)))
                }
            }
        };
        let number_or_zero = |field_name: &str| parse_number(&[field_name]).map(Option::unwrap_or_default);
        let active = match scalar_text("active") {
            "true" | "yes" | "True" => true,
            "false" | "no" | "False" => false,
            "" => return Err("`active` is missing".to_string()),
            invalid => return Err(format!("`active` must be true or false, not `{invalid}`")),
        };
        let is_loop = yaml_tree.get("iteration").is_some() || scalar_text("workflow_name") == "loop";
        let max_refusals = parse_number(&["max_rounds", "max_iterations"])?.unwrap_or(DEFAULT_MAX_REFUSALS);
        let session_id =
            [scalar_text("session_id"), scalar_text("session")].into_iter().find(|field_text| !field_text.is_empty());
        let promise =
            Some(scalar_text("completion_promise")).filter(|field_text| !matches!(*field_text, "" | "null" | "~"));
        Ok(StateFile {
            is_active: active,
            session_id: session_id.unwrap_or_default().to_string(),
            run_id: Some(scalar_text("run")).filter(|run_id| !run_id.is_empty()).map(RunId::new),
            work: if is_loop { SessionWork::Loop } else { SessionWork::Review },
            refusals: parse_number(&["current_round", "iteration"])?.unwrap_or(0),
            // Other tools use zero for "without limit". Here nothing is without limit.
            max_refusals: if max_refusals == 0 { DEFAULT_MAX_REFUSALS } else { max_refusals.min(MAX_REFUSALS_LIMIT) },
            promise: promise.map(String::from),
            open_count: number_or_zero("pending_count")?.saturating_add(number_or_zero("in_progress_count")?),
            failures: (number_or_zero("consecutive_failures")?, number_or_zero("max_consecutive_failures")?),
            refusals_in_a_row: number_or_zero("in_a_row")?,
            touched_ms: [scalar_text("last_updated"), scalar_text("started_at")]
                .into_iter()
                .find_map(timestamp::parse_wall_ms),
            prompt: extract_prompt(&file_text[file_parts.prompt_range]),
        })
    }
}

fn parse_yaml(file_text: &str, file_parts: &StateFileParts) -> Result<YamlNode, String> {
    let lines_before = file_text[..file_parts.yaml_range.start].lines().count();
    yaml::parse_yaml(&file_text[file_parts.yaml_range.clone()]).map_err(|yaml_error| {
        // The YAML parser counts from its own start, the user counts from the start of the file.
        let line_prefix =
            yaml_error.line.map(|yaml_line| format!("line {}: ", yaml_line + lines_before)).unwrap_or_default();
        format!("{line_prefix}{}", yaml_error.message)
    })
}

fn extract_prompt(prompt_text: &str) -> String {
    let prompt_text = prompt_text.trim_start_matches(['\r', '\n']);
    let prompt_text = match prompt_text.split_once('\n') {
        Some((first_line, after_heading)) if first_line.starts_with(PROMPT_HEADING) => after_heading,
        None if prompt_text.starts_with(PROMPT_HEADING) => "",
        _ => prompt_text,
    };
    prompt_text.trim().to_string()
}

/// Replaces these values. Values that the file does not have yet are added below the rest of the YAML.
pub fn replace_values(file_text: &str, values: &[(&str, String)]) -> Result<String, String> {
    let file_parts = find_parts(file_text)?;
    let yaml_tree = parse_yaml(file_text, &file_parts)?;
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut added_lines = String::new();
    for (field_name, value) in values {
        match yaml_tree.get(field_name).map(|yaml_node| (yaml_node, yaml_node.span.clone())) {
            Some((yaml_node, Some(span)))
                if matches!(yaml_node.content, YamlContent::Scalar(_) | YamlContent::Null) =>
            {
                edits.push((
                    file_parts.yaml_range.start + span.start..file_parts.yaml_range.start + span.end,
                    value.clone(),
                ));
            }
            Some(_) => return Err(format!("`{field_name}` is not a single value")),
            None => added_lines.push_str(&format!("{field_name}: {value}\n")),
        }
    }
    if !added_lines.is_empty() {
        let line_break = if file_text[..file_parts.yaml_range.end].ends_with('\n') || file_parts.yaml_range.is_empty() {
            ""
        } else {
            "\n"
        };
        edits.push((file_parts.yaml_range.end..file_parts.yaml_range.end, format!("{line_break}{added_lines}")));
    }
    // Edits are applied from the end, so that the earlier positions stay valid.
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut edited_text = file_text.to_string();
    for (range, value) in edits {
        edited_text.replace_range(range, &value);
    }
    Ok(edited_text)
}

/// Quotes a value so that YAML reads it back.
pub fn quote_yaml(value: &str) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "\"\"".to_string())
}

/// What a new state file says beside what the session is bound to.
#[derive(Clone, Debug, Default)]
pub struct StateFileFacts {
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
pub struct StateCounts {
    pub refusals: u32,
    pub total: u32,
    pub open: u32,
    pub assigned: u32,
    pub fixed: u32,
    pub blocked: u32,
    pub failures: u32,
    pub total_failures: u32,
}

impl StateCounts {
    pub fn to_values(&self, timestamp: &str) -> Vec<(&'static str, String)> {
        vec![
            ("current_round", self.refusals.to_string()),
            ("total_issues", self.total.to_string()),
            ("pending_count", self.open.to_string()),
            ("in_progress_count", self.assigned.to_string()),
            ("fixed_count", self.fixed.to_string()),
            ("blocked_count", self.blocked.to_string()),
            ("consecutive_failures", self.failures.to_string()),
            ("total_failures", self.total_failures.to_string()),
            ("last_updated", quote_yaml(timestamp)),
        ]
    }
}

/// Renders the lines that say what the file is, whose session it holds and what that session works on.
fn render_header_lines(run_id: &RunId, bound: &SessionAssignment, facts: &StateFileFacts) -> Vec<String> {
    let work_name = match bound.work {
        SessionWork::Loop => "loop",
        SessionWork::Review => "review",
    };
    let mut header_lines = vec![
        "# What your session is working on. Tribunal writes this file; the journal is authoritative.".to_string(),
        "# You can edit the prompt, the promise and the limit. To release the session, set `active: false` or delete"
            .into(),
        "# this file; open findings stay open. To check the state of the session: `tribunal loop status`".into(),
        "---".into(),
        "active: true".into(),
        format!("session_id: {}", quote_yaml(&bound.session)),
        format!("run: {run_id}"),
        format!("workflow_name: {work_name}"),
        format!("section_name: {}", quote_yaml(&facts.section)),
        format!("content_path: {}", quote_yaml(&facts.subject)),
    ];
    if let Some(step_file) = &bound.step {
        header_lines.push(format!("step: {}", quote_yaml(step_file)));
    }
    header_lines
}

/// Renders a new state file.
pub fn render_state_file(
    run_id: &RunId,
    bound: &SessionAssignment,
    facts: &StateFileFacts,
    counts: &StateCounts,
    timestamp: &str,
) -> String {
    let format_percent = |value: Option<u32>| value.map_or("null".to_string(), |value| value.to_string());
    let count_value = |field_name: &str| {
        let values = counts.to_values(timestamp);
        values.into_iter().find(|(known_name, _)| *known_name == field_name).map(|(_, value)| value).unwrap_or_default()
    };
    let quoted_promise = bound.promise.as_deref().map_or("null".to_string(), quote_yaml);
    let mut file_lines = render_header_lines(run_id, bound, facts);
    file_lines.extend([
        String::new(),
        "# How often the session was sent back, and the limit.".into(),
        format!("current_round: {}", count_value("current_round")),
        format!("max_rounds: {}", bound.max_refusals),
        format!("current_fix_iteration: {}", facts.fix_iteration),
        format!("max_fix_iterations: {}", facts.max_fix_iterations),
        format!("review_round: {}", facts.round),
        format!("max_review_rounds: {}", facts.max_rounds),
        String::new(),
        "initial_confidence: null".into(),
        format!("current_confidence: {}", format_percent(facts.confidence)),
        format!("target_confidence: {}", format_percent(facts.target_confidence)),
        String::new(),
    ]);
    for field_name in ["total_issues", "pending_count", "in_progress_count", "fixed_count", "blocked_count"] {
        file_lines.push(format!("{field_name}: {}", count_value(field_name)));
    }
    file_lines.extend([
        String::new(),
        format!("consecutive_failures: {}", count_value("consecutive_failures")),
        format!("total_failures: {}", count_value("total_failures")),
        // Other tools look for these fields; the errors and outputs themselves are in the journal.
        "error_history: []".into(),
        "output_hashes: []".into(),
        format!("max_consecutive_failures: {}", facts.max_failures),
        String::new(),
        format!("started_at: {}", quote_yaml(timestamp)),
        format!("last_updated: {}", quote_yaml(timestamp)),
        format!("completion_promise: {quoted_promise}"),
        "---".into(),
        format!("{PROMPT_HEADING} (read again each time the session is sent back)"),
        bound.prompt.clone(),
    ]);
    file_lines.join("\n") + "\n"
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
