//! Parses what git lists: the files of `git status`, and the differences of two trees.

use tribunal_workflows::development::workspace::PathChange;

/// One record of `git status --porcelain=v2`: a file that differs from the index.
#[derive(Debug)]
pub(super) struct StatusEntry {
    pub path: Vec<u8>,
    /// What HEAD has of a tracked file.
    pub tracked: Option<TrackedFile>,
    /// Whether the file differs from the index, or only the index from HEAD.
    is_unstaged: bool,
}

/// A tracked file. Modes are as git writes them.
#[derive(Debug)]
pub(super) struct TrackedFile {
    pub head_mode: String,
    pub head_object: String,
    pub tree_mode: String,
}

impl StatusEntry {
    /// Whether HEAD or the index has the file.
    pub fn is_tracked(&self) -> bool {
        self.tracked.is_some()
    }

    /// Whether the file differs from the index.
    pub fn is_unstaged(&self) -> bool {
        self.is_unstaged
    }

    /// Whether this is a directory with a repository of its own.
    pub fn is_nested_repository(&self) -> bool {
        self.tracked.is_none() && self.path.ends_with(b"/")
    }
}

/// A file that differs between two trees.
#[derive(Debug)]
pub(super) struct TreeDifference {
    pub path: Vec<u8>,
    pub change: PathChange,
    /// The mode of the old content, as git writes it.
    pub old_mode: String,
    /// The object with the old content.
    pub old_object_id: String,
    /// The mode of the new content, as git writes it.
    pub file_mode: String,
    /// The object with the new content.
    pub object_id: String,
}

/// Parses the output of `git status --porcelain=v2 -z --no-renames`.
pub(super) fn parse_status(output: &[u8]) -> Vec<StatusEntry> {
    let records = output.split(|byte| *byte == 0);
    records.filter_map(parse_status_record).collect()
}

fn parse_status_record(record: &[u8]) -> Option<StatusEntry> {
    if let Some(path) = record.strip_prefix(b"? ") {
        return Some(StatusEntry { path: path.to_vec(), tracked: None, is_unstaged: true });
    }
    // The forms are: 1 XY SUB mH mI mW hH hI PATH, and for unmerged files: u XY SUB m1 m2 m3 mW h1 h2 h3 PATH
    let (field_count, mode_field, object_field) = match record.first()? {
        b'1' => (8, 5, 6),
        b'u' => (10, 6, 7),
        _ => return None,
    };
    let mut fields = record.splitn(field_count + 1, |byte| *byte == b' ');
    let words: Vec<String> =
        fields.by_ref().take(field_count).map(|field| String::from_utf8_lossy(field).into_owned()).collect();
    let path = fields.next()?.to_vec();
    let tree_letter = words.get(1)?.chars().nth(1)?;
    let is_unstaged = tree_letter != '.' || field_count == 10;
    let tracked = TrackedFile {
        head_mode: words.get(3)?.clone(),
        head_object: words.get(object_field)?.clone(),
        tree_mode: words.get(mode_field)?.clone(),
    };
    Some(StatusEntry { path, tracked: Some(tracked), is_unstaged })
}

/// Parses the output of `diff-tree --raw -z`: `:mOLD mNEW oOLD oNEW S<nul>path<nul>`.
pub(super) fn parse_raw_diff(output: &[u8]) -> Vec<TreeDifference> {
    let words: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
    let differences = words.chunks_exact(2).filter_map(|pair| {
        let header = String::from_utf8_lossy(pair[0]);
        let fields: Vec<&str> = header.split(' ').collect();
        let &[old_mode, new_mode, old_object, new_object, letter] = fields.as_slice() else { return None };
        let change = match letter.chars().next()? {
            'A' => PathChange::Added,
            'D' => PathChange::Deleted,
            _ => PathChange::Modified,
        };
        Some(TreeDifference {
            path: pair[1].to_vec(),
            change,
            old_mode: old_mode.trim_start_matches(':').to_string(),
            old_object_id: old_object.to_string(),
            file_mode: new_mode.to_string(),
            object_id: new_object.to_string(),
        })
    });
    differences.collect()
}
