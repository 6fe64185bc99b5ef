//! A world for headless loops: a workspace in memory, an agent that follows a script or the dice, checks, commits and a branch.

use tribunal_core::{
    decisions::{
        decision::{Decision, DecisionAnswer},
        user_request::UserRequest,
    },
    development::{
        changes::ChangeOutcome,
        check_scripts::ChangedScript,
        checks::{CheckResult, CheckStatus, ChecksOutcome, ChecksReport, RunChecks},
        commits::{CommitOutcome, CommittedWork, Integrate, IntegrateOutcome, RebaseOutcome},
        notices::NotifyOutcome,
        workspace::{CheckboxCounts, CloseOutcome, CollectedFile, OpenOutcome, OpenedWorkspace, WorkspaceState},
    },
    engine::{
        children::{ChildOutcome, ChildReport, ReportedFinding},
        effect::{AskOutcome, Effect, Elapsed, FailedTask, PostOutcome, Reply, Requests},
        ids::{CommitId, Hash, RunId},
        limits::{AgentUsage, UsageTotals},
        reason::{RunOutcome, RunReason},
        replayer::PendingEffect,
    },
    review::{
        finding::Severity,
        subject::{ChangedPath, CodeChange},
    },
    tasks::{
        brief::{AgentReply, AgentTask, AnswerContent},
        fault::{Fault, FaultKind},
        status_report::TurnReport,
    },
};

use crate::{
    dice::Dice,
    record_table::RecordTable,
    samples,
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
    commits: u32,
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
            tribunal_core::tasks::brief::TaskBrief::Instructions(brief) => brief.text.clone(),
            tribunal_core::tasks::brief::TaskBrief::Review(_) => String::new(),
        };
        self.prompts.push(text);
        let turn = self.next_turn();
        if turn.changes {
            self.work.content += 1;
        }
        if turn.reverts {
            self.work.content -= 1;
        }
        self.work.ticked = (self.work.ticked + turn.ticks).min(self.script.plan_total);
        let workspace = Some(Box::new(self.workspace_state(task.collect.as_deref().unwrap_or_default())));
        let usage = AgentUsage { input_tokens: 100, output_tokens: 20, ..AgentUsage::default() };
        if turn.fails {
            let fault = Fault::new(FaultKind::Exited { code: 1 }, "agent `sample` failed");
            return Reply::Ask(AskOutcome::Failed(FailedTask {
                fault,
                usage,
                output: None,
                prompt: None,
                endpoint: None,
                strayed: Vec::new(),
                workspace,
            }));
        }
        let report = TurnReport {
            length: turn.answer.len() as u64,
            denied: if turn.denied { vec!["Bash".into()] } else { Vec::new() },
            text: turn.answer,
            ..TurnReport::default()
        };
        Reply::Ask(AskOutcome::Answered(AgentReply {
            content: AnswerContent::Turn(Box::new(report)),
            remarks: Vec::new(),
            usage,
            patch: None,
            minutes: Default::default(),
            prompt: Hash::new("prompt"),
            output: Hash::new(format!("output {}", self.prompts.len())),
            endpoint: None,
            repeats: None,
            strayed: Vec::new(),
            session: None,
            workspace,
        }))
    }

    fn run_checks(&mut self, run_checks: &RunChecks) -> Reply {
        let scripted = nth_or_last(&self.script.checks, self.work.check_runs).copied();
        self.work.check_runs += 1;
        let passes = if self.is_random() { self.dice.roll_percent(75) } else { scripted.unwrap_or(true) };
        let status = if passes { CheckStatus::Passed } else { CheckStatus::Failed { exit_code: 2 } };
        let results = run_checks.checks.iter().map(|check| CheckResult {
            command: check.command.clone(),
            status,
            on_failure: check.on_failure,
            output: if passes { String::new() } else { "3 tests failed".into() },
            log: None,
            elapsed_ms: 5,
        });
        Reply::Checks(ChecksOutcome::Ran(ChecksReport { results: results.collect(), ..ChecksReport::default() }))
    }

    fn commit_work(&mut self, run_hooks: bool) -> Reply {
        if run_hooks && self.script.commit_refusals > 0 {
            self.script.commit_refusals -= 1;
            return Reply::Commit(CommitOutcome::Refused(CheckResult {
                command: tribunal_core::development::checks::CommandLine::from_shell_line("pre-commit"),
                status: CheckStatus::Failed { exit_code: 1 },
                on_failure: Default::default(),
                output: "trailing spaces".into(),
                log: None,
                elapsed_ms: 1,
            }));
        }
        if self.work.committed_content == self.work.content {
            return Reply::Commit(CommitOutcome::Unchanged {
                tip: CommitId::new(format!("commit{}", self.work.commits)),
            });
        }
        self.work.committed_content = self.work.content;
        self.work.commits += 1;
        let commit = CommitId::new(format!("commit{}", self.work.commits));
        Reply::Commit(CommitOutcome::Committed(CommittedWork { commit, rewritten: Vec::new() }))
    }

    fn integrate_work(&mut self, request: &Integrate) -> Reply {
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
                _ => IntegrateOutcome::Integrated { checkout_moved: true },
            });
        }
        let scripted = nth_or_last(&self.script.integrations, self.work.integrations).cloned();
        self.work.integrations += 1;
        Reply::Integrate(scripted.unwrap_or(IntegrateOutcome::Integrated { checkout_moved: true }))
    }

    fn rebase_work(&mut self) -> Reply {
        let conflicts = self.is_random() && self.dice.roll_percent(30);
        Reply::Rebase(match &self.script.rebase {
            Some(outcome) => outcome.clone(),
            None if conflicts => RebaseOutcome::Conflict { paths: vec!["a.txt".into()] },
            None => RebaseOutcome::Rebased { commit: CommitId::new("rebased") },
        })
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
            run: RunId::new(name),
            outcome: Some(RunOutcome::Waiting),
            reason: RunReason::ReviewOnly,
            detail: "findings are open".into(),
            used: UsageTotals { tokens: 50, uncosted_tokens: 50, ..UsageTotals::default() },
            worked_ms: 10,
            open_count: open_findings.len() as u32,
            deferred_findings: Vec::new(),
            open_findings,
        }))
    }

    /// What the user sends: the next scripted answer, if a question is open.
    fn user_requests(&mut self) -> Vec<UserRequest> {
        let Some(decision) = self.open_decision.clone() else { return Vec::new() };
        let choice = match self.is_random() {
            true if self.dice.roll_percent(50) => {
                decision.choices[self.dice.roll(decision.choices.len())].key.as_str().to_string()
            }
            true => return Vec::new(),
            false if self.script.answers.is_empty() => return Vec::new(),
            false => self.script.answers.remove(0).to_string(),
        };
        self.open_decision = None;
        vec![UserRequest::Answer { decision: decision.id, answer: DecisionAnswer { choice, note: String::new() } }]
    }
}

