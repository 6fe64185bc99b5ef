//! A world for headless loops: a workspace in memory, an agent that follows a script or the dice, checks, commits and a branch.

use tribunal_engine::{
    effect::{Elapsed, PostOutcome},
    fault::{Fault, FaultKind},
    ids::{CommitId, Hash, RunId},
    reason::RunReason,
};
use tribunal_workflows::{
    development::{
        check_scripts::ChangedScript,
        checks::{CheckPlace, ChecksOutcome, RunChecks},
        commits::{CommitOutcome, CommitWork, Integrate, IntegrateOutcome, RebaseConflict, RebaseOutcome},
        notices::NotifyOutcome,
        workspace::{CheckboxCounts, CloseOutcome, CollectedFile, WorkspaceState},
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
    tasks::{brief::AgentTask, status_report::TurnReport},
};

use crate::{
    development_replies::{
        broken_checks_reply, change_reply, checks_reply, child_report, failed_turn_reply, nth_or_last, opened_reply,
        questionable_outcome, refused_commit_reply, turn_reply,
    },
    dice::Dice,
    record_table::RecordTable,
    samples,
    simulated_tree::SimulatedTree,
    simulated_user::{answer_at_random, answer_by_script, end_wait},
    trial::{EffectResult, SimulatedWorld},
};

/// What the agent does in one turn.
#[derive(Clone, Debug, Default)]
pub struct ScriptedTurn {
    pub answer: String,
    /// Whether it changes the content of the workspace.
    pub changes: bool,
    /// Whether it restores the content from before the last change.
    pub reverts: bool,
    /// How many more boxes of the plan it ticks.
    pub ticks: u32,
    /// Whether its process fails.
    pub fails: bool,
    pub denied: bool,
}

impl ScriptedTurn {
    /// A turn that changes something and says this.
    pub fn working(answer: &str) -> ScriptedTurn {
        ScriptedTurn { answer: answer.into(), changes: true, ..ScriptedTurn::default() }
    }

    /// A turn that changes nothing and says this.
    pub fn idle(answer: &str) -> ScriptedTurn {
        ScriptedTurn { answer: answer.into(), ..ScriptedTurn::default() }
    }
}

/// What happens in a world. Everything that is empty is left to the dice if there are no turns.
#[derive(Clone, Debug, Default)]
pub struct LoopScript {
    /// The turns of the agent; the last one is repeated. Empty: the dice decide about everything.
    pub turns: Vec<ScriptedTurn>,
    /// Whether checks pass, for each time that they run; the last one is repeated. Empty: they always pass.
    pub checks: Vec<bool>,
    /// Which runs of the checks the environment breaks, counted from zero.
    pub broken_checks: Vec<usize>,
    /// What comes of moving the branch, for each time. Empty: it always moves.
    pub integrations: Vec<IntegrateOutcome>,
    pub rebase: Option<RebaseOutcome>,
    /// How often the user's hook refuses the commit.
    pub commit_refusals: u32,
    /// What reviews find.
    pub findings: Vec<(Severity, &'static str)>,
    /// Answers to the questions of the loop, in the order in which they are asked.
    pub answers: Vec<&'static str>,
    /// The records that earlier runs left behind.
    pub records: RecordTable,
    /// The number of boxes in the plan.
    pub plan_total: u32,
}

impl LoopScript {
    pub fn with_turns(turns: Vec<ScriptedTurn>) -> LoopScript {
        LoopScript { turns, ..LoopScript::default() }
    }
}

/// A workspace with an agent in it.
#[derive(Debug)]
pub struct LoopWorld {
    script: LoopScript,
    dice: Dice,
    tree: SimulatedTree,
    pub records: RecordTable,
    /// What the agent was asked, one prompt for each turn.
    pub prompts: Vec<String>,
    pub opened: u32,
    pub closed: u32,
    work: WorldProgress,
    open_decision: Option<Decision>,
}

/// What has happened so far.
#[derive(Debug, Default)]
struct WorldProgress {
    content: u32,
    ticked: u32,
    committed_content: u32,
    check_runs: usize,
    integrations: usize,
}

impl LoopWorld {
    pub fn new(script: LoopScript, seed: u64) -> LoopWorld {
        LoopWorld {
            records: script.records.clone(),
            script,
            dice: Dice::new(seed),
            tree: SimulatedTree::default(),
            prompts: Vec::new(),
            opened: 0,
            closed: 0,
            work: WorldProgress::default(),
            open_decision: None,
        }
    }

    fn is_random(&self) -> bool {
        self.script.turns.is_empty()
    }

    fn workspace_state(&self, collected: &[String]) -> WorkspaceState {
        let boxes = CheckboxCounts {
            done: self.work.ticked,
            total: self.script.plan_total,
            first_open: format!("task {}", self.work.ticked + 1),
            says_complete: false,
        };
        WorkspaceState {
            fingerprint: Some(Hash::new(format!("content {}", self.work.content))),
            changed: Vec::new(),
            changed_count: self.work.content.min(9),
            files: collected
                .iter()
                .map(|path| CollectedFile { path: path.clone(), boxes: Some(boxes.clone()) })
                .collect(),
        }
    }

    fn next_turn(&mut self) -> ScriptedTurn {
        if !self.is_random() {
            let index = self.prompts.len().min(self.script.turns.len()) - 1;
            return self.script.turns[index].clone();
        }
        let answers = ["step done", "<promise>COMPLETE</promise>", "", "I am stuck"];
        ScriptedTurn {
            answer: answers[self.dice.roll(4)].into(),
            changes: self.dice.roll_percent(60),
            reverts: false,
            ticks: u32::from(self.dice.roll_percent(30)),
            fails: self.dice.roll_percent(15),
            denied: self.dice.roll_percent(10),
        }
    }

    fn answer_task(&mut self, task: &AgentTask) -> Reply {
        let text = match &task.brief {
            tribunal_workflows::tasks::brief::TaskBrief::Instructions(brief) => brief.text.clone(),
            tribunal_workflows::tasks::brief::TaskBrief::Review(_) => String::new(),
        };
        self.prompts.push(text);
        let turn = self.next_turn();
        if turn.changes {
            self.work.content += 1;
        }
        if turn.changes || turn.reverts {
            self.tree.change_files();
        }
        if turn.reverts {
            self.work.content -= 1;
        }
        self.work.ticked = (self.work.ticked + turn.ticks).min(self.script.plan_total);
        let workspace = self.workspace_state(task.collect.as_deref().unwrap_or_default());
        if turn.fails {
            let fault = Fault::new(FaultKind::Exited { code: 1 }, "agent `sample` failed");
            return failed_turn_reply(fault, workspace);
        }
        let report = TurnReport {
            length: turn.answer.len() as u64,
            denied: if turn.denied { vec!["Bash".into()] } else { Vec::new() },
            text: turn.answer,
            ..TurnReport::default()
        };
        turn_reply(report, workspace, self.prompts.len())
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
        let passes = if self.is_random() { self.dice.roll_percent(75) } else { scripted.unwrap_or(true) };
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
        if self.work.committed_content == self.work.content && self.tree.is_committed(request) {
            return Reply::Commit(CommitOutcome::Unchanged { tip: self.tree.find_tip() });
        }
        let is_random = self.is_random();
        if is_random && request.run_hooks && self.dice.roll_percent(5) {
            return Reply::Commit(CommitOutcome::Edited { paths: self.tree.edit_by_user() });
        }
        let outcome = self.tree.commit(ask, request, Some(&mut self.dice).filter(|_| is_random));
        if let CommitOutcome::Committed { .. } = &outcome {
            self.work.committed_content = self.work.content;
        }
        Reply::Commit(outcome)
    }

    fn integrate_work(&mut self, request: &Integrate) -> Reply {
        self.tree.expect_verified(request, self.work.check_runs > 0);
        if self.is_random() {
            return Reply::Integrate(match self.dice.roll(10) {
                0..=1 => IntegrateOutcome::Moved { tip: CommitId::new("moved") },
                2 => IntegrateOutcome::Waits { branch: "tribunal/x".into(), paths: vec!["a".into()] },
                3 => Fault::new(FaultKind::World, "index.lock exists").into(),
                4 if !request.unchanged_checks.is_empty() => {
                    let command = request.unchanged_checks[0].clone();
                    IntegrateOutcome::ChecksChanged {
                        scripts: vec![ChangedScript { path: "check.sh".into(), command }],
                    }
                }
                5 => questionable_outcome(&request.gate, &mut self.dice)
                    .unwrap_or(IntegrateOutcome::Integrated { checkout_moved: true }),
                _ => IntegrateOutcome::Integrated { checkout_moved: true },
            });
        }
        let scripted = nth_or_last(&self.script.integrations, self.work.integrations).cloned();
        self.work.integrations += 1;
        Reply::Integrate(scripted.unwrap_or(IntegrateOutcome::Integrated { checkout_moved: true }))
    }

    fn rebase_work(&mut self) -> Reply {
        let conflicts = self.is_random() && self.dice.roll_percent(30);
        let outcome = match &self.script.rebase {
            Some(outcome) => outcome.clone(),
            None if conflicts => RebaseOutcome::Conflict(RebaseConflict::from_paths(vec!["a.txt".into()])),
            None => RebaseOutcome::Rebased { commit: CommitId::new("rebased") },
        };
        if let RebaseOutcome::Rebased { commit } = &outcome {
            self.tree.rebase_to(commit);
        }
        Reply::Rebase(outcome)
    }

    fn review_child(&self, name: &str) -> Reply {
        let open_findings: Vec<ReportedFinding> = self
            .script
            .findings
            .iter()
            .map(|(severity, text)| ReportedFinding {
                severity: *severity,
                description: (*text).into(),
                place: "a.rs:1".into(),
            })
            .collect();
        Reply::RunChild(ChildOutcome::Ended(ChildReport {
            detail: "findings are open".into(),
            result: LeftFindings { open_count: open_findings.len() as u32, open_findings, ..LeftFindings::default() },
            ..child_report(RunId::new(name), RunReason::ReviewOnly, 50)
        }))
    }

    /// What the user sends: the next scripted answer, if a question is open.
    fn user_requests(&mut self) -> Vec<UserRequest> {
        let answer = match self.is_random() {
            true => answer_at_random(&mut self.open_decision, &mut self.dice),
            false => answer_by_script(&mut self.open_decision, &mut self.script.answers),
        };
        answer.into_iter().collect()
    }
}

impl SimulatedWorld for LoopWorld {
    fn perform(&mut self, ask: &PendingEffect) -> EffectResult {
        let reply = match &ask.effect {
            Effect::OpenWorkspace(_) => {
                self.opened += 1;
                opened_reply(self.workspace_state(&[]), ".tribunal/scratch/loop.md")
            }
            Effect::CloseWorkspace(_) => {
                self.closed += 1;
                Reply::CloseWorkspace(CloseOutcome::Closed)
            }
            Effect::Ask(asked) => self.answer_task(&asked.task),
            Effect::Checks(run_checks) => self.run_checks(run_checks),
            Effect::FreezeWork(request) => self.tree.freeze(request),
            Effect::Commit(request) => self.commit_work(ask, request),
            Effect::Integrate(request) => self.integrate_work(request),
            Effect::Rebase(_) => self.rebase_work(),
            Effect::ReadChange(read_change) => change_reply(read_change, "a.rs"),
            Effect::RunChild(run_child) => self.review_child(&run_child.name),
            Effect::Notify(_) => Reply::Notify(NotifyOutcome::Notified),
            Effect::Post(post) => {
                self.open_decision = Some(post.decision.clone());
                Reply::Post(PostOutcome::Posted)
            }
            Effect::Sleep(_) => Reply::Sleep(Elapsed {}),
            Effect::AwaitReset(_) => Reply::AwaitReset(Elapsed {}),
            Effect::ReadRecords(request) => self.records.read_records(request),
            Effect::WriteRecords(request) => self.records.write_records(request, "trial"),
            Effect::Inbox(_) => Reply::Inbox(Requests { requests: self.user_requests() }),
            Effect::Wait(wait) => return end_wait(wait, self.user_requests(), ask.resumed),
            other => samples::failed_effect_reply(other.kind()),
        };
        EffectResult::Reply(reply)
    }
}
