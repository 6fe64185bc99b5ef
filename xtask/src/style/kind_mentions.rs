//! Finds mentions of a kind of run outside of its own folders: where a new kind would have to be added by hand.
//!
//! The kinds are the rows of the table `run_kinds!`. A mention is a variant of an enum that has one for each kind, a name like
//! `as_review`, or a path into the kind's module or its reporter's. The bodies of macros count like other code; calls of macros that take
//! a row for each kind are the tables themselves and do not count. The folders of a kind are those with its name in the crate of the
//! table, in `report`, and in `commands` and `settings` of `cli`.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::SourcePlace;
use super::tokens::visit_production_tokens;
use crate::repository::SourceFile;
use crate::tokens::{is_punct, is_word, line_number};

const KIND_TABLE: &str = "run_kinds";

/// What the source says about kinds of runs in general.
struct KindTable {
    kinds: Vec<RunKind>,
    /// The crate of the table, for instance `workflows`.
    crate_name: String,
    /// Enums with one variant for each kind.
    enums: BTreeSet<String>,
    /// Macros that take one row for each kind.
    macros: BTreeSet<String>,
}

struct RunKind {
    /// `Loop`
    variant: String,
    /// `loop`
    name: String,
    /// `loop_run`
    module: String,
}

/// Finds every mention; the name of a place is what mentions the kind, for instance `RunOrder::Loop`.
pub fn find_kind_mentions(sources: &[&SourceFile]) -> Vec<SourcePlace> {
    let Some(table) = read_table(sources) else { return Vec::new() };
    sources.iter().flat_map(|source| table.find_in_file(source)).collect()
}

fn read_table(sources: &[&SourceFile]) -> Option<KindTable> {
    let (path, kinds) = sources.iter().find_map(|source| {
        let mut kinds = Vec::new();
        visit_production_tokens(&source.tokens, &mut |remaining_tokens| {
            if let [name, bang, TokenTree::Group(rows), ..] = remaining_tokens
                && is_word(name, KIND_TABLE)
                && is_punct(bang, '!')
            {
                kinds = read_rows(rows.stream());
            }
        });
        (!kinds.is_empty()).then_some((&source.path, kinds))
    })?;
    let crate_name = path.strip_prefix("crates/")?.split('/').next()?.to_owned();
    let (mut enums, mut macros) = (BTreeSet::new(), BTreeSet::new());
    for source in sources {
        visit_production_tokens(&source.tokens, &mut |remaining_tokens| match remaining_tokens {
            [word, TokenTree::Ident(name), TokenTree::Group(variants), ..]
                if is_word(word, "enum") && has_kind_variable(variants, false) =>
            {
                enums.insert(name.to_string());
            }
            [word, bang, TokenTree::Ident(name), TokenTree::Group(body), ..]
                if is_word(word, "macro_rules") && is_punct(bang, '!') && has_kind_variable(body, true) =>
            {
                macros.insert(name.to_string());
            }
            _ => {}
        });
    }
    Some(KindTable { kinds, crate_name, enums, macros })
}

/// Whether a group contains the variable of a macro `$kind`, or its declaration `$kind:`.
fn has_kind_variable(group: &Group, is_declared: bool) -> bool {
    let mut is_found = false;
    crate::tokens::visit_tokens(&group.stream(), &mut |remaining_tokens| {
        if let [dollar, name, following_tokens @ ..] = remaining_tokens {
            let has_colon = following_tokens.first().is_some_and(|token_tree| is_punct(token_tree, ':'));
            is_found |= is_punct(dollar, '$') && is_word(name, "kind") && (has_colon || !is_declared);
        }
    });
    is_found
}

/// Reads rows such as `Loop(crate::loop_run::order::LoopOrder);`.
fn read_rows(rows: TokenStream) -> Vec<RunKind> {
    let tokens: Vec<TokenTree> = rows.into_iter().collect();
    let read_row = |row: &[TokenTree]| {
        let [.., TokenTree::Ident(variant), TokenTree::Group(order)] = row else { return None };
        let path: Vec<String> = order
            .stream()
            .into_iter()
            .filter_map(|token_tree| match token_tree {
                TokenTree::Ident(ident) => Some(ident.to_string()),
                _ => None,
            })
            .collect();
        let module = path.get(1)?.clone();
        let variant = variant.to_string();
        Some(RunKind { name: variant.to_lowercase(), variant, module })
    };
    tokens.split(|token_tree| is_punct(token_tree, ';')).filter_map(read_row).collect()
}

