//! A world that answers at random: agents find, invent, multiply, repeat, lie, fail and contradict; fixers go back and forth;
//! users answer or never do, and change the text and the tracker at any moment.
//!
//! The world keeps a text with flaws of its own, so that grounding, landing and verifying work on real content.

use tribunal_engine::{
    answer::DecisionAnswer,
    effect::{Elapsed, PostOutcome, RestoreOutcome},
    fault::FaultKind,
    files::{FrozenFile, Hunk, PatchRefusal, PathState, StrayEdit},
    ids::{FindingId, Hash},
    user_remark::UserRemark,
};
use tribunal_workflows::{
    development::checks::CheckSpec,
    findings::{
        agent_role::AgentRole,
        finding::{Evidence, Severity},
        subject::Subject,
    },
    review::{dismissed_finding::DismissedFinding, own_file::OwnFile},
    runs::{
        effect::{AskOutcome, CallBooking, Effect, FailedTask, Land, LandOutcome, PostponedCall, Reply, WriteOutcome},
        records::ProjectRecord,
        types::{Decision, PendingEffect, RecordChange, Requests, WriteRecords},
        user_request::{FindingChange, UserRequest},
    },
    tasks::{
        brief::{AgentTask, RaisedFinding, ReviewBrief, TaskBrief},
        claims::{ChallengeVerdict, ClaimStatus},
    },
};

use crate::{
    dice::Dice,
    random_checks::{random_landing_results, run_random_checks},
    record_table::RecordTable,
    samples,
    simulated_user::end_wait,
    trial::{EffectResult, SimulatedWorld},
};

/// The rates of everything that can go wrong, in percent.
#[derive(Clone, Copy, Debug)]
pub struct FaultRates {
    pub agent_fails: usize,
    pub answer_unreadable: usize,
    pub quote_invented: usize,
    pub fixer_blocks: usize,
    pub fixer_lies: usize,
    /// A landing is refused, or a check fails.
    pub landing_refused: usize,
    /// A fix adds a new flaw.
    pub fix_adds_flaw: usize,
    /// A fix turns one flaw into another, and the next fix turns that one back.
    pub fix_oscillates: usize,
    /// Reviewers object to every heading.
    pub findings_multiply: usize,
    /// An answer repeats an earlier one.
    pub answer_repeats: usize,
    pub user_answers: usize,
    /// A user changes the tracker or the text.
    pub user_edits: usize,
}

impl FaultRates {
    pub fn random_rates(dice: &mut Dice) -> FaultRates {
        let mut random_rate = || *dice.pick(&[0, 0, 10, 40, 90]);
        FaultRates {
            agent_fails: random_rate(),
            answer_unreadable: random_rate(),
            quote_invented: random_rate(),
            fixer_blocks: random_rate(),
            fixer_lies: random_rate(),
            landing_refused: random_rate(),
            fix_adds_flaw: random_rate(),
            fix_oscillates: random_rate(),
            findings_multiply: random_rate(),
            answer_repeats: random_rate(),
            user_answers: random_rate(),
            user_edits: random_rate(),
        }
    }
}

#[derive(Debug)]
pub struct RandomWorld {
    dice: Dice,
    rates: FaultRates,
    lines: Vec<String>,
    flaw_count: usize,
    /// The findings that pending patches fix, by the key of the fixer.
    pending_patches: Vec<(String, Vec<FindingId>)>,
    assigned_quotes: Vec<(FindingId, String)>,
    open_decisions: Vec<Decision>,
    /// The project records. In some worlds an earlier run has left one.
    records: RecordTable,
    /// The number of edits that users still make; without a limit some runs would never end.
    edits_left: usize,
}

impl RandomWorld {
    pub fn new(seed: u64) -> RandomWorld {
        let mut dice = Dice::new(seed ^ 0x5eed);
        let rates = FaultRates::random_rates(&mut dice);
        let flaws = dice.roll(12);
        let lines = samples::flawed_text(flaws).lines().map(String::from).collect();
        RandomWorld {
            dice,
            rates,
            lines,
            flaw_count: flaws,
            pending_patches: Vec::new(),
            assigned_quotes: Vec::new(),
            open_decisions: Vec::new(),
            records: earlier_records(flaws),
            edits_left: 12,
        }
    }

