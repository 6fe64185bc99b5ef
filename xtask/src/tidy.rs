//! Checks how large and how clean files are: the limits and habits of the style guide.
//!
//! - `sizes`: files, functions, parameters, fields, event kinds
//! - `words`: `allow`, `expect` without a reason, `todo!` and similar macros
//! - `texts`: whitespace, line length, machine paths, the doc at the top of a crate
//! - `structure`: tuples as parameters, import cycles, marks for builds that were never released
//! - `names`: public functions of one word, public types that share a name, words and phrases that were replaced
//! - `exceptions`: the list of items that may be larger, with reasons
//!
//! The dependencies between crates are in [`crate::arch`] and are checked along with these. Clippy checks `unwrap`, `expect` and
//! printing, rustfmt checks the layout.

mod exceptions;
mod names;
mod sizes;
mod structure;
mod texts;
mod words;

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::repository::RepositoryTree;
use crate::{RuleBreach, arch};
use exceptions::SizeExceptions;
use names::NameRules;
use sizes::TestFiles;

/// Returns every breach of the style and of the architecture below `root`, sorted.
pub fn check_repository(root: &Path) -> Result<Vec<RuleBreach>> {
    let repository = RepositoryTree::read_repository(root)?;
    let mut breaches = arch::check_repository(root, &repository)?;

    let mut exceptions = SizeExceptions::read_file(root)?;
    let test_files = TestFiles::from_sources(&repository.sources);
    for source in &repository.sources {
        let size_findings = sizes::check_sizes(source, &test_files);
        breaches.extend(
            size_findings
                .into_iter()
                .filter(|finding| !exceptions.covers_finding(finding))
                .map(|finding| finding.breach),
        );
        breaches.extend(words::check_words(source));
    }
    // Only after all sources were checked is it known which exceptions were not used.
    breaches.extend(exceptions.into_breaches());
    breaches.extend(structure::check_structure(&repository));
    let name_rules = NameRules::read_file(root)?;
    breaches.extend(name_rules.check_names(&repository));

    for path in &repository.files {
        // The texts of all files are checked, also of those that are not Rust.
        let bytes = fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        if let Some(text) = texts::as_text(&bytes) {
            breaches.extend(texts::check_text(path, text));
            breaches.extend(name_rules.check_page(path, text));
        }
    }
    // Some rules look at the same place, so equal breaches are reported once.
    breaches.sort();
    breaches.dedup();
    Ok(breaches)
}
