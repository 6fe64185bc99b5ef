//! What counts as repaired: what the rules say about a change, what a judge says, and what lands of it.

use ChallengeVerdict::{Ambiguous, Invalid, Valid};
use tribunal_engine::{
    fault::FaultKind,
    files::{FilePart, Hunk},
    ids::{AgentName, FindingId},
    reason::{RunEnding, RunReason},
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{
        self, failed_task_reply, findings_reply, fixes_reply, frozen_reply, landed_reply, rulings_reply, taken_in_reply,
    },
    trial::{TrialOutcome, TrialRun, ordered_workflow as workflow},
};
use tribunal_workflows::{
    findings::{
        agent_role::AgentRole,
        finding::{Evidence, FindingStatus, Severity},
    },
    review::{event::ReviewEvent, level::ReviewLevel, order::ReviewOrder},
    runs::{
        effect::{AskAgent, Effect, Land, Reply},
        plan::RunPlan,
        settings::{AgentSpec, DriverSpec},
        types::{Requests, RunEvent, find_event},
        user_request::UserRequest,
        view::RunView,
    },
    tasks::{
        brief::{AgentTask, RaisedFinding},
        claims::{ChallengeVerdict, ClaimStatus},
    },
};

const F1: FindingId = FindingId(1);
const F2: FindingId = FindingId(2);
const PLAN: &str = "# Plan\n\n## Requirements\n\n- FR1: uploads are fast.\n- FR2: files are kept.\n\n- FR4: searches are \
                    fast.\n";

fn claim_about(quote: &str, description: &str) -> RaisedFinding {
    let evidence = Evidence::Quote { text: quote.into() };
    RaisedFinding { description: description.into(), evidence, ..samples::raised_flaw(1, Severity::Medium) }
}

fn fast_claims() -> Vec<RaisedFinding> {
    vec![
        claim_about("- FR1: uploads are fast.", "no upload time is given"),
        claim_about("- FR4: searches are fast.", "no search time is given"),
    ]
}

fn single_reviewer_plan() -> RunPlan<ReviewOrder> {
    samples::sample_plan().with_change(|plan| {
        plan.order.level = Some(ReviewLevel::Minimal);
        plan.order.limits.fix_iterations = 1;
    })
}

/// One fixer gets all findings and claims to have fixed them; its patch makes this text.
fn world_with_fix(claims: Vec<RaisedFinding>, fixed_text: &str, hunks: Vec<Hunk>) -> ScriptedWorld {
    let fixed = (1..=claims.len() as u32).map(|number| (FindingId(number), ClaimStatus::Fixed)).collect();
    ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(PLAN))
        .reply_on("round-1/review/adversarial", findings_reply(claims))
        .reply_on("round-1/fix-1/fix/1", fixes_reply(fixed, true))
        .reply_on("round-1/fix-1/fix/1/land", landed_reply(fixed_text, hunks))
        .reply_on("round-2/freeze", frozen_reply(fixed_text))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(fixed_text))
}

struct RepairedReview {
    ending: RunEnding,
    trial: TrialRun<ScriptedWorld>,
}

fn run_review(plan: RunPlan<ReviewOrder>, world: ScriptedWorld) -> RepairedReview {
    let mut trial = TrialRun::new(plan, world, 1);
    match trial.run_workflow(workflow, None) {
        TrialOutcome::Done(ending) | TrialOutcome::Parked(ending) => RepairedReview { ending, trial },
        unexpected => panic!("{unexpected:?}"),
    }
}

impl RepairedReview {
    fn status_and_note(&self, finding_id: FindingId) -> (FindingStatus, String) {
        let view = RunView::from_entries(&self.trial.journal);
        let finding = view.all_findings().find(|finding| finding.id == finding_id);
        let finding = finding.unwrap_or_else(|| panic!("there is no {finding_id}"));
        (finding.status.clone(), finding.last_note().to_string())
    }

