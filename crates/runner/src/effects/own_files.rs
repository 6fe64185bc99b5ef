//! Files that Tribunal owns: tracker and metrics.

use std::{fs, io, path::Path};

use tribunal_core::{
    effect::{OwnFile, Reply},
    ids::Hash,
    text::fold_line,
    tracker,
};

use super::{World, world_fault};
use crate::files::write_atomically;

pub(super) fn perform(world: &World, file: &OwnFile, text: &str) -> Reply {
    // The text is made of masked replies, but lines that were folded together may look like a secret only now.
    let masked = world.masker.mask(text).into_owned();
    let (name, text) = match file {
        OwnFile::Tracker => (tracker_name(world), tracker::stamped(masked)),
        OwnFile::Metrics { unix_seconds } => (metrics_name(world, *unix_seconds, &masked), masked),
    };
    let path = world.project.root().join(&name);
    if let Some(there) = world.project.leads_out(&path) {
        return world_fault(format!("{name} leads out of the project, to {}", there.display()));
    }
    let done = || -> io::Result<Option<String>> {
        let aside = match file {
            OwnFile::Tracker => keep_edited(world.project.root(), &path)?,
            OwnFile::Metrics { .. } => None,
        };
        write_atomically(&path, text.as_bytes())?;
        Ok(aside)
    };
    match done() {
        Ok(aside) => Reply::Written { path: name, aside },
        Err(cause) => world_fault(format!("{name}: {cause}")),
    }
}

/// `reviews/prd-issues.md`, unless that is the tracker of another subject with the same slug.
fn tracker_name(world: &World) -> String {
    let (folder, subject) = (&world.settings.reviews, &world.settings.subject);
    let plain = format!("{folder}/{}-issues.md", subject.slug());
    let taken = fs::read_to_string(world.project.root().join(&plain)).is_ok_and(|text| {
        let title = text.lines().next().unwrap_or_default();
        title.starts_with(tracker::TITLE)
            && title != format!("{}{}", tracker::TITLE, fold_line(&subject.title()))
    });
    if !taken {
        return plain;
    }
    let title = Hash::of(subject.title().as_bytes());
    format!("{folder}/{}-{}-issues.md", subject.slug(), &title.short()[..6])
}

/// `review-metrics-{unix seconds}.json`; of two runs that end in one second the later takes the next free one.
fn metrics_name(world: &World, unix_seconds: u64, text: &str) -> String {
    let folder = &world.settings.reviews;
    let mut seconds = unix_seconds;
    loop {
        let name = format!("{folder}/review-metrics-{seconds}.json");
        match fs::read_to_string(world.project.root().join(&name)) {
            Ok(there) if there != text => seconds += 1,
            _ => return name,
        }
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
