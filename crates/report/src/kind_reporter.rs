//! What reports need to know about one kind of run.
//!
//! The common code draws what every run has: its start, its questions, warnings, waits, child runs and its ending. For
//! everything else it asks the reporter of the kind, which [`crate::kind_table`] picks. All methods have defaults, so that a
//! kind without wishes of its own is drawn, too:
//!
//! ```ignore
//! pub(crate) struct StoryReporter;
//!
//! impl KindReporter for StoryReporter {
//!     type Kind = StoryOrder;
//!     type Lines = PlainLines;
//!     type Live = PlainLive;
//! }
//! ```

use std::fmt;

use tribunal_engine::{ids::Key, limits::RemainingLimits, reason::RunOutcome};
use tribunal_workflows::{
    runs::{
        effect::Effect,
        kind_view::ViewedKind,
        run_kind::{KindEvent, RunKind},
        types::{Decision, RunEvent},
        view::RunView,
    },
    tasks::brief::{AgentTask, TaskBrief},
};

use crate::{
    line_buffer::LineBuffer,
    live::worker_list::WorkerList,
    phrases,
    report_parts::{
        document::{OtherRunReport, ReportSources},
        section::ReportSection,
    },
    run_standing::RunStanding,
    step_list::NextStep,
    style::{LineMark, TextStyle},
};

pub(crate) type EventOf<R> = <<R as KindReporter>::Kind as RunKind>::Event;
pub(crate) type SummaryOf<R> = <<R as KindReporter>::Kind as RunKind>::Summary;
pub(crate) type ViewOf<R> = <<R as KindReporter>::Kind as ViewedKind>::View;

/// The heading of results of any kind.
pub(crate) const DEFAULT_RESULT_HEADING: &str = "RESULT";

/// The texts of one kind of run. They follow from what is passed in; what has to be remembered from entry to entry is in
/// [`KindLines`] and [`KindLive`].
pub(crate) trait KindReporter: Sized {
    type Kind: ViewedKind;
    type Lines: KindLines<Self>;
    type Live: KindLive<Self>;

    /// The word for a run of this kind, as in `review of docs/prd.md`.
    const KIND_WORD: &'static str = <Self::Kind as RunKind>::NAME;

    /// The heading of the results in the list of runs.
    const RESULT_HEADING: &'static str = DEFAULT_RESULT_HEADING;

    /// Whether it is known what such a run uses. A total of zero is shown only then.
    const COUNTS_USAGE: bool = true;

    /// Whose limits they are, for runs of which one works for the other: `story`, as in `story cost limit reached`. Empty if
    /// there is nothing to mix up.
    const LIMIT_OWNER: &'static str = "";

    /// Whether child runs ask about their limits themselves; otherwise that is left to this run.
    const CHILDREN_ASK_ABOUT_LIMITS: bool = false;

    /// Lists the limits that only this kind has, for the header.
    fn list_limits(_: &Self::Kind) -> Vec<String> {
        Vec::new()
    }

    /// Describes the limits of each child run, with their owner, for the header; `None` if children have no limits of their own.
    fn describe_child_limits(_: &Self::Kind) -> Option<String> {
        None
    }

    /// Lists what else the header says about the order.
    fn list_order_facts(_: &Self::Kind) -> Vec<String> {
        Vec::new()
    }

    /// Describes what an event says beyond its kind and its subject.
    fn describe_event(_: &EventOf<Self>) -> String {
        String::new()
    }

    /// Returns whether the event is a failure or a refusal.
    fn is_problem(_: &EventOf<Self>) -> bool {
        false
    }

    /// The key of the effect that the event is about.
    fn find_key(_: &EventOf<Self>) -> Option<&Key> {
        None
    }

    /// Output of a command that the verbose log shows in full below the event.
    fn find_output(_: &EventOf<Self>) -> Option<&str> {
        None
    }

    /// Describes what came of a run, so far or in the end, in one line.
    fn describe_result(_: &SummaryOf<Self>) -> String {
        String::new()
    }

