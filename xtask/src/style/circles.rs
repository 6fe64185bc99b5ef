//! Finds import cycles: files of one crate that need each other, as strongly connected components of the graph of their imports.
//!
//! An edge goes from a file to the module that a path names: `use crate::…`, `super::…`, `self::…`, also in the middle of code
//! and inside macro calls, and the name of a submodule. The longest prefix of the path that is a module with a file of its own
//! counts. Edges from a module to its parents are ignored: what the files of a directory share is in the module of that
//! directory. So a cycle never consists of a module and its submodules alone, but it may go through both.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenTree};

use super::tokens::each_production_token;
use crate::tokens::{is_punct, is_word};
use crate::tree::Source;

/// Files that all import each other, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circle {
    /// The directory of the crate.
    pub root: String,
    /// The paths relative to the root of the repository, sorted.
    pub files: Vec<String>,
}

/// Finds every cycle of two files or more, the largest first.
pub fn find_circles(sources: &[&Source]) -> Vec<Circle> {
    let mut crates: BTreeMap<String, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        // Sources outside `src` are tests or examples and cannot be part of a cycle.
        if let Some((root, _)) = source.path.split_once("/src/") {
            crates.entry(root.to_owned()).or_default().push(source);
        }
    }
    let mut circles: Vec<Circle> =
        crates.iter().flat_map(|(root, sources)| circles_of_crate(root, sources)).collect();
    circles.sort_by(|a, b| b.files.len().cmp(&a.files.len()).then_with(|| a.files.cmp(&b.files)));
    circles
}

type Module = Vec<String>;

fn circles_of_crate(root: &str, sources: &[&Source]) -> Vec<Circle> {
    let modules: BTreeMap<Module, usize> =
        sources.iter().enumerate().map(|(index, source)| (module_of(root, &source.path), index)).collect();
    let mut arrows: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); sources.len()];
    for (module, index) in &modules {
        let parts = |name: &str| modules.contains_key(&[module.as_slice(), &[name.to_owned()]].concat());
        for path in paths_in(sources[*index], module, &parts) {
            let Some((target, other)) = longest_module(&modules, &path) else { continue };
            // A module may use what its parents define.
            if !module.starts_with(target) {
                arrows[*index].insert(other);
            }
        }
    }
    let circles = components(&arrows).into_iter().filter(|component| component.len() > 1);
    let named = circles.map(|component| {
        let mut files: Vec<String> = component.iter().map(|index| sources[*index].path.clone()).collect();
        files.sort();
        Circle { root: root.to_owned(), files }
    });
    named.collect()
}

/// The module path of a file: `crates/core/src/review/mod.rs` is `review`, `crates/core/src/lib.rs` is the empty path.
fn module_of(root: &str, path: &str) -> Module {
    let inside = path.strip_prefix(root).and_then(|rest| rest.strip_prefix("/src/")).unwrap_or(path);
    let mut parts: Module = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

fn longest_module<'m>(modules: &'m BTreeMap<Module, usize>, path: &[String]) -> Option<(&'m Module, usize)> {
    // The empty path is left out: what is defined in the root of a crate belongs to no file below it.
    (1..=path.len())
        .rev()
        .find_map(|length| modules.get_key_value(&path[..length]).map(|(module, index)| (module, *index)))
}

/// Finds every path of this crate that a file names, from the root of the crate. `is_submodule` knows the modules below this
/// one.
fn paths_in(source: &Source, module: &Module, is_part: &dyn Fn(&str) -> bool) -> Vec<Module> {
    let mut paths = Vec::new();
    each_production_token(&source.tokens, &mut |rest| {
        let (base, after) = match rest {
            // A path may also begin with the name of a submodule, without a keyword.
            [TokenTree::Ident(name), one, two, ..]
                if is_punct(one, ':') && is_punct(two, ':') && is_part(&name.to_string()) =>
            {
                ([module.as_slice(), &[name.to_string()]].concat(), &rest[1..])
            }
            [word, after @ ..] if is_word(word, "crate") => (Vec::new(), after),
            [word, after @ ..] if is_word(word, "self") => (module.clone(), after),
            [word, after @ ..] if is_word(word, "super") => {
                (module[..module.len().saturating_sub(1)].to_vec(), after)
            }
            _ => return,
        };
        collect_paths(base, after, &mut paths);
    });
    paths
}

/// Follows `::name`, `::super` and `::{a, b::c}` from `base`.
fn collect_paths(mut base: Module, mut rest: &[TokenTree], paths: &mut Vec<Module>) {
    loop {
        match rest {
            [one, two, TokenTree::Ident(name), after @ ..] if is_punct(one, ':') && is_punct(two, ':') => {
                step(&mut base, &name.to_string());
                rest = after;
            }
            [one, two, TokenTree::Group(group), ..]
                if is_punct(one, ':') && is_punct(two, ':') && group.delimiter() == Delimiter::Brace =>
            {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                for branch in inside.split(|tree| is_punct(tree, ',')) {
                    // Each branch of a group continues from the same prefix.
                    let mut base = base.clone();
                    if let [TokenTree::Ident(name), after @ ..] = branch {
                        step(&mut base, &name.to_string());
                        collect_paths(base, after, paths);
                    }
                }
                return;
            }
            _ => break,
        }
    }
    paths.push(base);
}

fn step(base: &mut Module, name: &str) {
    match name {
        "super" => {
            base.pop();
        }
        "self" => {}
        name => base.push(name.to_owned()),
    }
}

/// Finds the strongly connected components with Tarjan's algorithm.
fn components(arrows: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search { arrows, ..Search::default() };
    search.numbers = vec![None; arrows.len()];
    search.lowest = vec![0; arrows.len()];
    for node in 0..arrows.len() {
        if search.numbers[node].is_none() {
            search.visit(node);
        }
    }
    search.found
}

/// The state of Tarjan's depth-first search.
#[derive(Default)]
struct Search<'a> {
    arrows: &'a [BTreeSet<usize>],
    numbers: Vec<Option<usize>>,
    lowest: Vec<usize>,
    stack: Vec<usize>,
    next: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, node: usize) {
        self.numbers[node] = Some(self.next);
        self.lowest[node] = self.next;
        self.next += 1;
        self.stack.push(node);
        // The edges are cloned, because the recursion needs the whole search mutably.
        for other in self.arrows[node].clone() {
            match self.numbers[other] {
                None => {
                    self.visit(other);
                    self.lowest[node] = self.lowest[node].min(self.lowest[other]);
                }
                Some(number) if self.stack.contains(&other) => {
                    self.lowest[node] = self.lowest[node].min(number);
                }
                Some(_) => {}
            }
        }
        // The node is the root of a component: everything above it on the stack belongs to it.
        if Some(self.lowest[node]) == self.numbers[node]
            && let Some(at) = self.stack.iter().position(|known| *known == node)
        {
            let component = self.stack.split_off(at);
            self.found.push(component);
        }
    }
}
