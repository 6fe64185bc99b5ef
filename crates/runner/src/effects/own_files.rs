//! Writes the files that Tribunal owns: tracker and metrics.

use std::{fs, io, path::Path, sync::PoisonError};

use tribunal_core::{
    decisions::user_request::UserRequest,
    engine::{effect::WriteOutcome, ids::Hash},
    review::{
        own_file::OwnFile,
        tracker::{self, TrackerEdits},
    },
    text::sanitize_to_line,
};

use super::{EffectContext, environment_fault};
use crate::project::atomic_files::write_atomically;

pub(super) fn write_own_file(context: &EffectContext, file: &OwnFile, file_text: &str) -> WriteOutcome {
    // The text consists of masked replies, but lines that were joined may form something that looks like a secret.
    let masked_text = context.masker.mask(file_text).into_owned();
    // Two runs of this process may want the same name, so the name stays reserved until the file exists.
    let _naming = context.shared.naming_lock.lock().unwrap_or_else(PoisonError::into_inner);
    let (file_name, file_text) = match file {
        OwnFile::Tracker => (tracker_path(context), tracker::add_stamp(masked_text, &context.run_id)),
        OwnFile::Metrics { unix_seconds } => (metrics_path(context, *unix_seconds, &masked_text), masked_text),
    };
    let file_path = context.project.root().join(&file_name);
    if let Some(real_target) = context.project.resolve_outside(&file_path) {
        return environment_fault(format!("{file_name} points outside the project, to {}", real_target.display()))
            .into();
    }
    let write_file = || -> io::Result<WriteOutcome> {
        let edited_bytes = match file {
            OwnFile::Tracker => read_if_edited(&file_path)?,
            OwnFile::Metrics { .. } => None,
        };
        let (mut kept_copy, mut unusable_edits) = (None, Vec::new());
        if let Some(edited_bytes) = edited_bytes {
            let edits = accept_edits(context, &edited_bytes);
            if !edits.requests.is_empty() {
                // The edits are recorded first; only then may the file be overwritten.
                return Ok(WriteOutcome::Edited { requests: edits.requests });
            }
            // Edits that were not understood are kept in a copy beside the tracker.
            unusable_edits = edits.strange;
            if !unusable_edits.is_empty() {
                kept_copy = keep_edited_tracker(context.project.root(), &file_path, &edited_bytes)?;
            }
        }
        write_atomically(&file_path, file_text.as_bytes())?;
        Ok(WriteOutcome::Written { path: file_name.clone(), aside: kept_copy, strange: unusable_edits })
    };
    match write_file() {
        Ok(outcome) => outcome,
        Err(cause) => environment_fault(format!("{file_name}: {cause}")).into(),
    }
}

/// Reads what the user changed in the tracker since it was written, and leaves the file as it is.
pub(crate) fn read_tracker_edits(context: &EffectContext) -> Vec<UserRequest> {
    // Only a review has a tracker.
    if context.order.as_review().is_none() {
        return Vec::new();
    }
    let tracker_file = context.project.root().join(tracker_path(context));
    match read_if_edited(&tracker_file) {
        Ok(Some(tracker_bytes)) => accept_edits(context, &tracker_bytes).requests,
        Ok(None) | Err(_) => Vec::new(),
    }
}

/// Returns the edits to accept from a tracker: none from the tracker of another run, and none twice in one process.
fn accept_edits(context: &EffectContext, tracker_bytes: &[u8]) -> TrackerEdits {
    let reject_edits = |reason: String| TrackerEdits { strange: vec![reason], ..TrackerEdits::default() };
    let Ok(tracker_text) = std::str::from_utf8(tracker_bytes) else {
        return reject_edits("the file is no longer valid UTF-8".into());
    };
    match tracker::tracker_run(tracker_text) {
        Some(owner_run) if owner_run == context.run_id.as_str() => {}
        Some(owner_run) => {
            return reject_edits(format!(
                "the file is the tracker of run {owner_run}, and edits of another run's tracker are ignored"
            ));
        }
        None => return reject_edits("its last line is missing, so the run it belongs to is unknown".into()),
    }
    if !context.order.trusts_answer_files() {
        // The author may be the session whose work is judged, so the user answers with `tribunal decisions` instead.
        return reject_edits("edits of the tracker are ignored while a session fixes the findings".into());
    }
    let mut edits = tracker::parse_edits(tracker_text);
    let tracker_hash = Hash::digest_of(tracker_bytes);
    let mut last_hash = context.last_accepted_tracker_hash.lock().unwrap_or_else(PoisonError::into_inner);
    // The same text was accepted before; its requests are already in the journal.
    if last_hash.replace(tracker_hash.clone()) == Some(tracker_hash) {
        edits.requests.clear();
    }
    edits
}

/// Returns `reviews/prd-issues.md`, unless that is the tracker of another subject with the same slug.
fn tracker_path(context: &EffectContext) -> String {
    let (reviews_dir, order) = (&context.settings.reviews, &context.order);
    let plain_name = format!("{reviews_dir}/{}-issues.md", order.file_slug());
    let is_taken = fs::read_to_string(context.project.root().join(&plain_name)).is_ok_and(|tracker_text| {
        let title_line = tracker_text.lines().next().unwrap_or_default();
        title_line.starts_with(tracker::TITLE_PREFIX)
            && title_line != format!("{}{}", tracker::TITLE_PREFIX, sanitize_to_line(&order.title()))
    });
    if !is_taken {
        return plain_name;
    }
    let title_hash = Hash::digest_of(order.title().as_bytes());
    format!("{reviews_dir}/{}-{}-issues.md", order.file_slug(), &title_hash.short_hex()[..6])
}

/// Returns `review-metrics-{unix seconds}.json`; of two runs that end in the same second the later takes the next free name.
fn metrics_path(context: &EffectContext, unix_seconds: u64, metrics_text: &str) -> String {
    let reviews_dir = &context.settings.reviews;
    let mut seconds = unix_seconds;
    loop {
        let file_name = format!("{reviews_dir}/review-metrics-{seconds}.json");
        match fs::read_to_string(context.project.root().join(&file_name)) {
            // An equal text is our own from before a crash, so the same name is used again.
            Ok(existing_text) if existing_text != metrics_text => seconds += 1,
            _ => return file_name,
        }
    }
}

/// Reads the file, if it exists and is not as we wrote it.
fn read_if_edited(file_path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(file_path) {
        Ok(file_bytes) if std::str::from_utf8(&file_bytes).is_ok_and(tracker::is_untouched) => Ok(None),
        Ok(file_bytes) => Ok(Some(file_bytes)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Copies a tracker with edits that were not understood to a numbered file; no existing file is overwritten.
fn keep_edited_tracker(project_root: &Path, tracker_path: &Path, tracker_bytes: &[u8]) -> io::Result<Option<String>> {
    let free_path = (1..)
        .map(|copy_number| tracker_path.with_extension(format!("edited-{copy_number}.md")))
        .find(|candidate| !candidate.exists());
    let Some(kept_path) = free_path else { return Ok(None) };
    write_atomically(&kept_path, tracker_bytes)?;
    Ok(Some(kept_path.strip_prefix(project_root).unwrap_or(&kept_path).display().to_string()))
}
