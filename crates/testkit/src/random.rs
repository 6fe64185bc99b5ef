//! A world that answers at random: agents find, invent, multiply, repeat, lie, fail and contradict; fixers go back and forth;
//! users answer or never do, and change the text and the tracker at any moment.
//!
//! The world keeps a text with flaws of its own, so that grounding, landing and verifying work on real content.

use tribunal_core::{
    brief::{Brief, Holds, Raised, Said, Task},
    decision::{Answer, Decision},
    desk::Ask,
    effect::{
        AskOutcome, Change, Effect, Elapsed, FailedTask, LandOutcome, OwnFile, PostOutcome, Remark, Reply,
        Request, Requests, RestoreOutcome, WriteOutcome,
    },
    fault::FaultKind,
    files::{FrozenFile, Hunk, Refusal, Stray},
    finding::{Evidence, Severity},
    ids::{FindingId, Hash},
    level::Role,
};

use crate::{
    dice::Dice,
    samples,
    trial::{Performed, World},
};

/// The rates of everything that can go wrong, in percent.
#[derive(Clone, Copy, Debug)]
pub struct Temper {
    pub agent_fails: usize,
    pub answer_unreadable: usize,
    pub quote_invented: usize,
    pub fixer_blocks: usize,
    pub fixer_lies: usize,
    pub landing_refused: usize,
    /// A fix adds a new flaw.
    pub fix_adds_flaw: usize,
    /// A fix turns one flaw into another, and the next fix turns that one back.
    pub fix_goes_back: usize,
    /// Reviewers object to every heading.
    pub findings_multiply: usize,
    /// An answer repeats an earlier one.
    pub says_it_again: usize,
    pub person_answers: usize,
    /// A user changes the tracker or the text.
    pub person_edits: usize,
}

impl Temper {
    pub fn random(dice: &mut Dice) -> Temper {
        let mut some = || *dice.pick(&[0, 0, 10, 40, 90]);
        Temper {
            agent_fails: some(),
            answer_unreadable: some(),
            quote_invented: some(),
            fixer_blocks: some(),
            fixer_lies: some(),
            landing_refused: some(),
            fix_adds_flaw: some(),
            fix_goes_back: some(),
            findings_multiply: some(),
            says_it_again: some(),
            person_answers: some(),
            person_edits: some(),
        }
    }
}

#[derive(Debug)]
pub struct RandomWorld {
    dice: Dice,
    temper: Temper,
    lines: Vec<String>,
    flaws_made: usize,
    /// The findings that pending patches fix, by the key of the fixer.
    patches: Vec<(String, Vec<FindingId>)>,
    assigned: Vec<(FindingId, String)>,
    open: Vec<Decision>,
    /// The number of edits that users still make; without a limit some runs would never end.
    edits_left: usize,
}

impl RandomWorld {
    pub fn new(seed: u64) -> RandomWorld {
        let mut dice = Dice::new(seed ^ 0x5eed);
        let temper = Temper::random(&mut dice);
        let flaws = dice.roll(12);
        let lines = samples::flawed_text(flaws).lines().map(String::from).collect();
        RandomWorld {
            dice,
            temper,
            lines,
            flaws_made: flaws,
            patches: Vec::new(),
            assigned: Vec::new(),
            open: Vec::new(),
            edits_left: 12,
        }
    }

    fn text(&self) -> String {
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }

