//! Tests of every row: its default is the field's own, and its value reaches the code that uses it.

use std::path::Path;

use tribunal_core::subject::Subject;

use super::{
    super::{
        hooks::hooks_of,
        kind::{Kind, Value},
        layers::{Effective, FILE, variable_for},
        resolve::resolve,
        show::written_default,
        table::{self, Fills, Row},
        typed::TypedSettings,
        wishes::Wishes,
    },
    project,
};

fn read_as(kind: Kind, text: &str) -> Value {
    kind.read_given(text).ok().flatten().unwrap_or_else(|| panic!("{text} is no value of {kind:?}"))
}

#[test]
fn what_is_shown_as_default_is_the_default_of_the_field() {
    let typed = TypedSettings::default();
    let shown = Effective::defaults();
    assert_eq!(shown.typed(), typed);
    for row in table::rows() {
        let default = row.default_in(&typed);
        assert_eq!(shown.get(row.path), default.as_ref(), "{}", row.path);
        // The default can be written into a file without changing anything, so it is in the allowed range, too.
        let written = written_default(row.path).map(|text| read_as(row.kind, &text));
        assert_eq!(written, default, "{}", row.path);
        if let Fills::Nothing { default: text } = row.fills {
            assert_eq!(default.is_none(), text.is_empty(), "{}", row.path);
        }
    }
}

/// Values that this kind allows, with all its words.
fn allowed(kind: Kind) -> Vec<String> {
    let texts: &[&str] = match kind {
        Kind::Whole { min, max } => return vec![min.to_string(), max.to_string()],
        Kind::Words(words) => words,
        Kind::ListOf(words) => return words.iter().map(|word| format!("[{word}]")).collect(),
        Kind::TierOrSuggested => &["1", "3"],
        Kind::Seconds { .. } | Kind::Minutes => &["7", "1440"],
        Kind::Percent => &["0", "50"],
        Kind::Fraction => &["0.5"],
        Kind::Cost => &["2.50"],
        Kind::Flag => &["true", "false"],
        Kind::Text | Kind::TextOrNo | Kind::One | Kind::Folder => &["other"],
        Kind::List | Kind::Commands => &["[other]"],
    };
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn a_field_gives_back_what_its_row_puts_into_it() {
    let default = TypedSettings::default();
    for row in table::rows() {
        let Fills::Field(field) = row.fills else { continue };
        for text in allowed(row.kind) {
            let value = read_as(row.kind, &text);
            let mut typed = default.clone();
            row.apply(&value, &mut typed);
            assert_eq!((field.read)(&typed), Some(value.clone()), "{}: {text}", row.path);
            let is_default = (field.read)(&default) == Some(value);
            assert_eq!(typed == default, is_default, "{}: {text}", row.path);
            // No other field changes: two rows never fill one field.
            for other in table::rows().filter(|other| other.path != row.path) {
                assert_eq!(
                    other.default_in(&typed),
                    other.default_in(&default),
                    "{}: {}",
                    row.path,
                    other.path
                );
            }
        }
    }
}

/// Agents for which this setting makes a difference.
fn company(path: &str) -> &'static str {
    match path {
        "agents.NAME.argv" => "agents: {mine: {driver: command, argv: [x]}}\n",
        "agents.NAME.script" => "agents: {mine: {driver: replay, script: script.yaml}}\n",
        _ => "agents:\n  use: [mine]\n  mine: {driver: claude-code}\n  other: {driver: codex}\n",
    }
}

/// A value other than the default, as it would be written.
fn another(row: &Row, default: Option<&Value>) -> String {
    match row.path {
        "agents.NAME.driver" => "codex".to_string(),
        "agents.NAME.script" => "other.yaml".to_string(),
        "agents.NAME.allow" => "[Read]".to_string(),
        _ => {
            let mut texts = allowed(row.kind).into_iter();
            let other = texts.find(|text| Some(&read_as(row.kind, text)) != default);
            other.unwrap_or_else(|| panic!("{} can only be its default", row.path))
        }
    }
}

/// The tier at which a setting for a complexity counts.
fn tier(parts: &[&str]) -> &'static str {
    match parts.get(2).filter(|_| parts.contains(&"complexityOverrides")) {
        Some(&("low" | "1")) => "1",
        Some(&"0") => "0",
        Some(&"3") => "3",
        Some(&("high" | "4")) => "4",
        _ => "2",
    }
}

/// Everything that settings lead to, for a review and for hooks.
fn outcome(root: &Path, wishes: &Wishes) -> String {
    let resolved = resolve(root, Subject::at("plan.md", None), wishes).unwrap_or_else(|why| panic!("{why}"));
    let hooks = hooks_of(root, &wishes.given).unwrap_or_else(|why| panic!("{why}"));
    format!("{:?} {:?} {:?} {hooks:?}", resolved.settings, resolved.progress, resolved.share)
}

#[test]
fn every_setting_that_is_used_changes_what_settings_come_to() {
    let defaults = TypedSettings::default();
    let mut seen = 0;
    for row in table::rows().filter(|row| row.is_used()) {
        let folder = project(&[(FILE, company(row.path)), ("script.yaml", ""), ("other.yaml", "")]);
        let text = another(row, row.default_in(&defaults).as_ref());
        for parts in table::expanded(row.path) {
            let path = parts.join(".").replace(table::NAME, "mine");
            let before = Wishes::default().flag("--tier", "tier", Some(tier(&parts).to_string()));
            let mut after = before.clone();
            if path.starts_with("hooks.") {
                // Clients start hooks, so there are no flags for them.
                after.given.variables.push((variable_for(&path), text.clone()));
            } else {
                after = after.set(&[format!("{path}={text}")]).unwrap();
            }
            let (before, after) = (outcome(folder.path(), &before), outcome(folder.path(), &after));
            assert_ne!(before, after, "`{path}` is used, and `{text}` changes nothing");
            seen += 1;
        }
    }
    assert!(seen > table::rows().filter(|row| row.is_used()).count());
}