    /// The parts that were left out of the patch; `None` if it did not land.
    fn left_out(&self) -> Option<Vec<FilePart>> {
        self.trial.journal.iter().find_map(|entry| match &entry.event {
            RunEvent::EffectStarted { effect: Effect::Land(Land { preview: false, without, .. }), .. } => {
                Some(without.clone())
            }
            _ => None,
        })
    }

    fn judge_tasks(&self) -> Vec<AgentTask> {
        let tasks = self.trial.journal.iter().filter_map(|entry| match &entry.event {
            RunEvent::EffectStarted { effect: Effect::Ask(AskAgent { task, .. }), .. } => Some(task.clone()),
            _ => None,
        });
        tasks.filter(|task| task.brief.as_review().is_some_and(|brief| brief.role == AgentRole::Judge)).collect()
    }
}

fn changed_line(line: u32) -> Hunk {
    Hunk { old_start: line, old_len: 1, new_len: 1 }
}

fn part_of_plan(hunk: Hunk) -> FilePart {
    FilePart { path: "plan.md".into(), hunk }
}

/// The answer of a judge about findings, and about the parts of the change in their order.
fn judge_reply(verdicts: Vec<(FindingId, ChallengeVerdict)>, parts: &[ChallengeVerdict]) -> Reply {
    let mut reply = rulings_reply(verdicts);
    samples::set_part_verdicts(&mut reply, parts);
    reply
}

const JUDGE_KEY: &str = "round-1/fix-1/fix/1/judge";

/// Lets the judge answer so, also if it is asked once more.
fn judged_by(world: ScriptedWorld, reply: Reply) -> ScriptedWorld {
    world.reply_on(JUDGE_KEY, reply.clone()).reply_on(&format!("{JUDGE_KEY}/again"), reply)
}

#[test]
fn a_neighbours_change_and_a_deletion_repair_nothing_and_do_not_land() {
    let first_claim = || fast_claims().drain(..1).collect::<Vec<_>>();
    let neighbour_text = PLAN.replace("files are kept", "files are kept for a year");
    let elsewhere_text = PLAN.replace("searches are fast", "searches take 1 s");
    let deleted_text = PLAN.replace("- FR1: uploads are fast.\n", "");
    for (fixed_text, hunk, expected_note) in [
        (neighbour_text, changed_line(6), "claimed as fixed, but only a neighbouring line was changed"),
        (elsewhere_text, changed_line(8), "claimed as fixed, but nothing near it was changed"),
        (
            deleted_text,
            Hunk { old_start: 5, old_len: 1, new_len: 0 },
            "claimed as fixed, but the quoted text was deleted, which does not repair it",
        ),
    ] {
        let review = run_review(single_reviewer_plan(), world_with_fix(first_claim(), &fixed_text, vec![hunk]));
        assert_eq!(review.status_and_note(F1), (FindingStatus::Open, expected_note.to_string()));
        assert_eq!((review.left_out(), review.judge_tasks().len()), (None, 0), "{expected_note}");
        assert_eq!(review.ending.reason, RunReason::FixIterations);
        let is_refused = |entry: &tribunal_workflows::runs::types::JournalEntry| {
            matches!(find_event::<ReviewEvent>(&entry.event), Some(ReviewEvent::PatchRefused { .. }))
        };
        assert!(review.trial.journal.iter().any(is_refused));
    }
}

#[test]
fn a_judge_confirms_a_removal_that_the_finding_asks_for() {
    let claim = claim_about("- FR1: uploads are fast.", "FR1 is a duplicate; remove it");
    let deleted_text = PLAN.replace("- FR1: uploads are fast.\n", "");
    let world = || {
        let hunk = Hunk { old_start: 5, old_len: 1, new_len: 0 };
        world_with_fix(vec![claim.clone()], &deleted_text, vec![hunk])
    };
    let review = run_review(single_reviewer_plan(), world());
    assert_eq!(review.status_and_note(F1).0, FindingStatus::Fixed);
    let review = run_review(single_reviewer_plan(), judged_by(world(), rulings_reply(vec![(F1, Invalid)])));
    let (status, note) = review.status_and_note(F1);
    assert_eq!(status, FindingStatus::Open);
    assert_eq!(note, "claimed as fixed, but the judge says that it is not repaired: about F1");
}

