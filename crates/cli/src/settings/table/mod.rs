//! Every setting that Tribunal knows: one row each, with all the spellings under which it may be written.
//!
//! The table is the only place that says how a setting is spelled, what it may be, what it is for and which field it fills.
//! Its default is the field's own, see [`super::typed`]. Reading, refusing, resolving, `inspect settings` and the JSON Schema
//! all follow from it. A spelling may have a part `NAME`, which stands for any name that the user chooses, and parts of
//! [`WORD_LISTS`], each of which stands for any word of a list. A block `review_loop` may also be written under `automation:`;
//! see [`strip_automation`].

mod bmad;
mod review;

use super::{
    codec::Field,
    kind::{Kind, Value},
    typed::TypedSettings,
};

/// The part of a path that stands for any name.
pub(super) const NAME: &str = "NAME";
/// Parts of a path that stand for any word of a list: a kind of task that a review has, one that it does not have, and how
/// complex the work is.
pub(super) const LISTS: [(&str, &[&str]); 3] = [
    ("JOB", &["review", "fix"]),
    ("TASK", &["dev", "create", "tests", "retro"]),
    ("COMPLEXITY", &["low", "medium", "high", "0", "1", "2", "3", "4"]),
];

/// The words that a part stands for, if it stands for a list.
fn words(part: &str) -> Option<&'static [&'static str]> {
    LISTS.iter().find(|(list, _)| *list == part).map(|(_, words)| *words)
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The canonical path, for instance `limits.max_cost`.
    pub path: &'static str,
    pub kind: Kind,
    pub about: &'static str,
    pub fills: Fills,
    pub aliases: &'static [Alias],
}

/// What a setting's value is used for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fills {
    /// It fills a field, which also has the default.
    Field(Field),
    /// It is read by its path where agents are built, mostly once for each name in that path. There is no default.
    Named,
    /// It is accepted, checked and shown, but not used by this version. The default is written as in a file; empty if none.
    Nothing { default: &'static str },
}

/// Another spelling of a setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alias {
    pub path: &'static str,
    /// Another kind than the row's, for instance seconds for minutes.
    pub kind: Option<Kind>,
    /// Whether it gives way to any other spelling in the same file.
    pub weak: bool,
}

/// A setting that fills a field.
const fn row(path: &'static str, kind: Kind, field: Field, about: &'static str) -> Row {
    Row { path, kind, about, fills: Fills::Field(field), aliases: &[] }
}

/// A setting that is read by its path.
const fn named(path: &'static str, kind: Kind, about: &'static str) -> Row {
    Row { path, kind, about, fills: Fills::Named, aliases: &[] }
}

/// A setting of a later version: accepted and shown, but not used.
const fn later(path: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Row {
    Row { path, kind, about, fills: Fills::Nothing { default }, aliases: &[] }
}

/// An alias of the same kind.
const fn same(path: &'static str) -> Alias {
    Alias { path, kind: None, weak: false }
}

/// An alias of another kind.
const fn read_as(path: &'static str, kind: Kind) -> Alias {
    Alias { path, kind: Some(kind), weak: false }
}

/// An alias that gives way to any other spelling.
const fn weak(path: &'static str, kind: Kind) -> Alias {
    Alias { path, kind: Some(kind), weak: true }
}

impl Row {
    const fn also(mut self, aliases: &'static [Alias]) -> Row {
        self.aliases = aliases;
        self
    }

    /// Returns whether this version uses the setting.
    pub fn is_used(&self) -> bool {
        !matches!(self.fills, Fills::Nothing { .. })
    }

    /// The default; `None` if it follows from something else, or if there is none without a name. `defaults` are the typed
    /// defaults, which are made once for all rows.
    pub fn default_in(&self, defaults: &TypedSettings) -> Option<Value> {
        match self.fills {
            Fills::Field(field) => (field.read)(defaults),
            Fills::Named | Fills::Nothing { default: "" } => None,
            // The text was written for the row's kind; a test checks that every one of them can be read.
            Fills::Nothing { default } => self.kind.read_given(default).ok().flatten(),
        }
    }

    /// Writes a value of this setting into its field, if it has one.
    pub fn apply(&self, value: &Value, to: &mut TypedSettings) {
        if let Fills::Field(field) = self.fills {
            (field.write)(to, value);
        }
    }

    /// Every spelling of the setting, the canonical one first.
    pub fn spellings(&'static self) -> impl Iterator<Item = Spelling> {
        // The canonical spelling is never weak.
        let canonical = Spelling { row: self, path: self.path, kind: self.kind, weak: false };
        let others = self.aliases.iter().map(move |alias| Spelling {
            row: self,
            path: alias.path,
            kind: alias.kind.unwrap_or(self.kind),
            weak: alias.weak,
        });
        std::iter::once(canonical).chain(others)
    }
}

/// One spelling of one setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spelling {
    pub row: &'static Row,
    pub path: &'static str,
    pub kind: Kind,
    pub weak: bool,
}

/// All rows of the table.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    review::ROWS.iter().chain(bmad::ROWS)
}

