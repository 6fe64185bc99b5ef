//! Resolves paths by their text alone: nothing is looked up, so symbolic links are not seen.
//!
//! Paths are compared component by component: `/proj/app2` is not in `/proj/app`.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    GuardContext,
    shell::{BRACKET_MARK, QUESTION_MARK, STAR_MARK},
};

/// An absolute path in components, without `.`, `..` and doubled slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LexicalPath(pub Vec<String>);

impl LexicalPath {
    /// Resolves a path against a base directory. `None` means that the path is relative and the base is not known.
    pub fn resolve(path_text: &str, base_dir: Option<&LexicalPath>) -> Option<LexicalPath> {
        let mut components = match path_text.starts_with('/') {
            true => Vec::new(),
            false => base_dir?.0.clone(),
        };
        for component in path_text.split('/') {
            match component {
                "" | "." => {}
                ".." => {
                    components.pop();
                }
                component => components.push(component.to_string()),
            }
        }
        Some(LexicalPath(components))
    }

    pub fn from_absolute(path_text: &str) -> Option<LexicalPath> {
        LexicalPath::resolve(path_text, None)
    }

    /// Whether this path is the directory itself or below it.
    pub fn is_within(&self, directory: &LexicalPath) -> bool {
        self.0.starts_with(&directory.0)
    }

    pub fn is_below(&self, directory: &LexicalPath) -> bool {
        self.0.len() > directory.0.len() && self.is_within(directory)
    }

    pub fn parent(&self) -> LexicalPath {
        LexicalPath(self.0.split_last().map(|(_, ancestors)| ancestors.to_vec()).unwrap_or_default())
    }

    pub fn file_name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    pub fn join(&self, component: &str) -> LexicalPath {
        let mut components = self.0.clone();
        components.push(component.to_string());
        LexicalPath(components)
    }

    /// Whether the last component matches every file of its directory: `*`, `.*`, `{*,.*}`, `.[!.]*`.
    pub fn matches_whole_dir(&self) -> bool {
        let last_component = self.file_name();
        last_component.contains(STAR_MARK)
            && last_component.chars().all(|character| {
                matches!(character, STAR_MARK | QUESTION_MARK | BRACKET_MARK) || "{},.!^]".contains(character)
            })
    }

    /// Whether this path, with its wildcards, can match the other one. Case is ignored, because some file systems ignore it.
    pub fn can_match(&self, other_path: &LexicalPath) -> bool {
        self.0.len() == other_path.0.len() && self.can_contain(other_path)
    }

    /// Whether this path, with its wildcards, can match the other one or a directory that contains it.
    pub fn can_contain(&self, other_path: &LexicalPath) -> bool {
        self.0.len() <= other_path.0.len()
            && self.0.iter().zip(&other_path.0).all(|(pattern, component)| glob_matches(pattern, component))
    }

    /// Whether this path can match the directory or something in it. A component of wildcards alone (`*/x`) is not counted as a
    /// match: it would match any directory.
    pub fn can_be_within(&self, directory: &LexicalPath) -> bool {
        let is_only_wildcards =
            |component: &String| component.chars().all(|character| matches!(character, STAR_MARK | QUESTION_MARK));
        directory.0.len() <= self.0.len()
            && self
                .0
                .iter()
                .zip(&directory.0)
                .all(|(pattern, directory_name)| !is_only_wildcards(pattern) && glob_matches(pattern, directory_name))
    }
}

/// Matches one component of a path against a file name. A bracket set (`[a-z]`) and everything after it match anything.
fn glob_matches(pattern: &str, file_name: &str) -> bool {
    if !pattern.contains([STAR_MARK, QUESTION_MARK, BRACKET_MARK]) {
        return pattern.eq_ignore_ascii_case(file_name);
    }
    // As in a shell, a wildcard does not match a leading dot.
    if file_name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    // The matcher runs all positions of the pattern in parallel, so that a pattern of many stars cannot backtrack
    // exponentially.
    let pattern_chars: Vec<char> = pattern.chars().map(|pattern_char| pattern_char.to_ascii_lowercase()).collect();
    let bracket_index = pattern_chars.iter().position(|pattern_char| *pattern_char == BRACKET_MARK);
    let matched_chars =
        bracket_index.and_then(|bracket_index| pattern_chars.get(..bracket_index)).unwrap_or(&pattern_chars);
    // For every prefix of the pattern: whether it matches the characters of the name that were read so far.
    let mut prefix_matches = Vec::from([true]);
    for pattern_char in matched_chars {
        let previous_matches = prefix_matches.last().copied().unwrap_or(false);
        prefix_matches.push(previous_matches && *pattern_char == STAR_MARK);
    }
    for name_char in file_name.chars().map(|name_char| name_char.to_ascii_lowercase()) {
        // The pattern has matched up to the bracket set, and the remainder counts as a match.
        if bracket_index.is_some() && prefix_matches.last() == Some(&true) {
            return true;
        }
        let mut next_matches = Vec::from([false]);
        for (index, pattern_char) in matched_chars.iter().enumerate() {
            let previous_matches = prefix_matches.get(index).copied().unwrap_or(false);
            let star_continues = *pattern_char == STAR_MARK
                && (prefix_matches.get(index + 1) == Some(&true) || next_matches.last() == Some(&true));
            next_matches.push(
                star_continues
                    || previous_matches
                        && (*pattern_char == name_char || *pattern_char == QUESTION_MARK || *pattern_char == STAR_MARK),
            );
        }
        prefix_matches = next_matches;
    }
    prefix_matches.last() == Some(&true)
}