    fn current_text(&self) -> String {
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }

    fn answer_task(&mut self, effect_key: &str, task: &AgentTask) -> Reply {
        // Where agents fail often, all calls of an hour are used up now and then.
        if self.dice.roll_percent(self.rates.agent_fails / 4) {
            // The next call is free at once, soon, or beyond the patience of the run.
            let start_ms = *self.dice.pick(&[1, 5_000_000, 20_000_000, u64::MAX]);
            let booking = CallBooking { start_ms, unfinished_attempts: 0 };
            return Reply::Ask(AskOutcome::Postponed(PostponedCall { booking, why: "no call is free".into() }));
        }
        let mut reply = match &task.brief {
            TaskBrief::Review(review_brief) => self.answer_brief(effect_key, review_brief),
            TaskBrief::Instructions(_) => samples::text_reply("done"),
        };
        if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
            let is_repeated = self.dice.roll_percent(self.rates.answer_repeats);
            answer.output = Hash::new(if is_repeated { "again" } else { effect_key });
            answer.strayed = self.stray_files();
            answer.repeats = (!task.recent.is_empty()).then_some(if is_repeated { 1000 } else { 500 });
        }
        reply
    }

    fn answer_brief(&mut self, effect_key: &str, brief: &ReviewBrief) -> Reply {
        if self.dice.roll_percent(self.rates.agent_fails) {
            let kinds = [
                FaultKind::Exited { code: 1 },
                FaultKind::TimedOut,
                FaultKind::Silent,
                FaultKind::Flood,
                FaultKind::Killed { signal: 9 },
                FaultKind::NotInstalled,
                FaultKind::NotSignedIn,
                FaultKind::Connection,
                FaultKind::Overloaded,
                FaultKind::Overflow,
                FaultKind::Refused,
                FaultKind::Limited { until_ms: None },
                // These limits lie in the past, in the near future, and beyond the patience of the run.
                FaultKind::Limited { until_ms: Some(1) },
                FaultKind::Limited { until_ms: Some(5_000_000) },
                FaultKind::Limited { until_ms: Some(u64::MAX) },
            ];
            let mut reply = samples::failed_task_reply(self.dice.pick(&kinds).clone());
            if let Reply::Ask(AskOutcome::Failed(FailedTask { fault, .. })) = &mut reply {
                fault.instant = self.dice.roll_percent(30);
            }
            return reply;
        }
        if self.dice.roll_percent(self.rates.answer_unreadable) {
            return samples::unreadable_reply();
        }
        match brief.role {
            AgentRole::Fixer => self.fix_findings(effect_key, brief),
            AgentRole::Challenger => self.challenge_findings(brief),
            AgentRole::Judge => self.judge_change(brief),
            _ => self.review_text(),
        }
    }

    fn challenge_findings(&mut self, brief: &ReviewBrief) -> Reply {
        let possible_verdicts =
            [ChallengeVerdict::Valid, ChallengeVerdict::Valid, ChallengeVerdict::Invalid, ChallengeVerdict::Ambiguous];
        let mut verdicts = Vec::new();
        for disputed in &brief.disputed {
            if !self.dice.roll_percent(5) {
                verdicts.push((disputed.id, *self.dice.pick(&possible_verdicts)));
            }
        }
        samples::rulings_reply(verdicts)
    }

    /// A judge that believes most repairs, and connects most parts of a change with them.
    fn judge_change(&mut self, brief: &ReviewBrief) -> Reply {
        let verdicts =
            [ChallengeVerdict::Valid, ChallengeVerdict::Valid, ChallengeVerdict::Valid, ChallengeVerdict::Invalid];
        let rulings = brief.assigned.iter().map(|finding| (finding.id, *self.dice.pick(&verdicts))).collect();
        let mut reply = samples::rulings_reply(rulings);
        samples::add_part_verdicts(&mut reply, &brief.clone().into(), |_| *self.dice.pick(&verdicts));
        reply
    }

    /// Lands a patch without some of its parts, or shows what it would change.
    fn land_or_preview(&mut self, landing: &Land) -> Reply {
        let lines_before = self.lines.clone();
        let mut reply = self.land_patch(landing.by.as_str());
        if let Reply::Land(LandOutcome::Landed(change)) = &mut reply {
            for dropped_hunk in landing.without.iter().map(|part| part.hunk) {
                let line_index = dropped_hunk.old_start as usize - 1;
                self.lines[line_index].clone_from(&lines_before[line_index]);
                change.hunks.retain(|hunk| *hunk != dropped_hunk);
            }
            change.text = self.current_text();
            change.hash = Hash::digest_of(change.text.as_bytes());
        }
        if landing.preview {
            self.lines = lines_before;
            reply = samples::preview_of(reply);
        }
        reply
    }

    fn review_text(&mut self) -> Reply {
        let flaws: Vec<String> = self.lines.iter().filter(|line| line.starts_with("flaw ")).cloned().collect();
        let mut raised = Vec::new();
        for flaw in flaws {
            if self.dice.roll_percent(60) {
                raised.push(self.raise_claim(flaw));
            }
        }
        // This quote is not in the text, so grounding has to dismiss the claim.
        if self.dice.roll_percent(self.rates.quote_invented) {
            raised.push(self.raise_claim("never written".to_string()));
        }
        if self.dice.roll_percent(self.rates.findings_multiply) {
            for line in self.lines.clone().into_iter().filter(|line| line.starts_with("## ")) {
                self.flaw_count += 1;
                let mut claim = self.raise_claim(line.clone());
                claim.description = format!("objection {} to this", self.flaw_count);
                if self.dice.roll_percent(30) {
                    let heading = line.trim_start_matches("## ").to_string();
                    claim.evidence = Evidence::Absence { heading, terms: vec!["deadline".into()] };
                }
                raised.push(claim);
            }
        }
        samples::findings_reply(raised)
    }

    fn raise_claim(&mut self, quote: String) -> RaisedFinding {
        RaisedFinding {
            severity: *self.dice.pick(&Severity::ALL),
            category: "sample".into(),
            description: format!("{quote} is a flaw, says secret"),
            evidence: Evidence::Quote { text: quote },
            file: None,
            line: None,
            suggested_fix: String::new(),
        }
    }

    fn fix_findings(&mut self, effect_key: &str, brief: &ReviewBrief) -> Reply {
        let mut claims = Vec::new();
        let mut fixed = Vec::new();
        for assigned in &brief.assigned {
            let text = match &assigned.evidence {
                Evidence::Quote { text } => text,
                Evidence::Check { command, .. } => command,
                Evidence::Absence { .. } => continue,
            };
            if self.dice.roll_percent(self.rates.fixer_blocks) {
                claims.push((assigned.id, ClaimStatus::Blocked));
            } else if !self.dice.roll_percent(10) {
                claims.push((assigned.id, ClaimStatus::Fixed));
                if !self.dice.roll_percent(self.rates.fixer_lies) {
                    fixed.push(assigned.id);
                    self.assigned_quotes.push((assigned.id, text.clone()));
                }
            }
        }
        let patched = !fixed.is_empty();
        self.pending_patches.push((effect_key.to_string(), fixed));
        samples::fixes_reply(claims, patched)
    }

    fn land_patch(&mut self, fixer_key: &str) -> Reply {
        if self.dice.roll_percent(self.rates.landing_refused) {
            let refusals = [
                PatchRefusal::Check { command: "check".into(), output: "no".into() },
                samples::conflict_refusal(3),
                PatchRefusal::Outside { files: vec!["../x".into()] },
                PatchRefusal::Lost { detail: "gone".into() },
            ];
            return Reply::Land(LandOutcome::Refused { why: self.dice.pick(&refusals).clone() });
        }
        let fixed: Vec<FindingId> = self
            .pending_patches
            .iter()
            .rev()
            .find(|(patch_key, _)| patch_key == fixer_key)
            .map(|(_, fixed_ids)| fixed_ids.clone())
            .unwrap_or_default();
        let mut hunks = Vec::new();
        for finding_id in fixed {
            let Some(quote) = self
                .assigned_quotes
                .iter()
                .rev()
                .find(|(assigned_id, _)| *assigned_id == finding_id)
                .map(|(_, assigned_quote)| assigned_quote.clone())
            else {
                continue;
            };
            if let Some(line_index) = self.lines.iter().position(|line| *line == quote) {
                self.lines[line_index] = if self.dice.roll_percent(self.rates.fix_adds_flaw) {
                    self.flaw_count += 1;
                    format!("flaw {}", self.flaw_count)
                } else if self.dice.roll_percent(self.rates.fix_oscillates) {
                    // The flaw alternates between two wordings, so that fixes make no progress.
                    quote.strip_suffix(" again").map_or_else(|| format!("{quote} again"), String::from)
                } else {
                    format!("repaired {finding_id}")
                };
                hunks.push(Hunk { old_start: line_index as u32 + 1, old_len: 1, new_len: 1 });
            }
        }
        samples::landed_reply(&self.current_text(), hunks)
    }

    /// What an unattended session does to the text: it fixes some flaws, adds some, or changes nothing.
    fn take_in_changes(&mut self, old_files: &[FrozenFile]) -> Reply {
        if self.dice.roll_percent(self.rates.landing_refused) {
            let why = PatchRefusal::Check { command: "check".into(), output: "no".into() };
            return Reply::TakeIn(LandOutcome::Refused { why });
        }
        for line_index in 0..self.lines.len() {
            let is_unfixed = self.dice.roll_percent(self.rates.fixer_lies);
            if self.lines[line_index].starts_with("flaw ") && !is_unfixed && self.dice.roll_percent(60) {
                self.flaw_count += 1;
                let adds_flaw = self.dice.roll_percent(self.rates.fix_adds_flaw);
                self.lines[line_index] =
                    if adds_flaw { format!("flaw {}", self.flaw_count) } else { format!("repaired {line_index}") };
            }
        }
        samples::taken_in_reply(old_files, &self.current_text())
    }

    /// Adds to a landing what the checks say about it.
    fn check_landing(&mut self, mut reply: Reply, checks: &[CheckSpec]) -> Reply {
        if let Reply::Land(LandOutcome::Landed(landed)) | Reply::TakeIn(LandOutcome::Landed(landed)) = &mut reply {
            landed.checks = random_landing_results(&mut self.dice, checks, self.rates.landing_refused);
        }
        reply
    }

    fn user_requests(&mut self) -> Vec<UserRequest> {
        let mut requests = Vec::new();
        for decision in std::mem::take(&mut self.open_decisions) {
            if self.dice.roll_percent(self.rates.user_answers) {
                // Some users type an answer that was not offered.
                let mut choices: Vec<String> = decision.choices.iter().map(|choice| choice.key.to_string()).collect();
                choices.push("nonsense".into());
                let answer = DecisionAnswer { choice: self.dice.pick(&choices).clone(), note: "because".into() };
                if answer.choice == "nonsense" {
                    self.open_decisions.push(decision.clone());
                }
                requests.push(UserRequest::Answer { decision: decision.id, answer });
            } else {
                self.open_decisions.push(decision);
            }
        }
        requests.extend(self.tracker_edits());
        requests
    }

    /// The changes that a user makes in the tracker, independent of what the run is doing.
    fn tracker_edits(&mut self) -> Vec<UserRequest> {
        if self.edits_left == 0 || !self.dice.roll_percent(self.rates.user_edits) {
            return Vec::new();
        }
        self.edits_left -= 1;
        let finding = FindingId(self.dice.roll(9) as u32 + 1);
        let reason = String::from("I know better");
        let changes = [
            FindingChange::Fixed,
            FindingChange::Open,
            FindingChange::Dismissed { reason: reason.clone() },
            FindingChange::Deferred { reason },
            FindingChange::Severity { to: *self.dice.pick(&Severity::ALL) },
        ];
        let change = self.dice.pick(&changes).clone();
        let quote = self.dice.pick(&self.lines).clone();
        let added_finding = UserRequest::Add { severity: Severity::High, description: format!("mine: {quote}"), quote };
        let user_remark = UserRequest::Say(UserRemark::new("mind the law"));
        let mut requests = vec![UserRequest::Amend { finding, was: None, change }, added_finding, user_remark];
        requests.truncate(self.dice.roll(4));
        requests
    }

    /// Files that were changed outside the task workspaces.
    fn stray_files(&mut self) -> Vec<StrayEdit> {
        if self.edits_left == 0 || !self.dice.roll_percent(self.rates.user_edits / 6) {
            return Vec::new();
        }
        self.edits_left -= 1;
        let path = format!("src/{}.rs", self.dice.roll(3));
        let file_with = |hash: String| PathState::File { hash: Some(Hash::new(hash)), mode: 0o644 };
        let after = file_with(format!("{}", self.edits_left));
        vec![StrayEdit { path, before: file_with("before".into()), after, kept: true }]
    }

    /// Freezes the current text; a user may have written into it before.
    fn freeze_text(&mut self) -> Reply {
        if self.edits_left > 0 && self.dice.roll_percent(self.rates.user_edits / 3) {
            self.edits_left -= 1;
            self.flaw_count += 1;
            self.lines.push(format!("flaw {}", self.flaw_count));
        }
        samples::frozen_reply(&self.current_text())
    }
}

