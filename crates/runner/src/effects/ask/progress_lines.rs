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
use tribunal_core::engine::{ids::Key, progress::AgentProgress};
use tribunal_supervise::OutputCallback;

use super::usage_meter::UsageMeter;
use crate::effects::EffectContext;

/// The longest line that is kept of what an agent prints while it works.
const MAX_LINE_BYTES: usize = 1 << 20;

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
        Box::new(move |bytes| match usage_meter.add_output(bytes.len(), 0, bytes.len()) {
            Some(_) => ControlFlow::Break(()),
            None => count_answer(bytes.len()),
        })
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

/// Passes on the agent's progress messages line by line, masked also across the borders of chunks.
fn watch_progress(
    context: &EffectContext,
    driven_agent: &DrivenAgent,
    task_key: &Key,
    workspace_path: &Path,
) -> impl Fn(&[u8]) -> SeenOutput + Send + Sync + use<> {
    // The path of a workspace is an internal detail, so messages show paths relative to it.
    let workspace_prefix = format!("{}/", workspace_path.display());
    let progress_sender = context.progress.clone();
    let (driven_agent, task_key) = (driven_agent.clone(), task_key.clone());
    let stream_state = Mutex::new((context.masker.new_stream(), String::new()));
    move |bytes| {
        let mut stream_state = stream_state.lock().unwrap_or_else(PoisonError::into_inner);
        let (mask_stream, unfinished_line) = &mut *stream_state;
        // A character cut in two by the border of a chunk is lost here; progress is only shown, never evaluated.
        let masked_chunk = mask_stream.push_chunk(&String::from_utf8_lossy(bytes));
        let last_newline = masked_chunk.rfind('\n').map(|newline_offset| unfinished_line.len() + newline_offset);
        unfinished_line.push_str(&masked_chunk);
        let Some(last_newline) = last_newline else {
            // No progress message is this long, so the line is dropped instead of growing without limit.
            if unfinished_line.len() > MAX_LINE_BYTES {
                unfinished_line.clear();
            }
            return SeenOutput::default();
        };
        let mut seen = SeenOutput::default();
        let line_events =
            unfinished_line[..last_newline].lines().map(|output_line| driven_agent.read_events(output_line));
        let mut agent_events = Vec::new();
        for mut events in line_events {
            // One line may report several changed files.
            seen.turns += u32::from(events.iter().any(is_turn));
            agent_events.append(&mut events);
        }
        for agent_event in agent_events {
            if let AgentEvent::Text { text } = &agent_event {
                seen.text_bytes += text.len();
            }
            let Some(progress_text) = agent_event.progress_line() else { continue };
            let progress_text = progress_text.replace(&workspace_prefix, "");
            let _ = progress_sender.send(AgentProgress { task_key: task_key.clone(), activity: progress_text });
        }
        unfinished_line.drain(..=last_newline);
        seen
    }
}
