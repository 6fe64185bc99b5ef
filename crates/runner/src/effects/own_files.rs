//! Files that Tribunal owns: tracker and metrics.

use std::{fs, io, path::Path};

use tribunal_core::{
    effect::{OwnFile, Reply},
    tracker,
};

use super::{World, world_fault};
use crate::files::write_atomically;

pub(super) fn perform(world: &World, file: &OwnFile, text: &str) -> Reply {
    let folder = &world.settings.reviews;
    let name = match file {
        OwnFile::Tracker => format!("{folder}/{}-issues.md", world.settings.subject.slug()),
        OwnFile::Metrics { unix_seconds } => format!("{folder}/review-metrics-{unix_seconds}.json"),
    };
    let path = world.project.root().join(&name);
    let done = || -> io::Result<Option<String>> {
        let aside = match file {
            OwnFile::Tracker => keep_edited(world.project.root(), &path)?,
            OwnFile::Metrics { .. } => None,
        };
        // The text comes from masked replies; the settings' own texts are masked here.
        write_atomically(&path, world.masker.mask(text).as_bytes())?;
        Ok(aside)
    };
    match done() {
        Ok(aside) => Reply::Written { path: name, aside },
        Err(cause) => world_fault(format!("{name}: {cause}")),
    }
}

/// A tracker that a person edited is put aside under a number, never overwritten.
fn keep_edited(root: &Path, path: &Path) -> io::Result<Option<String>> {
    let old = match fs::read(path) {
        Ok(old) => old,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(cause),
    };
    if std::str::from_utf8(&old).is_ok_and(tracker::is_untouched) {
        return Ok(None);
    }
    let free = (1..).map(|number| path.with_extension(format!("edited-{number}.md"))).find(|p| !p.exists());
    let Some(aside) = free else { return Ok(None) };
    write_atomically(&aside, &old)?;
    Ok(Some(aside.strip_prefix(root).unwrap_or(&aside).display().to_string()))
}
