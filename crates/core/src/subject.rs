//! What is under review.

use alloc::{
    boxed::Box,
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::Hash;

/// A document or one section of it, a source file, or a code change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subject", rename_all = "snake_case")]
pub enum Subject {
    Document {
        /// Relative to the project's root, with `/`.
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        section: Option<String>,
    },
    Source {
        path: String,
    },
    Change(Box<Change>),
}

/// A code change: between two states of a repository, or from one state to the work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The name for users: `main..HEAD`, `work tree`.
    pub range: String,
    /// The commit or tree that it starts from; empty if there was nothing before it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base: String,
    /// The commit or tree that it ends in; `None` is the work tree, where it can be repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// The files under review, in order; the rest of the repository is context.
    #[serde(default)]
    pub files: Vec<Changed>,
    /// Other changed files that cannot be reviewed, each with the reason, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The story whose acceptance criteria the change has to meet, relative to the project's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story: Option<String>,
}

/// One file of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// Relative to the project's root, with `/`.
    pub path: String,
    /// The previous path, if the file was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl Subject {
    /// Makes the subject for `path`: a document if the extension says prose, else a source file.
    pub fn at(path: &str, section: Option<String>) -> Subject {
        // Only prose has sections, so a section makes any file a document.
        if is_prose(path) || section.is_some() {
            Subject::Document { path: path.to_string(), section }
        } else {
            Subject::Source { path: path.to_string() }
        }
    }

    /// Returns the path if the subject is a single file.
    pub fn path(&self) -> Option<&str> {
        match self {
            Subject::Document { path, .. } | Subject::Source { path } => Some(path),
            Subject::Change(_) => None,
        }
    }

    /// Returns the paths of all files of the subject.
    pub fn files(&self) -> Vec<&str> {
        match self {
            Subject::Document { path, .. } | Subject::Source { path } => vec![path],
            // In the order in which the change lists them.
            Subject::Change(change) => change.files.iter().map(|file| file.path.as_str()).collect(),
        }
    }

    pub fn change(&self) -> Option<&Change> {
        match self {
            Subject::Change(change) => Some(change),
            _ => None,
        }
    }

    pub fn section(&self) -> Option<&str> {
        match self {
            Subject::Document { section, .. } => section.as_deref(),
            _ => None,
        }
    }

    pub fn is_document(&self) -> bool {
        matches!(self, Subject::Document { .. })
    }

    /// Returns the title for users: `docs/prd.md § Goals`.
    pub fn title(&self) -> String {
        match self {
            Subject::Document { path, section: Some(section) } => format!("{path} § {section}"),
            Subject::Document { path, section: None } | Subject::Source { path } => path.clone(),
            Subject::Change(change) => format!("change {}", change.range),
        }
    }

    /// Returns a name for files: `prd`, `prd-goals`.
    pub fn slug(&self) -> String {
        match self {
            Subject::Document { path, section: Some(section) } => {
                format!("{}-{}", slug(stem(path)), slug(section))
            }
            Subject::Document { path, section: None } | Subject::Source { path } => slug(stem(path)),
            Subject::Change(change) => format!("change-{}", distinct(&change.range)),
        }
    }
}

/// Whether a file is prose, by its extension.
pub fn is_prose(path: &str) -> bool {
    // Extensions are compared without case: `PRD.MD` is prose.
    let lower = path.to_ascii_lowercase();
    [".md", ".markdown", ".txt", ".rst", ".adoc"].iter().any(|end| lower.ends_with(end))
}

fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rfind('.') {
        // A leading dot belongs to the name: `.env` has no extension.
        Some(dot) if dot > 0 => &name[..dot],
        _ => name,
    }
}

/// Makes a slug that stays distinct for texts that differ only at the end, such as the parts of a change with a long name.
fn distinct(text: &str) -> String {
    let short = slug(text);
    if text.chars().count() <= 40 {
        return short;
    }
    // 27 characters, a dash and 12 hash digits fit the limit of 40.
    let start: String = short.chars().take(27).collect();
    format!("{}-{}", start.trim_end_matches('-'), Hash::of(text.as_bytes()).short())
}

/// Keeps letters and digits in lower case and turns everything else into single dashes, at most 40 characters.
pub fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            out.push(c);
        // A slug neither starts with a dash nor has two in a row.
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if out.chars().count() >= 40 {
            break;
        }
    }
    // The cut can end on a dash, and a text of symbols alone leaves nothing.
    let trimmed = out.trim_end_matches('-');
    if trimmed.is_empty() { "subject".to_string() } else { trimmed.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_file_names() {
        assert_eq!(Subject::at("docs/My PRD (v2).md", None).slug(), "my-prd-v2");
        assert_eq!(Subject::at("docs/prd.md", Some("2. Goals & Scope".into())).slug(), "prd-2-goals-scope");
        assert_eq!(Subject::at("src/.env", None).slug(), "env");
        assert_eq!(slug("***"), "subject");
    }

    #[test]
    fn parts_of_a_change_have_names_of_their_own_however_long_it_is_called() {
        let slug = |range: &str| {
            Subject::Change(Box::new(Change { range: range.into(), ..Change::default() })).slug()
        };
        assert_eq!(slug("main..HEAD (part 2 of 5)"), "change-main-head-part-2-of-5");
        let long = "main..feature/an-uncommonly-long-name-of-a-branch";
        let parts = [1, 2].map(|part| slug(&format!("{long} (part {part} of 2)")));
        assert_ne!(parts[0], parts[1]);
        assert!(
            parts[0].starts_with("change-main-feature-an-uncommonly-") && parts[0].len() <= 47,
            "{}",
            parts[0]
        );
    }

    #[test]
    fn prose_is_a_document_and_the_rest_is_source() {
        assert!(Subject::at("a/PRD.MD", None).is_document());
        assert!(!Subject::at("src/main.rs", None).is_document());
    }
}