impl SimulatedWorld for LoopWorld {
    fn perform(&mut self, ask: &PendingEffect) -> EffectResult {
        let reply = match &ask.effect {
            Effect::OpenWorkspace(_) => {
                self.opened += 1;
                Reply::OpenWorkspace(OpenOutcome::Opened(OpenedWorkspace {
                    path: "/workspace".into(),
                    base: CommitId::new("base"),
                    state: self.workspace_state(&[]),
                    scratchpad: ".tribunal/scratch/loop.md".into(),
                    remarks: Vec::new(),
                }))
            }
            Effect::CloseWorkspace(_) => {
                self.closed += 1;
                Reply::CloseWorkspace(CloseOutcome::Closed)
            }
            Effect::Ask(asked) => self.answer_task(&asked.task),
            Effect::Checks(run_checks) => self.run_checks(run_checks),
            Effect::Commit(commit_work) => self.commit_work(commit_work.run_hooks),
            Effect::Integrate(request) => self.integrate_work(request),
            Effect::Rebase(_) => self.rebase_work(),
            Effect::ReadChange(read_change) => {
                let files = vec![ChangedPath { path: "a.rs".into(), from: None }];
                let range = read_change.title.clone();
                Reply::ReadChange(ChangeOutcome::Listed {
                    change: Box::new(CodeChange { range, files, ..CodeChange::default() }),
                })
            }
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
            Effect::Wait(wait) => {
                let mut requests = self.user_requests();
                if ask.resumed {
                    requests.push(UserRequest::Resume);
                }
                if requests.is_empty() {
                    return EffectResult::Park(wait.ending.clone());
                }
                Reply::Wait(Requests { requests })
            }
            other => samples::failed_effect_reply(other.kind()),
        };
        EffectResult::Reply(reply)
    }
}

/// Returns the element for this time; the last one is repeated.
fn nth_or_last<T>(elements: &[T], index: usize) -> Option<&T> {
    elements.get(index).or(elements.last())
}