    fn ask(&mut self, key: &str, task: &Task) -> Reply {
        let mut reply = self.answer(key, &task.brief);
        if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
            let again = self.dice.percent(self.temper.says_it_again);
            answer.output = Hash::new(if again { "again" } else { key });
            answer.strayed = self.strays();
            answer.repeats = (!task.recent.is_empty()).then_some(if again { 1000 } else { 500 });
        }
        reply
    }

    fn answer(&mut self, key: &str, brief: &Brief) -> Reply {
        if self.dice.percent(self.temper.agent_fails) {
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
            let mut reply = samples::failed(self.dice.pick(&kinds).clone());
            if let Reply::Ask(AskOutcome::Failed(FailedTask { fault, .. })) = &mut reply {
                fault.instant = self.dice.percent(30);
            }
            return reply;
        }
        if self.dice.percent(self.temper.answer_unreadable) {
            return samples::unreadable();
        }
        match brief.role {
            Role::Fixer => self.fix(key, brief),
            Role::Challenger => self.challenge(brief),
            _ => self.review(),
        }
    }

    fn challenge(&mut self, brief: &Brief) -> Reply {
        let words = [Holds::Valid, Holds::Valid, Holds::Invalid, Holds::Ambiguous];
        let mut said = Vec::new();
        for disputed in &brief.disputed {
            if !self.dice.percent(5) {
                said.push((disputed.id, *self.dice.pick(&words)));
            }
        }
        samples::rulings(said)
    }

    fn review(&mut self) -> Reply {
        let flaws: Vec<String> =
            self.lines.iter().filter(|line| line.starts_with("flaw ")).cloned().collect();
        let mut raised = Vec::new();
        for flaw in flaws {
            if self.dice.percent(60) {
                raised.push(self.claim(flaw));
            }
        }
        // This quote is not in the text, so grounding has to dismiss the claim.
        if self.dice.percent(self.temper.quote_invented) {
            raised.push(self.claim("never written".to_string()));
        }
        if self.dice.percent(self.temper.findings_multiply) {
            for line in self.lines.clone().into_iter().filter(|line| line.starts_with("## ")) {
                self.flaws_made += 1;
                let mut claim = self.claim(line.clone());
                claim.description = format!("objection {} to this", self.flaws_made);
                if self.dice.percent(30) {
                    let heading = line.trim_start_matches("## ").to_string();
                    claim.evidence = Evidence::Absence { heading, terms: vec!["deadline".into()] };
                }
                raised.push(claim);
            }
        }
        samples::findings(raised)
    }

    fn claim(&mut self, quote: String) -> Raised {
        Raised {
            severity: *self.dice.pick(&Severity::ALL),
            category: "sample".into(),
            description: format!("{quote} is a flaw, says secret"),
            evidence: Evidence::Quote { text: quote },
            file: None,
            line: None,
            suggested_fix: String::new(),
        }
    }

    fn fix(&mut self, key: &str, brief: &Brief) -> Reply {
        let mut claims = Vec::new();
        let mut fixed = Vec::new();
        for assigned in &brief.assigned {
            let Evidence::Quote { text } = &assigned.evidence else { continue };
            if self.dice.percent(self.temper.fixer_blocks) {
                claims.push((assigned.id, Said::Blocked));
            } else if !self.dice.percent(10) {
                claims.push((assigned.id, Said::Fixed));
                if !self.dice.percent(self.temper.fixer_lies) {
                    fixed.push(assigned.id);
                    self.assigned.push((assigned.id, text.clone()));
                }
            }
        }
        let patched = !fixed.is_empty();
        self.patches.push((key.to_string(), fixed));
        samples::fixes(claims, patched)
    }

    fn land(&mut self, by: &str) -> Reply {
        if self.dice.percent(self.temper.landing_refused) {
            let whys = [
                Refusal::Check { command: "check".into(), output: "no".into() },
                samples::conflict(3),
                Refusal::Outside { files: vec!["../x".into()] },
                Refusal::Lost { detail: "gone".into() },
            ];
            return Reply::Land(LandOutcome::Refused { why: self.dice.pick(&whys).clone() });
        }
        let fixed: Vec<FindingId> = self
            .patches
            .iter()
            .rev()
            .find(|(key, _)| key == by)
            .map(|(_, ids)| ids.clone())
            .unwrap_or_default();
        let mut hunks = Vec::new();
        for id in fixed {
            let Some(quote) =
                self.assigned.iter().rev().find(|(known, _)| *known == id).map(|(_, q)| q.clone())
            else {
                continue;
            };
            if let Some(index) = self.lines.iter().position(|line| *line == quote) {
                self.lines[index] = if self.dice.percent(self.temper.fix_adds_flaw) {
                    self.flaws_made += 1;
                    format!("flaw {}", self.flaws_made)
                } else if self.dice.percent(self.temper.fix_goes_back) {
                    // The flaw alternates between two wordings, so that fixes make no progress.
                    quote.strip_suffix(" again").map_or_else(|| format!("{quote} again"), String::from)
                } else {
                    format!("repaired {id}")
                };
                hunks.push(Hunk { old_start: index as u32 + 1, old_len: 1, new_len: 1 });
            }
        }
        samples::landed(&self.text(), hunks)
    }

    /// What an unattended session does to the text: it fixes some flaws, adds some, or changes nothing.
    fn take_in(&mut self, before: &[FrozenFile]) -> Reply {
        if self.dice.percent(self.temper.landing_refused) {
            let why = Refusal::Check { command: "check".into(), output: "no".into() };
            return Reply::TakeIn(LandOutcome::Refused { why });
        }
        for index in 0..self.lines.len() {
            let lies = self.dice.percent(self.temper.fixer_lies);
            if self.lines[index].starts_with("flaw ") && !lies && self.dice.percent(60) {
                self.flaws_made += 1;
                let adds = self.dice.percent(self.temper.fix_adds_flaw);
                self.lines[index] =
                    if adds { format!("flaw {}", self.flaws_made) } else { format!("repaired {index}") };
            }
        }
        samples::taken_in(before, &self.text())
    }

    fn requests(&mut self) -> Vec<Request> {
        let mut requests = Vec::new();
        for decision in std::mem::take(&mut self.open) {
            if self.dice.percent(self.temper.person_answers) {
                // Some users type an answer that was not offered.
                let mut choices: Vec<String> = decision.choices.iter().map(|c| c.key.to_string()).collect();
                choices.push("nonsense".into());
                let answer = Answer { choice: self.dice.pick(&choices).clone(), note: "because".into() };
                if answer.choice == "nonsense" {
                    self.open.push(decision.clone());
                }
                requests.push(Request::Answer { decision: decision.id, answer });
            } else {
                self.open.push(decision);
            }
        }
        requests.extend(self.edits());
        requests
    }

    /// The changes that a user makes in the tracker, independent of what the run is doing.
    fn edits(&mut self) -> Vec<Request> {
        if self.edits_left == 0 || !self.dice.percent(self.temper.person_edits) {
            return Vec::new();
        }
        self.edits_left -= 1;
        let finding = FindingId(self.dice.roll(9) as u32 + 1);
        let reason = String::from("I know better");
        let changes = [
            Change::Fixed,
            Change::Open,
            Change::Dismissed { reason: reason.clone() },
            Change::Deferred { reason },
            Change::Severity { to: *self.dice.pick(&Severity::ALL) },
        ];
        let change = self.dice.pick(&changes).clone();
        let quote = self.dice.pick(&self.lines).clone();
        let added = Request::Add { severity: Severity::High, description: format!("mine: {quote}"), quote };
        let said = Request::Say(Remark::new("mind the law"));
        let mut requests = vec![Request::Amend { finding, was: None, change }, added, said];
        requests.truncate(self.dice.roll(4));
        requests
    }

    /// Files that were changed outside the task workspaces.
    fn strays(&mut self) -> Vec<Stray> {
        if self.edits_left == 0 || !self.dice.percent(self.temper.person_edits / 6) {
            return Vec::new();
        }
        self.edits_left -= 1;
        let path = format!("src/{}.rs", self.dice.roll(3));
        let after = Hash::new(format!("{}", self.edits_left));
        vec![Stray { path, before: Some(Hash::new("before")), after: Some(after), kept: true }]
    }

    /// Freezes the current text; a user may have written into it before.
    fn freeze(&mut self) -> Reply {
        if self.edits_left > 0 && self.dice.percent(self.temper.person_edits / 3) {
            self.edits_left -= 1;
            self.flaws_made += 1;
            self.lines.push(format!("flaw {}", self.flaws_made));
        }
        samples::frozen(&self.text())
    }
}

