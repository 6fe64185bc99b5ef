//! What an agent prints while it works: progress messages, and an answer that must not become too long.

use std::{
    ops::ControlFlow,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tribunal_agents::driver::{AgentEvent, DrivenAgent};
use tribunal_engine::{ids::Key, progress::AgentProgress};
use tribunal_supervise::OutputCallback;

use super::usage_meter::UsageMeter;
use crate::{effects::EffectContext, masking::MaskStream};

/// The longest line that is kept of what an agent prints while it works.
const MAX_LINE_BYTES: usize = 1 << 20;
/// How much of a line of an answer is shown: more than fits any screen.
const MAX_ACTIVITY_CHARS: usize = 500;

/// Watches the output of an agent: passes on its progress, and ends it when its answer is too long or it has used more than its
/// share.
pub(super) fn watch_output(
    context: &EffectContext,
    driven_agent: &DrivenAgent,
    task_key: &Key,
    workspace_path: &Path,
    usage_meter: Arc<UsageMeter>,
) -> OutputCallback {
    let max_answer_bytes = context.settings.tasks.max_answer_bytes();
    let answer_bytes = AtomicUsize::new(0);
    let count_answer = move |byte_count: usize| {
        let total_bytes = answer_bytes.fetch_add(byte_count, Ordering::Relaxed) + byte_count;
        if total_bytes > max_answer_bytes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    if driven_agent.shows_progress() {
        let read_events = watch_progress(context, driven_agent, task_key, workspace_path);
        Box::new(move |bytes| {
            let SeenOutput { text_bytes, turns } = read_events(bytes);
            match usage_meter.add_output(bytes.len(), turns, text_bytes) {
                Some(_) => ControlFlow::Break(()),
                None => count_answer(text_bytes),
            }
        })
    } else {
        // All that such an agent prints is its answer.
        let show_line = watch_answer(context, task_key, workspace_path);
        Box::new(move |bytes| {
            show_line(bytes);
            match usage_meter.add_output(bytes.len(), 0, bytes.len()) {
                Some(_) => ControlFlow::Break(()),
                None => count_answer(bytes.len()),
            }
        })
    }
}

/// The complete lines of an output, masked also across the borders of chunks.
struct MaskedLines {
    state: Mutex<LineState>,
}

struct LineState {
    mask_stream: MaskStream,
    unfinished_line: String,
}

impl MaskedLines {
    fn new(context: &EffectContext) -> MaskedLines {
        let state = LineState { mask_stream: context.masker.new_stream(), unfinished_line: String::new() };
        MaskedLines { state: Mutex::new(state) }
    }

    /// Takes the next piece of the output and returns the lines that are complete by now, often none.
    fn take_complete(&self, bytes: &[u8]) -> String {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let LineState { mask_stream, unfinished_line } = &mut *state;
        // A character cut in two by the border of a chunk is lost here; progress is only shown, never evaluated.
        let masked_chunk = mask_stream.push_chunk(&String::from_utf8_lossy(bytes));
        let last_newline = masked_chunk.rfind('\n').map(|newline_offset| unfinished_line.len() + newline_offset);
        unfinished_line.push_str(&masked_chunk);
        match last_newline {
            Some(last_newline) => unfinished_line.drain(..=last_newline).collect(),
            None => {
                // No progress message is this long, so the line is dropped instead of growing without limit.
                if unfinished_line.len() > MAX_LINE_BYTES {
                    unfinished_line.clear();
                }
                String::new()
            }
        }
    }
}

/// What was seen in a piece of an agent's output.
#[derive(Clone, Copy, Debug, Default)]
struct SeenOutput {
    /// The length of the texts that the agent wrote itself: a client also prints what its tools return.
    text_bytes: usize,
    /// The number of messages of the model and of calls of tools.
    turns: u32,
}

/// Whether an event shows that the model was asked: it said something, or called a tool.
fn is_turn(agent_event: &AgentEvent) -> bool {
    match agent_event {
        AgentEvent::Text { .. }
        | AgentEvent::ToolUsed { .. }
        | AgentEvent::FileChanged { .. }
        | AgentEvent::ToolDenied { .. } => true,
        AgentEvent::Retrying { .. } | AgentEvent::Failed { .. } => false,
    }
}

/// Passes on the agent's progress messages line by line.
fn watch_progress(
    context: &EffectContext,
    driven_agent: &DrivenAgent,
    task_key: &Key,
    workspace_path: &Path,
) -> impl Fn(&[u8]) -> SeenOutput + Send + Sync + use<> {
    let workspace_prefix = prefix_of(workspace_path);
    let progress_sender = context.progress.clone();
    let (driven_agent, task_key) = (driven_agent.clone(), task_key.clone());
    let masked_lines = MaskedLines::new(context);
    move |bytes| {
        let complete_lines = masked_lines.take_complete(bytes);
        let mut seen = SeenOutput::default();
        let mut agent_events = Vec::new();
        for output_line in complete_lines.lines() {
            let mut events = driven_agent.read_events(output_line);
            // One line may report several changed files.
            seen.turns += u32::from(events.iter().any(is_turn));
            agent_events.append(&mut events);
        }
        for agent_event in agent_events {
            if let AgentEvent::Text { text } = &agent_event {
                seen.text_bytes += text.len();
            }
            let Some(progress_text) = agent_event.progress_line() else { continue };
            let activity = progress_text.replace(&workspace_prefix, "");
            let _ = progress_sender.send(AgentProgress { task_key: task_key.clone(), activity, is_output: false });
        }
        seen
    }
}

/// Passes on the last line of each piece of an answer, as far as it can be read by the user.
fn watch_answer(
    context: &EffectContext,
    task_key: &Key,
    workspace_path: &Path,
) -> impl Fn(&[u8]) + Send + Sync + use<> {
    let workspace_prefix = prefix_of(workspace_path);
    let progress_sender = context.progress.clone();
    let task_key = task_key.clone();
    let masked_lines = MaskedLines::new(context);
    move |bytes| {
        let complete_lines = masked_lines.take_complete(bytes);
        // An answer in its final form is not progress.
        let is_prose = |line: &&str| !line.is_empty() && !line.starts_with(['{', '}', '[', ']', '"', '`']);
        let Some(last_line) = complete_lines.lines().rev().map(str::trim).find(is_prose) else { return };
        let activity = last_line.replace(&workspace_prefix, "").chars().take(MAX_ACTIVITY_CHARS).collect();
        let _ = progress_sender.send(AgentProgress { task_key: task_key.clone(), activity, is_output: true });
    }
}

/// What paths in a workspace begin with. It is an internal detail, so messages show paths relative to the workspace.
fn prefix_of(workspace_path: &Path) -> String {
    format!("{}/", workspace_path.display())
}
