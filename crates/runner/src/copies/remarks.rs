//! Describes what was left out of a workspace, in a line each.

use super::listing::{Bounds, Extent};

/// This many names are listed; the others are only counted.
const NAMED: usize = 3;

#[derive(Debug)]
pub(super) struct Remarks {
    said: Vec<String>,
    /// The number of files whose names are not UTF-8.
    pub odd_names: usize,
    /// Links that lead out of the project.
    pub links: Vec<String>,
    /// Nested repositories that are not submodules.
    pub repositories: Vec<String>,
    /// Submodules of a stored tree, which does not contain their files.
    pub submodules: Vec<String>,
    pub unreadable: Vec<String>,
    /// Whether all files were counted.
    pub counted_on: bool,
}

impl Default for Remarks {
    fn default() -> Self {
        let (said, links, repositories, submodules, unreadable) = Default::default();
        Remarks { said, odd_names: 0, links, repositories, submodules, unreadable, counted_on: true }
    }
}

impl Remarks {
    pub fn say(&mut self, remark: String) {
        self.said.push(remark);
    }

    pub fn too_much(&mut self, found: Bounds, most: Bounds, extent: Extent) {
        let has = match extent {
            Extent::All => return,
            Extent::Folders => "the subject's files and what else is in their folders",
            Extent::Files => "the subject's files alone",
        };
        let at_least = if self.counted_on { "" } else { "more than " };
        self.say(format!(
            "the copy has {has}, and no history: the project has {at_least}{} files ({}), a copy at most {} ({})",
            found.files,
            size(found.bytes),
            most.files,
            size(most.bytes)
        ));
    }

    pub fn into_lines(self) -> Vec<String> {
        let mut lines = self.said;
        if self.odd_names > 0 {
            lines.push(format!("{} left out, their names are no UTF-8", counted(self.odd_names, "file")));
        }
        for (names, what, why) in [
            (&self.links, "link", "leading out of the project"),
            (&self.repositories, "repository", "being no submodule"),
            (&self.submodules, "submodule", "being another repository's"),
            (&self.unreadable, "file", "which cannot be read"),
        ] {
            if !names.is_empty() {
                lines.push(format!("{} left out, {why}: {}", counted(names.len(), what), named(names)));
            }
        }
        lines
    }
}

fn counted(count: usize, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {what}s"),
    }
}

fn named(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > NAMED { format!("{shown}, …") } else { shown }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..0x40_0000 => format!("{} KB", bytes.div_ceil(1 << 10)),
        _ => format!("{} MB", bytes.div_ceil(1 << 20)),
    }
}
