//! A loop in a user's session as a kind of run. Its order is the assignment of the session; the hooks of the client record what
//! happens in it, so no process of Tribunal drives it.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    runs::run_kind::{RunDriver, RunKind},
    session::event::{ReleaseReason, SessionAssignment, SessionRecord},
    tasks::client::JobKind,
};
use tribunal_engine::text::truncate_chars;

impl RunKind for SessionAssignment {
    const NAME: &'static str = "session";
    const VERSION: u32 = 1;
    const DRIVER: RunDriver = RunDriver::Session;
    type Event = SessionRecord;
    type Summary = SessionSummary;
    type Topic = SessionTopic;

    fn title(&self) -> String {
        // A prompt may be long; its beginning is enough to recognise it.
        truncate_chars(self.prompt.lines().next().unwrap_or_default(), 60)
    }

    fn needed_jobs(&self) -> Vec<JobKind> {
        // The session is the agent.
        Vec::new()
    }

    fn file_slug(&self) -> String {
        String::from("loop")
    }

    fn trusts_answer_files(&self) -> bool {
        // The session can write every file of the project, and must not extend its own loop.
        false
    }
}

/// What a loop has to say at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionSummary {
    /// How often the session was sent back.
    pub refusals: u32,
    /// How many tools it used.
    pub tools: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<ReleaseReason>,
}

/// What the questions about a session are about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum SessionTopic {
    /// A loop in a session was released before it was done.
    Loop,
}
