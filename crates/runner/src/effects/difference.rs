//! Renders a change as a unified diff: from the texts of its base to those of a workspace.
//!
//! `git diff` is deliberately not used: the diff has to show the very texts that reviewers quote and fixers repair, regardless
//! of the line ends, filters and new files that the user's git knows.

use std::{collections::BTreeMap, fs, io, path::Path};

use tribunal_core::subject::{Change, Changed};

use super::World;
use crate::{
    copies::{Copy, blobs, contents},
    merging::unified_as,
};

/// The name of the file beside a workspace that holds the diff of its change.
pub(super) const NAME: &str = "diff";

/// Renders the diff of a change whose new side is this workspace, in the order of its files.
pub(super) fn between(world: &World, copy: &Copy, change: &Change) -> io::Result<String> {
    let old = before(world.project.root(), change)?;
    let mut out = String::new();
    for file in &change.files {
        let new = match copy.base(&file.path)? {
            Some(bytes) => Some(text(&file.path, bytes)?),
            None => None,
        };
        out.push_str(&one(file, old.get(&file.path).map(String::as_str), new.as_deref()));
    }
    Ok(out)
}

fn one(file: &Changed, old: Option<&str>, new: Option<&str>) -> String {
    let name = |mark: &str, path: &str, there: bool| {
        if there { format!("{mark}/{path}") } else { "/dev/null".to_string() }
    };
    let from = name("a", file.from.as_ref().unwrap_or(&file.path), old.is_some());
    let to = name("b", &file.path, new.is_some());
    // The user's line ends are not part of a change.
    let plain = |text: Option<&str>| text.unwrap_or_default().replace("\r\n", "\n");
    unified_as(&from, &to, &plain(old), &plain(new))
}

pub(super) fn text(path: &str, bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::other(format!("{path} is no text (it is no UTF-8)")))
}

/// Reads the files as they were before the change, keyed by their new paths. Files that did not exist or were not text are
/// missing. This takes two git processes, however many files there are.
fn before(root: &Path, change: &Change) -> io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    if change.base.is_empty() || change.files.is_empty() {
        return Ok(found);
    }
    let old = |file: &Changed| file.from.as_ref().unwrap_or(&file.path).clone();
    let wanted: Vec<String> = change.files.iter().map(old).collect();
    let unknown = |why: String| io::Error::other(format!("git cannot say what it starts from: {why}"));
    let objects = blobs(root, &change.base, &wanted).map_err(unknown)?;
    let known: Vec<(&Changed, &String)> =
        change.files.iter().filter_map(|file| Some((file, objects.get(&old(file))?))).collect();
    let names: Vec<&str> = known.iter().map(|(_, object)| object.as_str()).collect();
    // Git returns the objects in the order in which they were asked for, so the paths are consumed in step.
    let mut files = known.iter().map(|(file, _)| file.path.clone());
    contents(root, &names, |bytes| {
        if let (Some(path), Ok(text)) = (files.next(), String::from_utf8(bytes.to_vec())) {
            found.insert(path, text);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads the diff that was written beside a frozen workspace.
pub(super) fn kept(copy: &Copy) -> io::Result<String> {
    fs::read_to_string(copy.folder().join(NAME))
}