#[test]
fn a_contradiction_is_not_repaired_by_deleting_one_of_its_sides() {
    let (first_side, second_side) = ("- FR1: uploads are fast.", "- FR2: files are kept.");
    let both_sides = format!("{first_side}\n{second_side}");
    let deletion_note = "claimed as fixed, but the quoted text was deleted, which does not repair it";
    let neighbour_note = "claimed as fixed, but only a neighbouring line was changed";
    for description in ["FR1 contradicts FR2: keeping files is slow", "FR1 is in conflict with FR2: keeping is slow"] {
        for (quote, deleted_side, deleted_line, expected_note) in [
            (first_side, first_side, 5, deletion_note),
            (both_sides.as_str(), first_side, 5, deletion_note),
            (both_sides.as_str(), second_side, 6, deletion_note),
            // The side that the finding does not quote.
            (first_side, second_side, 6, neighbour_note),
        ] {
            let fixed_text = PLAN.replace(&format!("{deleted_side}\n"), "");
            let hunk = Hunk { old_start: deleted_line, old_len: 1, new_len: 0 };
            let world = world_with_fix(vec![claim_about(quote, description)], &fixed_text, vec![hunk]);
            let review = run_review(single_reviewer_plan(), world);
            assert_eq!(review.status_and_note(F1), (FindingStatus::Open, expected_note.to_string()), "{description}");
            assert_eq!((review.left_out(), review.judge_tasks().len()), (None, 0), "{quote}: without {deleted_side}");
        }
    }
}

#[test]
fn a_contradiction_is_repaired_if_its_sides_agree_or_one_was_removed_as_asked() {
    let claim = claim_about("- FR1: uploads are fast.", "FR1 contradicts FR2: keeping files is slow");
    let reworded_text = PLAN.replace("uploads are fast", "uploads take as long as keeping the file");
    let removal_claim = RaisedFinding { suggested_fix: "Remove FR1.".into(), ..claim.clone() };
    let deleted_text = PLAN.replace("- FR1: uploads are fast.\n", "");
    for (claim, fixed_text, hunk) in [
        (claim, reworded_text, changed_line(5)),
        (removal_claim, deleted_text, Hunk { old_start: 5, old_len: 1, new_len: 0 }),
    ] {
        let review = run_review(single_reviewer_plan(), world_with_fix(vec![claim], &fixed_text, vec![hunk]));
        assert_eq!(review.status_and_note(F1).0, FindingStatus::Fixed, "{fixed_text}");
        assert_eq!((review.left_out(), review.judge_tasks().len()), (Some(vec![]), 1), "{fixed_text}");
    }
}

fn both_fixed_text() -> String {
    PLAN.replace("uploads are fast", "uploads take 2 s").replace("searches are fast", "searches take 1 s")
}

#[test]
fn only_what_the_judge_confirms_is_fixed_and_lands() {
    let hunks = vec![changed_line(5), changed_line(8)];
    let world = || world_with_fix(fast_claims(), &both_fixed_text(), hunks.clone());
    for (second_verdict, expected_note) in [
        (Some(Invalid), "claimed as fixed, but the judge says that it is not repaired: about F2"),
        (Some(Ambiguous), "claimed as fixed, but the judge could not tell whether it is repaired: about F2"),
        (None, "claimed as fixed, but the judge said nothing about it"),
    ] {
        let mut verdicts = vec![(F1, Valid)];
        verdicts.extend(second_verdict.map(|verdict| (F2, verdict)));
        let review = run_review(single_reviewer_plan(), judged_by(world(), rulings_reply(verdicts)));
        assert_eq!(review.status_and_note(F1).0, FindingStatus::Fixed);
        assert_eq!(review.status_and_note(F2), (FindingStatus::Open, expected_note.to_string()));
        assert_eq!(review.left_out(), Some(vec![part_of_plan(hunks[1])]), "what repairs nothing stays out");
    }
}

