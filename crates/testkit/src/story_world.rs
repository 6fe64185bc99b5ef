//! A world for stories: a workspace in memory, agents that follow a script or the dice, checks, reviews, commits and a branch. It
//! panics if work lands that is not done.

use std::mem;

use tribunal_engine::{
    effect::{Elapsed, PostOutcome},
    fault::{Fault, FaultKind},
    ids::{CommitId, Hash, RunId},
    reason::RunReason,
};
use tribunal_workflows::{
    development::{
        checks::{CheckPlace, ChecksOutcome, RunChecks},
        commits::{CommitOutcome, CommitWork, Integrate, IntegrateOutcome, RebaseConflict, RebaseOutcome},
        notices::NotifyOutcome,
        parking::ParkOutcome,
        workspace::{CloseOutcome, PathChange, WorkspaceChange, WorkspaceState},
    },
    findings::{
        finding::Severity,
        reported_finding::{LeftFindings, ReportedFinding},
    },
    runs::{
        effect::{Effect, Reply},
        types::{ChildOutcome, ChildReport, Decision, PendingEffect, Requests},
        user_request::UserRequest,
    },
    story::facts::{
        StageFact, StoryFacts, StoryFileFacts, StoryReading, StoryStage, StoryWriting, TaskFact, WriteStory,
    },
    tasks::{
        brief::{AgentTask, TaskBrief},
        status_report::TurnReport,
    },
};

use crate::{
    development_replies::{
        broken_checks_reply, change_reply, checks_reply, child_report, failed_turn_reply, nth_or_last, opened_reply,
        questionable_outcome, refused_commit_reply, turn_reply,
    },
    dice::Dice,
    parked_work::ParkedWork,
    samples,
    simulated_tree::SimulatedTree,
    simulated_user::{answer_at_random, answer_by_script, end_wait},
    trial::{EffectResult, SimulatedWorld},
};

/// What an agent does in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionDeed {
    /// It does everything as it should.
    Honest,
    /// It says that it is done, and did nothing.
    Nothing,
    /// It ticks the tasks and changes no code.
    TicksOnly,
    /// It writes code and no tests.
    NoTests,
    /// It does nothing but moving the board to done.
    MovesBoard,
    /// It does everything, and its process breaks off.
    FinishesAndCrashes,
    Crashes,
    GoesSilent,
    TimesOut,
    NeverActs,
}

/// How a review of the panel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewEnd {
    Clean,
    /// A finding that is not critical is left.
    Deferred,
    /// A critical finding is left, and no more rounds are.
    Critical,
    /// It waits for the user.
    Waiting,
    /// No reviewer can be reached.
    Unreachable,
    Failed,
}

/// What happens in a world. Without sessions the dice decide about everything.
#[derive(Clone, Debug, Default)]
pub struct StoryScript {
    /// The sessions; the last one is repeated.
    pub sessions: Vec<SessionDeed>,
    /// Whether checks pass, for each time that they run; the last one is repeated. Empty: they always pass.
    pub checks: Vec<bool>,
    /// Which runs of the checks the environment breaks, counted from zero.
    pub broken_checks: Vec<usize>,
    /// How reviews end; the last one is repeated. Empty: they are clean.
    pub reviews: Vec<ReviewEnd>,
    pub integrations: Vec<IntegrateOutcome>,
    /// How often the user's hook refuses the commit.
    pub commit_refusals: u32,
    /// Answers to the questions, in the order in which they are asked.
    pub answers: Vec<&'static str>,
    /// Whether the story's file has to be written first.
    pub lacks_file: bool,
    /// What the story owes and only a person can do.
    pub owed: Vec<&'static str>,
    /// Whether the work was done before the run began.
    pub is_developed: bool,
    /// What comes of attempts to put parked work back. Empty: it is put back.
    pub returns: Vec<ParkOutcome>,
    /// What rebases find on the branch: a merge of the user's, and whether it has the tests. Empty: the work is replayed.
    pub merges: Vec<bool>,
}

