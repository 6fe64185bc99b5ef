//! Plans the lines of `.gitignore` for what Tribunal and its hooks leave in a project and should not be committed.

use std::path::Path;

use tribunal_agents::{clients::Home, hook::HookClient};
use tribunal_runner::{
    Project,
    edits::{self, Edit},
};

use super::{Arguments, Plan, read};
use crate::complaint::Complaint;

const FILE: &str = ".gitignore";

/// A line, and an example of a file that it covers.
const LINES: [(&str, &str); 2] = [
    (".tribunal/", ".tribunal/journal"),
    (".claude/review-loop-state.yaml", ".claude/review-loop-state.yaml"),
];

/// Lists the files that get hooks for this machine alone. They may contain one of its paths, and colleagues without
/// Tribunal would get errors from them.
fn own_settings() -> impl Iterator<Item = &'static str> {
    HookClient::all().filter_map(|client| match client.hooks.home(false) {
        Home::Shared(path) | Home::Own(path) => Some(path),
        Home::Person(_) => None,
    })
}

pub(super) fn set(plan: &mut Plan, arguments: &Arguments, project: &Project) -> Result<(), Complaint> {
    let old = read(project, FILE)?;
    // In a linked worktree, `.git` is a file.
    let is_repository = |folder: &Path| folder.join(".git/HEAD").exists() || folder.join(".git").is_file();
    let in_git = project.root().ancestors().any(is_repository);
    // A new `.gitignore` in a directory that git does not know would only be clutter.
    if old.is_none() && !in_git {
        return Ok(());
    }
    // Shared hooks test for Tribunal first and are meant to be committed.
    // A file that existed before stays as visible to git as it was.
    let made = plan.edits.iter().filter(|edit| edit.old.is_none() && !arguments.shared);
    let own = made.filter_map(|edit| own_settings().find(|own| edit.path == *own));
    let mut lines = LINES.to_vec();
    lines.extend(own.map(|own| (own, own)));
    // git itself says what is ignored: a parent directory or a global file may do that already.
    let ignored = edits::ignored(project, &lines.iter().map(|(_, file)| *file).collect::<Vec<_>>());
    let missing = lines.iter().filter(|(_, file)| !ignored.iter().any(|known| known == file));
    let missing: Vec<&str> = missing.map(|(line, _)| *line).collect();
    let new = with(old.as_deref().unwrap_or_default(), &missing);
    if old.is_some() || !missing.is_empty() {
        plan.edits.push(Edit { path: FILE.to_string(), old, new: Some(new) });
    }
    Ok(())
}

/// Appends those of these lines that the text does not have.
fn with(text: &str, lines: &[&str]) -> String {
    let has =
        |line: &&&str| text.trim_start_matches('\u{feff}').lines().any(|known| known.trim_end() == **line);
    // The file keeps its own line ends; a mixture would show up as a change of every line in some editors.
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut out = text.to_string();
    for line in lines.iter().filter(|line| !has(line)) {
        // A byte order mark alone is still an empty file.
        if !out.trim_start_matches('\u{feff}').is_empty() && !out.ends_with('\n') {
            out.push_str(line_end);
        }
        out.push_str(line);
        out.push_str(line_end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_in_the_dress_of_the_file() {
        for (text, expected) in [
            ("", "a/\nb\n"),
            ("x\n", "x\na/\nb\n"),
            ("x", "x\na/\nb\n"),
            ("x\r\ny", "x\r\ny\r\na/\r\nb\r\n"),
            ("\u{feff}x\r\n", "\u{feff}x\r\na/\r\nb\r\n"),
            ("\u{feff}a/\n", "\u{feff}a/\nb\n"),
            ("b\na/ \n", "b\na/ \n"),
        ] {
            assert_eq!(with(text, &["a/", "b"]), expected, "{text:?}");
        }
    }
}
