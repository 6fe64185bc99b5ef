//! Writes the files that Tribunal owns: tracker and metrics.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::PoisonError,
};

use tribunal_engine::{
    ids::{Hash, RunId},
    text::sanitize_to_line,
};
use tribunal_workflows::{
    findings::finding::{DismissalReason, FindingStatus},
    review::{
        order::ReviewOrder,
        own_file::OwnFile,
        tracker::{self, TrackerEdits},
    },
    runs::{
        effect::WriteOutcome,
        run_kind::RunKind,
        user_request::{FindingChange, UserRequest},
        view::{RunPhase, RunView},
    },
};

use super::{EffectContext, environment_fault};
use crate::{landing::parked_files::park_file, project::atomic_files::write_atomically};

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
            let mut edits = accept_edits(context, &edited_bytes);
            edits.requests = confirm_if_doubtful(context, &file_path, &edited_bytes, edits.requests);
            if !edits.requests.is_empty() {
                // The edits are recorded first; only then may the file be overwritten.
                return Ok(WriteOutcome::Edited { requests: edits.requests });
            }
            // Edits that were not understood are kept in a copy beside the tracker.
            unusable_edits = edits.unusable_edits;
            if !unusable_edits.is_empty() {
                kept_copy = keep_edited_tracker(context.project.root(), &file_path, &edited_bytes)?;
            }
        }
        write_atomically(&file_path, file_text.as_bytes())?;
        if *file == OwnFile::Tracker {
            context.shared.user_words.trust_file(&context.run_id, &file_path, file_text.as_bytes());
        }
        Ok(WriteOutcome::Written { path: file_name.clone(), kept_copy, unusable_edits })
    };
    match write_file() {
        Ok(outcome) => outcome,
        Err(cause) => environment_fault(format!("{file_name}: {cause}")).into(),
    }
}

/// Reads what the user changed in the tracker since it was written, and leaves the file as it is. It may still be the tracker of
/// an earlier run, whose view `find_view` returns.
pub(crate) fn read_tracker_edits(
    context: &EffectContext,
    find_view: impl Fn(&RunId) -> Option<RunView>,
) -> Vec<UserRequest> {
    // Only a review has a tracker.
    let Some(order) = context.order.as_review() else { return Vec::new() };
    let tracker_file = context.project.root().join(tracker_path(context));
    let Ok(Some(tracker_bytes)) = read_if_edited(&tracker_file) else { return Vec::new() };
    let tracker_text = std::str::from_utf8(&tracker_bytes).unwrap_or_default();
    match tracker::tracker_run(tracker_text) {
        Some(owner_run) if owner_run != context.run_id.as_str() && context.order.trusts_answer_files() => {
            let owner_run = RunId::new(owner_run);
            let Some(requests) = find_view(&owner_run)
                .and_then(|owner_view| earlier_requests(&owner_run, &owner_view, order, tracker_text))
            else {
                return Vec::new();
            };
            // The next write knows by this that the edits were read.
            let is_read = remember_tracker(context, &tracker_bytes);
            if is_read && !context.shared.user_words.trusts_file(&tracker_file, &tracker_bytes) {
                return Vec::new();
            }
            confirm_if_doubtful(context, &tracker_file, &tracker_bytes, requests)
        }
        _ => {
            let requests = accept_edits(context, &tracker_bytes).requests;
            confirm_if_doubtful(context, &tracker_file, &tracker_bytes, requests)
        }
    }
}

/// Returns the edits of a tracker, or a request to ask the user about them if an agent may have made them.
fn confirm_if_doubtful(
    context: &EffectContext,
    tracker_file: &Path,
    tracker_bytes: &[u8],
    requests: Vec<UserRequest>,
) -> Vec<UserRequest> {
    if requests.is_empty() || context.shared.user_words.trusts_file(tracker_file, tracker_bytes) {
        return requests;
    }
    let file = relative_name(context, tracker_file);
    let parked = park_file(&context.project, &context.run_id, &file, tracker_bytes).ok();
    let parked = parked.map(|parked_path| parked_path.display().to_string());
    vec![UserRequest::Unconfirmed { file, requests, parked }]
}

fn relative_name(context: &EffectContext, file_path: &Path) -> String {
    file_path.strip_prefix(context.project.root()).unwrap_or(file_path).display().to_string()
}