/// A workspace with a story in it.
#[derive(Debug)]
pub struct StoryWorld {
    script: StoryScript,
    dice: Dice,
    tree: SimulatedTree,
    /// What the agents were told, one prompt for each session.
    pub prompts: Vec<String>,
    /// The agents of the sessions.
    pub agents: Vec<String>,
    /// What was written into the story's files.
    pub written: Vec<WriteStory>,
    pub closed: u32,
    needs_review: bool,
    work: StoryDeeds,
    open_decision: Option<Decision>,
    /// What the user sent last: it stays in the inbox until it is recorded.
    sent: Vec<UserRequest>,
}

/// What has been done so far.
#[derive(Debug, Default)]
struct StoryDeeds {
    content: u32,
    committed: u32,
    moved_board: bool,
    parts: StoryParts,
    check_runs: usize,
    has_failed_checks: bool,
    reviews: usize,
    is_reviewed: bool,
    integrations: usize,
    waiting_child: Option<String>,
    parked: ParkedWork,
}

/// The parts of a story that are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StoryParts {
    has_file: bool,
    has_code: bool,
    has_tests: bool,
    has_ticks: bool,
}

impl StoryWorld {
    pub fn new(mut script: StoryScript, seed: u64) -> StoryWorld {
        let is_done = script.is_developed;
        if script.sessions.is_empty() && Dice::new(!seed).roll_percent(20) {
            script.owed = vec!["buy the domain"];
        }
        let work = StoryDeeds {
            parts: StoryParts {
                has_file: !script.lacks_file,
                has_code: is_done,
                has_tests: is_done,
                has_ticks: is_done,
            },
            ..StoryDeeds::default()
        };
        StoryWorld {
            script,
            dice: Dice::new(seed),
            tree: SimulatedTree::default(),
            prompts: Vec::new(),
            agents: Vec::new(),
            written: Vec::new(),
            closed: 0,
            needs_review: true,
            work,
            open_decision: None,
            sent: Vec::new(),
        }
    }

    /// Has the user give one more answer.
    pub fn add_answer(&mut self, choice: &'static str) {
        self.script.answers.push(choice);
    }

    /// Lets work land without a review.
    pub fn expects_no_review(&mut self) {
        self.needs_review = false;
    }

    fn is_random(&self) -> bool {
        self.script.sessions.is_empty()
    }

    fn workspace_state(&self) -> WorkspaceState {
        let mut paths = Vec::new();
        paths.extend(self.work.parts.has_ticks.then_some("out/1-1-a.md"));
        paths.extend(self.work.parts.has_code.then_some("src/a.rs"));
        paths.extend(self.work.parts.has_tests.then_some("tests/a.rs"));
        let changes = paths.iter().map(|path| WorkspaceChange { path: (*path).into(), change: PathChange::Modified });
        WorkspaceState {
            fingerprint: Some(Hash::new(format!("content {}", self.work.content))),
            changed: changes.collect(),
            changed_count: paths.len() as u32,
            files: Vec::new(),
        }
    }

    fn read_story(&self) -> Reply {
        let stage = |stage: StoryStage| Some(StageFact { stage: Some(stage), word: stage.to_string() });
        let done = self.work.parts.has_ticks;
        let file = StoryFileFacts {
            path: "out/1-1-a.md".into(),
            status: stage(if done { StoryStage::Review } else { StoryStage::ReadyForDev }),
            tasks: vec![TaskFact { text: "Do it".into(), done, criteria: vec![1] }],
            criteria: vec![1],
            owed: self.script.owed.iter().map(ToString::to_string).collect(),
            files: if self.work.parts.has_code { vec!["src/a.rs".into()] } else { Vec::new() },
            ..StoryFileFacts::default()
        };
        Reply::ReadStory(StoryReading::Read(Box::new(StoryFacts {
            board: stage(if self.work.moved_board { StoryStage::Done } else { StoryStage::ReadyForDev }),
            file: self.work.parts.has_file.then_some(file),
            work: self.workspace_state(),
            changed_tests: if self.work.parts.has_tests { vec!["tests/a.rs".into()] } else { Vec::new() },
            tested_criteria: if self.work.parts.has_tests { vec![1] } else { Vec::new() },
            existing_files: vec!["src/a.rs".into()],
            ..StoryFacts::default()
        })))
    }

