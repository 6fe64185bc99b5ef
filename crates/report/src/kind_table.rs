//! The reporters of all kinds of runs: one row for each kind, as in [`tribunal_workflows::runs::kinds`].
//!
//! The functions here pick the reporter for an order, an event, a summary or a view. No other code of this crate lists the
//! kinds. To add a kind: implement [`KindReporter`] in a file of its own, and add a row at the end of this file.

use tribunal_engine::{ids::Key, limits::RemainingLimits};
use tribunal_workflows::{
    runs::{
        effect::Effect,
        kinds::{RunOrder, WorkflowEvent, WorkflowSummary},
        types::{Decision, RunEvent, RunSummary},
        view::{RunView, WorkflowView},
    },
    tasks::brief::AgentTask,
};

use crate::{
    kind_reporter::{
        ItemCounts, KindLines, KindLive, KindReporter, LiveProgress, ResultCommand, StageDescription, TaskDescription,
    },
    line_buffer::LineBuffer,
    live::worker_list::WorkerList,
    report_parts::{document::ReportSources, section::ReportSection},
    run_standing::RunStanding,
    step_list::NextStep,
};

/// Makes the functions that pick a reporter, and the enums of what reporters keep from entry to entry.
macro_rules! kind_reporters {
    ($($(#[$attribute:meta])* $kind:ident($reporter:ty);)*) => {
        /// The word for a run of this kind, as in `review of docs/prd.md`.
        pub(crate) fn kind_word(order: &RunOrder) -> &'static str {
            match order { $($(#[$attribute])* RunOrder::$kind(_) => <$reporter>::KIND_WORD,)* }
        }

        pub(crate) fn result_heading(order: &RunOrder) -> &'static str {
            match order { $($(#[$attribute])* RunOrder::$kind(_) => <$reporter>::RESULT_HEADING,)* }
        }

        pub(crate) fn list_limits(order: &RunOrder) -> Vec<String> {
            match order { $($(#[$attribute])* RunOrder::$kind(order) => <$reporter>::list_limits(order),)* }
        }

        /// Describes the limits of each child run: `story limits: …`.
        pub(crate) fn describe_child_limits(order: &RunOrder) -> Option<String> {
            match order { $($(#[$attribute])* RunOrder::$kind(order) => <$reporter>::describe_child_limits(order),)* }
        }

        /// Whose limits a run with this result has: `story`, or nothing if that needs no word.
        pub(crate) fn limit_owner(result: &WorkflowSummary) -> &'static str {
            match result { $($(#[$attribute])* WorkflowSummary::$kind(_) => <$reporter>::LIMIT_OWNER,)* }
        }

        pub(crate) fn list_order_facts(order: &RunOrder) -> Vec<String> {
            match order { $($(#[$attribute])* RunOrder::$kind(order) => <$reporter>::list_order_facts(order),)* }
        }

        pub(crate) fn describe_own_work(order: &RunOrder, effect: &Effect) -> Option<&'static str> {
            match order { $($(#[$attribute])* RunOrder::$kind(_) => <$reporter>::describe_own_work(effect),)* }
        }

        pub(crate) fn describe_task(order: &RunOrder, task_key: &Key, task: &AgentTask) -> TaskDescription {
            match order { $($(#[$attribute])* RunOrder::$kind(_) => <$reporter>::describe_task(task_key, task),)* }
        }

        pub(crate) fn describe_event(event: &WorkflowEvent) -> String {
            match event { $($(#[$attribute])* WorkflowEvent::$kind(event) => <$reporter>::describe_event(event),)* }
        }

        /// Returns whether the event is a failure or a refusal.
        pub(crate) fn is_problem(event: &WorkflowEvent) -> bool {
            match event { $($(#[$attribute])* WorkflowEvent::$kind(event) => <$reporter>::is_problem(event),)* }
        }

        /// The key of the effect that the event is about.
        pub(crate) fn find_key(event: &WorkflowEvent) -> Option<&Key> {
            match event { $($(#[$attribute])* WorkflowEvent::$kind(event) => <$reporter>::find_key(event),)* }
        }

        /// Output of a command that the verbose log shows in full below the event.
        pub(crate) fn find_output(event: &WorkflowEvent) -> Option<&str> {
            match event { $($(#[$attribute])* WorkflowEvent::$kind(event) => <$reporter>::find_output(event),)* }
        }

        pub(crate) fn describe_result(result: &WorkflowSummary) -> String {
            match result { $($(#[$attribute])* WorkflowSummary::$kind(result) => <$reporter>::describe_result(result),)* }
        }

        pub(crate) fn describe_result_cell(result: &WorkflowSummary) -> String {
            match result {
                $($(#[$attribute])* WorkflowSummary::$kind(result) => <$reporter>::describe_result_cell(result),)*
            }
        }

        pub(crate) fn describe_effort(result: &WorkflowSummary) -> String {
            match result { $($(#[$attribute])* WorkflowSummary::$kind(result) => <$reporter>::describe_effort(result),)* }
        }

        /// Whether it is known what a run with this result has used.
        pub(crate) fn counts_usage(result: &WorkflowSummary) -> bool {
            match result { $($(#[$attribute])* WorkflowSummary::$kind(_) => <$reporter>::COUNTS_USAGE,)* }
        }

        /// Describes what is left of each limit of a run with this result.
        pub(crate) fn describe_remaining(result: &WorkflowSummary, remaining: &RemainingLimits) -> String {
            match result {
                $($(#[$attribute])* WorkflowSummary::$kind(_) => <$reporter>::describe_remaining(remaining),)*
            }
        }

        pub(crate) fn count_items(result: &WorkflowSummary) -> Option<ItemCounts> {
            match result { $($(#[$attribute])* WorkflowSummary::$kind(result) => <$reporter>::count_items(result),)* }
        }

        /// Lists the commands that show what came of a run; none before it has started.
        pub(crate) fn list_result_commands(run_view: &RunView) -> Vec<ResultCommand> {
            let outcome = run_view.run_summary().and_then(|summary| summary.outcome);
            match find_result(run_view) {
                $($(#[$attribute])* Some(WorkflowSummary::$kind(result)) => {
                    <$reporter>::list_result_commands(&result, outcome)
                })*
                None => Vec::new(),
            }
        }

        pub(crate) fn list_closing_facts(run_view: &RunView) -> Vec<String> {
            match &run_view.detail {
                $($(#[$attribute])* Some(WorkflowView::$kind(view)) => <$reporter>::list_closing_facts(view),)*
                None => Vec::new(),
            }
        }

        pub(crate) fn list_status_lines(run_view: &RunView) -> Vec<String> {
            match &run_view.detail {
                $($(#[$attribute])* Some(WorkflowView::$kind(view)) => <$reporter>::list_status_lines(view),)*
                None => Vec::new(),
            }
        }

        /// What `tribunal report` says about a run; nothing before it has started.
        pub(crate) fn build_section(run_standing: &RunStanding<'_>, sources: &ReportSources<'_>) -> ReportSection {
            match (&run_standing.run_view.detail, find_result(run_standing.run_view)) {
                $($(#[$attribute])* (Some(WorkflowView::$kind(view)), Some(WorkflowSummary::$kind(result))) => {
                    <$reporter>::build_section(view, &result, run_standing, sources)
                })*
                // A run has a view and a result of its own kind.
                _ => ReportSection::default(),
            }
        }

        pub(crate) fn list_merge_steps(run_view: &RunView) -> Vec<NextStep> {
            match &run_view.detail {
                $($(#[$attribute])* Some(WorkflowView::$kind(view)) => <$reporter>::list_merge_steps(view, run_view),)*
                None => Vec::new(),
            }
        }

        /// Whether the child runs of such a run ask about their limits themselves.
        pub(crate) fn children_ask_about_limits(order: &RunOrder) -> bool {
            match order { $($(#[$attribute])* RunOrder::$kind(_) => <$reporter>::CHILDREN_ASK_ABOUT_LIMITS,)* }
        }

        pub(crate) fn list_file_lines(run_view: &RunView) -> Vec<String> {
            match &run_view.detail {
                $($(#[$attribute])* Some(WorkflowView::$kind(view)) => <$reporter>::list_file_lines(view),)*
                None => Vec::new(),
            }
        }

        /// What the line reporter keeps of a run, whichever kind it is of.
        #[derive(Debug, Default)]
        pub(crate) enum RunLines {
            /// No entry has named the kind yet.
            #[default]
            Unknown,
            $($(#[$attribute])* $kind(Box<<$reporter as KindReporter>::Lines>),)*
        }

        impl RunLines {
            /// Takes note of any event. The view already contains it.
            pub(crate) fn track_event(&mut self, event: &RunEvent, run_view: &RunView) {
                match (&self, event) {
                    $(
                        $(#[$attribute])*
                        (
                            RunLines::Unknown,
                            RunEvent::RunStarted { order: RunOrder::$kind(_), .. }
                            | RunEvent::Workflow(WorkflowEvent::$kind(_)),
                        ) => *self = RunLines::$kind(Default::default()),
                    )*
                    _ => {}
                }
                match self {
                    RunLines::Unknown => {}
                    $($(#[$attribute])* RunLines::$kind(kind_lines) => {
                        KindLines::<$reporter>::track_event(kind_lines.as_mut(), event, run_view);
                    })*
                }
            }

            /// Draws an event of the workflow. An event of another kind than the run's is not drawn; no run has one.
            pub(crate) fn write_event(&mut self, event: &WorkflowEvent, run_view: &RunView, lines: &mut LineBuffer) {
                match (self, event) {
                    $($(#[$attribute])* (RunLines::$kind(kind_lines), WorkflowEvent::$kind(event)) => {
                        KindLines::<$reporter>::write_event(kind_lines.as_mut(), event, run_view, lines);
                    })*
                    _ => {}
                }
            }

            pub(crate) fn write_decision(&mut self, decision: &Decision, run_view: &RunView, lines: &mut LineBuffer) {
                match self {
                    RunLines::Unknown => {}
                    $($(#[$attribute])* RunLines::$kind(kind_lines) => {
                        KindLines::<$reporter>::write_decision(kind_lines.as_mut(), decision, run_view, lines);
                    })*
                }
            }

            pub(crate) fn write_stage_end(&mut self, event: &RunEvent, run_view: &RunView, lines: &mut LineBuffer) {
                match self {
                    RunLines::Unknown => {}
                    $($(#[$attribute])* RunLines::$kind(kind_lines) => {
                        KindLines::<$reporter>::write_stage_end(kind_lines.as_mut(), event, run_view, lines);
                    })*
                }
            }

            pub(crate) fn name_worker(&self, task_key: &Key) -> Option<String> {
                match self {
                    RunLines::Unknown => None,
                    $($(#[$attribute])* RunLines::$kind(kind_lines) => {
                        KindLines::<$reporter>::name_worker(kind_lines.as_ref(), task_key)
                    })*
                }
            }

            pub(crate) fn name_retried_worker(&self, task_key: &Key, task: &AgentTask) -> String {
                match self {
                    RunLines::Unknown => task.worker_name().to_string(),
                    $($(#[$attribute])* RunLines::$kind(kind_lines) => {
                        KindLines::<$reporter>::name_retried_worker(kind_lines.as_ref(), task_key, task)
                    })*
                }
            }
        }

        /// What the live view keeps of a run, whichever kind it is of.
        #[derive(Clone, Debug, Default)]
        pub(crate) enum RunLive {
            /// No entry has named the kind yet.
            #[default]
            Unknown,
            $($(#[$attribute])* $kind(<$reporter as KindReporter>::Live),)*
        }

        impl RunLive {
            /// Begins a run.
            pub(crate) fn from_order(order: &RunOrder) -> RunLive {
                match order { $($(#[$attribute])* RunOrder::$kind(_) => RunLive::$kind(Default::default()),)* }
            }

            /// Updates the stage and the workers with an event of the workflow.
            pub(crate) fn track_event(&mut self, event: &WorkflowEvent, workers: &mut WorkerList) {
                match (self, event) {
                    $($(#[$attribute])* (RunLive::$kind(kind_live), WorkflowEvent::$kind(event)) => {
                        KindLive::<$reporter>::track_event(kind_live, event, workers);
                    })*
                    _ => {}
                }
            }

            pub(crate) fn track_task(&mut self, task_key: &Key, task: &AgentTask, workers: &mut WorkerList) {
                match self {
                    RunLive::Unknown => {}
                    $($(#[$attribute])* RunLive::$kind(kind_live) => {
                        KindLive::<$reporter>::track_task(kind_live, task_key, task, workers);
                    })*
                }
            }

            pub(crate) fn end_stage(&mut self, workers: &mut WorkerList) {
                match self {
                    RunLive::Unknown => {}
                    $($(#[$attribute])* RunLive::$kind(kind_live) => {
                        KindLive::<$reporter>::end_stage(kind_live, workers);
                    })*
                }
            }

            pub(crate) fn describe_stage(&self, workers: &WorkerList) -> Option<StageDescription> {
                match self {
                    RunLive::Unknown => None,
                    $($(#[$attribute])* RunLive::$kind(kind_live) => {
                        Some(KindLive::<$reporter>::describe_stage(kind_live, workers))
                    })*
                }
            }

            pub(crate) fn describe_progress(&self, run_view: &RunView) -> LiveProgress {
                match self {
                    RunLive::Unknown => LiveProgress::default(),
                    $($(#[$attribute])* RunLive::$kind(kind_live) => {
                        KindLive::<$reporter>::describe_progress(kind_live, run_view)
                    })*
                }
            }
        }
    };
}

/// What came of a run: what its summary says or, while it is under way, what its view says. `None` before it has started.
pub(crate) fn find_result(run_view: &RunView) -> Option<WorkflowSummary> {
    match run_view.run_summary() {
        Some(RunSummary { result, .. }) => Some(result.clone()),
        None => run_view.build_result(),
    }
}

kind_reporters! {
    Review(crate::review::ReviewReporter);
    Session(crate::session::SessionReporter);
    Loop(crate::loop_run::LoopReporter);
    Story(crate::story::StoryReporter);
    Sprint(crate::sprint::SprintReporter);
    #[cfg(feature = "toy-workflow")]
    Toy(crate::toy::ToyReporter);
}