impl RunKind {
    /// Whether a folder or file has the name of the kind: `loop`, `loops`, `loop_run`, `stories`, `story.rs`.
    fn has_name(&self, path_part: &str) -> bool {
        let stem = path_part.trim_end_matches(".rs");
        let plural = match self.name.strip_suffix('y') {
            Some(start) => format!("{start}ies"),
            None => format!("{}s", self.name),
        };
        stem == self.name || stem == plural || stem == self.module || stem.starts_with(&format!("{}_", self.name))
    }

    fn owns_file(&self, path: &str, table_crate: &str) -> bool {
        let own_dirs = [
            format!("crates/{table_crate}/src/"),
            "crates/report/src/".to_owned(),
            "crates/cli/src/commands/".to_owned(),
            "crates/cli/src/settings/".to_owned(),
        ];
        let inner_path = own_dirs.iter().find_map(|own_dir| path.strip_prefix(own_dir.as_str()));
        inner_path.and_then(|inner_path| inner_path.split('/').next()).is_some_and(|first| self.has_name(first))
    }
}

impl KindTable {
    fn find_in_file(&self, source: &SourceFile) -> Vec<SourcePlace> {
        let foreign_kinds: Vec<&RunKind> =
            self.kinds.iter().filter(|kind| !kind.owns_file(&source.path, &self.crate_name)).collect();
        let crate_name = source.path.strip_prefix("crates/").and_then(|rest| rest.split('/').next()).unwrap_or("");
        let mut search = MentionSearch { table: self, foreign_kinds, crate_name, mentions: Vec::new() };
        search.visit_tokens(&source.tokens);
        let make_place = |(line, name): (usize, String)| SourcePlace { path: source.path.clone(), line, name };
        search.mentions.into_iter().map(make_place).collect()
    }
}

/// The search in one file.
struct MentionSearch<'t> {
    table: &'t KindTable,
    /// The kinds that the file does not belong to.
    foreign_kinds: Vec<&'t RunKind>,
    crate_name: &'t str,
    /// Lines and names.
    mentions: Vec<(usize, String)>,
}

impl MentionSearch<'_> {
    fn visit_tokens(&mut self, tokens: &TokenStream) {
        let mut skipped_spans = BTreeSet::new();
        visit_production_tokens(tokens, &mut |remaining_tokens| {
            let position = remaining_tokens.first().map(|token_tree| token_tree.span().byte_range().start);
            // The content of a skipped group is visited as well, so its range is remembered.
            if position
                .is_some_and(|position| skipped_spans.iter().any(|(start, end)| (*start..*end).contains(&position)))
            {
                return;
            }
            match remaining_tokens {
                [TokenTree::Ident(name), bang, TokenTree::Group(rows), ..]
                    if is_punct(bang, '!') && self.table.macros.contains(&name.to_string()) =>
                {
                    let range = rows.span().byte_range();
                    skipped_spans.insert((range.start, range.end));
                }
                [TokenTree::Ident(name), following_tokens @ ..] => self.check_name(name, following_tokens),
                _ => {}
            }
        });
    }

    fn check_name(&mut self, name: &proc_macro2::Ident, following_tokens: &[TokenTree]) {
        let (line, name) = (name.span().start().line, name.to_string());
        if self.foreign_kinds.iter().any(|kind| name == format!("as_{}", kind.name)) {
            self.mentions.push((line, name));
            return;
        }
        let [first_colon, second_colon, target, ..] = following_tokens else { return };
        if !is_punct(first_colon, ':') || !is_punct(second_colon, ':') {
            return;
        }
        if let TokenTree::Ident(variant) = target
            && self.table.enums.contains(&name)
            && self.foreign_kinds.iter().any(|kind| variant == &kind.variant)
        {
            self.mentions.push((line, format!("{name}::{variant}")));
        }
        // Only the crates of the table and of the reporters have a module for each kind.
        let is_root = match name.as_str() {
            "crate" => self.crate_name == self.table.crate_name || self.crate_name == "report",
            "tribunal_report" => true,
            name => name.strip_prefix("tribunal_") == Some(self.table.crate_name.as_str()),
        };
        if is_root {
            self.check_modules(&name, target);
        }
    }

    /// Notes the modules of kinds that follow a crate's name: `::review::…` or `::{engine::…, review::…}`.
    fn check_modules(&mut self, root: &str, target: &TokenTree) {
        let branches: Vec<TokenTree> = match target {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let group_tokens: Vec<TokenTree> = group.stream().into_iter().collect();
                group_tokens
                    .split(|token_tree| is_punct(token_tree, ','))
                    .filter_map(|branch| branch.first().cloned())
                    .collect()
            }
            target => vec![target.clone()],
        };
        for branch in &branches {
            if let Some(kind) = self.foreign_kinds.iter().find(|kind| is_word(branch, &kind.module)) {
                self.mentions.push((line_number(branch), format!("{root}::{}", kind.module)));
            }
        }
    }
}
