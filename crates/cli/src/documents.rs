//! The JSON documents of commands that answer. Their schemas are printed by `tribunal schema`.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use tribunal_core::{
    brief::{Content, Minutes},
    confidence::Confidence,
    counts::Counts,
    decision::Decision,
    event::Summary,
    fault::Fault,
    files::Patch,
    finding::Finding,
    ids::{AgentName, FindingId, Hash, Key, RunId},
    level::{Level, Role},
    limits::{Limits, Usage},
    session::{LetGo, Work},
    stamp::Stamp,
    subject::Subject,
};
use tribunal_report::{escaped_json, tables::Standing};

/// A run in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunRow {
    pub run: Option<RunId>,
    /// running, died, stopped, or the outcome.
    pub state: String,
    pub subject: Option<Subject>,
    pub started: Stamp,
    pub rounds: u32,
    pub findings: Counts,
    /// After the last round; none before the first.
    pub confidence: Option<Confidence>,
    pub tracker: Option<String>,
    pub last: Option<Summary>,
    /// Agents at their usage limit that the run waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<Awaited>,
    /// What to type next.
    pub next: Vec<String>,
}

/// An agent that may not be asked yet.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Awaited {
    pub agent: AgentName,
    /// Milliseconds since 1970.
    pub until_ms: u64,
}

impl RunRow {
    pub fn of(standing: &Standing<'_>) -> RunRow {
        let view = standing.view;
        RunRow {
            run: view.run.clone(),
            state: standing.word().to_string(),
            subject: view.settings.as_ref().map(|settings| settings.subject.clone()),
            started: view.started,
            rounds: view.rounds,
            findings: view.counts(),
            confidence: view.confidence.clone(),
            tracker: view.tracker.clone(),
            last: view.summary().cloned(),
            awaits: view
                .awaited()
                .map(|(agent, until_ms)| Awaited { agent: agent.clone(), until_ms })
                .collect(),
            next: tribunal_report::next_steps(view, "tribunal"),
        }
    }
}

/// `tribunal board move`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Moves {
    pub schema: &'static str,
    pub path: String,
    /// Empty: it was there already.
    pub moves: Vec<tribunal_bmad::board::edit::Move>,
    /// The story's file, where its status followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub story: Option<String>,
    pub dry_run: bool,
}

/// `tribunal validate`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Validation {
    pub schema: &'static str,
    /// The step that was asked for.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub step: Option<&'static str>,
    #[serde(flatten)]
    pub report: tribunal_bmad::check::Report,
}

/// `tribunal story KEY --tick …`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoryEdit {
    pub schema: &'static str,
    pub path: String,
    /// Empty: it said so already.
    pub changes: Vec<String>,
    pub dry_run: bool,
}

/// `tribunal runs` and `tribunal status`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Runs {
    pub schema: &'static str,
    pub runs: Vec<RunRow>,
    /// Of `status`: the board, where the project has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sprint: Option<crate::sprint::Sprint>,
}

/// `tribunal findings`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Findings {
    pub schema: &'static str,
    pub run: Option<RunId>,
    /// Format of the findings.
    pub finding_schema: &'static str,
    pub findings: Vec<Finding>,
}

/// `tribunal log --prompts` and `tribunal log --sent`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Calls {
    pub schema: &'static str,
    pub run: RunId,
    pub calls: Vec<CallRow>,
    /// What each vendor got; with --sent only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vendors: Vec<VendorRow>,
}

/// What one vendor got.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VendorRow {
    /// nobody: it was played from a script.
    pub vendor: String,
    pub prompts: u32,
    /// Of the texts that are still kept.
    pub bytes: u64,
    pub usage: Usage,
}

/// One call of an agent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallRow {
    pub key: Key,
    pub stretch: u32,
    pub agent: AgentName,
    pub role: Role,
    /// How the agent is spoken to: who got the text.
    pub driver: String,
    /// Whose model was asked: who got the text.
    pub provider: String,
    /// Which one; null: none was set.
    pub model: Option<String>,
    /// None: it is not answered yet, or never started.
    pub prompt: Option<Text>,
    /// What the agent printed; with --prompts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Text>,
    pub elapsed_ms: u64,
    pub usage: Usage,
}

/// A text that is kept by its hash, masked.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Text {
    pub hash: Hash,
    /// None: it is gone.
    pub bytes: Option<u64>,
    /// The text itself, with --key only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// `tribunal decisions`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Decisions {
    pub schema: &'static str,
    pub decisions: Vec<OpenDecision>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OpenDecision {
    pub run: Option<RunId>,
    #[serde(flatten)]
    pub decision: Decision,
    /// Answered, and not yet taken in by the run.
    pub answered: bool,
}

