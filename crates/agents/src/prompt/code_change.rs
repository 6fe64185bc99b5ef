//! Describes a code change in addition to its diff: which files it has, what is not shown, and what it has to meet.

use tribunal_workflows::findings::{agent_role::AgentRole, subject::CodeChange};

use super::to_single_line;

/// The most bytes for the names of files, and for what was left out; the diff names all files anyway.
const MAX_NAMES_BYTES: usize = 240;

/// Describes a change, in the same words for every agent of the same kind.
pub(super) fn describe_change(code_change: &CodeChange, role: AgentRole) -> String {
    let file_names = code_change.files.iter().map(|changed_file| match &changed_file.from {
        Some(old_path) => {
            format!("`{}` (was `{}`)", to_single_line(&changed_file.path), to_single_line(old_path))
        }
        None => format!("`{}`", to_single_line(&changed_file.path)),
    });
    let mut description = format!("\nChanged files: {}.", join_limited(file_names.collect(), ", "));
    // What cannot be reviewed is named, because the diff does not show it.
    if !code_change.left_out.is_empty() {
        let omitted_names = code_change.left_out.iter().map(|omitted| to_single_line(omitted)).collect();
        description
            .push_str(&format!("\nNot in the diff and not under review: {}.", join_limited(omitted_names, "; ")));
    }
    description.push('\n');
    description.push_str(change_instructions(role).trim_end());
    description
}

fn change_instructions(role: AgentRole) -> &'static str {
    match role {
        AgentRole::Fixer => include_str!("../../templates/parts/change-fix.md"),
        AgentRole::Challenger | AgentRole::Judge => include_str!("../../templates/parts/change-challenge.md"),
        _ => include_str!("../../templates/parts/change.md"),
    }
}

/// Joins the first names, and says how many more there are.
fn join_limited(all_names: Vec<String>, separator: &str) -> String {
    let mut joined = String::new();
    for (index, next_name) in all_names.iter().enumerate() {
        // The first name is always shown, however long it is.
        if index > 0 && joined.len() + next_name.len() > MAX_NAMES_BYTES {
            return format!("{joined} and {} more", all_names.len() - index);
        }
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&tribunal_engine::text::truncate_chars(next_name, MAX_NAMES_BYTES));
    }
    joined
}

/// Numbers the acceptance criteria, with the further lines of each one indented below it.
pub(super) fn number_criteria(criteria: &[String]) -> String {
    let mut numbered_text = String::new();
    for (index, criterion) in criteria.iter().enumerate() {
        // The indentation keeps a criterion of several lines in its item of the Markdown list.
        numbered_text.push_str(&format!("{}. {}\n", index + 1, criterion.trim().replace('\n', "\n   ")));
    }
    numbered_text
}

/// What a reviewer is asked to do with the criteria, if there are any.
pub(super) fn criteria_instruction(role: AgentRole, criteria_count: usize) -> Option<String> {
    let opening = "The acceptance criteria are numbered above";
    match role {
        AgentRole::Spec => Some(format!(
            "{opening}. Check all {criteria_count}, one by one. Raise one finding for each criterion that is not met\n\
             or only partly met; name it (\"criterion 2\") and show where. Raise none for a criterion that is met."
        )),
        AgentRole::Fixer | AgentRole::Challenger | AgentRole::Judge => None,
        _ => Some(format!("{opening}; they say what the change is for.")),
    }
}
