//! A run as users see it, computed from its journal and from nothing else.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use crate::{
    findings::{counts::FindingCounts, finding::Finding},
    loop_run::view::LoopView,
    review::{order::ReviewOrder, topic::ReviewTopic, view::ReviewView},
    runs::{
        effect::{AskOutcome, Effect, Reply},
        incidents::RunIncidents,
        kind_view::{KindView, ViewedKind},
        kinds::{RunOrder, WorkflowEvent, WorkflowSummary, for_each_kind},
        plan::RunPlan,
        settings::Settings,
        types::{ChildOutcome, ChildStanding, Decision, JournalEntry, RunEvent, RunSummary, find_topic},
    },
    session::{
        ending::describe_session_question,
        event::{SessionEvent, SessionRecord},
        view::SessionView,
    },
    sprint::{standing::StoryStanding, view::SprintView},
    story::view::StoryView,
};
use tribunal_engine::{
    answer::DecisionAnswer,
    children::StartedChild,
    effect::{AwaitReset, WaitCause},
    event::ParentRun,
    ids::{AgentName, CommitId, DecisionId, FindingId, RunId},
    limits::RunUsage,
    reason::{RunOutcome, RunReason},
    timestamp::Timestamp,
};

/// What is said about a run whose work waited on a branch of its own, after the user has merged it.
pub const MERGED_DETAIL: &str = "the work that waited on a branch of its own is merged";

/// What is said about a run that waited for the user when the run that started it ended or did without it.
pub const LEFT_DETAIL: &str = "the run that it belongs to has ended, or does without it";

/// The phase of a run according to its journal. The journal cannot know whether a process still works on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunPhase {
    #[default]
    Running,
    Parked(RunSummary),
    Finished(RunSummary),
}

#[derive(Clone, Debug, Default)]
pub struct RunView {
    pub run_id: Option<RunId>,
    pub settings: Option<Settings>,
    /// What the run was asked to do.
    pub order: Option<RunOrder>,
    pub parent: Option<ParentRun>,
    pub start_time: Timestamp,
    pub last_time: Timestamp,
    pub phase: RunPhase,
    pub incidents: RunIncidents,
    pub decisions: Vec<Decision>,
    /// What the run's own agent calls used.
    pub usage: RunUsage,
    /// The child runs by their names.
    pub children: BTreeMap<String, ChildStanding>,
    /// The part that depends on the kind of run; `None` until the run has started.
    pub detail: Option<WorkflowView>,
}