#[test]
fn parts_of_a_patch_that_no_finding_asks_for_are_left_out() {
    let ride_along_text = both_fixed_text().replace("files are kept", "files are deleted");
    let hunks = vec![changed_line(5), changed_line(6), changed_line(8)];
    let world = || world_with_fix(fast_claims(), &ride_along_text, hunks.clone());
    let all_valid = || vec![(F1, Valid), (F2, Valid)];
    for (part_verdicts, left_out) in [
        (&[Valid, Invalid, Valid][..], vec![part_of_plan(hunks[1])]),
        // A part that the judge does not mention counts only at the evidence.
        (&[], vec![part_of_plan(hunks[1])]),
        (&[Valid, Ambiguous, Valid], vec![part_of_plan(hunks[1])]),
        (&[Valid, Valid, Valid], vec![]),
    ] {
        let reply = judge_reply(all_valid(), part_verdicts);
        let review = run_review(single_reviewer_plan(), judged_by(world(), reply));
        assert_eq!(review.left_out(), Some(left_out), "{part_verdicts:?}");
        assert_eq!(review.status_and_note(F1).0, FindingStatus::Fixed);
        let judge_task = review.judge_tasks().remove(0);
        let shown = serde_json::to_value(&judge_task.brief.as_review().unwrap().plan).unwrap();
        assert_eq!(shown["parts"][1]["after"], "- FR2: files are deleted.");
        assert_eq!(
            (&shown["parts"][1]["is_elsewhere"], &shown["parts"][0]["is_elsewhere"]),
            (&true.into(), &().into())
        );
    }
    // A part at the evidence that does more than repair it is not a repair.
    let reply = judge_reply(all_valid(), &[Invalid, Invalid, Valid]);
    let review = run_review(single_reviewer_plan(), world().reply_on(JUDGE_KEY, reply));
    let (status, note) = review.status_and_note(F1);
    assert_eq!(status, FindingStatus::Open);
    assert_eq!(
        note,
        "claimed as fixed, but the judge says that the change at plan.md:5 does more than repair it: said so"
    );
    assert_eq!(review.left_out(), Some(vec![part_of_plan(hunks[0]), part_of_plan(hunks[1])]));
}

#[test]
fn changes_of_the_formatting_alone_are_rejected_without_a_judge() {
    for new_line in ["-  FR1:  uploads are fast.", "- **FR1**: _uploads_ are fast.", "- FR1: UPLOADS are fast."] {
        let fixed_text = PLAN.replace("- FR1: uploads are fast.", new_line);
        let world = world_with_fix(fast_claims().drain(..1).collect(), &fixed_text, vec![changed_line(5)]);
        let review = run_review(single_reviewer_plan(), world);
        let expected_note = "claimed as fixed, but only its formatting was changed";
        assert_eq!(review.status_and_note(F1), (FindingStatus::Open, expected_note.to_string()), "{new_line}");
        assert_eq!((review.left_out(), review.judge_tasks().len()), (None, 0));
    }
}

