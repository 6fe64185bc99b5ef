//! Performing effects: one module a kind. An effect that fails is a reply.
//!
//! To add one: a variant in `core`'s `Effect` and `Reply`, a module here, an arm in [`perform`].

mod ask;
mod freeze;
mod land;
mod own_files;
mod people;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use tokio::sync::mpsc::UnboundedSender;
use tribunal_agents::driver::Whereabouts;
use tribunal_core::{
    desk::Ask,
    effect::{Effect, Reply},
    ids::RunId,
    progress::Progress,
    reason::{Fault, FaultKind},
    settings::Settings,
};

use crate::{mask::Masker, project::Project};

pub(crate) use people::{answers_in_files, remove_page, unusable_answers};

/// What every effect may use.
#[derive(Debug)]
pub(crate) struct World {
    pub project: Project,
    pub run: RunId,
    pub settings: Settings,
    pub masker: Masker,
    pub at: Whereabouts,
    pub progress: UnboundedSender<Progress>,
}

/// A reply with the blobs it names.
#[derive(Debug)]
pub(crate) struct Performed {
    pub reply: Reply,
    pub blobs: Vec<Vec<u8>>,
}

impl From<Reply> for Performed {
    fn from(reply: Reply) -> Self {
        Performed { reply, blobs: Vec::new() }
    }
}

pub(crate) async fn perform(world: Arc<World>, ask: Ask) -> Performed {
    let Ask { key, effect, .. } = ask;
    match effect {
        Effect::Ask { task } => ask::perform(world, key, task).await,
        Effect::Land { by, patch, allowed, verify } => {
            land::perform(world, land::Landing { by, patch, allowed, verify }).await.into()
        }
        Effect::Freeze { subject } => blocking(move || freeze::perform(&world, &key, &subject)).await,
        Effect::Write { file, text } => blocking(move || own_files::perform(&world, &file, &text)).await,
        Effect::Post { decision } => blocking(move || people::post(&world, &decision)).await,
        Effect::Sleep { ms } => {
            tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
            Reply::Slept.into()
        }
        // The host answers these itself: they are about the run, not about the world.
        Effect::Inbox | Effect::Wait { .. } => Reply::Requests { requests: Vec::new() }.into(),
    }
}

/// Git must not find the person's repository above a copy: a `git reset` there would be theirs.
fn fence_git(folder: &Path) -> BTreeMap<String, String> {
    let fence = folder.parent().unwrap_or(folder).to_string_lossy().into_owned();
    BTreeMap::from([("GIT_CEILING_DIRECTORIES".to_string(), fence)])
}

/// Variables that would lead git past that fence.
fn git_variables() -> Vec<String> {
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"].map(String::from).to_vec()
}

/// Work on files goes to a thread of its own.
async fn blocking(work: impl FnOnce() -> Reply + Send + 'static) -> Performed {
    match tokio::task::spawn_blocking(work).await {
        Ok(reply) => reply.into(),
        Err(panicked) => world_fault(format!("work on files broke off: {panicked}")).into(),
    }
}

pub(crate) fn world_fault(detail: impl Into<String>) -> Reply {
    let fault = Fault::new(FaultKind::World, detail);
    Reply::Failed { fault, usage: Default::default(), output: None, prompt: None }
}
