//! The JSON documents that commands print. `tribunal schema` prints their schemas.
//!
//! Doc comments of these types are descriptions in those schemas.

use std::io::{self, Write};

use tribunal_engine::{
    fault::Fault,
    files::Patch,
    ids::{AgentName, FindingId, Hash, Key, RunId},
    limits::{AgentUsage, RunLimits},
};
use tribunal_json::{Serialize, schemars};
use tribunal_report::escape_json;
use tribunal_workflows::{
    development::checks::CheckSpec,
    findings::{agent_role::AgentRole, finding::Finding, subject::Subject},
    review::{level::ReviewLevel, order::ReviewLimits},
    runs::types::Decision,
    session::{ReleaseReason, SessionWork},
    tasks::{brief::AnswerContent, client::JobKind, party_minutes::PartyMinutes},
};

pub(crate) use super::run_documents::{RunActivity, RunRow};

/// The limits of a review: its own, and those of every run.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct PlanLimits {
    #[serde(flatten)]
    pub review: ReviewLimits,
    #[serde(flatten)]
    pub run: RunLimits,
}

/// The document of `tribunal board move`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct BoardMoves {
    pub schema: &'static str,
    pub path: String,
    /// The moves; empty if the board already has these states.
    pub moves: Vec<tribunal_bmad::board::edit::BoardMove>,
    /// The story's file, if its status was changed as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub story: Option<String>,
    pub dry_run: bool,
}

/// The document of `tribunal validate`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ValidationDocument {
    pub schema: &'static str,
    /// The workflow step that the user asked about.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub step: Option<&'static str>,
    #[serde(flatten)]
    pub report: tribunal_bmad::check::ReadinessReport,
}

/// The document of `tribunal story KEY --tick …`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct StoryEdit {
    pub schema: &'static str,
    pub path: String,
    /// The changes; empty if the file already contains them.
    pub changes: Vec<String>,
    pub dry_run: bool,
}

/// The document of `tribunal discard`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DiscardDocument {
    pub schema: &'static str,
    pub dry_run: bool,
    /// Whether the runs were taken out of the trash instead.
    pub restored: bool,
    pub runs: Vec<DiscardedRun>,
    /// When the runs may be removed for good, in milliseconds since 1970.
    pub removed_after_ms: Option<u64>,
}

/// A run that was discarded or restored.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DiscardedRun {
    pub run: RunId,
    pub state: String,
    pub subject: String,
    /// Whether the run changed files of the project; discarding it does not undo the changes.
    pub changed_files: bool,
    /// Whether the run can be resumed, once it is not in the trash.
    pub can_resume: bool,
}

/// The document of `tribunal runs` and `tribunal status`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RunsDocument {
    pub schema: &'static str,
    pub runs: Vec<RunRow>,
    /// The board, if the project has one; only for `status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sprint: Option<crate::bmad::sprint::SprintTree>,
}

/// The document of `tribunal findings`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct FindingsDocument {
    pub schema: &'static str,
    pub run: Option<RunId>,
    /// The format of the findings.
    pub finding_schema: &'static str,
    pub findings: Vec<Finding>,
}

/// The document of `tribunal log --prompts` and `tribunal log --sent`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct CallsDocument {
    pub schema: &'static str,
    pub run: RunId,
    pub calls: Vec<CallRow>,
    /// What each vendor received; only with --sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vendors: Vec<VendorRow>,
}

/// What one vendor received.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct VendorRow {
    /// The vendor; `none` if the calls were played from a script.
    pub vendor: String,
    /// Where it received them, if another endpoint than its default was configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    pub prompts: u32,
    /// The size of the texts that the journal has.
    pub bytes: u64,
    pub usage: AgentUsage,
}

/// One call of an agent.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct CallRow {
    pub key: Key,
    pub segment: u32,
    pub agent: AgentName,
    /// What the call was for.
    pub job: JobKind,
    /// The role of the agent in a review; missing in other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<AgentRole>,
    /// The driver that talked to the agent.
    pub driver: String,
    /// The provider whose model was asked, and who received the text.
    pub provider: String,
    /// The model; null if none was set.
    pub model: Option<String>,
    /// The prompt; null if the call has not been answered yet or never started.
    pub prompt: Option<StoredText>,
    /// The agent's output; only with --prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<StoredText>,
    pub elapsed_ms: u64,
    pub usage: AgentUsage,
}

/// A text that is stored by its hash, with secrets masked.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct StoredText {
    pub hash: Hash,
    /// The length; null if the journal does not have the text.
    pub bytes: Option<u64>,
    /// The text itself; only with --key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The document of `tribunal decisions`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DecisionsDocument {
    pub schema: &'static str,
    pub decisions: Vec<OpenDecision>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct OpenDecision {
    pub run: Option<RunId>,
    #[serde(flatten)]
    pub decision: Decision,
    /// Whether there is an answer that the run has not applied yet.
    pub answered: bool,
}

/// The document of `tribunal review --dry-run`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ReviewPlan {
    pub schema: &'static str,
    pub subject: Subject,
    pub level: ReviewLevel,
    pub panel: Vec<PlannedSeat>,
    /// The estimated size of the prompts of the first round.
    pub estimated_input_tokens: u64,
    pub limits: PlanLimits,
    pub checks: Vec<CheckSpec>,
    pub fix: bool,
    /// The size of the diff of a change; none for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_bytes: Option<u64>,
    /// How many runs of the command would work at the same time.
    pub runs_at_once: usize,
    /// How many agents of all these runs would work at the same time.
    pub agents_at_once: usize,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct PlannedSeat {
    pub role: AgentRole,
    pub agent: AgentName,
}