    fn next_deed(&mut self) -> SessionDeed {
        const DEEDS: [SessionDeed; 10] = [
            SessionDeed::Honest,
            SessionDeed::Nothing,
            SessionDeed::TicksOnly,
            SessionDeed::NoTests,
            SessionDeed::MovesBoard,
            SessionDeed::FinishesAndCrashes,
            SessionDeed::Crashes,
            SessionDeed::GoesSilent,
            SessionDeed::TimesOut,
            SessionDeed::NeverActs,
        ];
        if self.is_random() {
            let is_honest = self.dice.roll_percent(30);
            return if is_honest { SessionDeed::Honest } else { DEEDS[self.dice.roll(DEEDS.len())] };
        }
        let index = self.prompts.len().min(self.script.sessions.len()) - 1;
        self.script.sessions[index]
    }

    fn answer_task(&mut self, task: &AgentTask) -> Reply {
        let TaskBrief::Instructions(brief) = &task.brief else { panic!("a story has no reviewers of its own") };
        self.prompts.push(brief.text.clone());
        self.agents.push(task.agent.to_string());
        let deed = self.next_deed();
        let writes_story = brief.title.starts_with("create");
        self.apply_deed(deed, writes_story);
        let fault_kind = match deed {
            SessionDeed::Crashes | SessionDeed::FinishesAndCrashes => Some(FaultKind::Exited { code: 1 }),
            SessionDeed::GoesSilent => Some(FaultKind::Silent),
            SessionDeed::TimesOut => Some(FaultKind::TimedOut),
            SessionDeed::NeverActs => Some(FaultKind::NeverActive),
            _ => None,
        };
        let workspace = self.workspace_state();
        if let Some(fault_kind) = fault_kind {
            return failed_turn_reply(Fault::new(fault_kind, "the agent failed"), workspace);
        }
        let report = TurnReport { text: "Everything is done.".into(), ..TurnReport::default() };
        turn_reply(report, workspace, self.prompts.len())
    }

    fn apply_deed(&mut self, deed: SessionDeed, writes_story: bool) {
        let work = &mut self.work;
        let before = work.parts;
        match deed {
            SessionDeed::Honest | SessionDeed::FinishesAndCrashes if writes_story => work.parts.has_file = true,
            SessionDeed::Honest | SessionDeed::FinishesAndCrashes => {
                (work.parts.has_code, work.parts.has_tests, work.parts.has_ticks) = (true, true, true);
            }
            SessionDeed::TicksOnly if !writes_story => work.parts.has_ticks = true,
            SessionDeed::NoTests if !writes_story => (work.parts.has_code, work.parts.has_ticks) = (true, true),
            SessionDeed::MovesBoard => work.moved_board = true,
            _ => {}
        }
        if before != work.parts {
            work.content += 1;
            work.is_reviewed = false;
            self.tree.change_files();
        }
    }

    fn run_checks(&mut self, run_checks: &RunChecks) -> Reply {
        let scripted = nth_or_last(&self.script.checks, self.work.check_runs).copied();
        let is_broken = match self.is_random() {
            true => self.dice.roll_percent(5),
            false => self.script.broken_checks.contains(&self.work.check_runs),
        };
        self.work.check_runs += 1;
        if is_broken {
            return broken_checks_reply();
        }
        let is_workspace = matches!(run_checks.place, CheckPlace::Workspace { .. });
        if is_workspace && self.is_random() && self.dice.roll_percent(5) {
            return Reply::Checks(ChecksOutcome::Edited { paths: self.tree.edit_by_user() });
        }
        let passes = if self.is_random() { self.dice.roll_percent(85) } else { scripted.unwrap_or(true) };
        self.work.has_failed_checks = !passes;
        let stands_alone = is_workspace && (!self.is_random() || self.dice.roll_percent(50));
        self.tree.note_checks(run_checks, passes, stands_alone);
        checks_reply(run_checks, passes, stands_alone)
    }

    fn commit_work(&mut self, ask: &PendingEffect, request: &CommitWork) -> Reply {
        // A commit that was made before a kill is found again.
        if let Some(commit) = self.tree.find_made(ask) {
            return Reply::Commit(CommitOutcome::Committed { commit });
        }
        if request.run_hooks && self.script.commit_refusals > 0 {
            self.script.commit_refusals -= 1;
            return refused_commit_reply();
        }
        if self.work.committed == self.work.content && !request.run_hooks {
            let tip = self.tree.find_tip();
            return Reply::Commit(CommitOutcome::Unchanged { tip });
        }
        let is_random = self.is_random();
        if is_random && request.run_hooks && self.dice.roll_percent(5) {
            return Reply::Commit(CommitOutcome::Edited { paths: self.tree.edit_by_user() });
        }
        let outcome = self.tree.commit(ask, request, Some(&mut self.dice).filter(|_| is_random));
        if let CommitOutcome::Committed { .. } = &outcome {
            self.work.committed = self.work.content;
        }
        Reply::Commit(outcome)
    }