/// The records of an earlier run whose user dismissed the first flaw, in every third world.
fn earlier_records(flaw_count: usize) -> RecordTable {
    let mut records = RecordTable::default();
    if flaw_count > 0 && flaw_count.is_multiple_of(3) {
        let dismissed = DismissedFinding {
            subject: Subject::from_path("plan.md", None),
            file: "plan.md".into(),
            severity: Severity::High,
            description: "flaw 1 is a flaw, says secret".into(),
            evidence: Evidence::Quote { text: "flaw 1".into() },
            reason: "I know better".into(),
            finding: FindingId(1),
            decided_in: None,
        };
        let (key, record) = (dismissed.record_key(), ProjectRecord::DismissedFinding(dismissed));
        records.write_records(&WriteRecords { changes: vec![RecordChange::Put { key, record }] }, "earlier");
    }
    records
}

impl SimulatedWorld for RandomWorld {
    fn perform(&mut self, ask: &PendingEffect) -> EffectResult {
        let reply = match &ask.effect {
            Effect::Freeze(_) => self.freeze_text(),
            Effect::Ask(asked) => self.answer_task(ask.effect_key.as_str(), &asked.task),
            Effect::Land(landing) => {
                let reply = self.land_or_preview(landing);
                self.check_landing(reply, &landing.checks)
            }
            Effect::TakeIn(changed) => {
                let reply = self.take_in_changes(&changed.before);
                self.check_landing(reply, &changed.checks)
            }
            Effect::Checks(request) => {
                Reply::Checks(run_random_checks(&mut self.dice, &request.checks, self.rates.landing_refused))
            }
            Effect::Write(written) => {
                let requests = if written.file == OwnFile::Tracker { self.tracker_edits() } else { Vec::new() };
                let kept_copy = self.dice.roll_percent(5).then(|| "plan-issues.edited-1.md".to_string());
                Reply::Write(match requests.is_empty() {
                    true => {
                        WriteOutcome::Written { path: "plan-issues.md".into(), kept_copy, unusable_edits: Vec::new() }
                    }
                    false => WriteOutcome::Edited { requests },
                })
            }
            Effect::Restore(_) => Reply::Restore(RestoreOutcome::Restored { parked: None }),
            Effect::Post(posted) => {
                if !self.open_decisions.iter().any(|known| known.id == posted.decision.id) {
                    self.open_decisions.push(posted.decision.clone());
                }
                Reply::Post(PostOutcome::Posted)
            }
            Effect::Sleep(_) => Reply::Sleep(Elapsed {}),
            Effect::AwaitReset(_) => Reply::AwaitReset(Elapsed {}),
            Effect::ReadRecords(request) => self.records.read_records(request),
            Effect::WriteRecords(request) => self.records.write_records(request, "trial"),
            Effect::Inbox(_) => Reply::Inbox(Requests { requests: self.user_requests() }),
            Effect::Wait(wait) => return end_wait(wait, self.user_requests(), ask.resumed),
            // There are no child runs in this world, and nothing else is developed.
            other => samples::failed_effect_reply(other.kind()),
        };
        EffectResult::Reply(reply)
    }
}
