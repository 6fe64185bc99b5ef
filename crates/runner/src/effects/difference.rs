//! A change as a unified diff: from what its base had to what a copy has.
//!
//! Made by us and not by `git diff`: it has to be of the very texts that reviewers quote from and fixers repair, whatever
//! line ends, filters and new files the person's git knows.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
    process::Stdio,
};

use tribunal_core::subject::{Change, Changed};

use super::World;
use crate::{copies::Copy, git::git, merging::unified_as};

/// The file beside a copy that holds its change's diff.
pub(super) const NAME: &str = "diff";

/// The diff of a change whose new side is this copy, in the order of its files.
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
    // The person's line ends are no part of a change.
    let plain = |text: Option<&str>| text.unwrap_or_default().replace("\r\n", "\n");
    unified_as(&from, &to, &plain(old), &plain(new))
}

pub(super) fn text(path: &str, bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::other(format!("{path} is no text (it is no UTF-8)")))
}

/// The files as they were before the change, by their new names; those that were not there are missing. One process.
fn before(root: &Path, change: &Change) -> io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    if change.base.is_empty() || change.files.is_empty() {
        return Ok(found);
    }
    let mut child =
        git(root).args(["cat-file", "--batch", "-Z"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(mut asked), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("git cannot be talked to"));
    };
    let mut wanted = Vec::new();
    for file in &change.files {
        let old = file.from.as_ref().unwrap_or(&file.path);
        // The project may be a folder of the repository: `./` counts from where git was started.
        wanted.extend(format!("{}:./{old}\0", change.base).into_bytes());
    }
    // In a thread of its own: whoever does not read while it writes may wait for ever.
    let writer = std::thread::spawn(move || asked.write_all(&wanted));
    let mut answers = BufReader::new(answers);
    for file in &change.files {
        let Some(size) = header(&mut answers)? else { continue };
        let mut bytes = vec![0; size];
        answers.read_exact(&mut bytes)?;
        answers.read_exact(&mut [0])?;
        // What was no text before is as good as new.
        if let Ok(text) = String::from_utf8(bytes) {
            found.insert(file.path.clone(), text);
        }
    }
    let _ = writer.join();
    child.wait()?;
    Ok(found)
}

/// How many bytes follow; None: there is no such file.
fn header(answers: &mut impl BufRead) -> io::Result<Option<usize>> {
    let mut line = Vec::new();
    answers.read_until(0, &mut line)?;
    let line = String::from_utf8_lossy(&line);
    let mut words = line.trim_end_matches('\0').rsplit(' ');
    match (words.next(), words.next()) {
        (Some(size), Some("blob")) => size.parse().map(Some).map_err(io::Error::other),
        (Some("missing"), _) => Ok(None),
        _ => Err(io::Error::other(format!("git does not know what the change starts from: {line}"))),
    }
}

/// What was written beside a frozen copy.
pub(super) fn kept(copy: &Copy) -> io::Result<String> {
    fs::read_to_string(copy.folder().join(NAME))
}