impl World for RandomWorld {
    fn perform(&mut self, ask: &Ask) -> Performed {
        let reply = match &ask.effect {
            Effect::Freeze(_) => self.freeze(),
            Effect::Ask(asked) => self.ask(ask.key.as_str(), &asked.task),
            Effect::Land(landing) => self.land(landing.by.as_str()),
            Effect::TakeIn(changed) => self.take_in(&changed.before),
            Effect::Write(written) => {
                let requests = if written.file == OwnFile::Tracker { self.edits() } else { Vec::new() };
                let aside = self.dice.percent(5).then(|| "plan-issues.edited-1.md".to_string());
                Reply::Write(match requests.is_empty() {
                    true => {
                        WriteOutcome::Written { path: "plan-issues.md".into(), aside, strange: Vec::new() }
                    }
                    false => WriteOutcome::Edited { requests },
                })
            }
            Effect::Restore(_) => Reply::Restore(RestoreOutcome::Restored { parked: None }),
            Effect::Post(posted) => {
                if !self.open.iter().any(|known| known.id == posted.decision.id) {
                    self.open.push(posted.decision.clone());
                }
                Reply::Post(PostOutcome::Posted)
            }
            Effect::Sleep(_) => Reply::Sleep(Elapsed {}),
            Effect::AwaitReset(_) => Reply::AwaitReset(Elapsed {}),
            Effect::Inbox(_) => Reply::Inbox(Requests { requests: self.requests() }),
            Effect::Wait(wait) => {
                let mut requests = self.requests();
                if ask.again {
                    requests.push(Request::Resume);
                }
                if requests.is_empty() {
                    return Performed::Park(wait.ending.clone());
                }
                Reply::Wait(Requests { requests })
            }
        };
        Performed::Reply(reply)
    }
}