    /// Describes the result below [`KindReporter::RESULT_HEADING`].
    fn describe_result_cell(summary: &SummaryOf<Self>) -> String {
        Self::describe_result(summary)
    }

    /// Describes how much the run has done, for instance `2 rounds`.
    fn describe_effort(_: &SummaryOf<Self>) -> String {
        String::new()
    }

    /// Describes what is left of each limit.
    fn describe_remaining(remaining: &RemainingLimits) -> String {
        phrases::describe_remaining(remaining)
    }

    /// Counts what the run has found, for the live view; `None` if it has nothing to count.
    fn count_items(_: &SummaryOf<Self>) -> Option<ItemCounts> {
        None
    }

    /// Lists the commands that show what came of a run. The outcome is `None` if the run has not ended.
    fn list_result_commands(_: &SummaryOf<Self>, _: Option<RunOutcome>) -> Vec<ResultCommand> {
        Vec::new()
    }

    /// Lists what the closing lines say behind the usage.
    fn list_closing_facts(_: &ViewOf<Self>) -> Vec<String> {
        Vec::new()
    }

    /// Lists what `tribunal status` says in addition, one line each.
    fn list_status_lines(_: &ViewOf<Self>) -> Vec<String> {
        Vec::new()
    }

    /// What `tribunal report` says about the run: by default its result, in one line.
    fn build_section(
        _: &ViewOf<Self>,
        result: &SummaryOf<Self>,
        run_standing: &RunStanding<'_>,
        sources: &ReportSources<'_>,
    ) -> ReportSection {
        let result_parts = [Self::describe_effort(result), Self::describe_result(result)];
        let result = OtherRunReport::from_result(run_standing.run_view, result_parts, &["log"], sources);
        ReportSection { result, ..ReportSection::default() }
    }

    /// Lists the commands that take work from branches of its own.
    fn list_merge_steps(_: &ViewOf<Self>, _: &RunView) -> Vec<NextStep> {
        Vec::new()
    }

    /// Lists the files that the run has written for the user, with a label each. Paths in them are escaped, and the lines are
    /// not wrapped, because the user copies them.
    fn list_file_lines(_: &ViewOf<Self>) -> Vec<String> {
        Vec::new()
    }

    /// Describes what the tool itself does with an effect that may take long, so that the user sees why no agent moves.
    fn describe_own_work(effect: &Effect) -> Option<&'static str> {
        match effect {
            Effect::Freeze(_) => Some("copying files for the agents"),
            Effect::Write(_) => Some("writing files"),
            _ => None,
        }
    }

    /// Names a task and the agent's part in it.
    fn describe_task(_: &Key, task: &AgentTask) -> TaskDescription {
        let work = match &task.brief {
            TaskBrief::Review(_) => String::new(),
            TaskBrief::Instructions(instructions) => instructions.title.clone(),
        };
        TaskDescription { worker: task.worker_name().to_string(), work }
    }
}

/// What a run has found, and how much of it is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ItemCounts {
    pub found: u32,
    pub fixed: u32,
    pub open: u32,
}

/// A command that takes the id of the run: `tribunal findings RUN`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultCommand {
    pub command: &'static str,
    /// Empty if the command explains itself.
    pub explanation: &'static str,
}

/// A task under way: `fixer 2` works on `F3 F4`.
#[derive(Clone, Debug)]
pub(crate) struct TaskDescription {
    pub worker: String,
    /// What it works on; empty if the worker's name says everything.
    pub work: String,
}

/// Draws the events of one kind of run as lines.
///
/// Events are tracked in every mode, since the user may change the mode at any time; only those that the mode shows are drawn.
pub(crate) trait KindLines<R: KindReporter>: fmt::Debug + Default {
    /// Takes note of any event. The view already contains it.
    fn track_event(&mut self, _: &RunEvent, _: &RunView) {}

