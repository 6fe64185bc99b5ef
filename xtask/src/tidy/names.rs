//! Names that say too little: public functions of one word, public types that share a name, and words that were replaced by
//! the field's own, in comments and in what users read.
//!
//! `xtask/names.toml` has the one-word names that are allowed, each with its reason, and the words that are not. Names of tests
//! and of private functions are left to the reviewer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result};
use proc_macro2::{Delimiter, TokenTree};
use toml::{Table, Value};

use crate::RuleBreach;
use crate::repository::{RepositoryTree, SourceFile, has_extension};
use crate::style::{is_production, visit_production_tokens};
use crate::tokens::{is_punct, is_word, line_number};

const NAMES_FILE: &str = "xtask/names.toml";

/// The rules in `xtask/names.toml`: names and words, each with its reason or its replacement.
#[derive(Debug, Default)]
pub struct NameRules {
    /// Names of one word that public functions may have.
    functions: BTreeSet<String>,
    /// Names that several public types share because they are one concept, and why.
    shared_types: BTreeMap<String, String>,
    /// Names of types and modules that were replaced, and what to say instead.
    replaced_types: BTreeMap<String, String>,
    /// Words that comments do not use, and what to say instead.
    replaced_words: BTreeMap<String, String>,
    /// Phrases that neither messages nor pages of the documentation use, and what to say instead.
    replaced_phrases: BTreeMap<String, String>,
    breaches: Vec<RuleBreach>,
}

/// A public item of the production code.
struct PublicItem<'s> {
    path: &'s str,
    line_number: usize,
    keyword: String,
    name: String,
}

impl NameRules {
    pub fn read_file(root: &Path) -> Result<Self> {
        match fs::read_to_string(root.join(NAMES_FILE)) {
            Ok(text) => Ok(Self::parse(&text)),
            // A repository without the file allows no one-word names.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {NAMES_FILE}")),
        }
    }

    pub fn parse(text: &str) -> Self {
        // A broken file is a breach and not an error, so that the other rules are still checked.
        let mut rules = Self::default();
        let tables: Table = match text.parse() {
            Ok(tables) => tables,
            Err(error) => {
                rules.breaches.push(RuleBreach::in_file(NAMES_FILE, format!("this is not toml: {error}")));
                return rules;
            }
        };
        for (key, value) in &tables {
            match key.as_str() {
                "functions" => rules.add_function_groups(value),
                "shared_types" => rules.shared_types = rules.read_reasons(value),
                "replaced_types" => rules.replaced_types = rules.read_reasons(value),
                "replaced_words" => rules.replaced_words = rules.read_reasons(value),
                "replaced_phrases" => rules.replaced_phrases = rules.read_reasons(value),
                _ => rules.breaches.push(RuleBreach::in_file(NAMES_FILE, format!("`{key}` is not known here"))),
            }
        }
        rules
    }

    /// Adds the groups of allowed one-word names; each group has one reason for all of them.
    fn add_function_groups(&mut self, groups: &Value) {
        for group in groups.as_array().into_iter().flatten() {
            let names = group.get("names").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            if group.get("reason").and_then(Value::as_str).is_none_or(|reason| reason.trim().is_empty()) {
                let listed: Vec<&str> = names.clone().collect();
                self.breaches.push(RuleBreach::in_file(NAMES_FILE, format!("no reason for {}", listed.join(", "))));
            }
            self.functions.extend(names.map(str::to_owned));
        }
    }

    /// Reads a table of names, each with a reason or a replacement.
    fn read_reasons(&mut self, table: &Value) -> BTreeMap<String, String> {
        let mut reasons = BTreeMap::new();
        for (name, reason_value) in table.as_table().into_iter().flatten() {
            match reason_value.as_str().filter(|reason| !reason.trim().is_empty()) {
                Some(reason) => drop(reasons.insert(name.clone(), reason.to_owned())),
                None => self.breaches.push(RuleBreach::in_file(NAMES_FILE, format!("`{name}` has no reason"))),
            }
        }
        reasons
    }

