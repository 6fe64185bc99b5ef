//! Describes a code change in addition to its diff: which files it has, what is not shown, and what it has to meet.

use tribunal_core::{level::Role, subject::Change};

use super::line;

/// The most bytes for the names of files, and for what was left out; the diff has all the names anyway.
const MOST_NAMES: usize = 240;

/// Describes a change, in the same words for every agent of the same kind.
pub(super) fn about(change: &Change, role: Role) -> String {
    let files = change.files.iter().map(|file| match &file.from {
        Some(from) => format!("`{}` (was `{}`)", line(&file.path), line(from)),
        None => format!("`{}`", line(&file.path)),
    });
    let mut out = format!("\nIts files: {}.", listed(files.collect(), ", "));
    // What cannot be reviewed is named, so that its absence is not taken for a finding.
    if !change.left_out.is_empty() {
        let left_out = change.left_out.iter().map(|one| line(one)).collect();
        out.push_str(&format!("\nIt also changes what nobody can review here: {}.", listed(left_out, "; ")));
    }
    out.push('\n');
    out.push_str(how(role).trim_end());
    out
}

fn how(role: Role) -> &'static str {
    match role {
        Role::Fixer => include_str!("../../templates/parts/change-fix.md"),
        Role::Challenger => include_str!("../../templates/parts/change-challenge.md"),
        _ => include_str!("../../templates/parts/change.md"),
    }
}

/// Joins the first names, and says how many more there are.
fn listed(names: Vec<String>, between: &str) -> String {
    let mut out = String::new();
    for (index, name) in names.iter().enumerate() {
        // The first name is always shown, however long it is.
        if index > 0 && out.len() + name.len() > MOST_NAMES {
            return format!("{out} and {} more", names.len() - index);
        }
        if index > 0 {
            out.push_str(between);
        }
        out.push_str(&tribunal_core::text::cut(name, MOST_NAMES));
    }
    out
}

/// Numbers the acceptance criteria, with the further lines of each one indented below it.
pub(super) fn numbered(criteria: &[String]) -> String {
    let mut out = String::new();
    for (index, criterion) in criteria.iter().enumerate() {
        // The indentation keeps a criterion of several lines in its item of the Markdown list.
        out.push_str(&format!("{}. {}\n", index + 1, criterion.trim().replace('\n', "\n   ")));
    }
    out
}

/// What a reviewer is asked to do with the criteria, if there are any.
pub(super) fn criteria_task(role: Role, count: usize) -> Option<String> {
    let first = "The acceptance criteria are numbered above";
    match role {
        Role::Spec => Some(format!(
            "{first}: go through all {count}, one by one. Each that is not met, or met in part, is a finding of\n\
             its own that names it (\"criterion 2\") and shows where; one that is met is none."
        )),
        Role::Fixer | Role::Challenger => None,
        _ => Some(format!("{first}; they say what the change is for.")),
    }
}
