//! What an agent prints while it works, as progress messages.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

use tribunal_agents::driver::DrivenAgent;
use tribunal_core::engine::{ids::Key, progress::AgentProgress};

use crate::effects::EffectContext;

/// The longest line that is kept of what an agent prints while it works.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Passes on the agent's progress messages line by line, masked also across the borders of chunks.
pub(super) fn watch_progress(
    context: &EffectContext,
    driven_agent: &DrivenAgent,
    task_key: &Key,
    workspace_path: &Path,
) -> impl Fn(&[u8]) + Send + Sync + use<> {
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
            return;
        };
        let agent_events =
            unfinished_line[..last_newline].lines().flat_map(|output_line| driven_agent.read_events(output_line));
        for progress_text in agent_events.filter_map(|event| event.progress_line()) {
            let progress_text = progress_text.replace(&workspace_prefix, "");
            let _ = progress_sender.send(AgentProgress { task_key: task_key.clone(), activity: progress_text });
        }
        unfinished_line.drain(..=last_newline);
    }
}
