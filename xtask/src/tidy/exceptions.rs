//! Reads `xtask/tidy-exceptions.toml`: what may be larger than the rules allow, and why.
//!
//! The list cannot rot: an entry without a reason, with an unknown key or rule, or that no longer covers anything is a breach.
//! One entry covers every item of that name in its file.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::sizes::{Finding, Rule};
use crate::Breach;

const FILE: &str = "xtask/tidy-exceptions.toml";
const KEYS: [&str; 4] = ["path", "item", "rule", "reason"];

struct Exception {
    path: String,
    item: String,
    rule: Rule,
    used: bool,
}

/// The exceptions, and what is wrong with their file.
#[derive(Default)]
pub struct Exceptions {
    list: Vec<Exception>,
    breaches: Vec<Breach>,
}

impl Exceptions {
    pub fn read(root: &Path) -> Result<Self> {
        match fs::read_to_string(root.join(FILE)) {
            Ok(text) => Ok(Self::parse(&text)),
            // A repository without the file has no exceptions.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {FILE}")),
        }
    }

    pub fn parse(text: &str) -> Self {
        // A broken file is a breach and not an error, so that the other rules are still checked.
        let mut read = Self::default();
        let table: Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                read.breaches.push(Breach::in_file(FILE, format!("this is not toml: {error}")));
                return read;
            }
        };
        for (key, value) in &table {
            match value {
                Value::Array(entries) if key == "exception" => {
                    for entry in entries {
                        read.add(entry);
                    }
                }
                _ => read
                    .breaches
                    .push(Breach::in_file(FILE, format!("`{key}` is not known here, only [[exception]]"))),
            }
        }
        read
    }

    fn add(&mut self, entry: &Value) {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().trim();
        let (path, item, rule, reason) = (text("path"), text("item"), text("rule"), text("reason"));
        let mut breach = |message: String| {
            self.breaches
                .push(Breach::in_file(FILE, format!("the exception for `{item}` in {path:?} {message}")));
        };
        for key in
            entry.as_table().into_iter().flat_map(Table::keys).filter(|key| !KEYS.contains(&key.as_str()))
        {
            breach(format!("has a key `{key}` that is not known, only {}", KEYS.join(", ")));
        }
        if reason.is_empty() {
            breach("has no reason".to_owned());
        }
        // An entry with other problems is still added: otherwise its item would be reported as too large, too.
        match Rule::ALL.into_iter().find(|known| known.name() == rule) {
            Some(rule) => {
                self.list.push(Exception { path: path.to_owned(), item: item.to_owned(), rule, used: false })
            }
            None => {
                breach(format!("has the rule {rule:?}, known are {}", Rule::ALL.map(Rule::name).join(", ")))
            }
        }
    }

    /// Whether an exception covers this finding; it marks the exception as used.
    pub fn cover(&mut self, finding: &Finding) -> bool {
        let Some((rule, item)) = &finding.excusable else {
            return false;
        };
        let same = |entry: &&mut Exception| {
            entry.path == finding.breach.path && entry.rule == *rule && entry.item == *item
        };
        // The exception is marked even if it covers several items, because one use is enough.
        let entry = self.list.iter_mut().find(same);
        entry.map(|entry| entry.used = true).is_some()
    }

    /// Returns what is wrong with the list itself, after all files were checked.
    pub fn into_breaches(self) -> Vec<Breach> {
        let unused = self.list.into_iter().filter(|entry| !entry.used);
        let stale = unused.map(|Exception { path, item, rule, .. }| {
            let entry = format!("the exception for `{item}` in {path:?} ({})", rule.name());
            Breach::in_file(FILE, format!("{entry} no longer matches anything: take it out"))
        });
        self.breaches.into_iter().chain(stale).collect()
    }
}
