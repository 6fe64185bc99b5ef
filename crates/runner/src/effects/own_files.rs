//! Writes the files that Tribunal owns: tracker and metrics.

use std::{fs, io, path::Path, sync::PoisonError};

use tribunal_core::{
    effect::{OwnFile, Request, WriteOutcome},
    ids::Hash,
    text::fold_line,
    tracker::{self, Edits},
};

use super::{World, world_fault};
use crate::files::write_atomically;

pub(super) fn perform(world: &World, file: &OwnFile, text: &str) -> WriteOutcome {
    // The text consists of masked replies, but lines that were joined may form something that looks like a secret.
    let masked = world.masker.mask(text).into_owned();
    // Two runs of this process may want the same name, so the name stays reserved until the file exists.
    let _naming = world.shared.naming.lock().unwrap_or_else(PoisonError::into_inner);
    let (name, text) = match file {
        OwnFile::Tracker => (tracker_name(world), tracker::stamped(masked, &world.run)),
        OwnFile::Metrics { unix_seconds } => (metrics_name(world, *unix_seconds, &masked), masked),
    };
    let path = world.project.root().join(&name);
    if let Some(there) = world.project.leads_out(&path) {
        return world_fault(format!("{name} leads out of the project, to {}", there.display())).into();
    }
    let done = || -> io::Result<WriteOutcome> {
        let before = match file {
            OwnFile::Tracker => edited(&path)?,
            OwnFile::Metrics { .. } => None,
        };
        let (mut aside, mut strange) = (None, Vec::new());
        if let Some(before) = before {
            let edits = taken_in(world, &before);
            if !edits.requests.is_empty() {
                // The edits are recorded first; only then may the file be overwritten.
                return Ok(WriteOutcome::Edited { requests: edits.requests });
            }
            // Edits that were not understood are kept in a copy beside the tracker.
            strange = edits.strange;
            if !strange.is_empty() {
                aside = keep(world.project.root(), &path, &before)?;
            }
        }
        write_atomically(&path, text.as_bytes())?;
        Ok(WriteOutcome::Written { path: name.clone(), aside, strange })
    };
    match done() {
        Ok(reply) => reply,
        Err(cause) => world_fault(format!("{name}: {cause}")).into(),
    }
}

/// Reads what the user changed in the tracker since it was written. Reading changes nothing.
pub(crate) fn edits_in_tracker(world: &World) -> Vec<Request> {
    let path = world.project.root().join(tracker_name(world));
    match edited(&path) {
        Ok(Some(text)) => taken_in(world, &text).requests,
        Ok(None) | Err(_) => Vec::new(),
    }
}

/// Returns the edits to accept from a tracker: none from the tracker of another run, and none twice in one process.
fn taken_in(world: &World, bytes: &[u8]) -> Edits {
    let strange = |why: String| Edits { strange: vec![why], ..Edits::default() };
    let Ok(text) = std::str::from_utf8(bytes) else { return strange("it is no text any more".into()) };
    match tracker::run(text) {
        Some(run) if run == world.run.as_str() => {}
        Some(run) => {
            return strange(format!(
                "it was the tracker of run {run}, and edits of another run are not read"
            ));
        }
        None => return strange("its last line is gone, so nobody can tell whose tracker it was".into()),
    }
    if world.settings.tasks.writing.in_session {
        // The author may be the session whose work is judged, so the user answers with `tribunal decisions` instead.
        return strange("while a session repairs, edits of the tracker are not taken in".into());
    }
    let mut edits = tracker::read(text);
    let now = Hash::of(bytes);
    let mut seen = world.tracker_seen.lock().unwrap_or_else(PoisonError::into_inner);
    // The same text was accepted before; its requests are already in the journal.
    if seen.replace(now.clone()) == Some(now) {
        edits.requests.clear();
    }
    edits
}

/// Returns `reviews/prd-issues.md`, unless that is the tracker of another subject with the same slug.
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

/// Returns `review-metrics-{unix seconds}.json`; of two runs that end in the same second the later takes the next free name.
fn metrics_name(world: &World, unix_seconds: u64, text: &str) -> String {
    let folder = &world.settings.reviews;
    let mut seconds = unix_seconds;
    loop {
        let name = format!("{folder}/review-metrics-{seconds}.json");
        match fs::read_to_string(world.project.root().join(&name)) {
            // An equal text is our own from before a crash, so the same name is used again.
            Ok(there) if there != text => seconds += 1,
            _ => return name,
        }
    }
}

/// Reads the file, if it exists and is not as we wrote it.
fn edited(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(text) if std::str::from_utf8(&text).is_ok_and(tracker::is_untouched) => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Copies a tracker with edits that were not understood to a numbered file; no existing file is overwritten.
fn keep(root: &Path, path: &Path, text: &[u8]) -> io::Result<Option<String>> {
    let free = (1..).map(|number| path.with_extension(format!("edited-{number}.md"))).find(|p| !p.exists());
    let Some(aside) = free else { return Ok(None) };
    write_atomically(&aside, text)?;
    Ok(Some(aside.strip_prefix(root).unwrap_or(&aside).display().to_string()))
}