/// The document of `tribunal gc`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct GarbageDocument {
    pub schema: &'static str,
    /// Whether this only lists what would be removed, and nothing was removed.
    pub dry_run: bool,
    pub bytes: u64,
    /// Workspaces of agents of ended runs.
    pub copies: Vec<RemovedPath>,
    pub temporary: Vec<RemovedPath>,
    /// Files of the removed runs: originals from before the run, checkpoints of landings, and backups of undos.
    pub originals: Vec<RemovedPath>,
    pub runs: Vec<RunId>,
    /// The number of stored texts that no entry refers to.
    pub blobs: u64,
    pub journal_bytes_before: u64,
    pub journal_bytes_after: u64,
    /// Runs that are in progress; they were left alone.
    pub live: Vec<RunId>,
    /// What could not be removed, and why.
    pub left: Vec<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RemovedPath {
    /// The path, relative to the project's root.
    pub path: String,
    pub bytes: u64,
}

/// The document of `tribunal recover`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RecoveryDocument {
    pub schema: &'static str,
    /// Whether something that was recorded is lost or changed.
    pub damaged: bool,
    /// Why nothing of the journal can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    pub runs: Vec<RecoveredRun>,
    /// Copies of files from before the runs, relative to the project's root.
    pub originals: Vec<String>,
    /// Refs in the project's repository with commits of agents.
    pub refs: Vec<String>,
    /// Trackers, relative to the project's root.
    pub trackers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export_dir: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exported_files: Option<usize>,
    /// Where the damaged files are, if the journal was rebuilt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damaged_copy: Option<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RecoveredRun {
    pub run: RunId,
    /// The number of entries from the first one on that are as they were recorded.
    pub good_entries: u64,
    /// When the last of them was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_good_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// The document of `tribunal diff`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ChangesDocument {
    pub schema: &'static str,
    pub run: RunId,
    /// The finding whose fixes are shown; none for all.
    pub finding: Option<FindingId>,
    /// The file, if there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub landings: Vec<LandingRow>,
    pub lines_added: u32,
    pub lines_removed: u32,
    /// The unified diff of all files; empty if nothing landed or all of it was undone.
    pub diff: String,
    /// The changed files, sorted by path.
    pub files: Vec<ChangedFile>,
}

/// The changes of one file.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ChangedFile {
    pub path: String,
    /// The kind of change: `changed`, `made` or `deleted`.
    pub what: &'static str,
    pub lines_added: u32,
    pub lines_removed: u32,
    /// The unified diff of this file.
    pub diff: String,
    /// The file before the undo, relative to the project's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked: Option<String>,
}

/// A change that landed.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct LandingRow {
    pub by: Key,
    /// The findings that it fixed.
    pub findings: Vec<FindingId>,
    /// Whether it was undone.
    pub undone: bool,
}

/// The document of `tribunal undo`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct UndoDocument {
    pub schema: &'static str,
    pub run: RunId,
    /// The finding that the user named.
    pub finding: Option<FindingId>,
    /// The file, if there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether the undo was done; otherwise this is a preview.
    pub done: bool,
    /// The landings that are undone.
    pub landings: Vec<LandingRow>,
    /// The findings that are no longer fixed.
    pub findings: Vec<FindingId>,
    /// The unified diff of the changes to the files.
    pub diff: String,
    /// The changed files, sorted by path.
    pub files: Vec<ChangedFile>,
    /// The file before the undo, if there is only one, relative to the project's root. None if it was not changed.
    pub parked: Option<String>,
    /// The command that shows the run's landings with git. None if none are recorded, or after the undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_command: Option<String>,
    /// Whether the run has ended, so that it will not take up the findings that are open again.
    pub run_has_ended: bool,
}

/// The document of `tribunal inspect transcript`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct TranscriptsDocument {
    pub schema: &'static str,
    pub run: RunId,
    pub calls: Vec<CallTranscript>,
}

/// One call of an agent and its result.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct CallTranscript {
    #[serde(flatten)]
    pub call: CallRow,
    /// The fault; none if the agent answered.
    pub fault: Option<Fault>,
    /// What the parser read from the answer.
    pub read: Option<AnswerContent>,
    /// What the parser had to ignore.
    pub remarks: Vec<String>,
    pub patch: Option<Patch>,
}

/// The document of `tribunal inspect findings` and `tribunal inspect response`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct InspectionDocument {
    pub schema: &'static str,
    #[serde(flatten)]
    pub content: AnswerContent,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<PartyMinutes>,
    pub remarks: Vec<String>,
}

/// The document of `tribunal trust`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct TrustDocument {
    pub schema: &'static str,
    pub project: String,
    pub items: Vec<TrustItemRow>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct TrustItemRow {
    /// The kind: agent, client, server, licence, check or hook.
    pub kind: &'static str,
    /// The name of the agent, of the server or of the hook's file.
    pub agent: Option<String>,
    pub command: String,
    pub trusted: bool,
}

/// Prints a document on standard output.
pub(crate) fn print_document(document: &impl Serialize) -> io::Result<()> {
    // Text of agents inside the document must not control a terminal.
    let mut stdout_lock = io::stdout().lock();
    writeln!(stdout_lock, "{}", escape_json(&serde_json::to_string_pretty(document)?))
}

/// The document of `tribunal loop status --json`.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct LoopsDocument {
    pub schema: &'static str,
    pub loops: Vec<LoopRow>,
}

/// The task of a coding session.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct LoopRow {
    pub id: RunId,
    pub work: SessionWork,
    /// The client's id of the session; empty for the next session that calls a hook.
    pub session: String,
    /// Whether Tribunal still checks each stop of this session.
    pub held: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub let_go: Option<ReleaseReason>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    pub refusals: u32,
    pub max_refusals: u32,
    pub tools: u64,
    /// The time of the last event, in UTC.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last: String,
}
