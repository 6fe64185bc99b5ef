//! The host as a review sees it.

use crate::{
    review::{order::ReviewOrder, sizing},
    runs::kind_host::KindHost,
    tasks::{asking::AgentConsultation, brief::AgentTask},
};
use tribunal_engine::{ids::Key, limits::RunUsage};

pub(super) type ReviewHost<'a> = KindHost<'a, ReviewOrder>;

impl ReviewHost<'_> {
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
            Some(sizing::task_size(self.settings().tier, review_brief, is_escalated))
        };
        let (size, escalated_size) = (task_size(false), task_size(true));
        let task = AgentTask { size, ..task };
        AgentConsultation { task_key, task, run_usage, parallel_tasks, escalated_size, is_single_try: false }
    }
}
