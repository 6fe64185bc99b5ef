//! Tells the user's word from what an agent without a sandbox may have written: the tracker, files of decisions, requests in the
//! inbox. An agent with a sandbox cannot write there, so then nothing is watched and everything counts.
//!
//! What is there when the first such run of this process starts is the user's, and so is everything that the process writes
//! itself. Everything that is different later was written while agents worked. A request counts if the process that sent it proves to be
//! a command of the user; a file cannot prove anything. When a run ends or parks, its files are put back to what is trusted and the
//! requests of unknown senders are removed, so that what is found later is the user's again.
//!
//! All of this is in memory, where agents cannot reach it. After a crash it is lost, and nothing is trusted that the run had.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tribunal_engine::ids::{Hash, RunId};
use tribunal_store::StoredRequest;
use tribunal_supervise::{can_verify_senders, verify_sender};
use tribunal_workflows::{review::tracker, runs::user_request::UserRequest};

/// How often requests and files are looked at. A sender waits for that.
pub(crate) const INSPECTION_INTERVAL: Duration = Duration::from_millis(200);
/// Longer files are not ours.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// What all runs of a process know together: an agent of one run can write into the files of another.
#[derive(Debug, Default)]
pub(crate) struct UserWordWatch {
    state: Mutex<WatchState>,
}

#[derive(Debug, Default)]
struct WatchState {
    /// The runs whose agents can write everywhere. While there is none, nothing is watched.
    live_runs: BTreeSet<RunId>,
    /// The content that files had in the beginning, or that a run of this process has written.
    trusted_files: HashMap<PathBuf, Vec<u8>>,
    /// The files that runs of this process have written.
    own_files: BTreeMap<PathBuf, RunId>,
    /// The requests that were there in the beginning, and those with a known sender.
    trusted_requests: HashMap<i64, UserRequest>,
    /// The proofs of requests that were accepted: none counts twice.
    used_digests: HashSet<String>,
}

/// What a run starts with.
pub(crate) struct WatchStart<'a> {
    pub run_id: &'a RunId,
    /// The directories with trackers and with files of decisions.
    pub directories: [PathBuf; 2],
    /// The requests in the inboxes of all runs.
    pub requests: Vec<(RunId, StoredRequest)>,
    /// An earlier process of the run was killed while agents may have been at work.
    pub was_interrupted: bool,
}

/// How a request is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestJudgement {
    /// It was accepted before.
    Known,
    Accepted,
    Refused,
}

impl UserWordWatch {
    fn lock_state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch for a run.
    pub fn watch_run(&self, start: WatchStart<'_>) {
        let mut state = self.lock_state();
        if state.live_runs.is_empty() {
            state.trusted_files = start.directories.iter().flat_map(|directory| read_directory(directory)).collect();
            state.trusted_requests =
                start.requests.iter().map(|(_, stored)| (stored.inbox_id, stored.request.clone())).collect();
        }
        if start.was_interrupted {
            let file_prefix = format!("{}.", start.run_id);
            let is_own_page = |path: &Path| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(file_prefix.as_str()))
            };
            state.trusted_files.retain(|path, bytes| !is_own_page(path) && !is_edited_tracker(bytes));
            for (run_id, stored) in &start.requests {
                if run_id == start.run_id {
                    state.trusted_requests.remove(&stored.inbox_id);
                }
            }
        }
        state.live_runs.insert(start.run_id.clone());
    }

    pub fn unwatch_run(&self, run_id: &RunId) {
        let mut state = self.lock_state();
        state.live_runs.remove(run_id);
        if state.live_runs.is_empty() {
            *state = WatchState::default();
        }
    }

    pub fn is_active(&self) -> bool {
        !self.lock_state().live_runs.is_empty()
    }

    /// Whether a file has the content that the user or Tribunal gave it.
    pub fn trusts_file(&self, file_path: &Path, file_bytes: &[u8]) -> bool {
        let state = self.lock_state();
        state.live_runs.is_empty() || state.trusted_files.get(file_path).is_some_and(|trusted| trusted == file_bytes)
    }

    /// Remembers what a run has written.
    pub fn trust_file(&self, run_id: &RunId, file_path: &Path, file_bytes: &[u8]) {
        let mut state = self.lock_state();
        if !state.live_runs.is_empty() {
            state.trusted_files.insert(file_path.to_path_buf(), file_bytes.to_vec());
            state.own_files.insert(file_path.to_path_buf(), run_id.clone());
        }
    }

    /// Remembers that a file is gone.
    pub fn forget_file(&self, file_path: &Path) {
        let mut state = self.lock_state();
        state.trusted_files.remove(file_path);
        state.own_files.remove(file_path);
    }

    /// Lists the files that were written by a run which ends now, and by runs which have ended before, with what they should be.
    pub fn files_of_ended_runs(&self, ending_run: &RunId) -> Vec<(PathBuf, Vec<u8>)> {
        let state = self.lock_state();
        let is_ended = |run_id: &RunId| run_id == ending_run || !state.live_runs.contains(run_id);
        let ended_files = state.own_files.iter().filter(|(_, run_id)| is_ended(run_id));
        ended_files.filter_map(|(path, _)| Some((path.clone(), state.trusted_files.get(path)?.clone()))).collect()
    }

    /// Judges a request in the inbox of a run.
    pub fn judge_request(&self, run_id: &RunId, stored: &StoredRequest) -> RequestJudgement {
        let mut state = self.lock_state();
        if state.live_runs.is_empty() || state.trusted_requests.get(&stored.inbox_id) == Some(&stored.request) {
            return RequestJudgement::Known;
        }
        let Some(digest) = request_digest(run_id, &stored.request, &stored.sender) else {
            return RequestJudgement::Refused;
        };
        // Where the system cannot tell who sent a request, only the commands themselves refuse to act for agents.
        let is_proven = !can_verify_senders()
            || (!state.used_digests.contains(&digest)
                && stored.sender.parse().is_ok_and(|sender| verify_sender(&sender, &digest)));
        // Only the host makes these.
        if !is_proven || matches!(stored.request, UserRequest::Unconfirmed { .. }) {
            return RequestJudgement::Refused;
        }
        state.used_digests.insert(digest);
        state.trusted_requests.insert(stored.inbox_id, stored.request.clone());
        RequestJudgement::Accepted
    }
}

/// Makes the digest of a request that its sender has to prove; `None` if it cannot be written as JSON.
pub(crate) fn request_digest(run_id: &RunId, request: &UserRequest, sender: &str) -> Option<String> {
    let request_json = serde_json::to_string(request).ok()?;
    Some(Hash::digest_of(format!("{run_id}\n{sender}\n{request_json}").as_bytes()).as_str().to_string())
}

/// Reads the files of a directory, but no links and nothing that is too long.
fn read_directory(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_small_file = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_FILE_BYTES)
    };
    let paths = entries.map(|entry| entry.path()).filter(|path| is_small_file(path));
    paths.filter_map(|path| fs::read(&path).ok().map(|bytes| (path, bytes))).collect()
}

/// Whether this is a tracker with edits, of any run: a review also reads the tracker of an earlier one.
fn is_edited_tracker(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| tracker::tracker_run(text).is_some() && !tracker::is_untouched(text))
}
