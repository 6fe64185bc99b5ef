//! The host as a review sees it: with its order, and with its own events.

use core::ops::Deref;

use crate::{
    review::{event::ReviewEvent, order::ReviewOrder, sizing},
    runs::types::{RunEvent, RunHost},
    tasks::{asking::AgentConsultation, brief::AgentTask},
};
use tribunal_engine::{ids::Key, limits::RunUsage};

#[derive(Clone, Copy)]
pub(super) struct ReviewHost<'a> {
    host: &'a RunHost<'a>,
    pub order: &'a ReviewOrder,
}

impl<'a> ReviewHost<'a> {
    pub fn new(host: &'a RunHost<'a>, order: &'a ReviewOrder) -> ReviewHost<'a> {
        ReviewHost { host, order }
    }

    /// The host for code that serves all kinds of runs.
    pub fn run_host(&self) -> &'a RunHost<'a> {
        self.host
    }

    /// Prepares to ask an agent, with a model of the size that the task is worth. `parallel_tasks` run side by side.
    pub fn new_consultation<'c>(
        &self,
        task_key: &'c Key,
        task: AgentTask,
        run_usage: &'c RunUsage,
        parallel_tasks: usize,
    ) -> AgentConsultation<'c> {
        let task_size = |is_escalated: bool| {
            let review_brief = task.brief.as_review()?;
            Some(sizing::task_size(self.host.settings().tier, review_brief, is_escalated))
        };
        let (size, escalated_size) = (task_size(false), task_size(true));
        let task = AgentTask { size, ..task };
        AgentConsultation { task_key, task, run_usage, parallel_tasks, escalated_size, is_single_try: false }
    }

    /// Writes an event of a review into the journal.
    pub fn note_review(&self, event: ReviewEvent) {
        self.host.note_event(RunEvent::from_workflow(event));
    }
}

impl<'a> Deref for ReviewHost<'a> {
    type Target = RunHost<'a>;

    fn deref(&self) -> &RunHost<'a> {
        self.host
    }
}
