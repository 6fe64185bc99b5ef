//! The `codex` client.

use tribunal_core::{client::ClientSpec, settings::AgentSpec};

use super::{AgentEvent, Decoded, Finished, Launch, Order};

pub(super) fn launch(_agent: &AgentSpec, client: &ClientSpec, order: Order<'_>) -> Launch {
    let program = client.program.clone().unwrap_or_else(|| "codex".into()).into();
    Launch { program, input: order.prompt, ..Launch::default() }
}

pub(super) fn decode(_client: &ClientSpec, finished: &Finished<'_>) -> Decoded {
    Decoded { text: finished.stdout.to_string(), ..Decoded::default() }
}

pub(super) fn events(_line: &str) -> Vec<AgentEvent> {
    Vec::new()
}
