//! Describes what was left out of a workspace, in a line each.

use super::listing::{CopyExtent, CopyLimits};

/// This many names are listed; the others are only counted.
const MAX_NAMED: usize = 3;

#[derive(Debug)]
pub(super) struct OmissionRemarks {
    remark_lines: Vec<String>,
    /// The number of files whose names are not UTF-8.
    pub undecodable_names: usize,
    /// Links that lead out of the project.
    pub outside_links: Vec<String>,
    /// Nested repositories that are not submodules.
    pub nested_repositories: Vec<String>,
    /// Submodules of a stored tree, which does not contain their files.
    pub missing_submodules: Vec<String>,
    pub unreadable_files: Vec<String>,
    /// Whether all files were counted.
    pub counted_everything: bool,
}

impl Default for OmissionRemarks {
    fn default() -> Self {
        let (remark_lines, outside_links, nested_repositories, missing_submodules, unreadable_files) =
            Default::default();
        OmissionRemarks {
            remark_lines,
            undecodable_names: 0,
            outside_links,
            nested_repositories,
            missing_submodules,
            unreadable_files,
            counted_everything: true,
        }
    }
}

impl OmissionRemarks {
    pub fn add_remark(&mut self, remark: String) {
        self.remark_lines.push(remark);
    }

    pub fn report_narrowing(&mut self, found_amount: CopyLimits, limits: CopyLimits, extent: CopyExtent) {
        let included = match extent {
            CopyExtent::Everything => return,
            CopyExtent::SubjectFolders => "the reviewed files and their directories",
            CopyExtent::SubjectFiles => "the reviewed files",
        };
        let at_least = if self.counted_everything { "" } else { "more than " };
        self.add_remark(format!(
            "workspaces have only {included}, and no git history: the project has {at_least}{} files ({}), the limit is {} ({})",
            found_amount.files,
            format_size(found_amount.bytes),
            limits.files,
            format_size(limits.bytes)
        ));
    }

    pub fn into_lines(self) -> Vec<String> {
        let mut remark_lines = self.remark_lines;
        if self.undecodable_names > 0 {
            remark_lines
                .push(format!("{} left out (invalid UTF-8 in the name)", format_count(self.undecodable_names, "file")));
        }
        for (names, noun, reason) in [
            (&self.outside_links, "symlink", "pointing outside the project"),
            (&self.nested_repositories, "repository", "not registered as a submodule"),
            (&self.missing_submodules, "submodule", "files are in another repository"),
            (&self.unreadable_files, "file", "cannot be read"),
        ] {
            if !names.is_empty() {
                remark_lines.push(format!(
                    "{} left out ({reason}): {}",
                    format_count(names.len(), noun),
                    format_names(names)
                ));
            }
        }
        remark_lines
    }
}

fn format_count(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

fn format_names(names: &[String]) -> String {
    let first_names = names.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMED { format!("{first_names}, …") } else { first_names }
}

fn format_size(bytes: u64) -> String {
    match bytes {
        0..0x40_0000 => format!("{} KB", bytes.div_ceil(1 << 10)),
        _ => format!("{} MB", bytes.div_ceil(1 << 20)),
    }
}