/// `tribunal review --dry-run`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Plan {
    pub schema: &'static str,
    pub subject: Subject,
    pub level: Level,
    pub panel: Vec<Seat>,
    /// For the first round: the prompts.
    pub estimated_input_tokens: u64,
    pub limits: Limits,
    pub verify: Vec<String>,
    pub fix: bool,
    /// Of a change; none for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_bytes: Option<u64>,
    /// How many runs of the command would work at the same time.
    pub runs_at_once: usize,
    /// How many agents would, of all its runs together.
    pub agents_at_once: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Seat {
    pub role: Role,
    pub agent: AgentName,
}

/// `tribunal gc`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Garbage {
    pub schema: &'static str,
    /// Nothing was removed: this is what would be.
    pub dry_run: bool,
    pub bytes: u64,
    /// Folders that agents of ended runs worked in.
    pub copies: Vec<Removed>,
    pub temporary: Vec<Removed>,
    /// Texts of the removed runs: from before them, around their landings, and parked when something was taken back.
    pub originals: Vec<Removed>,
    pub runs: Vec<RunId>,
    /// Texts that no entry refers to.
    pub blobs: u64,
    pub journal_bytes_before: u64,
    pub journal_bytes_after: u64,
    /// Runs that are worked on; they were left alone.
    pub live: Vec<RunId>,
    /// What could not be removed, and why.
    pub left: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Removed {
    /// Relative to the project's root.
    pub path: String,
    pub bytes: u64,
}

/// `tribunal diff`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Changes {
    pub schema: &'static str,
    pub run: RunId,
    /// Only what repaired this one.
    pub finding: Option<FindingId>,
    /// The file, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub landings: Vec<Landed>,
    pub lines_added: u32,
    pub lines_removed: u32,
    /// Unified, of all files; empty if nothing landed or all of it was taken back.
    pub diff: String,
    /// In the order of their paths.
    pub files: Vec<ChangedFile>,
}

/// What was changed in a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangedFile {
    pub path: String,
    /// `changed`, `made` or `deleted`.
    pub what: &'static str,
    pub lines_added: u32,
    pub lines_removed: u32,
    /// Unified.
    pub diff: String,
    /// `undo`: the file as it was, relative to the project's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked: Option<String>,
}

/// A change that landed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Landed {
    pub by: Key,
    /// What it repaired.
    pub findings: Vec<FindingId>,
    /// It was taken back.
    pub undone: bool,
}

/// `tribunal undo`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Undo {
    pub schema: &'static str,
    pub run: RunId,
    /// The one that was named.
    pub finding: Option<FindingId>,
    /// The file, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Else this is what would be done.
    pub done: bool,
    /// What is taken back.
    pub landings: Vec<Landed>,
    /// What is no longer repaired.
    pub findings: Vec<FindingId>,
    /// What is done to the files; unified.
    pub diff: String,
    /// Those that are changed, in the order of their paths.
    pub files: Vec<ChangedFile>,
    /// Where it is one file: as it was, relative to the project's root. None: it was not changed.
    pub parked: Option<String>,
    /// Where git has the run's changes. None: nowhere, or it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The run has ended: nothing tells it that findings are open again.
    pub run_has_ended: bool,
}

/// `tribunal inspect transcript`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Transcripts {
    pub schema: &'static str,
    pub run: RunId,
    pub calls: Vec<Transcript>,
}

/// What one call of an agent came to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Transcript {
    #[serde(flatten)]
    pub call: CallRow,
    /// None: it was answered.
    pub fault: Option<Fault>,
    /// What the parser made of the answer.
    pub read: Option<Content>,
    /// What the parser had to overlook.
    pub remarks: Vec<String>,
    pub patch: Option<Patch>,
}

/// `tribunal inspect findings` and `tribunal inspect response`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Inspection {
    pub schema: &'static str,
    #[serde(flatten)]
    pub content: Content,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<Minutes>,
    pub remarks: Vec<String>,
}

/// `tribunal trust`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Trust {
    pub schema: &'static str,
    pub project: String,
    pub items: Vec<TrustItem>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TrustItem {
    /// agent, client, server, licence or check.
    pub kind: &'static str,
    /// The agent's name, or the server's.
    pub agent: Option<String>,
    pub command: String,
    pub trusted: bool,
}

pub(crate) fn print(document: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", escaped_json(&serde_json::to_string_pretty(document)?))
}

/// `tribunal loop status --json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Loops {
    pub schema: &'static str,
    pub loops: Vec<LoopRow>,
}

/// What a session has taken on.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LoopRow {
    pub id: RunId,
    pub work: Work,
    /// As its client names it; empty: the next one that says something.
    pub session: String,
    /// A stop of this session is looked at.
    pub held: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub let_go: Option<LetGo>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    pub refusals: u32,
    pub max_refusals: u32,
    pub tools: u64,
    /// When something last happened, in UTC.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last: String,
}