#[test]
fn half_of_a_move_does_not_land() {
    // The quoted line moves to the end, and the judge does not want its new place.
    let moved_text = PLAN.replace("- FR1: uploads are fast.\n", "") + "- FR1: uploads are fast.\n";
    let hunks = vec![Hunk { old_start: 5, old_len: 1, new_len: 0 }, Hunk { old_start: 9, old_len: 0, new_len: 1 }];
    let deleted_text = PLAN.replace("- FR1: uploads are fast.\n", "");
    let world = world_with_fix(fast_claims().drain(..1).collect(), &moved_text, hunks).reply_on(
        "round-1/fix-1/fix/1/preview/rest",
        {
            let hunk = Hunk { old_start: 5, old_len: 1, new_len: 0 };
            samples::preview_of(landed_reply(&deleted_text, vec![hunk]))
        },
    );
    let review =
        run_review(single_reviewer_plan(), judged_by(world, judge_reply(vec![(F1, Valid)], &[Valid, Invalid])));
    let (status, note) = review.status_and_note(F1);
    assert_eq!(status, FindingStatus::Open);
    assert!(note.ends_with("the quoted text was deleted, which does not repair it"), "{note}");
    assert_eq!(review.left_out(), None);
}

#[test]
fn a_part_at_a_finding_that_the_rules_reject_does_not_land() {
    // F1 is repaired and FR4 deleted, which the judge calls needed.
    let fixed_text = PLAN.replace("uploads are fast", "uploads take 2 s").replace("- FR4: searches are fast.\n", "");
    let deletion = Hunk { old_start: 8, old_len: 1, new_len: 0 };
    let world = world_with_fix(fast_claims(), &fixed_text, vec![changed_line(5), deletion]);
    let reply = judge_reply(vec![(F1, Valid), (F2, Valid)], &[Valid, Valid]);
    let review = run_review(single_reviewer_plan(), judged_by(world, reply));
    assert_eq!(review.left_out(), Some(vec![part_of_plan(deletion)]));
    assert_eq!(review.status_and_note(F2).0, FindingStatus::Open);
}

#[test]
fn a_part_that_goes_beyond_the_quoted_lines_needs_a_clear_word() {
    // The repair and the change of the next line are one part.
    let fixed_text = PLAN.replace("uploads are fast", "uploads take 2 s").replace("files are kept", "files are lost");
    let hunks = vec![Hunk { old_start: 5, old_len: 2, new_len: 2 }];
    let world = || world_with_fix(fast_claims().drain(..1).collect(), &fixed_text, hunks.clone());
    let unchanged = samples::preview_of(landed_reply(PLAN, vec![]));
    let silent_world = world().reply_on("round-1/fix-1/fix/1/preview/rest", unchanged);
    let review = run_review(single_reviewer_plan(), judged_by(silent_world, rulings_reply(vec![(F1, Valid)])));
    assert_eq!((review.status_and_note(F1).0, review.left_out()), (FindingStatus::Open, None));
    let review = run_review(single_reviewer_plan(), judged_by(world(), judge_reply(vec![(F1, Valid)], &[Valid])));
    assert_eq!((review.status_and_note(F1).0, review.left_out()), (FindingStatus::Fixed, Some(vec![])));
}

#[test]
fn the_judge_is_of_another_provider_than_the_fixer_and_is_asked_once() {
    let agent = |name: &str, provider: &str| AgentSpec {
        provider: provider.into(),
        ..AgentSpec::new(name, DriverSpec::Command { argv: vec![] })
    };
    for (agents, expected_judge) in [
        (vec![agent("a", "")], "a"),
        (vec![agent("a1", "a"), agent("a2", "a")], "a2"),
        (vec![agent("a1", "a"), agent("a2", "a"), agent("b", "")], "b"),
    ] {
        let plan = single_reviewer_plan().with_change(|plan| plan.settings.agents = agents.clone());
        let hunks = vec![changed_line(5), changed_line(8)];
        let review = run_review(plan, world_with_fix(fast_claims(), &both_fixed_text(), hunks));
        let judges: Vec<AgentName> = review.judge_tasks().into_iter().map(|task| task.agent).collect();
        assert_eq!(judges, [AgentName::new(expected_judge)]);
    }
}

