//! Measures sizes, names and structure of the production code: the figures that `cargo xtask style` prints.
//!
//! - `tokens`: the code of a file without its tests
//! - `files`: lines, functions, names and comments of one file
//! - `parameters`: parameters that are tuples
//! - `import_cycles`: files of one crate that need each other
//! - `folder_arrows`: circles among the folders of a crate
//! - `kind_mentions`: kinds of runs that are named outside of their folders
//!
//! Test code is left out: files below `tests/`, `benches/`, `examples/`, `fixtures/` or `fuzz/`, files named as tests, the crate
//! `testkit`, and items behind `#[cfg(test)]` or `#[test]`. The figures only describe; what may not occur at all is a rule in
//! [`crate::tidy`], which uses the same counts.

mod files;
mod folder_arrows;
mod import_cycles;
mod kind_mentions;
mod parameters;
mod tokens;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::repository::{RepositoryTree, SourceFile};

use files::FileFigures;
pub use folder_arrows::{BackArrow, FolderArrows};
pub use import_cycles::ImportCycle;
pub(crate) use import_cycles::{find_import_cycles, read_imports};
pub(crate) use parameters::find_tuple_parameters;
pub(crate) use tokens::{find_patched_marks, visit_production_tokens};

/// The number of files from which on a cycle counts as large; two or three files that know each other are no problem.
pub const LARGE_CYCLE: usize = 4;

/// A place in the production code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePlace {
    pub path: String,
    pub line: usize,
    pub name: String,
}

/// The figures of the whole tree.
#[derive(Debug)]
pub struct StyleFigures {
    files: Vec<FileFigures>,
    pub tuple_parameters: Vec<SourcePlace>,
    pub patched_marks: Vec<SourcePlace>,
    /// The import cycles of every size, the largest first.
    pub import_cycles: Vec<ImportCycle>,
    /// One for each crate.
    pub folder_arrows: Vec<FolderArrows>,
    /// Where a kind of run is named outside of its folders.
    pub kind_mentions: Vec<SourcePlace>,
}

/// Measures the repository below `root`.
pub fn measure_repository(root: &Path) -> Result<StyleFigures> {
    Ok(measure_tree(&RepositoryTree::read_repository(root)?))
}

fn measure_tree(repository: &RepositoryTree) -> StyleFigures {
    let sources: Vec<&SourceFile> = repository.sources.iter().filter(|source| is_production(&source.path)).collect();
    let crate_imports = read_imports(&sources);
    StyleFigures {
        files: sources.iter().map(|source| files::measure_file(source)).collect(),
        tuple_parameters: sources.iter().flat_map(|source| find_tuple_parameters(source)).collect(),
        patched_marks: sources.iter().flat_map(|source| find_patched_marks(source)).collect(),
        import_cycles: find_import_cycles(&crate_imports),
        folder_arrows: crate_imports.iter().map(folder_arrows::find_folder_arrows).collect(),
        kind_mentions: kind_mentions::find_kind_mentions(&sources),
    }
}

/// Whether a file is production code: neither a test nor made for tests.
pub(crate) fn is_production(path: &str) -> bool {
    let (directories, file_name) = path.rsplit_once('/').unwrap_or(("", path));
    let test_dirs = ["test", "tests", "benches", "examples", "fixture", "fixtures", "fuzz", "testkit"];
    !directories.split('/').any(|directory| test_dirs.contains(&directory))
        && !["test.rs", "tests.rs"].contains(&file_name)
        && !file_name.ends_with("_test.rs")
        && !file_name.ends_with("_tests.rs")
        && !file_name.starts_with("test_")
}