    pub fn check_names(&self, repository: &RepositoryTree) -> Vec<RuleBreach> {
        let production = || repository.sources.iter().filter(|source| is_production(&source.path));
        let items: Vec<PublicItem<'_>> = production().flat_map(find_public_items).collect();
        let mut breaches = self.breaches.clone();
        breaches.extend(self.check_functions(&items));
        breaches.extend(self.check_shared_types(&items));
        breaches.extend(production().flat_map(|source| self.check_replaced_types(source)));
        breaches.extend(repository.sources.iter().flat_map(|source| self.check_comments(source)));
        breaches.extend(production().flat_map(|source| self.check_messages(source)));
        breaches
    }

    fn check_functions(&self, items: &[PublicItem<'_>]) -> Vec<RuleBreach> {
        let one_word: Vec<&PublicItem<'_>> =
            items.iter().filter(|item| item.keyword == "fn" && !item.name.contains('_')).collect();
        let unexplained = one_word.iter().filter(|item| !self.functions.contains(&item.name)).map(|item| {
            let message = format!(
                "the public function `{}` has a name of one word: say what it does to what, or give a reason in {NAMES_FILE}",
                item.name
            );
            RuleBreach::at_line(item.path, item.line_number, message)
        });
        // An entry that nothing needs would quietly allow the next function of that name.
        let used: BTreeSet<&str> = one_word.iter().map(|item| item.name.as_str()).collect();
        let stale = self.functions.iter().filter(|name| !used.contains(name.as_str())).map(|name| {
            RuleBreach::in_file(NAMES_FILE, format!("no public function is called `{name}`: remove the entry"))
        });
        unexplained.chain(stale).collect()
    }

    fn check_shared_types(&self, items: &[PublicItem<'_>]) -> Vec<RuleBreach> {
        let mut by_name: BTreeMap<&str, Vec<&PublicItem<'_>>> = BTreeMap::new();
        for item in items.iter().filter(|item| item.keyword != "fn") {
            by_name.entry(&item.name).or_default().push(item);
        }
        by_name.retain(|name, sharing| sharing.len() > 1 && !self.shared_types.contains_key(*name));
        by_name
            .into_iter()
            .filter_map(|(name, sharing)| {
                let (first_item, others) = sharing.split_first()?;
                let places: Vec<String> =
                    others.iter().map(|item| format!("{}:{}", item.path, item.line_number)).collect();
                let message = format!("the public type `{name}` shares its name with {}", places.join(", "));
                Some(RuleBreach::at_line(first_item.path, first_item.line_number, message))
            })
            .collect()
    }

    fn check_replaced_types(&self, source: &SourceFile) -> Vec<RuleBreach> {
        let mut breaches = Vec::new();
        visit_production_tokens(&source.tokens, &mut |remaining_tokens| {
            // Only definitions are looked at: a foreign crate may have a type of that name.
            let [TokenTree::Ident(keyword), TokenTree::Ident(name), ..] = remaining_tokens else { return };
            let defines = ["struct", "enum", "trait", "type", "mod"].contains(&keyword.to_string().as_str());
            if let (true, Some(better)) = (defines, self.replaced_types.get(&name.to_string())) {
                let message = format!("`{name}` is not called that any more: {better}");
                breaches.push(RuleBreach::at_line(&source.path, name.span().start().line, message));
            }
        });
        breaches
    }

    fn check_comments(&self, source: &SourceFile) -> Vec<RuleBreach> {
        let comments = source.text.lines().enumerate().filter_map(|(index, text)| {
            // A comment behind code is rare, and a `//` inside a string is not one: only whole lines are looked at.
            text.trim_start().strip_prefix("//").map(|comment| (index + 1, comment))
        });
        let mut breaches = Vec::new();
        for (line_number, comment) in comments {
            for word in comment.split(|character: char| !character.is_alphanumeric()) {
                if let Some(better) = self.replaced_words.get(&word.to_lowercase()) {
                    let message = format!("a comment says `{word}`: {better}");
                    breaches.push(RuleBreach::at_line(&source.path, line_number, message));
                }
            }
        }
        breaches
    }

    /// Checks the string literals of a source file. Doc comments are left out, although help texts are made of some: in
    /// comments the same words may be right.
    fn check_messages(&self, source: &SourceFile) -> Vec<RuleBreach> {
        let mut doc_literals: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut breaches = Vec::new();
        visit_production_tokens(&source.tokens, &mut |remaining_tokens| {
            let place_of = |token: &TokenTree| (token.span().start().line, token.span().start().column);
            if let [TokenTree::Ident(name), _, literal @ TokenTree::Literal(_), ..] = remaining_tokens
                && name == "doc"
            {
                doc_literals.insert(place_of(literal));
            }
            if let [token @ TokenTree::Literal(literal), ..] = remaining_tokens
                && !doc_literals.contains(&place_of(token))
            {
                let message_lines = self.find_phrases(&literal.to_string());
                breaches.extend(message_lines.into_iter().map(|(line_offset, message)| {
                    RuleBreach::at_line(&source.path, line_number(token) + line_offset, message)
                }));
            }
        });
        breaches
    }

    /// Checks a page of the documentation. The decisions are a record and keep their words.
    pub fn check_page(&self, path: &str, text: &str) -> Vec<RuleBreach> {
        let is_page = path == "README.md" || (path.starts_with("docs/") && has_extension(path, "md"));
        if !is_page || path == "docs/decisions.md" {
            return Vec::new();
        }
        let found_phrases = self.find_phrases(text).into_iter();
        found_phrases.map(|(line_offset, message)| RuleBreach::at_line(path, line_offset + 1, message)).collect()
    }

    /// Finds replaced phrases in a text, with the number of lines before each.
    fn find_phrases(&self, text: &str) -> Vec<(usize, String)> {
        let mut found_phrases = Vec::new();
        for (line_offset, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            for (phrase, better) in &self.replaced_phrases {
                if contains_words(&line, phrase) {
                    found_phrases.push((line_offset, format!("users read `{phrase}` here: {better}")));
                }
            }
        }
        found_phrases
    }
}

/// Whether the line contains the phrase as whole words.
fn contains_words(line: &str, phrase: &str) -> bool {
    let continues =
        |character: Option<char>| character.is_some_and(|character| character.is_alphanumeric() || character == '_');
    let starts_with_word = continues(phrase.chars().next());
    let ends_with_word = continues(phrase.chars().next_back());
    line.match_indices(phrase).any(|(offset, _)| {
        let before = line[..offset].chars().next_back();
        let after = line[offset + phrase.len()..].chars().next();
        let is_part_of_word = starts_with_word && continues(before) || ends_with_word && continues(after);
        !is_part_of_word
    })
}

/// Whether a type alias such as `type Replayer = engine::Replayer<Kinds>;` is the type of the same name with its parameters.
fn is_same_type<'t>(name: &str, definition: impl Iterator<Item = &'t TokenTree>) -> bool {
    let path = definition
        .skip_while(|token_tree| !is_punct(token_tree, '='))
        .take_while(|token_tree| !is_punct(token_tree, '<') && !is_punct(token_tree, ';'));
    path.last().is_some_and(|last| is_word(last, name))
}

/// Functions and types that other modules can name.
fn find_public_items(source: &SourceFile) -> Vec<PublicItem<'_>> {
    let mut items = Vec::new();
    visit_production_tokens(&source.tokens, &mut |remaining_tokens| {
        let [TokenTree::Ident(first), after @ ..] = remaining_tokens else { return };
        if first != "pub" {
            return;
        }
        // `(crate)` and words such as `async` and `const` may come before `fn`.
        let mut words = after.iter().skip_while(
            |token| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis),
        );
        let mut keyword = words.next();
        while let Some(TokenTree::Ident(modifier)) = keyword
            && ["async", "unsafe", "extern"].contains(&modifier.to_string().as_str())
        {
            keyword = words.next();
        }
        let mut name = words.next();
        if let (Some(TokenTree::Ident(constant)), Some(TokenTree::Ident(function))) = (keyword, name)
            && constant == "const"
            && function == "fn"
        {
            keyword = name;
            name = words.next();
        }
        if let (Some(TokenTree::Ident(keyword)), Some(name @ TokenTree::Ident(_))) = (keyword, name)
            && ["fn", "struct", "enum", "trait", "type", "union"].contains(&keyword.to_string().as_str())
            && !(keyword == "type" && is_same_type(&name.to_string(), words))
        {
            let line_number = line_number(name);
            items.push(PublicItem {
                path: &source.path,
                line_number,
                keyword: keyword.to_string(),
                name: name.to_string(),
            });
        }
    });
    items
}
