//! Verdicts and statuses that are in no table: the agent is asked once more, and nothing is guessed.

use tribunal_engine::{files::Hunk, ids::FindingId};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, findings_reply, fixes_reply, flawed_text, frozen_reply, landed_reply, raised_flaw, rulings_reply},
    trial::{TrialRun, ordered_workflow},
};
use tribunal_workflows::{
    findings::finding::{Finding, FindingStatus, Severity},
    review::{challenge_rules::ChallengeResult, event::ReviewEvent, level::ReviewLevel},
    runs::{
        effect::{AskAgent, AskOutcome, Effect, Reply},
        types::{RunEvent, find_event},
        view::RunView,
    },
    tasks::{
        brief::AnswerContent,
        claims::{ChallengeVerdict, ClaimStatus, UnknownWord},
    },
};

const F1: FindingId = FindingId(1);
const F2: FindingId = FindingId(2);

/// One reviewer raises both flaws; a fixer repairs them if nothing else is scripted.
fn world_with_two_flaws() -> ScriptedWorld {
    let repaired_text = flawed_text(2).replace("flaw 1", "repaired").replace("flaw 2", "repaired");
    let both_hunks = vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }, Hunk { old_start: 9, old_len: 1, new_len: 1 }];
    ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(2)))
        .reply_on(
            "round-1/review/adversarial",
            findings_reply(vec![raised_flaw(1, Severity::High), raised_flaw(2, Severity::High)]),
        )
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed), (F2, ClaimStatus::Fixed)], true))
        .reply_on("round-1/fix-1/fix/1/land", landed_reply(&repaired_text, both_hunks))
        .reply_on("round-2/freeze", frozen_reply(&repaired_text))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&repaired_text))
}

/// Replaces what an answer says about F2 by an unknown word.
fn with_unknown_word(mut reply: Reply) -> Reply {
    let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply else { panic!("{reply:?}") };
    let unknown_word = UnknownWord { id: F2, word: "meh".into() };
    match &mut answer.content {
        AnswerContent::Rulings { rulings, unknown, .. } => {
            rulings.retain(|ruling| ruling.id != F2);
            unknown.push(unknown_word);
        }
        AnswerContent::Fixes { claims, unknown } => {
            claims.retain(|claim| claim.id != F2);
            unknown.push(unknown_word);
        }
        other_content => panic!("{other_content:?}"),
    }
    reply
}

fn both_valid() -> Reply {
    rulings_reply(vec![(F1, ChallengeVerdict::Valid), (F2, ChallengeVerdict::Valid)])
}

struct ReviewedWords {
    trial: TrialRun<ScriptedWorld>,
    view: RunView,
}

fn run_review(world: ScriptedWorld) -> ReviewedWords {
    let mut plan = samples::sample_plan().with_change(|plan| plan.order.level = Some(ReviewLevel::Minimal));
    plan.order.limits.fix_iterations = 1;
    let mut trial = TrialRun::new(plan, world, 1);
    trial.run_workflow(ordered_workflow, None);
    let view = RunView::from_entries(&trial.journal);
    ReviewedWords { trial, view }
}

impl ReviewedWords {
    fn finding(&self, finding_id: FindingId) -> &Finding {
        let finding = self.view.all_findings().find(|finding| finding.id == finding_id);
        finding.unwrap_or_else(|| panic!("there is no {finding_id}"))
    }

    fn has_note(&self, finding_id: FindingId, note: &str) -> bool {
        self.finding(finding_id).history.iter().any(|step| step.note == note)
    }

    fn correction_for(&self, task_key: &str) -> String {
        let mut corrections = self.trial.journal.iter().filter_map(|entry| match &entry.event {
            RunEvent::EffectStarted { key, effect: Effect::Ask(AskAgent { task, .. }), .. }
                if key.as_str() == task_key =>
            {
                Some(task.brief.correction_text().to_string())
            }
            _ => None,
        });
        corrections.next().unwrap_or_else(|| panic!("{task_key} was not asked"))
    }

    fn ruling_of(&self, finding_id: FindingId) -> (ChallengeResult, usize) {
        let mut rulings = self.trial.journal.iter().filter_map(|entry| match find_event::<ReviewEvent>(&entry.event) {
            Some(ReviewEvent::FindingRuled { finding, ruled, voices, .. }) if *finding == finding_id => {
                Some((*ruled, voices.len()))
            }
            _ => None,
        });
        rulings.next().unwrap_or_else(|| panic!("{finding_id} was not ruled on"))
    }

    fn silent_ids(&self, task_key: &str) -> Vec<FindingId> {
        let mut answers = self.trial.journal.iter().filter_map(|entry| match find_event::<ReviewEvent>(&entry.event) {
            Some(ReviewEvent::ChallengerAnswered { key, silent, .. }) if key.as_str() == task_key => {
                Some(silent.clone())
            }
            _ => None,
        });
        answers.next().unwrap_or_else(|| panic!("{task_key} did not answer"))
    }
}

