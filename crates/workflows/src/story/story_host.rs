//! What all stages of a story have in common.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use crate::{
    development::{
        checks::{CheckSpec, ChecksReport},
        performing,
    },
    runs::{
        run_kind::RunKind,
        types::{RunEvent, RunHost},
    },
    story::{
        event::StoryEvent,
        facts::{ReadStory, StoryFacts, StoryPlace, StoryReading},
        order::StoryOrder,
        state::StoryState,
    },
};
use tribunal_engine::{host::ParkedRun, ids::Key, reason::RunEnding};

pub(super) use crate::{
    development::performing::{StageEnd, environment_ending},
    story::order::WORKSPACE_NAME,
};

/// The host of a story, with what was asked.
#[derive(Clone, Copy)]
pub(super) struct StoryHost<'a> {
    pub host: &'a RunHost<'a>,
    pub order: &'a StoryOrder,
}

impl StoryHost<'_> {
    pub fn note_event(self, event: StoryEvent) {
        self.host.note_event(RunEvent::from_workflow(event));
    }

    pub fn note_warning(self, text: String) {
        self.host.note_event(RunEvent::Warned { text });
    }

    pub async fn notify_user(self, notify_key: Key, detail: &str) -> Result<(), ParkedRun> {
        performing::notify_user(self.host, notify_key, format!("{}: {detail}", self.order.title())).await
    }

    /// Runs checks in the workspace.
    pub async fn run_checks(
        self,
        checks_key: Key,
        checks: Vec<CheckSpec>,
    ) -> Result<Result<ChecksReport, RunEnding>, ParkedRun> {
        performing::run_checks(self.host, WORKSPACE_NAME, checks_key, checks).await
    }

    /// Reads what files and git say about the story in its workspace, and remembers what later stages need.
    pub async fn read_story(
        self,
        state: &mut StoryState,
        read_key: Key,
    ) -> Result<Result<Box<StoryFacts>, RunEnding>, ParkedRun> {
        let place = StoryPlace::Workspace { workspace: String::from(WORKSPACE_NAME) };
        let since = self.order.files.begun_at.clone();
        let read_story = ReadStory { place, story: self.order.story.clone(), since };
        let facts = match self.host.perform(read_key, read_story).await? {
            StoryReading::Read(facts) => facts,
            StoryReading::Failed { fault } => return Ok(Err(environment_ending(&fault))),
        };
        if let Some(work) = &mut state.work {
            work.apply_state(&facts.work);
            work.story_file = facts.file.as_ref().map(|file| file.path.clone());
            work.changed_controls.clone_from(&facts.changed_controls);
        }
        state.landing.merged_into.clone_from(&facts.merged_into);
        state.landing.owed = facts.file.as_ref().map(|file| file.owed.clone()).unwrap_or_default();
        Ok(Ok(facts))
    }
}
