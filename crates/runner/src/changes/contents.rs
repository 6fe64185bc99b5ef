//! Checks what has to be read to be judged: whether a file is UTF-8, an LFS pointer, or a story.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufRead, Read},
};

use super::{
    ChangeError,
    listing::{Entry, Sifted},
};
use crate::git::{Heard, Repository};

const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Returns why a content cannot be reviewed, if it cannot.
fn reason(content: &[u8]) -> Option<&'static str> {
    if content.starts_with(POINTER) {
        Some("a pointer to a file in LFS")
    } else if content.contains(&0) {
        Some("binary")
    } else if std::str::from_utf8(content).is_err() {
        Some("it is no UTF-8")
    } else {
        None
    }
}

/// Leaves out files that turn out not to be text, and returns which of the others are stories.
pub(super) fn look(
    repository: &Repository,
    sifted: &mut Sifted,
    is_story: fn(&str, &str) -> bool,
) -> Result<Vec<String>, ChangeError> {
    let after = |entry: &Entry| if entry.is_deleted() { None } else { entry.ids[1].clone() };
    let paths: BTreeMap<String, String> =
        sifted.kept.iter().filter_map(|entry| Some((after(entry)?, entry.path.clone()))).collect();
    let mut reasons: BTreeMap<String, &'static str> = BTreeMap::new();
    let mut stories: BTreeSet<String> = BTreeSet::new();
    let ids: BTreeSet<&String> = sifted.kept.iter().flat_map(|entry| entry.ids.iter().flatten()).collect();
    // Both versions of a file have to be text; only the new one can be a story.
    read(repository, &ids, &mut |id, content| {
        if let Some(reason) = reason(content) {
            reasons.insert(id.to_string(), reason);
        } else if let (Some(path), Ok(text)) = (paths.get(id), std::str::from_utf8(content))
            && is_story(path, text)
        {
            stories.insert(path.clone());
        }
    })?;
    let root = repository.root().to_path_buf();
    sifted.drop(|entry| {
        if let Some(reason) = entry.ids.iter().flatten().find_map(|id| reasons.get(id)) {
            return Some(reason.to_string());
        }
        if entry.is_empty_and_new(&root) {
            return Some("it is empty".to_string());
        }
        if !entry.is_in_work_tree() {
            return None;
        }
        // Files that exist only in the work tree are unknown to git, so they are read from disk.
        let content = match fs::read(root.join(&entry.path)) {
            Ok(content) => content,
            Err(cause) => return Some(format!("it cannot be read: {cause}")),
        };
        if let (None, Ok(text)) = (reason(&content), std::str::from_utf8(&content))
            && is_story(&entry.path, text)
        {
            stories.insert(entry.path.clone());
        }
        reason(&content).map(String::from)
    });
    // A story may have been left out for its other version.
    stories.retain(|story| sifted.kept.iter().any(|entry| entry.path == *story));
    Ok(stories.into_iter().collect())
}

/// Reads all contents, one after the other.
fn read(
    repository: &Repository,
    ids: &BTreeSet<&String>,
    see: &mut (dyn FnMut(&str, &[u8]) + Send),
) -> Result<(), ChangeError> {
    if ids.is_empty() {
        return Ok(());
    }
    let mut git = repository.command();
    git.args(["cat-file", "--buffer", "--batch=%(objectname) %(objectsize)"]);
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let mut hear = |answer: &mut dyn BufRead| {
        let (mut header, mut content) = (String::new(), Vec::new());
        while answer.read_line(&mut header)? > 0 {
            let size = header
                .trim_end()
                .split_once(' ')
                .and_then(|(id, size)| Some((id, size.parse::<u64>().ok()?)));
            if let Some((id, size)) = size {
                // The content, and the line end after it.
                if Read::take(&mut *answer, size + 1).read_to_end(&mut content)? as u64 != size + 1 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                content.pop();
                see(id, &content);
                content.clear();
            }
            header.clear();
        }
        Ok(Heard::All)
    };
    repository.stream(git, Some(input.into_bytes()), &mut hear)?;
    Ok(())
}