    /// Draws an event of this kind of run.
    fn write_event(&mut self, event: &EventOf<R>, _: &RunView, lines: &mut LineBuffer) {
        let (event_name, subject, description) =
            (event.kind_name().replace('_', " "), event.subject_name(), R::describe_event(event));
        let text_parts = [event_name.as_str(), &subject, &description].into_iter().filter(|part| !part.is_empty());
        lines.write_wrapped(2, TextStyle::Plain, &text_parts.collect::<Vec<_>>().join(": "));
    }

    /// Draws a question when it is asked. The closing lines of the run list those that are open then.
    fn write_decision(&mut self, decision: &Decision, _: &RunView, lines: &mut LineBuffer) {
        let line_text = format!("{} needs an answer: {}", decision.id, decision.question);
        lines.write_marked(2, LineMark::QUESTION, &line_text);
    }

    /// Draws the result of a stage if the event is the last one of it. This is all that the mode `summary` shows.
    fn write_stage_end(&mut self, _: &RunEvent, _: &RunView, _: &mut LineBuffer) {}

    /// Names the agent that reports its progress; `None` shows the key of its task.
    fn name_worker(&self, _: &Key) -> Option<String> {
        None
    }

    /// Names the agent that is asked again.
    fn name_retried_worker(&self, _: &Key, task: &AgentTask) -> String {
        task.worker_name().to_string()
    }
}

/// Draws every event of a run in one plain line.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlainLines;

impl<R: KindReporter> KindLines<R> for PlainLines {}

/// Keeps what the live view shows of one kind of run.
pub(crate) trait KindLive<R: KindReporter>: Clone + fmt::Debug + Default {
    /// Updates the stage and the workers with an event of this kind of run.
    fn track_event(&mut self, _: &EventOf<R>, _: &mut WorkerList) {}

    /// An agent is about to be asked. Its worker is shown if there is one.
    fn track_task(&mut self, task_key: &Key, task: &AgentTask, workers: &mut WorkerList) {
        if workers.find_worker(task_key).is_none() {
            let TaskDescription { worker, work } = R::describe_task(task_key, task);
            workers.add_worker(task_key.task_key(), worker, work);
        }
    }

    /// A stage has ended. By default its workers go.
    fn end_stage(&mut self, workers: &mut WorkerList) {
        workers.clear_workers();
    }

    /// Describes the stage that is under way.
    fn describe_stage(&self, workers: &WorkerList) -> StageDescription {
        let text = if workers.is_empty() { "working".to_string() } else { format!("working {}", workers.count_text()) };
        StageDescription { has_begun: true, word: "working", text, place: String::new(), short_place: String::new() }
    }

    /// Describes what the frame shows of this kind of run besides its workers.
    fn describe_progress(&self, _: &RunView) -> LiveProgress {
        LiveProgress::default()
    }
}

/// Shows the agents that work, and nothing else.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlainLive;

impl<R: KindReporter> KindLive<R> for PlainLive {}

/// The stage of a run, for one line.
#[derive(Clone, Debug)]
pub(crate) struct StageDescription {
    /// Whether the first stage has begun.
    pub has_begun: bool,
    /// What is being done, in one word: `reviewing`.
    pub word: &'static str,
    /// The word with the number of workers that have finished: `reviewing 2/5`.
    pub text: String,
    /// The place of the stage in the run: `round 1/3`. It may be empty.
    pub place: String,
    /// A shorter form of the place: `round 1`.
    pub short_place: String,
}

/// What the frame shows of a kind of run. Position, settled and score are one line each, as a list of forms, from the fullest
/// to the shortest, of which the first that fits is drawn; without a form there is no line.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveProgress {
    /// Where the run is; drawn below the title.
    pub position: Vec<String>,
    /// What is done, one line each, the latest last; drawn above the position as far as there is room.
    pub items: Vec<String>,
    /// What is settled; drawn above the budget.
    pub settled: Vec<String>,
    /// How good the result is; drawn between the two.
    pub score: Vec<String>,
    /// Whether its child runs have limits of their own, which are drawn above those of the run.
    pub shows_child_limits: bool,
    /// What the symbols in these lines mean, for the help.
    pub legend: &'static str,
}

