//! What is under review.

use alloc::{
    boxed::Box,
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::ids::Hash;

/// A document or one section of it, a source file, or a code change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
    Change(Box<CodeChange>),
}

/// A code change: between two states of a repository, or from one state to the work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CodeChange {
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
    pub files: Vec<ChangedPath>,
    /// Other changed files that cannot be reviewed, each with the reason, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The story whose acceptance criteria the change has to meet, relative to the project's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story: Option<String>,
}

/// One file of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChangedPath {
    /// Relative to the project's root, with `/`.
    pub path: String,
    /// The previous path, if the file was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl Subject {
    /// Whether two runs review the same thing. A change stays the same while its files move, as long as its name and base are
    /// the same.
    pub fn is_same_as(&self, other: &Subject) -> bool {
        match (self.code_change(), other.code_change()) {
            (Some(own_change), Some(other_change)) => {
                own_change.range == other_change.range && own_change.base == other_change.base
            }
            _ => self == other,
        }
    }

    /// Returns what identifies the subject: equal for two subjects exactly if [`Subject::is_same_as`] is true.
    pub fn identity_parts(&self) -> Vec<&str> {
        match self {
            Subject::Document { path, section: Some(section) } => vec!["document", path, section],
            Subject::Document { path, section: None } => vec!["document", path],
            Subject::Source { path } => vec!["source", path],
            Subject::Change(change) => vec!["change", &change.range, &change.base],
        }
    }

    /// Returns a short digest of what identifies the subject, for the keys of records about it.
    pub fn identity_digest(&self) -> String {
        digest_parts(&self.identity_parts())
    }

    /// Makes the subject for `path`: a document if the extension says prose, else a source file.
    pub fn from_path(path: &str, section: Option<String>) -> Subject {
        // Only prose has sections, so a section makes any file a document.
        if is_prose(path) || section.is_some() {
            Subject::Document { path: path.to_string(), section }
        } else {
            Subject::Source { path: path.to_string() }
        }
    }

    /// Returns the path if the subject is a single file.
    pub fn file_path(&self) -> Option<&str> {
        match self {
            Subject::Document { path, .. } | Subject::Source { path } => Some(path),
            Subject::Change(_) => None,
        }
    }

    /// Returns the paths of all files of the subject.
    pub fn file_paths(&self) -> Vec<&str> {
        match self {
            Subject::Document { path, .. } | Subject::Source { path } => vec![path],
            Subject::Change(change) => change.files.iter().map(|file| file.path.as_str()).collect(),
        }
    }

    pub fn code_change(&self) -> Option<&CodeChange> {
        match self {
            Subject::Change(change) => Some(change),
            _ => None,
        }
    }

    pub fn section_title(&self) -> Option<&str> {
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
    pub fn file_slug(&self) -> String {
        match self {
            Subject::Document { path, section: Some(section) } => {
                format!("{}-{}", slugify(file_stem(path)), slugify(section))
            }
            Subject::Document { path, section: None } | Subject::Source { path } => slugify(file_stem(path)),
            Subject::Change(change) => format!("change-{}", distinct_slug(&change.range)),
        }
    }
}

/// Whether a file is prose, by its extension.
pub fn is_prose(path: &str) -> bool {
    // Extensions are compared without case: `PRD.MD` is prose.
    let lowercase_path = path.to_ascii_lowercase();
    [".md", ".markdown", ".txt", ".rst", ".adoc"].iter().any(|extension| lowercase_path.ends_with(extension))
}

fn file_stem(path: &str) -> &str {
    let file_name = path.rsplit('/').next().unwrap_or(path);
    match file_name.rfind('.') {
        // A leading dot belongs to the name: `.env` has no extension.
        Some(dot_index) if dot_index > 0 => &file_name[..dot_index],
        _ => file_name,
    }
}

/// Makes a slug that stays distinct for texts that differ only at the end, such as the parts of a change with a long name.
fn distinct_slug(range_name: &str) -> String {
    let short_slug = slugify(range_name);
    if range_name.chars().count() <= 40 {
        return short_slug;
    }
    // 27 characters, a dash and 12 hash digits fit the limit of 40.
    let slug_start: String = short_slug.chars().take(27).collect();
    format!("{}-{}", slug_start.trim_end_matches('-'), Hash::digest_of(range_name.as_bytes()).short_hex())
}

/// Keeps letters and digits in lower case and turns everything else into single dashes, at most 40 characters.
pub fn slugify(text: &str) -> String {
    let mut slugged = String::new();
    for character in text.chars().flat_map(char::to_lowercase) {
        if character.is_alphanumeric() {
            slugged.push(character);
        // A slug neither starts with a dash nor has two in a row.
        } else if !slugged.is_empty() && !slugged.ends_with('-') {
            slugged.push('-');
        }
        if slugged.chars().count() >= 40 {
            break;
        }
    }
    // The cut can end on a dash, and a text of symbols alone leaves nothing.
    let trimmed = slugged.trim_end_matches('-');
    if trimmed.is_empty() { "subject".to_string() } else { trimmed.to_string() }
}

/// Returns a short digest of several texts.
pub(crate) fn digest_parts(parts: &[&str]) -> String {
    // No part contains the separator, so different parts cannot become the same text.
    String::from(Hash::digest_of(parts.join("\0").as_bytes()).short_hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_file_names() {
        assert_eq!(Subject::from_path("docs/My PRD (v2).md", None).file_slug(), "my-prd-v2");
        assert_eq!(Subject::from_path("docs/prd.md", Some("2. Goals & Scope".into())).file_slug(), "prd-2-goals-scope");
        assert_eq!(Subject::from_path("src/.env", None).file_slug(), "env");
        assert_eq!(slugify("***"), "subject");
    }

    #[test]
    fn parts_of_a_change_have_distinct_slugs_even_with_a_long_range() {
        let slug_of_range = |range: &str| {
            Subject::Change(Box::new(CodeChange { range: range.into(), ..CodeChange::default() })).file_slug()
        };
        assert_eq!(slug_of_range("main..HEAD (part 2 of 5)"), "change-main-head-part-2-of-5");
        let long_range = "main..feature/an-uncommonly-long-name-of-a-branch";
        let parts = [1, 2].map(|part| slug_of_range(&format!("{long_range} (part {part} of 2)")));
        assert_ne!(parts[0], parts[1]);
        assert!(parts[0].starts_with("change-main-feature-an-uncommonly-") && parts[0].len() <= 47, "{}", parts[0]);
    }

    #[test]
    fn a_change_stays_the_same_while_its_files_move_but_not_from_another_base() {
        let new_change = |range: &str, base: &str, path: &str| {
            let files = vec![ChangedPath { path: path.into(), from: None }];
            let new_change = CodeChange { range: range.into(), base: base.into(), files, ..CodeChange::default() };
            Subject::Change(Box::new(new_change))
        };
        let first_change = new_change("work tree", "1", "a.rs");
        assert!(first_change.is_same_as(&new_change("work tree", "1", "b.rs")));
        assert!(!first_change.is_same_as(&new_change("work tree", "2", "a.rs")));
        assert!(!first_change.is_same_as(&new_change("staged", "1", "a.rs")));
        assert!(!first_change.is_same_as(&Subject::from_path("a.rs", None)));
        assert!(Subject::from_path("a.rs", None).is_same_as(&Subject::from_path("a.rs", None)));
    }

    #[test]
    fn prose_is_a_document_and_the_rest_is_source() {
        assert!(Subject::from_path("a/PRD.MD", None).is_document());
        assert!(!Subject::from_path("src/main.rs", None).is_document());
    }
}
