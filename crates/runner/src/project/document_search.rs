//! Finds files by a directory or a pattern. Hidden files, links, files that git ignores and what tools leave behind are left
//! out; what else is not worth a review is for the caller to decide.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use regex::Regex;

use crate::{file_limits::TOOL_DIRECTORIES, git};

/// A search ends with an error after this many files and directories: a wrong directory must not keep the user waiting.
const MAX_VISITED: usize = 100_000;

#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error("could not read {}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("{} has too many files to search (more than {MAX_VISITED})", directory.display())]
    TooManyFiles { directory: PathBuf },
    #[error("`{pattern}` is not a valid pattern: {reason}")]
    InvalidPattern { pattern: String, reason: String },
}

/// A pattern of paths: `*` and `?` match within a name, `**` across directories; `[a-z]` and `{md,txt}` work, too.
#[derive(Clone, Debug)]
pub struct PathPattern {
    base_dir: PathBuf,
    path_regex: Regex,
    matches_hidden: bool,
}

impl PathPattern {
    /// Returns whether a typed path has any character that patterns give a meaning to.
    pub fn is_pattern(typed_path: &str) -> bool {
        typed_path.contains(['*', '?', '[', '{'])
    }

    pub fn parse(typed_path: &str) -> Result<PathPattern, SearchError> {
        let mut base_dir = PathBuf::new();
        let mut path_parts = Path::new(typed_path).components().peekable();
        while let Some(path_part) =
            path_parts.next_if(|path_part| !PathPattern::is_pattern(&path_part.as_os_str().to_string_lossy()))
        {
            base_dir.push(path_part);
        }
        let name_patterns: Vec<String> =
            path_parts.map(|path_part: Component<'_>| path_part.as_os_str().to_string_lossy().into_owned()).collect();
        let path_regex = Regex::new(&to_path_regex(&name_patterns.join("/"))).map_err(|cause| {
            let reason = cause.to_string();
            // The error shows the whole expression first; its last line says what is wrong.
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
            SearchError::InvalidPattern { pattern: typed_path.to_string(), reason }
        })?;
        let matches_hidden = name_patterns.iter().any(|name_pattern| name_pattern.starts_with('.'));
        Ok(PathPattern { base_dir, path_regex, matches_hidden })
    }

    /// The directory in which the pattern begins: everything before its first special character.
    pub fn base_dir(&self) -> &Path {
        &self.base_dir
    }
}

/// Translates a pattern into a regular expression for whole paths.
fn to_path_regex(pattern_text: &str) -> String {
    let mut path_regex = String::from("^");
    let mut rest = pattern_text;
    let mut open_braces = 0_usize;
    while let Some(character) = rest.chars().next() {
        // `**/` also matches no directory at all, so that `docs/**/*.md` finds `docs/a.md`.
        if let Some(after) = rest.strip_prefix("**/") {
            path_regex.push_str("(?:.*/)?");
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("**") {
            path_regex.push_str(".*");
            rest = after;
            continue;
        }
        rest = &rest[character.len_utf8()..];
        match character {
            '*' => path_regex.push_str("[^/]*"),
            '?' => path_regex.push_str("[^/]"),
            '[' => {
                // Without its end the bracket is an ordinary character.
                let Some((class_text, after)) = rest.split_once(']').filter(|(class_text, _)| !class_text.is_empty())
                else {
                    path_regex.push_str("\\[");
                    continue;
                };
                let (negation, class_text) = match class_text.strip_prefix(['!', '^']) {
                    Some(negated_text) => ("^", negated_text),
                    None => ("", class_text),
                };
                let class_text = class_text.replace('\\', "\\\\").replace('[', "\\[").replace('&', "\\&");
                path_regex.push_str(&format!("[{negation}{class_text}]"));
                rest = after;
            }
            '{' if rest.contains('}') => {
                open_braces += 1;
                path_regex.push_str("(?:");
            }
            '}' if open_braces > 0 => {
                open_braces -= 1;
                path_regex.push(')');
            }
            ',' if open_braces > 0 => path_regex.push('|'),
            ordinary => path_regex.push_str(&regex::escape(&ordinary.to_string())),
        }
    }
    path_regex.push('$');
    path_regex
}

/// Lists the Markdown files below a directory, relative to it.
pub fn list_documents(directory: &Path) -> Result<Vec<String>, SearchError> {
    let is_document = |relative_path: &str| {
        let extension = Path::new(relative_path).extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| ["md", "markdown"].contains(&extension.to_ascii_lowercase().as_str()))
    };
    search_directory(directory, false, &is_document)
}

/// Lists the files that match a pattern, relative to `base_dir`, which is the pattern's own directory as it really is.
pub fn list_matching_files(pattern: &PathPattern, base_dir: &Path) -> Result<Vec<String>, SearchError> {
    search_directory(base_dir, pattern.matches_hidden, &|relative_path| pattern.path_regex.is_match(relative_path))
}

fn search_directory(
    directory: &Path,
    includes_hidden: bool,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<String>, SearchError> {
    let mut found_files = Vec::new();
    let mut visited_count = 0;
    let mut pending_dirs = vec![String::new()];
    while let Some(relative_dir) = pending_dirs.pop() {
        let current_dir = directory.join(&relative_dir);
        let dir_entries = match fs::read_dir(&current_dir) {
            Ok(dir_entries) => dir_entries,
            // A directory below that may not be read is left out like a hidden one.
            Err(_) if !relative_dir.is_empty() => continue,
            Err(cause) => return Err(SearchError::Unreadable { path: current_dir, cause }),
        };
        for dir_entry in dir_entries.flatten() {
            visited_count += 1;
            if visited_count > MAX_VISITED {
                return Err(SearchError::TooManyFiles { directory: directory.to_path_buf() });
            }
            let (Ok(entry_name), Ok(entry_type)) = (dir_entry.file_name().into_string(), dir_entry.file_type()) else {
                continue;
            };
            let is_hidden = entry_name.starts_with('.') && !includes_hidden;
            if is_hidden || TOOL_DIRECTORIES.contains(&entry_name.as_str()) {
                continue;
            }
            let relative_path =
                if relative_dir.is_empty() { entry_name } else { format!("{relative_dir}/{entry_name}") };
            if entry_type.is_dir() {
                pending_dirs.push(relative_path);
            } else if entry_type.is_file() && is_wanted(&relative_path) {
                found_files.push(relative_path);
            }
        }
    }
    let ignored_files = git::find_ignored(directory, found_files.iter());
    found_files.retain(|relative_path| !ignored_files.contains(relative_path));
    // The order of a directory is arbitrary.
    found_files.sort();
    Ok(found_files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern_text: &str, path: &str) -> bool {
        PathPattern::parse(pattern_text).unwrap().path_regex.is_match(path)
    }

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern_text, path, expected) in [
            ("*.md", "a.md", true),
            ("*.md", "a.mdx", false),
            ("*.md", "sub/a.md", false),
            ("**/*.md", "a.md", true),
            ("**/*.md", "sub/deep/a.md", true),
            ("?.md", "ab.md", false),
            ("[ab].md", "b.md", true),
            ("[!ab].md", "b.md", false),
            ("[a-c]*.md", "chapter.md", true),
            ("{prd,plan}.md", "plan.md", true),
            ("{prd,plan}.md", "prd-plan.md", false),
            ("a+(b)*.md", "a+(b).md", true),
            ("[.md", "[.md", true),
            ("**", "any/thing", true),
        ] {
            assert_eq!(is_match(pattern_text, path), expected, "{pattern_text} {path}");
        }
        let pattern = PathPattern::parse("docs/guide/*.md").unwrap();
        assert_eq!(pattern.base_dir(), Path::new("docs/guide"));
        assert!(matches!(PathPattern::parse("[z-a]*"), Err(SearchError::InvalidPattern { .. })));
    }