#[cfg(test)]
mod tests {
    use tribunal_engine::ids::{AgentName, DecisionId};
    use tribunal_workflows::{
        findings::{agent_role::AgentRole, subject::Subject},
        review::{
            event::ReviewEvent,
            level::ReviewLevel,
            order::{ReviewOrder, ReviewSummary},
        },
        tasks::{
            brief::WorkspaceKind,
            client::JobKind,
            instructions::InstructionBrief,
            purpose::{ExpectedAnswer, TaskPurpose},
        },
    };

    use super::*;
    use crate::style::Screen;

    /// A kind of run without wishes of its own.
    struct PlainReporter;

    impl KindReporter for PlainReporter {
        type Kind = ReviewOrder;
        type Lines = PlainLines;
        type Live = PlainLive;
    }

    fn level_chosen() -> ReviewEvent {
        ReviewEvent::LevelChosen { level: ReviewLevel::Full, why: "tier 2".into(), panel: vec![AgentRole::Party] }
    }

    #[test]
    fn a_kind_without_wishes_has_its_events_and_questions_drawn() {
        let (mut kind_lines, run_view) = (PlainLines, RunView::default());
        let mut lines = LineBuffer::new(Screen::default());
        let round_started = ReviewEvent::RoundStarted { round: 2, of: 3, why: None };
        for event in [level_chosen(), round_started] {
            KindLines::<PlainReporter>::write_event(&mut kind_lines, &event, &run_view, &mut lines);
        }
        let decision = Decision::for_limit(DecisionId::new("D1"), "The budget is used up. Go on?".into());
        KindLines::<PlainReporter>::write_decision(&mut kind_lines, &decision, &run_view, &mut lines);
        let expected = "  level chosen\n  round started: 2\n  ? D1 needs an answer: The budget is used up. Go on?\n";
        assert_eq!(lines.take_text(), expected);
    }

    #[test]
    fn a_kind_without_wishes_has_its_agents_shown_until_the_stage_ends() {
        let (mut kind_live, mut workers) = (PlainLive, WorkerList::default());
        let stage_text = |kind_live: &PlainLive, workers: &WorkerList| {
            KindLive::<PlainReporter>::describe_stage(kind_live, workers).text
        };
        assert_eq!(stage_text(&kind_live, &workers), "working");
        let brief = InstructionBrief { title: "story 1.2".into(), ..InstructionBrief::new("Write the story.") };
        let purpose = TaskPurpose { job: JobKind::CreateStory, expects: ExpectedAnswer::Status };
        let task = AgentTask::new(AgentName::new("sample"), purpose, brief, WorkspaceKind::Private, 1_000);
        let task_key = Key::new("draft");
        let description = PlainReporter::describe_task(&task_key, &task);
        assert_eq!((description.worker.as_str(), description.work.as_str()), ("create-story", "story 1.2"));
        workers.add_worker(task_key.clone(), description.worker, description.work);
        assert_eq!(stage_text(&kind_live, &workers), "working 0/1");
        if let Some(worker) = workers.find_worker(&task_key.second_try()) {
            worker.mark_finished("answered");
        }
        assert_eq!(stage_text(&kind_live, &workers), "working 1/1");
        KindLive::<PlainReporter>::end_stage(&mut kind_live, &mut workers);
        assert!(workers.is_empty());
    }

    #[test]
    fn a_kind_without_wishes_says_nothing_that_only_others_have() {
        let order = ReviewOrder::new(Subject::from_path("plan.md", None));
        assert_eq!((PlainReporter::KIND_WORD, PlainReporter::RESULT_HEADING), ("review", "RESULT"));
        assert!(PlainReporter::list_limits(&order).is_empty() && PlainReporter::list_order_facts(&order).is_empty());
        assert_eq!(PlainReporter::describe_result(&ReviewSummary::default()), "");
        assert!(!PlainReporter::is_problem(&level_chosen()));
    }
}
