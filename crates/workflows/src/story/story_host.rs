//! The host as the stages of a story see it, and what it says about the story.

use alloc::{boxed::Box, string::String};

use crate::{
    development::performing::DevelopingOrder,
    runs::kind_host::KindHost,
    stages::exit::{StageExit, Staged},
    story::{
        facts::{ReadStory, StoryFacts, StoryPlace, StoryReading},
        order::StoryOrder,
        state::{StoryState, StoryStep},
    },
};
use tribunal_engine::ids::{Key, TreeId};

pub(super) use crate::story::order::WORKSPACE_NAME;

pub(super) type StoryHost<'a> = KindHost<'a, StoryOrder>;

impl DevelopingOrder for StoryOrder {
    const WORKSPACE_NAME: &'static str = WORKSPACE_NAME;
}

impl StoryHost<'_> {
    /// Reads what files and git say about the story in its workspace, and remembers what later stages need. Without a tree it is what is
    /// there.
    pub async fn read_story(
        self,
        state: &mut StoryState,
        read_key: Key,
        tree: Option<&TreeId>,
    ) -> Staged<Box<StoryFacts>> {
        let place = StoryPlace::Workspace { workspace: String::from(WORKSPACE_NAME) };
        let since = self.order.files.begun_at.clone();
        let read_story = ReadStory { place, story: self.order.story.clone(), since, tree: tree.cloned() };
        let facts = match self.perform(read_key, read_story).await? {
            StoryReading::Read(facts) => facts,
            StoryReading::Failed { fault } => return Err(StageExit::from_fault(&fault)),
        };
        // The file is the one that was there, or that the step `create` has written. A workflow with a spec of its own writes it later.
        let is_file_settled = state.step >= StoryStep::Develop && self.order.steps.words_until_spec.is_none();
        if let Some(work) = &mut state.work {
            work.apply_state(&facts.work);
            work.note_story_file(facts.file.as_ref().map(|file| file.path.clone()), is_file_settled);
            work.changed_controls.clone_from(&facts.changed_controls);
        }
        state.landing.merged_into.clone_from(&facts.merged_into);
        state.landing.owed = state.landing.created.as_ref().map(|created| created.owed.clone()).unwrap_or_default();
        for action in facts.file.iter().flat_map(|file| &file.owed) {
            if !state.landing.owed.contains(action) {
                state.landing.owed.push(action.clone());
            }
        }
        Ok(facts)
    }
}