    fn write_files(directory: &Path, relative_paths: &[&str]) {
        for relative_path in relative_paths {
            let file_path = directory.join(relative_path);
            fs::create_dir_all(file_path.parent().unwrap()).unwrap();
            fs::write(file_path, "text").unwrap();
        }
    }

    #[test]
    fn documents_are_found_without_hidden_linked_and_tool_files() {
        let directory = tempfile::tempdir().unwrap();
        let all_files =
            ["b.md", "sub/a.MD", "a.txt", ".hidden/x.md", ".x.md", "node_modules/x.md", "target/x.md", "z.markdown"];
        write_files(directory.path(), &all_files);
        std::os::unix::fs::symlink("b.md", directory.path().join("link.md")).unwrap();
        assert_eq!(list_documents(directory.path()).unwrap(), ["b.md", "sub/a.MD", "z.markdown"]);
        let hidden_pattern = PathPattern::parse(".hidden*/*.md").unwrap();
        assert_eq!(list_matching_files(&hidden_pattern, directory.path()).unwrap(), [".hidden/x.md"]);
        assert!(matches!(list_documents(&directory.path().join("gone")), Err(SearchError::Unreadable { .. })));
    }

    #[test]
    fn files_that_git_ignores_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let git_works =
            git::git_command(directory.path()).args(["init", "-q"]).status().is_ok_and(|status| status.success());
        assert!(git_works);
        write_files(directory.path(), &["docs/a.md", "docs/draft/b.md"]);
        fs::write(directory.path().join(".gitignore"), "draft/\n").unwrap();
        assert_eq!(list_documents(&directory.path().join("docs")).unwrap(), ["a.md"]);
    }
}