#[test]
fn an_unknown_verdict_is_asked_about_with_the_id_and_the_accepted_words() {
    let review = run_review(
        world_with_two_flaws()
            .reply_on("round-1/challenge/1/1", with_unknown_word(both_valid()))
            .reply_on("round-1/challenge/1/1/again", both_valid())
            .reply_on("round-1/challenge/2/1", both_valid()),
    );
    let correction = review.correction_for("round-1/challenge/1/1/again");
    assert!(correction.starts_with("unknown verdict `meh` for F2; accepted words: VALID (or uphold, "), "{correction}");
    assert!(correction.contains("INVALID (or ") && correction.contains("AMBIGUOUS (or "), "{correction}");
    assert_eq!(review.ruling_of(F2), (ChallengeResult::Valid, 2));
    assert_eq!(review.finding(F2).severity, Severity::High);
}

#[test]
fn a_verdict_that_stays_unknown_is_no_voice_and_lowers_no_severity() {
    let review = run_review(
        world_with_two_flaws()
            .reply_on("round-1/challenge/1/1", with_unknown_word(both_valid()))
            .reply_on("round-1/challenge/1/1/again", with_unknown_word(both_valid()))
            .reply_on("round-1/challenge/2/1", with_unknown_word(both_valid()))
            .reply_on("round-1/challenge/2/1/again", with_unknown_word(both_valid()))
            .reply_on("round-1/challenge/3/1", with_unknown_word(rulings_reply(vec![])))
            .reply_on("round-1/challenge/3/1/again", with_unknown_word(rulings_reply(vec![])))
            .reply_on("round-1/challenge/4/1", with_unknown_word(rulings_reply(vec![])))
            .reply_on("round-1/challenge/4/1/again", with_unknown_word(rulings_reply(vec![]))),
    );
    assert_eq!(review.silent_ids("round-1/challenge/1/1"), [F2]);
    assert_eq!(review.ruling_of(F1), (ChallengeResult::Valid, 2));
    assert_eq!(review.ruling_of(F2), (ChallengeResult::Unheard, 0), "no challenger answered about it");
    assert_eq!(review.finding(F2).severity, Severity::High);
}

#[test]
fn an_unknown_status_is_asked_about_with_the_id_and_the_accepted_words() {
    let both_fixed = || fixes_reply(vec![(F1, ClaimStatus::Fixed), (F2, ClaimStatus::Fixed)], true);
    let world = world_with_two_flaws()
        .reply_on("round-1/challenge/1/1", both_valid())
        .reply_on("round-1/challenge/2/1", both_valid())
        .reply_on("round-1/fix-1/fix/1", with_unknown_word(both_fixed()))
        .reply_on("round-1/fix-1/fix/1/again", both_fixed());
    let repaired_text = flawed_text(2).replace("flaw 1", "repaired").replace("flaw 2", "repaired");
    let both_hunks = vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }, Hunk { old_start: 9, old_len: 1, new_len: 1 }];
    let review = run_review(world.reply_on("round-1/fix-1/fix/1/again/land", landed_reply(&repaired_text, both_hunks)));
    let correction = review.correction_for("round-1/fix-1/fix/1/again");
    assert!(
        correction.starts_with("unknown status `meh` for F2; accepted words: FIXED (or resolved, "),
        "{correction}"
    );
    assert_eq!(review.finding(F1).status, FindingStatus::Fixed);
    assert_eq!(review.finding(F2).status, FindingStatus::Fixed);
}

#[test]
fn a_lesson_that_a_fixer_saved_is_noted_with_its_fix() {
    let mut reply = fixes_reply(vec![(F1, ClaimStatus::Fixed), (F2, ClaimStatus::Fixed)], true);
    let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply else { panic!("{reply:?}") };
    let AnswerContent::Fixes { claims, .. } = &mut answer.content else { panic!("{answer:?}") };
    claims[0].memory_saved = true;
    let world = world_with_two_flaws()
        .reply_on("round-1/challenge/1/1", both_valid())
        .reply_on("round-1/challenge/2/1", both_valid())
        .reply_on("round-1/fix-1/fix/1", reply);
    let journal_text = serde_json::to_string(&run_review(world).trial.journal).unwrap();
    assert!(journal_text.contains("about F1; lesson saved to memory"), "{journal_text}");
    assert!(!journal_text.contains("about F2; lesson saved to memory"), "{journal_text}");
}

#[test]
fn a_finding_whose_status_stays_unknown_or_is_not_fixed_is_open_with_the_reason() {
    let challenged_world = || {
        world_with_two_flaws()
            .reply_on("round-1/challenge/1/1", both_valid())
            .reply_on("round-1/challenge/2/1", both_valid())
    };
    let unknown_reply = || with_unknown_word(fixes_reply(vec![(F1, ClaimStatus::Blocked)], false));
    let review = run_review(
        challenged_world()
            .reply_on("round-1/fix-1/fix/1", unknown_reply())
            .reply_on("round-1/fix-1/fix/1/again", unknown_reply()),
    );
    assert_eq!(review.finding(F2).status, FindingStatus::Open);
    assert!(review.has_note(F2, "the fixer's status `meh` is neither FIXED nor BLOCKED"), "{:?}", review.finding(F2));
    let unfixed_reply = fixes_reply(vec![(F1, ClaimStatus::Blocked), (F2, ClaimStatus::Unfixed)], false);
    let review = run_review(challenged_world().reply_on("round-1/fix-1/fix/1", unfixed_reply));
    assert_eq!(review.finding(F2).status, FindingStatus::Open);
    assert!(review.has_note(F2, "the fixer says that it is not fixed: about F2"), "{:?}", review.finding(F2));
}
