//! Plans the lines of `.gitignore` for what Tribunal and its hooks leave in a project and should not be committed.

use std::path::Path;

use tribunal_agents::{clients::HookFile, hook::HookClient};
use tribunal_runner::{
    Project,
    project::file_edits::{self, FileEdit},
};

use super::{InitArguments, InitPlan, read_project_file};
use crate::messages::user_errors::UserError;

const GITIGNORE_FILE: &str = ".gitignore";

/// A line, and an example of a file that it covers.
const IGNORED_LINES: [(&str, &str); 2] =
    [(".tribunal/", ".tribunal/journal"), (".claude/review-loop-state.yaml", ".claude/review-loop-state.yaml")];

/// Lists the files that get hooks for this machine alone. They may contain one of its paths, and colleagues without
/// Tribunal would get errors from them.
fn local_hook_files() -> impl Iterator<Item = &'static str> {
    HookClient::all().filter_map(|client| match client.hooks.hook_file(false) {
        HookFile::Shared(file_path) | HookFile::Own(file_path) => Some(file_path),
        HookFile::User(_) => None,
    })
}

pub(super) fn plan_ignored_lines(
    plan: &mut InitPlan,
    arguments: &InitArguments,
    project: &Project,
) -> Result<(), UserError> {
    let old_text = read_project_file(project, GITIGNORE_FILE)?;
    // In a linked worktree, `.git` is a file.
    let is_repository = |directory: &Path| directory.join(".git/HEAD").exists() || directory.join(".git").is_file();
    let in_git = project.root().ancestors().any(is_repository);
    // A new `.gitignore` in a directory that git does not know would only be clutter.
    if old_text.is_none() && !in_git {
        return Ok(());
    }
    // Shared hooks test for Tribunal first and are meant to be committed.
    // A file that existed before stays as visible to git as it was.
    let created_edits = plan.edits.iter().filter(|edit| edit.old_text.is_none() && !arguments.shared);
    let local_files =
        created_edits.filter_map(|edit| local_hook_files().find(|local_file| edit.relative_path == *local_file));
    let mut wanted_lines = IGNORED_LINES.to_vec();
    wanted_lines.extend(local_files.map(|local_file| (local_file, local_file)));
    // git itself says what is ignored: a parent directory or a global file may do that already.
    let ignored_files = file_edits::find_ignored(
        project,
        &wanted_lines.iter().map(|(_, example_file)| *example_file).collect::<Vec<_>>(),
    );
    let missing_pairs = wanted_lines
        .iter()
        .filter(|(_, example_file)| !ignored_files.iter().any(|ignored_file| ignored_file == example_file));
    let missing_lines: Vec<&str> = missing_pairs.map(|(ignore_line, _)| *ignore_line).collect();
    let new_text = append_missing_lines(old_text.as_deref().unwrap_or_default(), &missing_lines);
    if old_text.is_some() || !missing_lines.is_empty() {
        plan.edits.push(FileEdit { relative_path: GITIGNORE_FILE.to_string(), old_text, new_text: Some(new_text) });
    }
    Ok(())
}

/// Appends those of these lines that the text does not have.
fn append_missing_lines(old_text: &str, wanted_lines: &[&str]) -> String {
    let has_line = |wanted_line: &&&str| {
        old_text.trim_start_matches('\u{feff}').lines().any(|existing_line| existing_line.trim_end() == **wanted_line)
    };
    // The added lines end like those that are there.
    let line_end = if old_text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut new_text = old_text.to_string();
    for wanted_line in wanted_lines.iter().filter(|wanted_line| !has_line(wanted_line)) {
        // A byte order mark alone is still an empty file.
        if !new_text.trim_start_matches('\u{feff}').is_empty() && !new_text.ends_with('\n') {
            new_text.push_str(line_end);
        }
        new_text.push_str(wanted_line);
        new_text.push_str(line_end);
    }
    new_text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_lines_follow_the_line_endings_of_the_file() {
        for (old_text, expected) in [
            ("", "a/\nb\n"),
            ("x\n", "x\na/\nb\n"),
            ("x", "x\na/\nb\n"),
            ("x\r\ny", "x\r\ny\r\na/\r\nb\r\n"),
            ("\u{feff}x\r\n", "\u{feff}x\r\na/\r\nb\r\n"),
            ("\u{feff}a/\n", "\u{feff}a/\nb\n"),
            ("b\na/ \n", "b\na/ \n"),
        ] {
            assert_eq!(append_missing_lines(old_text, &["a/", "b"]), expected, "{old_text:?}");
        }
    }
}
