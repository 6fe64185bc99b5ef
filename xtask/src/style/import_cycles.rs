//! Finds import cycles: files of one crate that need each other, as strongly connected components of the graph of their imports.
//!
//! An edge goes from a file to the module that a path names: `use crate::…`, `super::…`, `self::…`, also in the middle of code
//! and inside macro calls, and the name of a submodule. The longest prefix of the path that is a module with a file of its own
//! counts. Edges from a module to its parents are ignored: what the files of a directory share is in the module of that
//! directory. So a cycle never consists of a module and its submodules alone, but it may go through both.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenTree};

use super::tokens::visit_production_tokens;
use crate::repository::SourceFile;
use crate::tokens::{is_punct, is_word};

/// Files that all import each other, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportCycle {
    /// The directory of the crate.
    pub crate_dir: String,
    /// The paths relative to the root of the repository, sorted.
    pub files: Vec<String>,
}

/// A file of a crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrateFile {
    pub path: String,
    module: ModulePath,
}

impl CrateFile {
    /// The module below the root that the file belongs to; `None` for the root itself.
    pub fn find_folder(&self) -> Option<&str> {
        self.module.first().map(String::as_str)
    }
}

/// Which files of one crate import which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrateImports {
    /// The directory of the crate.
    pub crate_dir: String,
    pub files: Vec<CrateFile>,
    /// For each file the indexes of those that it imports.
    pub targets: Vec<BTreeSet<usize>>,
}

/// Reads the imports of every crate.
pub fn read_imports(sources: &[&SourceFile]) -> Vec<CrateImports> {
    let mut crates: BTreeMap<String, Vec<&SourceFile>> = BTreeMap::new();
    for source in sources {
        // Sources outside `src` are tests, benches or examples; cycles among them are not counted.
        if let Some((crate_dir, _)) = source.path.split_once("/src/") {
            crates.entry(crate_dir.to_owned()).or_default().push(source);
        }
    }
    crates.iter().map(|(crate_dir, crate_sources)| read_crate_imports(crate_dir, crate_sources)).collect()
}

/// Finds every cycle of two files or more, the largest first.
pub fn find_import_cycles(crates: &[CrateImports]) -> Vec<ImportCycle> {
    let mut cycles: Vec<ImportCycle> = crates.iter().flat_map(find_crate_cycles).collect();
    cycles.sort_by(|left, right| right.files.len().cmp(&left.files.len()).then_with(|| left.files.cmp(&right.files)));
    cycles
}

type ModulePath = Vec<String>;

fn read_crate_imports(crate_dir: &str, sources: &[&SourceFile]) -> CrateImports {
    let find_module = |source: &&SourceFile| module_path_of_file(crate_dir, &source.path);
    let files: Vec<CrateFile> =
        sources.iter().map(|source| CrateFile { path: source.path.clone(), module: find_module(source) }).collect();
    let modules: BTreeMap<ModulePath, usize> =
        files.iter().enumerate().map(|(file_index, file)| (file.module.clone(), file_index)).collect();
    let mut targets: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); sources.len()];
    for (module, file_index) in &modules {
        let is_submodule = |name: &str| modules.contains_key(&[module.as_slice(), &[name.to_owned()]].concat());
        for named_path in find_module_paths(sources[*file_index], module, &is_submodule) {
            let Some((target, target_index)) = find_longest_module(&modules, &named_path) else { continue };
            // A module may use what its parents define.
            if !module.starts_with(target) {
                targets[*file_index].insert(target_index);
            }
        }
    }
    CrateImports { crate_dir: crate_dir.to_owned(), files, targets }
}

fn find_crate_cycles(imports: &CrateImports) -> Vec<ImportCycle> {
    let cyclic_components = find_components(&imports.targets).into_iter().filter(|component| component.len() > 1);
    let cycles = cyclic_components.map(|component| {
        let mut files: Vec<String> =
            component.iter().map(|file_index| imports.files[*file_index].path.clone()).collect();
        files.sort();
        ImportCycle { crate_dir: imports.crate_dir.clone(), files }
    });
    cycles.collect()
}

/// The module path of a file: `crates/workflows/src/review/mod.rs` is `review`, `crates/workflows/src/lib.rs` is the empty path.
fn module_path_of_file(crate_dir: &str, path: &str) -> ModulePath {
    let path_in_crate =
        path.strip_prefix(crate_dir).and_then(|path_suffix| path_suffix.strip_prefix("/src/")).unwrap_or(path);
    let mut components: ModulePath = path_in_crate.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if components.last().is_some_and(|last_component| ["mod", "lib", "main"].contains(&last_component.as_str())) {
        components.pop();
    }
    components
}

fn find_longest_module<'m>(
    modules: &'m BTreeMap<ModulePath, usize>,
    path: &[String],
) -> Option<(&'m ModulePath, usize)> {
    // The empty path is left out: the root is a parent of every module, and edges to parents are ignored anyway.
    (1..=path.len())
        .rev()
        .find_map(|length| modules.get_key_value(&path[..length]).map(|(module, index)| (module, *index)))
}