/// The directories and files that paths are compared with.
#[derive(Debug)]
pub(crate) struct PathBoundaries {
    pub project_root: LexicalPath,
    pub home_dir: Option<LexicalPath>,
    pub working_dir: Option<LexicalPath>,
    scratch_dirs: Vec<LexicalPath>,
    subject_paths: Vec<(LexicalPath, bool)>,
    own_paths: Vec<(LexicalPath, bool)>,
    is_code_change: bool,
}

impl PathBoundaries {
    pub fn from_context(context: &GuardContext<'_>) -> PathBoundaries {
        // Without a project root every path is inside the project: what cannot be compared is allowed.
        let project_root = LexicalPath::from_absolute(context.project_root).unwrap_or(LexicalPath(Vec::new()));
        let resolve_in_project = |path_text: &String| {
            LexicalPath::resolve(path_text, Some(&project_root))
                .map(|resolved_path| (resolved_path, path_text.ends_with('/')))
        };
        let scratch_dirs = context.scratch_dirs.iter().filter_map(|path_text| LexicalPath::from_absolute(path_text));
        // A project inside a temporary directory must not open that whole directory for writing.
        let scratch_dirs = scratch_dirs
            .filter(|scratch_dir| !project_root.is_within(scratch_dir) && !scratch_dir.0.is_empty())
            .collect();
        let subject_paths = context.subject_paths.iter().filter_map(resolve_in_project).collect();
        let own_paths = context.own_paths.iter().filter_map(resolve_in_project).collect();
        let home_dir = LexicalPath::from_absolute(context.home_dir).filter(|home_dir| !home_dir.0.is_empty());
        let working_dir = LexicalPath::from_absolute(context.working_dir);
        PathBoundaries {
            scratch_dirs,
            subject_paths,
            own_paths,
            home_dir,
            working_dir,
            is_code_change: context.is_code_change,
            project_root,
        }
    }

    pub fn is_in_project(&self, path: &LexicalPath) -> bool {
        path.is_within(&self.project_root)
    }

    /// Whether the path is below a directory in which every process may write.
    pub fn is_in_scratch(&self, path: &LexicalPath) -> bool {
        self.scratch_dirs.iter().any(|scratch_dir| path.is_below(scratch_dir))
    }

    pub fn has_subject(&self) -> bool {
        !self.subject_paths.is_empty()
    }

    /// Whether the path is a file of the subject or, for a code change, beside one of its files.
    pub fn is_in_subject(&self, path: &LexicalPath) -> bool {
        self.subject_paths.iter().any(|(subject_path, is_directory)| {
            let is_beside_subject = || {
                // A changed file at the top level allows its siblings only; otherwise it would open the whole project.
                let subject_dir = subject_path.parent();
                if subject_dir == self.project_root {
                    path.parent() == subject_dir
                } else {
                    path.is_below(&subject_dir)
                }
            };
            path == subject_path
                || *is_directory && path.is_within(subject_path)
                || self.is_code_change && !is_directory && is_beside_subject()
        })
    }

    /// The path of Tribunal's own files that would be changed. A removal also takes what is inside the removed directory.
    pub fn find_own_path(&self, target_path: &LexicalPath, removes: bool) -> Option<String> {
        let matched_own_path = self.own_paths.iter().find(|(own_path, is_directory)| {
            let is_targeted =
                if *is_directory { target_path.can_be_within(own_path) } else { target_path.can_match(own_path) };
            is_targeted || removes && target_path.can_contain(own_path)
        });
        matched_own_path.map(|(own_path, is_directory)| {
            let mut displayed = self.display_path(own_path);
            if *is_directory {
                displayed.push('/');
            }
            displayed
        })
    }

    /// Formats a path for messages: relative to the project root if it is inside, with shell marks turned back into characters.
    pub fn display_path(&self, full_path: &LexicalPath) -> String {
        let relative_components = full_path
            .0
            .strip_prefix(self.project_root.0.as_slice())
            .filter(|relative_components| !relative_components.is_empty());
        let marked_text = match relative_components {
            Some(relative_components) => relative_components.join("/"),
            None => alloc::format!("/{}", full_path.0.join("/")),
        };
        marked_text.chars().map(crate::shell::unmark_char).collect()
    }
}