/// Makes the enum of the views of all kinds.
macro_rules! workflow_views {
    ($($(#[$attribute:meta])* $kind:ident($order:ty);)*) => {
        /// The part of a run's view that depends on its kind.
        #[derive(Clone, Debug)]
        pub enum WorkflowView {
            $($(#[$attribute])* $kind(<$order as ViewedKind>::View),)*
        }

        impl WorkflowView {
            fn from_order(order: &RunOrder) -> WorkflowView {
                match order {
                    $($(#[$attribute])* RunOrder::$kind(order) => {
                        let mut view = <$order as ViewedKind>::View::default();
                        view.apply_order(order);
                        WorkflowView::$kind(view)
                    })*
                }
            }

            /// Applies a changed order. An order of another kind is ignored: a run never changes its kind.
            fn apply_order(&mut self, order: &RunOrder) {
                match (self, order) {
                    $($(#[$attribute])* (WorkflowView::$kind(view), RunOrder::$kind(order)) => view.apply_order(order),)*
                    _ => {}
                }
            }

            fn apply_event(&mut self, event: &WorkflowEvent, at: Timestamp) {
                match (self, event) {
                    $($(#[$attribute])* (WorkflowView::$kind(view), WorkflowEvent::$kind(event)) => view.apply_event(event, at),)*
                    _ => {}
                }
            }

            fn apply_reply(&mut self, reply: &Reply) {
                match self { $($(#[$attribute])* WorkflowView::$kind(view) => view.apply_reply(reply),)* }
            }

            fn apply_session(&mut self, event: &SessionEvent, at: Timestamp) {
                match self { $($(#[$attribute])* WorkflowView::$kind(view) => view.apply_session(event, at),)* }
            }

            fn apply_summary(&mut self, summary: &WorkflowSummary) {
                match (self, summary) {
                    $($(#[$attribute])* (WorkflowView::$kind(view), WorkflowSummary::$kind(summary)) => {
                        view.apply_summary(summary);
                    })*
                    _ => {}
                }
            }

            pub fn build_summary(&self) -> WorkflowSummary {
                match self {
                    $($(#[$attribute])* WorkflowView::$kind(view) => WorkflowSummary::$kind(view.build_summary()),)*
                }
            }
        }
    };
}

for_each_kind!(workflow_views);

impl RunView {
    pub fn from_entries<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> RunView {
        let mut view = RunView::default();
        for journal_entry in entries {
            view.apply_entry(journal_entry);
        }
        view
    }

    /// Applies one more entry.
    pub fn apply_entry(&mut self, journal_entry: &JournalEntry) {
        self.last_time = journal_entry.at;
        match &journal_entry.event {
            RunEvent::RunStarted { settings, order, parent, .. } => {
                self.run_id = Some(journal_entry.run.clone());
                self.settings = Some(settings.clone());
                self.detail = Some(WorkflowView::from_order(order));
                self.order = Some(order.clone());
                self.parent.clone_from(parent);
                self.start_time = journal_entry.at;
                self.incidents.life_count = 1;
            }
            RunEvent::RunResumed { life } => {
                // A resumed run is running again, whether it was parked or had crashed.
                self.incidents.life_count = *life;
                self.phase = RunPhase::Running;
                // A wait that was under way continues without a new entry, so only expired limits are removed.
                let wall_ms = journal_entry.at.wall_ms;
                self.usage.limited.retain(|_, until_ms| *until_ms > wall_ms);
            }
            RunEvent::SettingsChanged { settings, order } => {
                self.settings = Some(settings.clone());
                self.order = Some(order.clone());
                self.update_detail(|detail| detail.apply_order(order));
            }
            RunEvent::RunParked(summary) => {
                reword_session_questions(&mut self.decisions, summary);
                self.update_detail(|detail| detail.apply_summary(&summary.result));
                self.phase = RunPhase::Parked(summary.clone());
            }
            RunEvent::RunFinished(summary) => {
                self.update_detail(|detail| detail.apply_summary(&summary.result));
                self.phase = RunPhase::Finished(summary.clone());
            }
            RunEvent::EffectStarted { effect, .. } => self.apply_effect(effect),
            RunEvent::EffectFinished { reply, .. } => self.apply_reply(reply),
            RunEvent::ChildStarted { name, child, .. } => {
                self.children.entry(name.clone()).or_insert_with(|| ChildStanding::new(child.clone()));
            }
            RunEvent::ChildReturned(returned) => self.apply_child_outcome(&returned.outcome),
            RunEvent::ChildUsage { name, used } => {
                if let Some(standing) = self.children.get_mut(name) {
                    standing.apply_usage(*used);
                }
            }
            RunEvent::DecisionPosted { decision } => self.decisions.push(decision.clone()),
            // Withdrawn decisions are answered, too, so they no longer count as open.
            RunEvent::DecisionAnswered { decision: decision_id, answer } => {
                for known_decision in
                    self.decisions.iter_mut().filter(|known_decision| known_decision.id == *decision_id)
                {
                    known_decision.answer = Some(answer.clone());
                }
            }
            RunEvent::Workflow(WorkflowEvent::Session(SessionRecord::Session(event))) => {
                self.update_detail(|detail| detail.apply_session(event, journal_entry.at))
            }
            RunEvent::Workflow(event) => {
                for remark in event.list_remarks() {
                    self.incidents.note_warning(remark);
                }
                self.update_detail(|detail| detail.apply_event(event, journal_entry.at));
            }
            RunEvent::Warned { text } | RunEvent::WordIgnored { text } => self.incidents.note_warning(text),
            RunEvent::Boundary { .. } | RunEvent::Patched { .. } | RunEvent::Unknown(_) => {}
        }
    }

    fn update_detail(&mut self, update: impl FnOnce(&mut WorkflowView)) {
        if let Some(detail) = &mut self.detail {
            update(detail);
        }
    }

    fn apply_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::AwaitReset(AwaitReset { agent, until_ms, cause: WaitCause::UsageLimit, .. }) => {
                self.usage.limited.insert(agent.clone(), *until_ms);
            }
            Effect::RunChild(run_child) => {
                if let Some(standing) = self.children.get_mut(&run_child.name) {
                    standing.outcome = None;
                }
            }
            _ => {}
        }
    }

    fn apply_reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Ask(AskOutcome::Answered(reply)) => self.usage.add_usage(&reply.usage),
            Reply::Ask(AskOutcome::Failed(failed)) => self.usage.add_usage(&failed.usage),
            // The wait is over, so limits that have passed by now are removed.
            Reply::Sleep(_) | Reply::AwaitReset(_) => {
                let wall_ms = self.last_time.wall_ms;
                self.usage.limited.retain(|_, until_ms| *until_ms > wall_ms);
            }
            Reply::RunChild(outcome) => self.apply_child_outcome(outcome),
            // The request itself may lie before a boundary, and is not read then.
            Reply::StartChild(StartedChild { name, .. }) => {
                if let Some(standing) = self.children.get_mut(name) {
                    standing.outcome = None;
                }
            }
            _ => {}
        }
        self.update_detail(|detail| detail.apply_reply(reply));
    }

    fn apply_child_outcome(&mut self, outcome: &ChildOutcome) {
        self.children.values_mut().for_each(|standing| standing.apply_outcome(outcome));
    }

    /// Returns what the run and its children used together.
    pub fn total_usage(&self) -> RunUsage {
        let mut total_usage = self.usage.clone();
        for standing in self.children.values() {
            total_usage.add_child(&standing.usage);
        }
        total_usage
    }

    /// The name of the kind of run, for instance `review`.
    pub fn kind_name(&self) -> &'static str {
        self.order.as_ref().map_or("", RunOrder::kind_name)
    }

    /// Names what the run works on.
    pub fn title(&self) -> String {
        self.order.as_ref().map(RunOrder::title).unwrap_or_default()
    }

    /// The name of a child run for users: `PARENT/name`.
    pub fn child_alias(&self) -> Option<String> {
        self.parent.as_ref().map(|parent| [parent.run.as_str(), &parent.name].join("/"))
    }

    /// The view of a review; `None` if the run is of another kind.
    pub fn as_review(&self) -> Option<&ReviewView> {
        match &self.detail {
            Some(WorkflowView::Review(view)) => Some(view),
            _ => None,
        }
    }

    /// The order of a review; `None` if the run is of another kind.
    pub fn review_order(&self) -> Option<&ReviewOrder> {
        self.order.as_ref()?.as_review()
    }

    /// The view of a loop in a session; `None` if the run is of another kind.
    pub fn as_session(&self) -> Option<&SessionView> {
        match &self.detail {
            Some(WorkflowView::Session(view)) => Some(view),
            _ => None,
        }
    }

    pub fn run_summary(&self) -> Option<&RunSummary> {
        match &self.phase {
            RunPhase::Running => None,
            RunPhase::Parked(summary) | RunPhase::Finished(summary) => Some(summary),
        }
    }

    /// What the run is pinned to; `None` until it has started.
    pub fn run_plan(&self) -> Option<RunPlan> {
        Some(RunPlan { settings: self.settings.clone()?, order: self.order.clone()? })
    }

    pub fn find_finding(&self, finding_id: FindingId) -> Option<&Finding> {
        self.as_review()?.findings.get(&finding_id)
    }

    /// Builds the part of a summary that depends on the kind of run.
    pub fn build_result(&self) -> Option<WorkflowSummary> {
        self.detail.as_ref().map(WorkflowView::build_summary)
    }

    /// Returns what only loops have; `None` if the run is of another kind.
    pub fn as_loop(&self) -> Option<&LoopView> {
        match &self.detail {
            Some(WorkflowView::Loop(view)) => Some(view),
            _ => None,
        }
    }

    /// Returns what only story runs have; `None` if the run is of another kind.
    pub fn as_story(&self) -> Option<&StoryView> {
        match &self.detail {
            Some(WorkflowView::Story(view)) => Some(view),
            _ => None,
        }
    }

    /// Returns what only sprints have; `None` if the run is of another kind.
    pub fn as_sprint(&self) -> Option<&SprintView> {
        match &self.detail {
            Some(WorkflowView::Sprint(view)) => Some(view),
            _ => None,
        }
    }

    /// Returns the findings of a review; other runs have none.
    pub fn all_findings(&self) -> impl Iterator<Item = &Finding> {
        self.as_review().into_iter().flat_map(|view| view.findings.values())
    }

    /// Returns the finding counts of the run's summary, or counts the findings if the run has not ended.
    pub fn finding_counts(&self) -> FindingCounts {
        match self.run_summary().map(|summary| &summary.result) {
            Some(WorkflowSummary::Review(summary)) => summary.findings.clone(),
            _ => FindingCounts::from_findings(self.all_findings()),
        }
    }

    /// Returns the agents that the run waits for, each with the wall time at which it may be asked again.
    pub fn limited_agents(&self) -> impl Iterator<Item = (&AgentName, u64)> {
        // A parked or finished run waits for no agent, even if its last entries started a wait.
        let is_running = self.phase == RunPhase::Running;
        self.usage.limited.iter().filter(move |_| is_running).map(|(agent, until_ms)| (agent, *until_ms))
    }

    /// Returns the decisions without an answer.
    pub fn open_decisions(&self) -> impl Iterator<Item = &Decision> {
        self.decisions.iter().filter(|decision| decision.answer.is_none())
    }

    /// Takes over an answer that the run has not read yet. The first answer to a decision counts.
    pub fn apply_pending_answer(&mut self, decision_id: &DecisionId, answer: DecisionAnswer) {
        let mut open_decisions = self.decisions.iter_mut().filter(|decision| decision.answer.is_none());
        if let Some(open_decision) = open_decisions.find(|decision| decision.id == *decision_id) {
            open_decision.answer = Some(answer);
        }
    }

    /// Returns the last commit of a story that has ended and waits on a branch of its own until the user merges it.
    pub fn commit_on_own_branch(&self) -> Option<&CommitId> {
        let RunPhase::Finished(RunSummary { reason: RunReason::OnOwnBranch, .. }) = &self.phase else { return None };
        let summary = &self.as_story()?.summary;
        summary.confirmation.as_ref().or(summary.commit.as_ref())
    }

    /// Takes over that the user has merged the branch on which the work waited: nothing of the run waits any more.
    pub fn apply_merge(&mut self) {
        if let RunPhase::Finished(summary) = &mut self.phase {
            summary.outcome = Some(RunOutcome::Resolved);
            summary.reason = RunReason::GoalMet;
            summary.detail = String::from(MERGED_DETAIL);
        }
    }

    /// Whether this run waits for the user although nothing would continue it: the run that it belongs to has ended, or calls its story
    /// done or skipped.
    pub fn is_left_by(&self, parent_view: &RunView) -> bool {
        if !matches!(self.phase, RunPhase::Parked(_)) {
            return false;
        }
        if matches!(parent_view.phase, RunPhase::Finished(_)) {
            return true;
        }
        let (Some(RunOrder::Story(order)), Some(sprint_view)) = (&self.order, parent_view.as_sprint()) else {
            return false;
        };
        let is_over = |standing: StoryStanding| matches!(standing, StoryStanding::Done | StoryStanding::Skipped);
        sprint_view.summary.stories.iter().any(|row| row.story == order.story.key && is_over(row.standing))
    }

    /// Takes over that the run is over, because the one that it belongs to does without it: its questions need no answers.
    pub fn apply_leaving(&mut self) {
        if let RunPhase::Parked(summary) = &mut self.phase {
            summary.reason = RunReason::Abandoned;
            summary.outcome = summary.reason.outcome();
            summary.detail = String::from(LEFT_DETAIL);
            self.phase = RunPhase::Finished(summary.clone());
        }
        for decision in self.decisions.iter_mut().filter(|decision| decision.answer.is_none()) {
            decision.answer = Some(DecisionAnswer::new_withdrawn(LEFT_DETAIL));
        }
    }
}

/// Says in the question about a session why it was released. The workflow posted it when it began to wait for the session.
fn reword_session_questions(decisions: &mut [Decision], summary: &RunSummary) {
    if matches!(summary.reason, RunReason::InSession | RunReason::Stopped) {
        return;
    }
    for decision in decisions.iter_mut().filter(|decision| decision.answer.is_none()) {
        if let Some(ReviewTopic::Session { findings }) = find_topic::<ReviewTopic>(&decision.about) {
            decision.question = describe_session_question(&summary.detail, findings);
        }
    }
}