/// Finds every path of this crate that a file names, from the root of the crate. `is_submodule` knows the modules below this
/// one.
fn find_module_paths(source: &SourceFile, module: &ModulePath, is_submodule: &dyn Fn(&str) -> bool) -> Vec<ModulePath> {
    let mut paths = Vec::new();
    visit_production_tokens(&source.tokens, &mut |remaining_tokens| {
        let (base, following_tokens) = match remaining_tokens {
            // A path may also begin with the name of a submodule, without a keyword.
            [TokenTree::Ident(name), first_colon, second_colon, ..]
                if is_punct(first_colon, ':') && is_punct(second_colon, ':') && is_submodule(&name.to_string()) =>
            {
                ([module.as_slice(), &[name.to_string()]].concat(), &remaining_tokens[1..])
            }
            [first_token, following_tokens @ ..] if is_word(first_token, "crate") => (Vec::new(), following_tokens),
            [first_token, following_tokens @ ..] if is_word(first_token, "self") => (module.clone(), following_tokens),
            [first_token, following_tokens @ ..] if is_word(first_token, "super") => {
                (module[..module.len().saturating_sub(1)].to_vec(), following_tokens)
            }
            _ => return,
        };
        collect_paths(base, following_tokens, &mut paths);
    });
    paths
}

/// Follows `::name`, `::super` and `::{a, b::c}` from `base`.
fn collect_paths(mut base: ModulePath, mut remaining_tokens: &[TokenTree], paths: &mut Vec<ModulePath>) {
    loop {
        match remaining_tokens {
            [first_colon, second_colon, TokenTree::Ident(name), following_tokens @ ..]
                if is_punct(first_colon, ':') && is_punct(second_colon, ':') =>
            {
                extend_path(&mut base, &name.to_string());
                remaining_tokens = following_tokens;
            }
            [first_colon, second_colon, TokenTree::Group(group), ..]
                if is_punct(first_colon, ':')
                    && is_punct(second_colon, ':')
                    && group.delimiter() == Delimiter::Brace =>
            {
                let group_tokens: Vec<TokenTree> = group.stream().into_iter().collect();
                for branch in group_tokens.split(|tree| is_punct(tree, ',')) {
                    // Each branch of a group continues from the same prefix.
                    let mut branch_base = base.clone();
                    if let [TokenTree::Ident(name), following_tokens @ ..] = branch {
                        extend_path(&mut branch_base, &name.to_string());
                        collect_paths(branch_base, following_tokens, paths);
                    }
                }
                return;
            }
            _ => break,
        }
    }
    paths.push(base);
}

fn extend_path(base: &mut ModulePath, segment: &str) {
    match segment {
        "super" => {
            base.pop();
        }
        "self" => {}
        segment => base.push(segment.to_owned()),
    }
}

/// Finds the strongly connected components with Tarjan's algorithm.
pub fn find_components(imports: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut search = ComponentSearch { imports, ..ComponentSearch::default() };
    search.visit_numbers = vec![None; imports.len()];
    search.lowest_reachable = vec![0; imports.len()];
    for node in 0..imports.len() {
        if search.visit_numbers[node].is_none() {
            search.visit_node(node);
        }
    }
    search.components
}

/// The state of Tarjan's depth-first search.
#[derive(Default)]
struct ComponentSearch<'a> {
    imports: &'a [BTreeSet<usize>],
    visit_numbers: Vec<Option<usize>>,
    lowest_reachable: Vec<usize>,
    stack: Vec<usize>,
    next_number: usize,
    components: Vec<Vec<usize>>,
}

impl ComponentSearch<'_> {
    fn visit_node(&mut self, node: usize) {
        self.visit_numbers[node] = Some(self.next_number);
        self.lowest_reachable[node] = self.next_number;
        self.next_number += 1;
        self.stack.push(node);
        // The edges are cloned, because the recursion needs the whole search mutably.
        for neighbour in self.imports[node].clone() {
            match self.visit_numbers[neighbour] {
                None => {
                    self.visit_node(neighbour);
                    self.lowest_reachable[node] = self.lowest_reachable[node].min(self.lowest_reachable[neighbour]);
                }
                Some(number) if self.stack.contains(&neighbour) => {
                    self.lowest_reachable[node] = self.lowest_reachable[node].min(number);
                }
                Some(_) => {}
            }
        }
        // The node is the root of a component: everything above it on the stack belongs to it.
        if Some(self.lowest_reachable[node]) == self.visit_numbers[node]
            && let Some(stack_index) = self.stack.iter().position(|stacked_node| *stacked_node == node)
        {
            let component = self.stack.split_off(stack_index);
            self.components.push(component);
        }
    }
}