/// All spellings of all rows.
pub(crate) fn spellings() -> impl Iterator<Item = Spelling> {
    rows().flat_map(Row::spellings)
}

/// Removes the optional parent: `automation.review_loop.…` is `review_loop.…`.
pub(super) fn plain(path: &str) -> &str {
    match path.strip_prefix("automation.") {
        Some(rest) if rest == "review_loop" || rest.starts_with("review_loop.") => rest,
        _ => path,
    }
}

/// Finds the setting at a path, and its canonical path with the user's names in it.
pub(super) fn at(path: &str) -> Option<(Spelling, String)> {
    let path = plain(path);
    // An exact spelling wins over one with a free name: `agents.use` is not an agent.
    let exact = spellings().find(|spelling| spelling.path == path);
    let spelling = exact.or_else(|| spellings().find(|spelling| fits(spelling.path, path)))?;
    let mut canonical = spelling.row.path.to_string();
    // The names that the user chose replace the placeholders one by one, in their order.
    for (part, said) in spelling.path.split('.').zip(path.split('.')).filter(|(part, _)| is_free(part)) {
        canonical = canonical.replacen(part, said, 1);
    }
    Some((spelling, canonical))
}

fn fits(spelling: &str, path: &str) -> bool {
    spelling.split('.').count() == path.split('.').count()
        // A placeholder never stands for several parts of a path.
        && spelling.split('.').zip(path.split('.')).all(|(known, part)| stands_for(known, part))
}

fn stands_for(known: &str, part: &str) -> bool {
    known == part || known == NAME || words(known).is_some_and(|words| words.contains(&part))
}

/// Returns whether a part of the path is a placeholder for a name or a word.
pub(super) fn is_free(path: &str) -> bool {
    path.split('.').any(|part| part == NAME || words(part).is_some())
}

/// Expands a path to all paths that its word lists stand for. Names stay placeholders.
pub(super) fn expanded(path: &'static str) -> Vec<Vec<&'static str>> {
    let mut all: Vec<Vec<&'static str>> = vec![Vec::new()];
    for part in path.split('.') {
        let words = words(part).map_or(vec![part], <[_]>::to_vec);
        // Every list multiplies the paths that were built so far.
        all = all
            .iter()
            .flat_map(|path| words.iter().map(|word| [path.as_slice(), &[*word]].concat()))
            .collect();
    }
    all
}

/// Returns whether there are settings below a path.
pub(super) fn is_section(path: &str) -> bool {
    !keys_below(path).is_empty()
}

/// The keys that may be written directly under a path; the top is the empty path.
pub(super) fn keys_below(path: &str) -> Vec<&'static str> {
    let path = plain(path);
    let depth = if path.is_empty() { 0 } else { path.split('.').count() };
    let mut keys = Vec::new();
    for spelling in spellings() {
        let mut parts = spelling.path.split('.');
        // `parts` is consumed while the parents are compared, so it must not be used afterwards.
        let inside = path.is_empty()
            || path.split('.').all(|part| parts.next().is_some_and(|known| stands_for(known, part)));
        if let Some(key) = spelling.path.split('.').nth(depth).filter(|_| inside)
            && !keys.contains(&key)
        {
            keys.push(key);
        }
    }
    // No row has this path; it exists only because the block may be nested.
    if path == "automation" {
        keys.push("review_loop");
    }
    keys.iter().flat_map(|key| words(key).map_or(vec![*key], <[_]>::to_vec)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_spelling_is_used_twice_and_none_is_part_of_another() {
        let all: Vec<&str> = spellings().map(|spelling| spelling.path).collect();
        let distinct: BTreeSet<&&str> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        for one in &all {
            assert!(!all.iter().any(|other| other.starts_with(&format!("{one}."))), "{one}");
        }
    }

    #[test]
    fn names_of_people_are_found_in_their_place() {
        let (spelling, path) = at("agents.mine.argv").unwrap();
        assert_eq!((spelling.path, path.as_str()), ("agents.NAME.argv", "agents.mine.argv"));
        assert_eq!(at("agents.use").unwrap().1, "agents.use");
        assert_eq!(
            at("automation.review_loop.limits.max_review_rounds").unwrap().1,
            "limits.max_review_rounds"
        );
        assert!(at("agents.mine").is_none() && is_section("agents.mine"));
        assert_eq!(keys_below("mcp.mine"), ["argv"]);
    }

    #[test]
    fn words_of_a_list_are_found_in_their_place() {
        let of = |path: &str| at(path).map(|(spelling, path)| (spelling.row.is_used(), path));
        let path = "agentConfig.complexityOverrides.high.perTask.fix.model";
        assert_eq!(of(path), Some((true, path.to_string())));
        assert_eq!(
            of("agentConfig.perTask.retro.model"),
            Some((false, "agentConfig.perTask.retro.model".into()))
        );
        assert_eq!(of("agentConfig.perTask.reviw.model"), None);
        assert_eq!(keys_below("agentConfig.perTask"), ["review", "fix", "dev", "create", "tests", "retro"]);
        assert_eq!(
            keys_below("agentConfig.complexityOverrides.4"),
            ["primary", "fallback", "model", "perTask"]
        );
    }
}
