//! How large and how clean a file may be: the sizes and habits of the style guide, checked instead of wished for.
//!
//! - `sizes`: files, functions, parameters, fields, event kinds
//! - `words`: `allow`, `expect` without a reason, `todo!` and its kin
//! - `texts`: whitespace, line length, machine paths, the doc at the top of a crate
//! - `structure`: tuples as parameters, circles of files, marks for builds that were never released
//! - `exceptions`: the reasoned list of what may be larger
//!
//! The arrows between crates are in [`crate::arch`] and are checked along with these. `unwrap`, `expect` and print are
//! clippy's, layout is rustfmt's.

mod exceptions;
mod sizes;
mod structure;
mod texts;
mod words;

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::tree::Tree;
use crate::{Breach, arch};
use exceptions::Exceptions;
use sizes::TestFiles;

/// Every breach of the style and of the architecture below `root`, sorted.
pub fn check(root: &Path) -> Result<Vec<Breach>> {
    let tree = Tree::read(root)?;
    let mut breaches = arch::check_tree(root, &tree)?;

    let mut exceptions = Exceptions::read(root)?;
    let test_files = TestFiles::of(&tree.sources);
    for source in &tree.sources {
        let too_large = sizes::check(source, &test_files);
        breaches.extend(
            too_large.into_iter().filter(|finding| !exceptions.cover(finding)).map(|finding| finding.breach),
        );
        breaches.extend(words::check(source));
    }
    breaches.extend(exceptions.into_breaches());
    breaches.extend(structure::check(&tree));

    for path in &tree.files {
        let bytes = fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        if let Some(text) = texts::as_text(&bytes) {
            breaches.extend(texts::check(path, text));
        }
    }
    breaches.sort();
    breaches.dedup();
    Ok(breaches)
}
