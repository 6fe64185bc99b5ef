//! The `replay` driver: an agent that plays a script, in a real process and in the workspace it is given.
//!
//! [`script`] is the format that users write, [`player`] plays it. The programs around it (`tribunal play-script`,
//! and the test kit's `scripted-agent`) only connect input and output. No model is involved, and reports that show
//! such output say so.

mod play;
mod script;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tribunal_core::limits::Usage;

pub use play::{Ended, Form, Stage, play};
pub use script::{FixEntry, RuleEntry, Script, ScriptError, Step, TaskEntry};

use crate::driver::{
    order::{Launch, Order, Whereabouts},
    output::Decoded,
};

/// The hidden subcommand of our own program that plays a script.
pub const COMMAND: &str = "play-script";
/// Set to `1` if the script's waits are really waited.
pub const PACED_VARIABLE: &str = "TRIBUNAL_PACED";

/// One line of a scripted agent's output, in the form that the `replay` driver reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    Progress { text: String },
    Text { text: String },
    Usage { usage: Usage },
}

/// Builds the launch of our own program, which plays the script.
pub(crate) fn launch(script: &str, paced: bool, order: Order<'_>, at: &Whereabouts) -> Launch {
    Launch {
        program: at.own_program.clone().into_os_string(),
        args: vec![COMMAND.into(), at.project.join(script).into_os_string()],
        env: BTreeMap::from([(PACED_VARIABLE.to_string(), u8::from(paced).to_string())]),
        input: order.prompt,
        ..Launch::default()
    }
}

/// Decodes the output. Lines of another form are text: an agent may print anything.
pub fn decode(stdout: &str) -> Decoded {
    let mut decoded = Decoded::default();
    for line in stdout.lines() {
        match serde_json::from_str::<Line>(line) {
            // Progress was shown while the agent ran and is no part of the answer.
            Ok(Line::Progress { .. }) => {}
            Ok(Line::Text { text }) => push_line(&mut decoded.text, &text),
            Ok(Line::Usage { usage }) => decoded.usage = usage,
            Err(_) => push_line(&mut decoded.text, line),
        }
    }
    decoded.active = !stdout.is_empty();
    decoded
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    if !line.ends_with('\n') {
        text.push('\n');
    }
}
