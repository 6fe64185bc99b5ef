//! Reads `xtask/tidy-exceptions.toml`: what may be larger than the rules allow, and why.
//!
//! The list cannot rot: an entry without a reason, with an unknown key or rule, or that no longer covers anything is a breach.
//! One entry covers every item of that name in its file.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::sizes::{SizeFinding, SizeRule};
use crate::RuleBreach;

const EXCEPTIONS_FILE: &str = "xtask/tidy-exceptions.toml";
const KNOWN_KEYS: [&str; 4] = ["path", "item", "rule", "reason"];

struct SizeException {
    path: String,
    item: String,
    rule: SizeRule,
    is_used: bool,
}

/// The exceptions, and what is wrong with their file.
#[derive(Default)]
pub struct SizeExceptions {
    exceptions: Vec<SizeException>,
    breaches: Vec<RuleBreach>,
}

impl SizeExceptions {
    pub fn read_file(root: &Path) -> Result<Self> {
        match fs::read_to_string(root.join(EXCEPTIONS_FILE)) {
            Ok(text) => Ok(Self::parse(&text)),
            // A repository without the file has no exceptions.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {EXCEPTIONS_FILE}")),
        }
    }

    pub fn parse(text: &str) -> Self {
        // A broken file is a breach and not an error, so that the other rules are still checked.
        let mut exceptions = Self::default();
        let table: Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                exceptions.breaches.push(RuleBreach::in_file(EXCEPTIONS_FILE, format!("this is not toml: {error}")));
                return exceptions;
            }
        };
        for (key, value) in &table {
            match value {
                Value::Array(entries) if key == "exception" => {
                    for entry in entries {
                        exceptions.add_entry(entry);
                    }
                }
                _ => exceptions.breaches.push(RuleBreach::in_file(
                    EXCEPTIONS_FILE,
                    format!("`{key}` is not known here, only [[exception]]"),
                )),
            }
        }
        exceptions
    }

    fn add_entry(&mut self, entry: &Value) {
        let text_value = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().trim();
        let (path, item, rule, reason) =
            (text_value("path"), text_value("item"), text_value("rule"), text_value("reason"));
        let mut breach = |message: String| {
            self.breaches.push(RuleBreach::in_file(
                EXCEPTIONS_FILE,
                format!("the exception for `{item}` in {path:?} {message}"),
            ));
        };
        for key in entry.as_table().into_iter().flat_map(Table::keys).filter(|key| !KNOWN_KEYS.contains(&key.as_str()))
        {
            breach(format!("has a key `{key}` that is not known, only {}", KNOWN_KEYS.join(", ")));
        }
        if reason.is_empty() {
            breach("has no reason".to_owned());
        }
        // An entry with other problems is still added: otherwise its item would be reported as too large, too.
        match SizeRule::ALL.into_iter().find(|known_rule| known_rule.rule_name() == rule) {
            Some(rule) => self.exceptions.push(SizeException {
                path: path.to_owned(),
                item: item.to_owned(),
                rule,
                is_used: false,
            }),
            None => breach(format!(
                "has the rule {rule:?}, known are {}",
                SizeRule::ALL.map(SizeRule::rule_name).join(", ")
            )),
        }
    }

    /// Whether an exception covers this finding; it marks the exception as used.
    pub fn covers_finding(&mut self, finding: &SizeFinding) -> bool {
        let Some((rule, item)) = &finding.excusable else {
            return false;
        };
        let is_same_item = |entry: &&mut SizeException| {
            entry.path == finding.breach.path && entry.rule == *rule && entry.item == *item
        };
        // The exception is marked even if it covers several items, because one use is enough.
        let entry = self.exceptions.iter_mut().find(is_same_item);
        entry.map(|entry| entry.is_used = true).is_some()
    }

    /// Returns what is wrong with the list itself, after all files were checked.
    pub fn into_breaches(self) -> Vec<RuleBreach> {
        let unused = self.exceptions.into_iter().filter(|exception| !exception.is_used);
        let stale_breaches = unused.map(|SizeException { path, item, rule, .. }| {
            let description = format!("the exception for `{item}` in {path:?} ({})", rule.rule_name());
            RuleBreach::in_file(EXCEPTIONS_FILE, format!("{description} no longer matches anything: take it out"))
        });
        self.breaches.into_iter().chain(stale_breaches).collect()
    }
}