    fn review_child(&mut self, name: &str) -> Reply {
        const ENDS: [ReviewEnd; 6] = [
            ReviewEnd::Clean,
            ReviewEnd::Deferred,
            ReviewEnd::Critical,
            ReviewEnd::Waiting,
            ReviewEnd::Unreachable,
            ReviewEnd::Failed,
        ];
        let scripted = nth_or_last(&self.script.reviews, self.work.reviews).copied();
        self.work.reviews += 1;
        let end = match self.is_random() {
            true if self.dice.roll_percent(50) => ReviewEnd::Clean,
            true => ENDS[self.dice.roll(ENDS.len())],
            false => scripted.unwrap_or(ReviewEnd::Clean),
        };
        self.work.is_reviewed = matches!(end, ReviewEnd::Clean | ReviewEnd::Deferred);
        self.work.waiting_child = (end == ReviewEnd::Waiting).then(|| name.to_string());
        let finding = |severity: Severity| {
            vec![ReportedFinding { severity, description: "it leaks".into(), place: "src/a.rs:1".into() }]
        };
        let (reason, open_findings, deferred_findings) = match end {
            ReviewEnd::Clean => (RunReason::GoalMet, Vec::new(), Vec::new()),
            ReviewEnd::Deferred => (RunReason::GoalMet, Vec::new(), finding(Severity::Medium)),
            ReviewEnd::Critical => (RunReason::Rounds, finding(Severity::Critical), Vec::new()),
            ReviewEnd::Waiting => (RunReason::Blocked, finding(Severity::Critical), Vec::new()),
            ReviewEnd::Unreachable => (RunReason::Environment, Vec::new(), Vec::new()),
            ReviewEnd::Failed => {
                return samples::failed_effect_reply(tribunal_workflows::runs::effect::EffectKind::RunChild);
            }
        };
        let report = ChildReport {
            result: LeftFindings { open_count: open_findings.len() as u32, open_findings, deferred_findings },
            ..child_report(RunId::new(name), reason, 50)
        };
        Reply::RunChild(match end {
            ReviewEnd::Clean | ReviewEnd::Deferred => ChildOutcome::Ended(report),
            _ => ChildOutcome::Waiting(report),
        })
    }

    /// Moves the branch, or says why not. Work that is not done must never come here.
    fn integrate_work(&mut self, request: &Integrate) -> Reply {
        let work = &self.work;
        assert!(work.parts.has_code && work.parts.has_tests && work.parts.has_ticks, "unfinished work lands: {work:?}");
        let has_landed = self.written.iter().any(|write| !write.confirmed.is_empty());
        self.tree.expect_verified(request, work.check_runs > 0 && !has_landed);
        assert!(work.is_reviewed || !self.needs_review, "work lands without a review: {work:?}");
        let scripted = nth_or_last(&self.script.integrations, self.work.integrations).cloned();
        self.work.integrations += 1;
        if !self.is_random() {
            return Reply::Integrate(scripted.unwrap_or(IntegrateOutcome::Integrated { checkout_moved: true }));
        }
        Reply::Integrate(match self.dice.roll(10) {
            0 => IntegrateOutcome::Moved { tip: CommitId::new("moved") },
            1 => IntegrateOutcome::Waits { branch: "tribunal/x".into(), paths: vec!["a".into()] },
            2 => Fault::new(FaultKind::World, "index.lock exists").into(),
            3 => questionable_outcome(&request.gate, &mut self.dice)
                .unwrap_or(IntegrateOutcome::Integrated { checkout_moved: true }),
            _ => IntegrateOutcome::Integrated { checkout_moved: true },
        })
    }