impl StyleFigures {
    /// The figures as rows of label and value.
    #[must_use]
    pub fn to_rows(&self) -> Vec<(&'static str, String)> {
        // Sums over all files come first, then the rows in the order in which they are printed.
        let file_lines: Vec<usize> = self.files.iter().map(|file| file.lines).collect();
        let function_lines: Vec<usize> = self.files.iter().flat_map(|file| file.function_lines.clone()).collect();
        let code_lines: usize = self.files.iter().map(|file| file.code_lines).sum();
        let doc_lines: usize = self.files.iter().map(|file| file.doc_lines).sum();
        let comment_lines: usize = self.files.iter().map(|file| file.comment_lines).sum();
        let function_names: Vec<&String> = self.files.iter().flat_map(|file| &file.function_names).collect();
        let type_names: Vec<&String> = self.files.iter().flat_map(|file| &file.type_names).collect();
        let large_cycles = self.import_cycles.iter().filter(|cycle| cycle.files.len() >= LARGE_CYCLE).count();
        vec![
            ("files", self.files.len().to_string()),
            (
                "file lines p50 / p95 / max",
                format!(
                    "{} / {} / {}",
                    quantile(&file_lines, 0.5),
                    quantile(&file_lines, 0.95),
                    file_lines.iter().max().copied().unwrap_or_default()
                ),
            ),
            ("functions", function_lines.len().to_string()),
            ("functions over 60 lines", function_lines.iter().filter(|lines| **lines > 60).count().to_string()),
            ("tuple parameters", self.tuple_parameters.len().to_string()),
            (
                "functions whose name is one word",
                format!("{:.0} %", percentage_of_names(&function_names, |name| !name.contains('_'))),
            ),
            ("types whose name is one word", format!("{:.0} %", percentage_of_names(&type_names, is_one_word))),
            ("mean length of an identifier", format!("{:.1}", self.mean_identifier_length())),
            ("doc comment lines per 100 lines of code", format!("{:.1}", per_hundred(doc_lines, code_lines))),
            ("plain comment lines per 100 lines of code", format!("{:.1}", per_hundred(comment_lines, code_lines))),
            ("`patched` marks", self.patched_marks.len().to_string()),
            ("circles of more than 3 files", large_cycles.to_string()),
            ("directories in circles", self.describe_folder_circles()),
            ("imports against the order of directories", count_by_crate(self.arrows_back().map(|arrow| &arrow.path))),
            (
                "mentions of kinds outside their directories",
                count_by_crate(self.kind_mentions.iter().map(|place| &place.path)),
            ),
            ("lines of code that are shipped", self.count_shipped_lines().to_string()),
        ]
    }

    /// The lines of code that become part of the program: without the tools and tests of the workspace.
    fn count_shipped_lines(&self) -> usize {
        let shipped_files = self.files.iter().filter(|file| file.path.starts_with("crates/"));
        shipped_files.map(|file| file.code_lines).sum()
    }

    /// Imports that point against the order of the folders of their crate.
    pub fn arrows_back(&self) -> impl Iterator<Item = &BackArrow> {
        self.folder_arrows.iter().flat_map(|arrows| &arrows.arrows_back)
    }

    fn describe_folder_circles(&self) -> String {
        let cyclic_crates = self.folder_arrows.iter().filter(|arrows| !arrows.circles.is_empty());
        let descriptions = cyclic_crates.map(|arrows| {
            let circle_sizes: Vec<String> = arrows.circles.iter().map(ToString::to_string).collect();
            format!("{} {} of {}", crate_name(&arrows.crate_dir), circle_sizes.join(" + "), arrows.folder_count)
        });
        descriptions.collect::<Vec<_>>().join(", ")
    }

    /// The names that most functions share, with their counts.
    #[must_use]
    pub fn most_shared_names(&self, max_names: usize) -> Vec<(String, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in self.files.iter().flat_map(|file| &file.function_names) {
            *counts.entry(name).or_default() += 1;
        }
        let mut counted_names: Vec<(String, usize)> =
            counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        // Equal counts are sorted by name, so that the output is the same each time.
        counted_names.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        counted_names.truncate(max_names);
        counted_names
    }

    fn mean_identifier_length(&self) -> f64 {
        let letter_count: usize = self.files.iter().map(|file| file.identifier_letters).sum();
        let identifier_count: usize = self.files.iter().map(|file| file.identifiers).sum();
        // An empty tree has no identifiers; the mean is then zero.
        letter_count as f64 / identifier_count.max(1) as f64
    }
}

/// `12: cli 7, report 5`
fn count_by_crate<'p>(paths: impl Iterator<Item = &'p String>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths {
        *counts.entry(crate_name(path)).or_default() += 1;
    }
    let total: usize = counts.values().sum();
    let listed: Vec<String> = counts.iter().map(|(crate_name, count)| format!("{crate_name} {count}")).collect();
    if listed.is_empty() { total.to_string() } else { format!("{total}: {}", listed.join(", ")) }
}

/// The directory of a crate without `crates/`.
fn crate_name(path: &str) -> &str {
    let inner_path = path.strip_prefix("crates/").unwrap_or(path);
    inner_path.split_once('/').map_or(inner_path, |(crate_name, _)| crate_name)
}

/// The value below which this share of all values lies.
fn quantile(values: &[usize], share: f64) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    // No interpolation: for lines of code the nearest value is exact enough.
    let index = (share * sorted.len() as f64) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn percentage_of_names(names: &[&String], is_counted: impl Fn(&str) -> bool) -> f64 {
    per_hundred(names.iter().filter(|name| is_counted(name)).count(), names.len())
}

fn per_hundred(count: usize, total: usize) -> f64 {
    100.0 * count as f64 / total.max(1) as f64
}

/// Whether a type name is one word: `Finding` is, `FindingSnapshot` is not.
fn is_one_word(name: &str) -> bool {
    name.chars().filter(char::is_ascii_uppercase).count() == 1
}
