//! Every setting that Tribunal knows: one row each, with all the spellings under which it may be written.
//!
//! The table is the only place that says how a setting is spelled, what it may be, what it is for and which field it fills.
//! Its default is the field's own, see [`super::typed`]. Reading, refusing, resolving, `inspect settings` and the JSON Schema
//! all follow from it. A spelling may have a part `NAME`, which stands for any name that the user chooses, and parts of
//! [`WORD_LISTS`], each of which stands for any word of a list. A block `review_loop` may also be written under `automation:`;
//! see [`strip_automation`].

mod bmad_rows;
mod loop_rows;
mod review_rows;
mod sprint_rows;

use super::{
    codec::Field,
    kind::{SettingValue, ValueKind},
    typed::TypedSettings,
};

/// The part of a path that stands for any name.
pub(super) const NAME_PART: &str = "NAME";
/// Parts of a path that stand for any word of a list: a kind of task that a review has, one that it does not have, and how
/// complex the work is.
pub(super) const WORD_LISTS: [(&str, &[&str]); 3] = [
    ("JOB", &["review", "fix"]),
    ("TASK", &["dev", "create", "tests", "retro"]),
    ("COMPLEXITY", &["low", "medium", "high", "0", "1", "2", "3", "4"]),
];

/// The words that a part stands for, if it stands for a list.
fn words_of_part(path_part: &str) -> Option<&'static [&'static str]> {
    WORD_LISTS.iter().find(|(list_name, _)| *list_name == path_part).map(|(_, list_words)| *list_words)
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettingRow {
    /// The canonical path, for instance `limits.max_cost`.
    pub path: &'static str,
    pub kind: ValueKind,
    pub description: &'static str,
    pub target: RowTarget,
    pub aliases: &'static [PathAlias],
    /// The kinds of runs in which `resume --reload` does not change it: what has begun depends on it.
    pub pinned_in: &'static [&'static str],
}

/// What a setting's value is used for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowTarget {
    /// It fills a field, which also has the default.
    Field(Field),
    /// It is read by its path where agents are built, mostly once for each name in that path. There is no default.
    ByPath,
    /// It is accepted, checked and shown, but not used by this version. The default is written as in a file; empty if none.
    Unused { default_text: &'static str },
}

/// Another spelling of a setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathAlias {
    pub path: &'static str,
    /// Another kind than the row's, for instance seconds for minutes.
    pub kind: Option<ValueKind>,
    /// Whether it gives way to any other spelling in the same file.
    pub is_weak: bool,
}

/// A setting that fills a field.
const fn field_row(setting_path: &'static str, kind: ValueKind, field: Field, description: &'static str) -> SettingRow {
    SettingRow { path: setting_path, kind, description, target: RowTarget::Field(field), aliases: &[], pinned_in: &[] }
}

/// A setting that is read by its path.
const fn path_row(setting_path: &'static str, kind: ValueKind, description: &'static str) -> SettingRow {
    SettingRow { path: setting_path, kind, description, target: RowTarget::ByPath, aliases: &[], pinned_in: &[] }
}

/// A setting of a later version: accepted and shown, but not used.
const fn unused_row(
    setting_path: &'static str,
    kind: ValueKind,
    default_text: &'static str,
    description: &'static str,
) -> SettingRow {
    SettingRow {
        path: setting_path,
        kind,
        description,
        target: RowTarget::Unused { default_text },
        aliases: &[],
        pinned_in: &[],
    }
}

/// An alias of the same kind.
const fn same_kind(alias_path: &'static str) -> PathAlias {
    PathAlias { path: alias_path, kind: None, is_weak: false }
}

/// An alias of another kind.
const fn other_kind(alias_path: &'static str, kind: ValueKind) -> PathAlias {
    PathAlias { path: alias_path, kind: Some(kind), is_weak: false }
}

/// An alias that gives way to any other spelling.
const fn weak_alias(alias_path: &'static str, kind: ValueKind) -> PathAlias {
    PathAlias { path: alias_path, kind: Some(kind), is_weak: true }
}