#[test]
fn without_a_judge_nothing_lands_and_the_findings_stay_open() {
    let hunks = vec![changed_line(5), changed_line(8)];
    let unreadable = || samples::unreadable_reply();
    let world = world_with_fix(fast_claims(), &both_fixed_text(), hunks.clone())
        .reply_on(JUDGE_KEY, unreadable())
        .reply_on(&format!("{JUDGE_KEY}/again"), unreadable());
    let review = run_review(single_reviewer_plan(), world);
    let (status, note) = review.status_and_note(F1);
    assert_eq!(status, FindingStatus::Open);
    assert!(note.starts_with("claimed as fixed, but no judge could say whether it is repaired ("), "{note}");
    assert_eq!(review.left_out(), None);
    // A judge that cannot work is a fault of the environment.
    let world = world_with_fix(fast_claims(), &both_fixed_text(), hunks)
        .reply_on(JUDGE_KEY, failed_task_reply(FaultKind::NotSignedIn));
    let review = run_review(single_reviewer_plan(), world);
    assert_eq!((review.ending.reason, review.left_out()), (RunReason::Environment, None));
    assert_eq!(review.status_and_note(F1).0, FindingStatus::Open);
}

#[test]
fn what_a_session_changed_is_judged_as_well() {
    let plan = single_reviewer_plan().with_change(|plan| plan.order.fixers.in_session = true);
    let edited_text = both_fixed_text().replace("files are kept", "files are deleted");
    let before = [tribunal_engine::files::FrozenFile { path: "plan.md".into(), text: PLAN.into() }];
    let world = world_with_fix(fast_claims(), &edited_text, vec![])
        .reply_on("round-1/fix-1/before", frozen_reply(PLAN))
        .reply_on("round-1/fix-1/session", Reply::Wait(Requests { requests: vec![UserRequest::Resume] }))
        .reply_on("round-1/fix-1/take-in", taken_in_reply(&before, &edited_text))
        .reply_on("round-1/fix-1/session/judge", rulings_reply(vec![(F1, Valid), (F2, Invalid)]))
        .reply_on("round-1/fix-1/session/judge/again", rulings_reply(vec![(F1, Valid), (F2, Invalid)]));
    let review = run_review(plan, world);
    assert_eq!(review.status_and_note(F1).0, FindingStatus::Fixed);
    assert_eq!(review.status_and_note(F2).0, FindingStatus::Open);
    let warning = "the session also changed plan.md:6, plan.md:8: no finding asks for that";
    let is_warned = review.trial.journal.iter().any(|entry| match &entry.event {
        RunEvent::Warned { text } => text == warning,
        _ => false,
    });
    assert!(is_warned, "{:?}", review.ending);
}

#[test]
fn a_judged_review_killed_at_any_write_reaches_the_same_result() {
    let ride_along_text = both_fixed_text().replace("files are kept", "files are deleted");
    let hunks = vec![changed_line(5), changed_line(6), changed_line(8)];
    let world = || {
        let world = world_with_fix(fast_claims(), &ride_along_text, hunks.clone());
        let reply = judge_reply(vec![(F1, Valid), (F2, Invalid)], &[Valid, Invalid, Invalid]);
        world.reply_on(JUDGE_KEY, reply)
    };
    let unharmed = run_review(single_reviewer_plan(), world());
    for kill_at in 0..unharmed.trial.write_count() {
        let mut trial = TrialRun::new(single_reviewer_plan(), world(), 1);
        assert_eq!(trial.run_workflow(workflow, Some(kill_at)), TrialOutcome::Killed);
        let (TrialOutcome::Done(ending) | TrialOutcome::Parked(ending)) = trial.run_workflow(workflow, None) else {
            panic!("killed before write {kill_at}")
        };
        assert_eq!(ending, unharmed.ending, "killed before write {kill_at}");
        let review = RepairedReview { ending, trial };
        assert_eq!(review.status_and_note(F2), unharmed.status_and_note(F2));
        assert_eq!(review.left_out(), unharmed.left_out());
    }
}
