//! Measures sizes, names and structure of the production code: the figures that `cargo xtask style` prints.
//!
//! - `tokens`: the code of a file without its tests
//! - `files`: lines, functions, names and comments of one file
//! - `parameters`: parameters that are tuples
//! - `import_cycles`: files of one crate that need each other
//!
//! Test code is left out: files below `tests/`, `benches/` or `fuzz/`, the crate `testkit`, and items behind `#[cfg(test)]` or
//! `#[test]`. The figures only describe; what may not occur at all is a rule in [`crate::tidy`], which uses the same counts.

mod circles;
mod files;
mod parameters;
mod tokens;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::tree::{Source, Tree};

pub use circles::Circle;
pub(crate) use circles::find_circles;
use files::FileFigures;
pub(crate) use parameters::find_tuple_parameters;
pub(crate) use tokens::find_patched_marks;

/// The number of files from which on a cycle counts as large; two or three files that know each other are no problem.
pub const LARGE_CIRCLE: usize = 4;

/// A place in the production code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub path: String,
    pub line: usize,
    pub name: String,
}

/// The figures of the whole tree.
#[derive(Debug)]
pub struct Style {
    files: Vec<FileFigures>,
    pub tuple_parameters: Vec<Place>,
    pub patched_marks: Vec<Place>,
    /// The import cycles of every size, the largest first.
    pub circles: Vec<Circle>,
}

/// Measures the repository below `root`.
pub fn measure(root: &Path) -> Result<Style> {
    Ok(measure_tree(&Tree::read(root)?))
}

fn measure_tree(tree: &Tree) -> Style {
    let sources: Vec<&Source> = tree.sources.iter().filter(|source| is_production(&source.path)).collect();
    Style {
        files: sources.iter().map(|source| files::measure_file(source)).collect(),
        tuple_parameters: sources.iter().flat_map(|source| find_tuple_parameters(source)).collect(),
        patched_marks: sources.iter().flat_map(|source| find_patched_marks(source)).collect(),
        circles: find_circles(&sources),
    }
}

/// Whether a file is production code: neither a test nor made for tests.
pub(crate) fn is_production(path: &str) -> bool {
    let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
    let for_tests = ["test", "tests", "benches", "examples", "fixture", "fixtures", "fuzz", "testkit"];
    !folders.split('/').any(|folder| for_tests.contains(&folder))
        && !["test.rs", "tests.rs"].contains(&file)
        && !file.ends_with("_test.rs")
        && !file.ends_with("_tests.rs")
        && !file.starts_with("test_")
}

impl Style {
    /// The figures as rows of label and value.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        // Sums over all files come first, then the rows in the order in which they are printed.
        let lines: Vec<usize> = self.files.iter().map(|file| file.lines).collect();
        let functions: Vec<usize> = self.files.iter().flat_map(|file| file.function_lines.clone()).collect();
        let code: usize = self.files.iter().map(|file| file.code_lines).sum();
        let docs: usize = self.files.iter().map(|file| file.doc_lines).sum();
        let comments: usize = self.files.iter().map(|file| file.comment_lines).sum();
        let function_names: Vec<&String> = self.files.iter().flat_map(|file| &file.function_names).collect();
        let type_names: Vec<&String> = self.files.iter().flat_map(|file| &file.type_names).collect();
        let large = self.circles.iter().filter(|circle| circle.files.len() >= LARGE_CIRCLE).count();
        vec![
            ("files", self.files.len().to_string()),
            (
                "file lines p50 / p95 / max",
                format!(
                    "{} / {} / {}",
                    quantile(&lines, 0.5),
                    quantile(&lines, 0.95),
                    lines.iter().max().copied().unwrap_or_default()
                ),
            ),
            ("functions", functions.len().to_string()),
            ("functions over 60 lines", functions.iter().filter(|lines| **lines > 60).count().to_string()),
            ("tuple parameters", self.tuple_parameters.len().to_string()),
            (
                "functions whose name is one word",
                format!("{:.0} %", share(&function_names, |name| !name.contains('_'))),
            ),
            ("types whose name is one word", format!("{:.0} %", share(&type_names, is_one_word))),
            ("mean length of an identifier", format!("{:.1}", self.mean_identifier())),
            ("doc comment lines per 100 lines of code", format!("{:.1}", per_hundred(docs, code))),
            ("plain comment lines per 100 lines of code", format!("{:.1}", per_hundred(comments, code))),
            ("`patched` marks", self.patched_marks.len().to_string()),
            ("circles of more than 3 files", large.to_string()),
        ]
    }

    /// The names that most functions share, with their counts.
    #[must_use]
    pub fn most_shared_names(&self, most: usize) -> Vec<(String, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in self.files.iter().flat_map(|file| &file.function_names) {
            *counts.entry(name).or_default() += 1;
        }
        let mut counts: Vec<(String, usize)> =
            counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        // Equal counts are sorted by name, so that the output is the same each time.
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counts.truncate(most);
        counts
    }

    fn mean_identifier(&self) -> f64 {
        let letters: usize = self.files.iter().map(|file| file.identifier_letters).sum();
        let count: usize = self.files.iter().map(|file| file.identifiers).sum();
        // An empty tree has no identifiers; the mean is then zero.
        letters as f64 / count.max(1) as f64
    }
}

/// The value below which this share of all values lies.
fn quantile(values: &[usize], share: f64) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    // No interpolation: for lines of code the nearest value is exact enough.
    let index = (share * sorted.len() as f64) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn share(names: &[&String], holds: impl Fn(&str) -> bool) -> f64 {
    per_hundred(names.iter().filter(|name| holds(name)).count(), names.len())
}

fn per_hundred(count: usize, of: usize) -> f64 {
    100.0 * count as f64 / of.max(1) as f64
}

/// Whether a type name is one word: `Finding` is, `FindingSnapshot` is not.
fn is_one_word(name: &str) -> bool {
    name.chars().filter(char::is_ascii_uppercase).count() == 1
}