impl SettingRow {
    const fn pinned(mut self, kind_names: &'static [&'static str]) -> SettingRow {
        self.pinned_in = kind_names;
        self
    }

    const fn with_aliases(mut self, aliases: &'static [PathAlias]) -> SettingRow {
        self.aliases = aliases;
        self
    }

    /// Returns whether this version uses the setting.
    pub fn is_used(&self) -> bool {
        !matches!(self.target, RowTarget::Unused { .. })
    }

    /// The default; `None` if it follows from something else, or if there is none without a name. `defaults` are the typed
    /// defaults, which are made once for all rows.
    pub fn default_value(&self, defaults: &TypedSettings) -> Option<SettingValue> {
        match self.target {
            RowTarget::Field(field) => (field.read)(defaults),
            RowTarget::ByPath | RowTarget::Unused { default_text: "" } => None,
            // The text was written for the row's kind; a test checks that every one of them can be read.
            RowTarget::Unused { default_text } => self.kind.read_text_source(default_text).ok().flatten(),
        }
    }

    /// Writes a value of this setting into its field, if it has one.
    pub fn apply_value(&self, setting_value: &SettingValue, typed_settings: &mut TypedSettings) {
        if let RowTarget::Field(field) = self.target {
            (field.write)(typed_settings, setting_value);
        }
    }

    /// Every spelling of the setting, the canonical one first.
    pub fn all_spellings(&'static self) -> impl Iterator<Item = PathSpelling> {
        // The canonical spelling is never weak.
        let canonical_spelling = PathSpelling { setting_row: self, path: self.path, kind: self.kind, is_weak: false };
        let alias_spellings = self.aliases.iter().map(move |alias| PathSpelling {
            setting_row: self,
            path: alias.path,
            kind: alias.kind.unwrap_or(self.kind),
            is_weak: alias.is_weak,
        });
        std::iter::once(canonical_spelling).chain(alias_spellings)
    }
}

/// One spelling of one setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathSpelling {
    pub setting_row: &'static SettingRow,
    pub path: &'static str,
    pub kind: ValueKind,
    pub is_weak: bool,
}

/// All rows of the table.
pub(crate) fn all_rows() -> impl Iterator<Item = &'static SettingRow> {
    review_rows::REVIEW_ROWS
        .iter()
        .chain(loop_rows::LOOP_ROWS)
        .chain(sprint_rows::SPRINT_ROWS)
        .chain(bmad_rows::BMAD_ROWS)
}

/// All spellings of all rows.
pub(crate) fn every_spelling() -> impl Iterator<Item = PathSpelling> {
    all_rows().flat_map(SettingRow::all_spellings)
}

/// Removes the optional parent: `automation.review_loop.…` is `review_loop.…`.
pub(super) fn strip_automation(setting_path: &str) -> &str {
    match setting_path.strip_prefix("automation.") {
        Some(inner_path) if inner_path == "review_loop" || inner_path.starts_with("review_loop.") => inner_path,
        _ => setting_path,
    }
}

/// Finds the setting at a path, and its canonical path with the user's names in it.
pub(super) fn find_setting(setting_path: &str) -> Option<(PathSpelling, String)> {
    let setting_path = strip_automation(setting_path);
    // An exact spelling wins over one with a free name: `agents.use` is not an agent.
    let exact_spelling = every_spelling().find(|spelling| spelling.path == setting_path);
    let matching_spelling =
        exact_spelling.or_else(|| every_spelling().find(|spelling| matches_path(spelling.path, setting_path)))?;
    let mut canonical_path = matching_spelling.setting_row.path.to_string();
    // The names that the user chose replace the placeholders one by one, in their order.
    for (path_part, typed_part) in
        matching_spelling.path.split('.').zip(setting_path.split('.')).filter(|(path_part, _)| has_free_part(path_part))
    {
        canonical_path = canonical_path.replacen(path_part, typed_part, 1);
    }
    Some((matching_spelling, canonical_path))
}

fn matches_path(spelling_path: &str, setting_path: &str) -> bool {
    spelling_path.split('.').count() == setting_path.split('.').count()
        // A placeholder never stands for several parts of a path.
        && spelling_path.split('.').zip(setting_path.split('.')).all(|(known_part, path_part)| matches_part(known_part, path_part))
}

fn matches_part(known_part: &str, path_part: &str) -> bool {
    known_part == path_part
        || known_part == NAME_PART
        || words_of_part(known_part).is_some_and(|part_words| part_words.contains(&path_part))
}