/// Puts the files of a run that ends now back to what is trusted, and parks what they had: later, edits are the user's again.
pub(crate) fn put_back_files(context: &EffectContext) {
    let watch = &context.shared.user_words;
    if !watch.is_active() {
        return;
    }
    let mut trusted_files: Vec<(PathBuf, Option<Vec<u8>>)> =
        watch.files_of_ended_runs(&context.run_id).into_iter().map(|(path, bytes)| (path, Some(bytes))).collect();
    if context.order.as_review().is_some() {
        // A tracker that was found after a crash, and that this process has not written since.
        let tracker_file = context.project.root().join(tracker_path(context));
        if !trusted_files.iter().any(|(path, _)| *path == tracker_file) {
            trusted_files.push((tracker_file, None));
        }
    }
    for (file_path, trusted_bytes) in trusted_files {
        let Ok(current_bytes) = fs::read(&file_path) else { continue };
        let is_untouched = std::str::from_utf8(&current_bytes).is_ok_and(tracker::is_untouched);
        if watch.trusts_file(&file_path, &current_bytes) || (trusted_bytes.is_none() && is_untouched) {
            continue;
        }
        let name = relative_name(context, &file_path);
        let Ok(parked) = park_file(&context.project, &context.run_id, &name, &current_bytes) else { continue };
        let put_back = match trusted_bytes {
            Some(trusted_bytes) => write_atomically(&file_path, &trusted_bytes),
            None => fs::remove_file(&file_path),
        };
        // The user was asked about edits that were read before.
        if put_back.is_ok() && !remember_tracker(context, &current_bytes) {
            context.ignore_word(format!(
                "{name} was edited while agents without a sandbox worked, so the edit does not count (kept as {})",
                parked.display()
            ));
        }
    }
}

/// Returns the decisions of the user in the tracker of an earlier run on the same subject; `None` if that run may still read them
/// itself, or if its tracker cannot be trusted.
fn earlier_requests(
    owner_run: &RunId,
    owner_view: &RunView,
    order: &ReviewOrder,
    tracker_text: &str,
) -> Option<Vec<UserRequest>> {
    let has_ended = matches!(owner_view.phase, RunPhase::Finished(_));
    let owner_review = owner_view.as_review().filter(|_| has_ended)?;
    let owner_order = owner_review.review_order()?;
    // In a run with a session the author of the edits may be the session.
    if !owner_order.subject.is_same_as(&order.subject) || !owner_order.trusts_answer_files() {
        return None;
    }
    let edits = tracker::parse_edits(tracker_text).requests.into_iter().filter(holds_for_later_runs);
    let amend_earlier = |request: UserRequest| match request {
        UserRequest::Amend { finding: finding_id, change, .. } => {
            let finding = Box::new(owner_review.findings.get(&finding_id)?.clone());
            Some(UserRequest::AmendEarlier { run: owner_run.clone(), finding, change })
        }
        _ => None,
    };
    Some(edits.filter_map(amend_earlier).collect())
}

/// Whether an edit of a tracker still has a meaning after its run has ended: it dismisses a finding, or takes back that the user
/// dismissed it.
fn holds_for_later_runs(request: &UserRequest) -> bool {
    let dismissed_text = tracker::format_status(&FindingStatus::Dismissed { why: DismissalReason::Person });
    match request {
        UserRequest::Amend { change: FindingChange::Dismissed { .. }, .. } => true,
        UserRequest::Amend { change: FindingChange::Open, was: Some(snapshot), .. } => {
            snapshot.status == dismissed_text
        }
        _ => false,
    }
}

/// Remembers a tracker whose edits were read, and returns whether it is the one that was read last.
fn remember_tracker(context: &EffectContext, tracker_bytes: &[u8]) -> bool {
    let tracker_hash = Hash::digest_of(tracker_bytes);
    let mut last_hash = context.memory.last_accepted_tracker_hash.lock().unwrap_or_else(PoisonError::into_inner);
    last_hash.replace(tracker_hash.clone()) == Some(tracker_hash)
}

/// Returns the edits to accept from a tracker: none from the tracker of another run, and none twice in one process.
fn accept_edits(context: &EffectContext, tracker_bytes: &[u8]) -> TrackerEdits {
    let reject_edits = |reason: String| TrackerEdits { unusable_edits: vec![reason], ..TrackerEdits::default() };
    let Ok(tracker_text) = std::str::from_utf8(tracker_bytes) else {
        return reject_edits("the file is no longer valid UTF-8".into());
    };
    match tracker::tracker_run(tracker_text) {
        Some(owner_run) if owner_run == context.run_id.as_str() => {}
        Some(owner_run) => {
            let is_read = context.order.trusts_answer_files() && remember_tracker(context, tracker_bytes);
            let edits = tracker::parse_edits(tracker_text);
            if is_read && edits.unusable_edits.is_empty() && edits.requests.iter().all(holds_for_later_runs) {
                return TrackerEdits::default();
            }
            let ignored_edits = if is_read { "other edits than dismissals" } else { "edits" };
            return reject_edits(format!(
                "the file is the tracker of run {owner_run}, and {ignored_edits} of another run's tracker are ignored"
            ));
        }
        None => return reject_edits("its last line is missing, so the run it belongs to is unknown".into()),
    }
    if !context.order.trusts_answer_files() {
        // The author may be the session whose work is judged, so the user answers with `tribunal decisions` instead.
        return reject_edits("edits of the tracker are ignored while a session fixes the findings".into());
    }
    let mut edits = tracker::parse_edits(tracker_text);
    // The same text was accepted before; its requests are already in the journal.
    if remember_tracker(context, tracker_bytes) {
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