    fn rebase_work(&mut self, onto: &CommitId) -> Reply {
        if !self.script.merges.is_empty() {
            self.work.parts.has_tests = self.script.merges.remove(0);
            self.tree.rebase_to(onto);
            return Reply::Rebase(RebaseOutcome::Rebased { commit: onto.clone() });
        }
        // Work that has landed begins anew with its own commit.
        let is_changed = *onto != self.tree.find_tip();
        let has_conflict = self.is_random() && self.dice.roll_percent(30);
        if is_changed && !has_conflict {
            self.tree.rebase_to(&CommitId::new("rebased"));
        }
        Reply::Rebase(match has_conflict {
            true => RebaseOutcome::Conflict(RebaseConflict::from_paths(vec!["a.txt".into()])),
            false => RebaseOutcome::Rebased { commit: CommitId::new("rebased") },
        })
    }

    /// What is in the inbox: what was sent before and is not recorded, or what the user sends now.
    fn take_requests(&mut self, is_asked_again: bool) -> Vec<UserRequest> {
        let unrecorded = if is_asked_again { mem::take(&mut self.sent) } else { Vec::new() };
        self.sent = if unrecorded.is_empty() { self.user_requests() } else { unrecorded };
        self.sent.clone()
    }

    /// What the user sends: the next scripted answer, if a question is open.
    fn user_requests(&mut self) -> Vec<UserRequest> {
        if let Some(child) = self.work.waiting_child.take_if(|_| self.open_decision.is_none()) {
            return vec![UserRequest::ContinueChild { child }];
        }
        let answer = match self.is_random() {
            true => answer_at_random(&mut self.open_decision, &mut self.dice),
            false => answer_by_script(&mut self.open_decision, &mut self.script.answers),
        };
        answer.into_iter().collect()
    }
}

impl SimulatedWorld for StoryWorld {
    fn perform(&mut self, ask: &PendingEffect) -> EffectResult {
        self.work.parked.check_effect(&ask.effect);
        let reply = match &ask.effect {
            Effect::OpenWorkspace(_) => opened_reply(self.workspace_state(), ".tribunal/scratch/story.md"),
            Effect::CloseWorkspace(_) => {
                self.closed += 1;
                Reply::CloseWorkspace(CloseOutcome::Closed)
            }
            Effect::Ask(asked) => self.answer_task(&asked.task),
            Effect::ReadStory(_) => self.read_story(),
            Effect::WriteStory(write) => {
                let is_confirmed = !write.confirmed.is_empty() || self.script.owed.is_empty();
                assert!(is_confirmed || write.stage != StoryStage::Done, "a story is done that owes something");
                self.written.push(write.clone());
                let tree = write.tree.as_ref().map(|tree| self.tree.write_into(tree));
                Reply::WriteStory(StoryWriting::Written { paths: Vec::new(), remarks: Vec::new(), tree })
            }
            Effect::RestoreBoard(_) => {
                Reply::RestoreBoard(StoryWriting::Written { paths: Vec::new(), remarks: Vec::new(), tree: None })
            }
            Effect::Checks(run_checks) => self.run_checks(run_checks),
            Effect::FreezeWork(request) => self.tree.freeze(request),
            Effect::Commit(request) => self.commit_work(ask, request),
            Effect::Integrate(integrate) if integrate.only_looks => {
                Reply::Integrate(IntegrateOutcome::Moved { tip: CommitId::new("moved") })
            }
            Effect::Integrate(request) => self.integrate_work(request),
            Effect::Rebase(rebase) => self.rebase_work(&rebase.onto),
            Effect::ParkWork(park) => self.work.parked.move_work(park, &mut self.script, &mut self.dice),
            Effect::ReadChange(read_change) => change_reply(read_change, "src/a.rs"),
            Effect::RunChild(run_child) => self.review_child(&run_child.name),
            Effect::Notify(_) => Reply::Notify(NotifyOutcome::Notified),
            Effect::Post(post) => {
                self.open_decision = Some(post.decision.clone());
                Reply::Post(PostOutcome::Posted)
            }
            Effect::Sleep(_) => Reply::Sleep(Elapsed {}),
            Effect::AwaitReset(_) => Reply::AwaitReset(Elapsed {}),
            Effect::Inbox(_) => Reply::Inbox(Requests { requests: self.take_requests(ask.resumed) }),
            Effect::Wait(wait) => return end_wait(wait, self.take_requests(ask.resumed), ask.resumed),
            other => samples::failed_effect_reply(other.kind()),
        };
        EffectResult::Reply(reply)
    }
}