/// Returns whether a part of the path is a placeholder for a name or a word.
pub(super) fn has_free_part(setting_path: &str) -> bool {
    setting_path.split('.').any(|path_part| path_part == NAME_PART || words_of_part(path_part).is_some())
}

/// Expands a path to all paths that its word lists stand for. Names stay placeholders.
pub(super) fn expand_path(setting_path: &'static str) -> Vec<Vec<&'static str>> {
    let mut expanded_paths: Vec<Vec<&'static str>> = vec![Vec::new()];
    for path_part in setting_path.split('.') {
        let part_words = words_of_part(path_part).map_or(vec![path_part], <[_]>::to_vec);
        // Every list multiplies the paths that were built so far.
        expanded_paths = expanded_paths
            .iter()
            .flat_map(|path_so_far| part_words.iter().map(|part_word| [path_so_far.as_slice(), &[*part_word]].concat()))
            .collect();
    }
    expanded_paths
}

/// Returns whether there are settings below a path.
pub(super) fn is_section_path(section_path: &str) -> bool {
    !keys_under(section_path).is_empty()
}

/// The keys that may be written directly under a path; the top is the empty path.
pub(super) fn keys_under(section_path: &str) -> Vec<&'static str> {
    let section_path = strip_automation(section_path);
    let path_depth = if section_path.is_empty() { 0 } else { section_path.split('.').count() };
    let mut child_keys = Vec::new();
    for spelling in every_spelling() {
        let mut spelling_parts = spelling.path.split('.');
        // `spelling_parts` is consumed while the parents are compared, so it must not be used afterwards.
        let is_inside = section_path.is_empty()
            || section_path
                .split('.')
                .all(|path_part| spelling_parts.next().is_some_and(|known_part| matches_part(known_part, path_part)));
        if let Some(child_key) = spelling.path.split('.').nth(path_depth).filter(|_| is_inside)
            && !child_keys.contains(&child_key)
        {
            child_keys.push(child_key);
        }
    }
    // No row is spelled `automation.review_loop`; the key exists only because the block may be nested.
    if section_path == "automation" {
        child_keys.push("review_loop");
    }
    child_keys.iter().flat_map(|child_key| words_of_part(child_key).map_or(vec![*child_key], <[_]>::to_vec)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_spelling_is_used_twice_and_none_is_part_of_another() {
        let all_paths: Vec<&str> = every_spelling().map(|spelling| spelling.path).collect();
        let distinct_paths: BTreeSet<&&str> = all_paths.iter().collect();
        assert_eq!(distinct_paths.len(), all_paths.len());
        for this_path in &all_paths {
            assert!(!all_paths.iter().any(|other| other.starts_with(&format!("{this_path}."))), "{this_path}");
        }
    }

    #[test]
    fn user_given_names_are_kept_in_the_path() {
        let (spelling, canonical_path) = find_setting("agents.mine.argv").unwrap();
        assert_eq!((spelling.path, canonical_path.as_str()), ("agents.NAME.argv", "agents.mine.argv"));
        assert_eq!(find_setting("agents.use").unwrap().1, "agents.use");
        assert_eq!(
            find_setting("automation.review_loop.limits.max_review_rounds").unwrap().1,
            "limits.max_review_rounds"
        );
        assert!(find_setting("agents.mine").is_none() && is_section_path("agents.mine"));
        assert_eq!(keys_under("mcp.mine"), ["argv", "roles"]);
    }

    #[test]
    fn listed_words_are_kept_in_the_path() {
        let find_path = |path: &str| {
            find_setting(path).map(|(spelling, canonical_path)| (spelling.setting_row.is_used(), canonical_path))
        };
        let path = "agentConfig.complexityOverrides.high.perTask.fix.model";
        assert_eq!(find_path(path), Some((true, path.to_string())));
        assert_eq!(
            find_path("agentConfig.perTask.retro.model"),
            Some((false, "agentConfig.perTask.retro.model".into()))
        );
        assert_eq!(find_path("agentConfig.perTask.reviw.model"), None);
        assert_eq!(keys_under("agentConfig.perTask"), ["review", "fix", "dev", "create", "tests", "retro"]);
        assert_eq!(keys_under("agentConfig.complexityOverrides.4"), ["primary", "fallback", "model", "perTask"]);
    }
}
