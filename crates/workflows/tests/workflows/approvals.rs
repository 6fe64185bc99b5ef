//! What needs the user's approval: patches under `approve: each`, files that changed outside the workspaces, and repeated
//! conflicts.

use tribunal_engine::{
    answer::DecisionAnswer,
    effect::{Restore, RestoreOutcome},
    files::{Hunk, PathState, StrayEdit},
    ids::{DecisionId, FindingId, Hash},
    reason::{RunEnding, RunReason},
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{
        self, conflict_refusal, findings_reply, fixes_reply, flawed_text, frozen_reply, landed_reply, raised_flaw,
    },
    trial::TrialRun,
};
use tribunal_workflows::{
    findings::finding::{FindingStatus, Severity},
    review::{level::ReviewLevel, order::ReviewOrder, topic::ReviewTopic},
    runs::{
        effect::{AskOutcome, Effect, LandOutcome, Reply},
        plan::RunPlan,
        types::{Decision, Requests, RunEvent, find_topic},
        user_request::UserRequest,
    },
    tasks::{brief::AgentReply, claims::ClaimStatus},
};

const F1: FindingId = FindingId(1);

fn single_reviewer_plan() -> RunPlan<ReviewOrder> {
    samples::sample_plan().with_change(|plan| plan.order.level = Some(ReviewLevel::Minimal))
}

fn approve_each_plan() -> RunPlan<ReviewOrder> {
    let mut plan = single_reviewer_plan();
    plan.order.fixers.approve_each = true;
    plan
}

fn world_raising_one() -> ScriptedWorld {
    ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-1/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::High)]))
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
        .reply_on("round-2/freeze", frozen_reply("# Plan\n"))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply("# Plan\n"))
}

fn repaired_landing() -> Reply {
    landed_reply(&flawed_text(1).replace("flaw 1", "repaired"), vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }])
}

fn wait_answered_with(choice: &str) -> Reply {
    let answer = DecisionAnswer { choice: choice.into(), note: String::new() };
    Reply::Wait(Requests { requests: vec![UserRequest::Answer { decision: DecisionId::new("D1"), answer }] })
}

fn was_performed(trial: &TrialRun<ScriptedWorld>, key: &str) -> bool {
    trial.world.performed_keys.iter().any(|performed_key| performed_key == key)
}

#[test]
fn with_approve_each_nothing_lands_before_the_user_approves() {
    let world = world_raising_one().reply_on("round-1/fix-1/approved/D1", repaired_landing());
    let mut trial = TrialRun::new(approve_each_plan(), world, 1);
    let (ending, view) = trial.run_order();
    assert_eq!(ending, RunEnding::new(RunReason::Blocked, "1 patch is waiting for your approval"));
    assert_eq!(
        view.as_review().unwrap().findings[&F1].status,
        FindingStatus::Blocked { decision: DecisionId::new("D1") }
    );
    assert!(!trial.world.performed_keys.iter().any(|key| key.ends_with("/land")), "{:?}", trial.world.performed_keys);
    assert!(!was_performed(&trial, "round-2/freeze"), "no round is paid for while a patch waits");

    trial.world = core::mem::take(&mut trial.world).reply_on("wait", wait_answered_with("approve"));
    let (ending, view) = trial.run_order();
    assert_eq!(ending.reason, RunReason::GoalMet, "{ending:?}");
    assert_eq!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Fixed);
    assert!(was_performed(&trial, "round-1/fix-1/approved/D1"));
}

#[test]
fn a_rejected_patch_goes_back_to_a_fixer_with_the_rejection() {
    let world = world_raising_one();
    let mut trial = TrialRun::new(approve_each_plan(), world, 1);
    trial.run_order();
    trial.world = core::mem::take(&mut trial.world).reply_once("wait", wait_answered_with("reject"));
    let (ending, view) = trial.run_order();
    // The patch of the next fixer waits for approval, too.
    assert_eq!(ending, RunEnding::new(RunReason::Blocked, "1 patch is waiting for your approval"));
    assert_eq!(
        view.as_review().unwrap().findings[&F1].status,
        FindingStatus::Blocked { decision: DecisionId::new("D2") }
    );
    let is_rejection = |note: &str| note.starts_with("patch rejected by the user");
    assert!(view.as_review().unwrap().findings[&F1].history.iter().any(|step| is_rejection(&step.note)));
}

/// Rejects the patch of the first fixer. The next one brings a patch with this hash.
fn decision_after_rejection(second_patch: &str) -> Option<Decision> {
    let mut trial = TrialRun::new(approve_each_plan(), world_raising_one(), 1);
    trial.run_order();
    let mut second_reply = fixes_reply(vec![(F1, ClaimStatus::Fixed)], true);
    if let Reply::Ask(AskOutcome::Answered(AgentReply { patch: Some(patch), .. })) = &mut second_reply {
        patch.hash = Hash::new(second_patch);
    }
    trial.world = core::mem::take(&mut trial.world)
        .reply_on("round-1/fix-1/fix/1", second_reply)
        .reply_once("wait", wait_answered_with("reject"));
    let (_, view) = trial.run_order();
    view.open_decisions().next().cloned()
}

#[test]
fn a_rejected_patch_that_comes_back_unchanged_is_marked() {
    let decision = decision_after_rejection("patch").unwrap();
    let Some(ReviewTopic::Patch { rejected_in, .. }) = find_topic::<ReviewTopic>(&decision.about) else {
        panic!("{decision:?}")
    };
    assert_eq!((decision.id.as_str(), rejected_in), ("D2", &Some(DecisionId::new("D1"))));
    let question = &decision.question;
    assert!(question.starts_with("apply this patch? It is the same patch as in D1, which you rejected."), "{question}");
    // The mark is part of the record, so that other programs need not read the question.
    assert_eq!(serde_json::to_value(&decision.about).unwrap()["rejected_in"], "D1");
}

#[test]
fn another_patch_after_a_rejection_is_not_marked() {
    let decision = decision_after_rejection("another patch").unwrap();
    let Some(ReviewTopic::Patch { rejected_in, .. }) = find_topic::<ReviewTopic>(&decision.about) else {
        panic!("{decision:?}")
    };
    assert_eq!((decision.id.as_str(), rejected_in), ("D2", &None));
    assert!(!decision.question.contains("rejected"), "{}", decision.question);
}

#[test]
fn the_second_conflict_about_a_finding_is_a_decision_with_both_sides() {
    let conflict_reply = || {
        let mut refusal = conflict_refusal(5);
        if let tribunal_engine::files::PatchRefusal::Conflict { ours, theirs, .. } = &mut refusal {
            (*ours, *theirs) = ("mine\n".into(), "the fixer's\n".into());
        }
        Reply::Land(LandOutcome::Refused { why: refusal })
    };
    let world = world_raising_one()
        .reply_on("round-1/fix-1/fix/1/land", conflict_reply())
        .reply_on("round-1/fix-2/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
        .reply_on("round-1/fix-2/fix/1/land", conflict_reply());
    let (_, view) = TrialRun::new(single_reviewer_plan(), world, 1).run_order();
    let decision = view.open_decisions().next().unwrap();
    assert!(
        matches!(find_topic::<ReviewTopic>(&decision.about), Some(ReviewTopic::Blocked { finding: F1 })),
        "{decision:?}"
    );
    assert!(decision.question.contains("mine") && decision.question.contains("the fixer's"), "{}", decision.question);
}

fn file_with(content: &str) -> PathState {
    PathState::File { hash: Some(Hash::new(content)), mode: 0o644 }
}

/// Adds a file that changed outside the workspaces to an agent's answer.
fn with_stray(reply: Reply) -> Reply {
    match reply {
        Reply::Ask(AskOutcome::Answered(mut answer)) => {
            let (before, after) = (file_with("before"), file_with("after"));
            answer.strayed = vec![StrayEdit { path: "src/main.rs".into(), before, after, kept: true }];
            Reply::Ask(AskOutcome::Answered(answer))
        }
        unchanged => unchanged,
    }
}

fn world_with_stray() -> ScriptedWorld {
    world_raising_one()
        .reply_on("round-1/review/adversarial", with_stray(findings_reply(vec![raised_flaw(1, Severity::High)])))
        .reply_on("round-1/fix-1/fix/1", with_stray(fixes_reply(vec![(F1, ClaimStatus::Fixed)], true)))
        .reply_on("round-1/fix-1/fix/1/land", repaired_landing())
}

#[test]
fn a_file_changed_outside_the_workspaces_is_asked_about_once_and_blocks_the_end() {
    let mut trial = TrialRun::new(single_reviewer_plan(), world_with_stray(), 1);
    let (ending, view) = trial.run_order();
    assert_eq!(ending, RunEnding::new(RunReason::Blocked, "1 file changed outside this run"));
    let questions: Vec<&str> = view.open_decisions().map(|decision| decision.question.as_str()).collect();
    let expected_question =
        "src/main.rs was changed while agents were running, but not by applying a patch. Was that you?";
    assert_eq!(questions, [expected_question]);
    assert_eq!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Fixed, "the work went on meanwhile");

    trial.world = core::mem::take(&mut trial.world).reply_on("wait", wait_answered_with("keep"));
    let (ending, _) = trial.run_order();
    assert_eq!(ending.reason, RunReason::GoalMet);
    assert!(!trial.world.performed_keys.iter().any(|key| key.starts_with("restore")));
}

#[test]
fn a_stray_change_is_undone_when_the_user_asks_for_it() {
    let mut trial = TrialRun::new(single_reviewer_plan(), world_with_stray(), 1);
    trial.run_order();
    let restored_reply =
        Reply::Restore(RestoreOutcome::Restored { parked: Some(".tribunal/parked/x/1-main.rs".into()) });
    trial.world = core::mem::take(&mut trial.world)
        .reply_on("wait", wait_answered_with("restore"))
        .reply_on("restore-1", restored_reply);
    let (ending, _) = trial.run_order();
    assert_eq!(ending.reason, RunReason::GoalMet);
    let restored_path = trial.journal.iter().find_map(|entry| match &entry.event {
        RunEvent::EffectStarted { effect: Effect::Restore(Restore { stray }), .. } => Some(stray.path.clone()),
        _ => None,
    });
    assert_eq!(restored_path.as_deref(), Some("src/main.rs"));
    let is_reported = trial.journal.iter().any(|entry| match &entry.event {
        RunEvent::Warned { text } => {
            text.contains("restored src/main.rs") && text.contains(".tribunal/parked/x/1-main.rs")
        }
        _ => false,
    });
    assert!(is_reported);
}

#[test]
fn many_files_that_changed_at_once_are_one_question() {
    let world_with_strays = |count: usize| {
        let mut reply = findings_reply(vec![raised_flaw(1, Severity::High)]);
        if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
            let stray = |file_number: usize| StrayEdit {
                path: format!("src/{file_number}.rs"),
                before: PathState::Missing,
                after: file_with("new"),
                kept: true,
            };
            answer.strayed = (0..count).map(stray).collect();
        }
        world_raising_one()
            .reply_on("round-1/review/adversarial", reply)
            .reply_on("round-1/fix-1/fix/1/land", repaired_landing())
    };
    for (count, questions) in [(2, 1), (3, 1), (500, 1)] {
        let (ending, view) = TrialRun::new(single_reviewer_plan(), world_with_strays(count), 1).run_order();
        assert_eq!(view.open_decisions().count(), questions, "{count}");
        assert_eq!(ending.detail, format!("{count} files changed outside this run"));
    }
}

#[test]
fn restore_is_not_offered_for_lost_files_and_a_failed_restore_is_asked_about_again() {
    let (before, after) = (file_with("b"), PathState::Missing);
    let lost_file = StrayEdit { path: "src/main.rs".into(), before, after, kept: false };
    let mut reply = findings_reply(vec![]);
    if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
        answer.strayed = vec![lost_file];
    }
    let (_, view) =
        TrialRun::new(single_reviewer_plan(), world_raising_one().reply_on("round-1/review/adversarial", reply), 1)
            .run_order();
    let decision = view.open_decisions().next().unwrap();
    assert!(
        !decision.offers_choice("restore") && decision.question.contains("cannot be put back: src/main.rs"),
        "{decision:?}"
    );

    let mut trial = TrialRun::new(single_reviewer_plan(), world_with_stray(), 1);
    trial.run_order();
    let failed_restore = samples::failed_effect_reply(tribunal_workflows::runs::effect::EffectKind::Restore);
    trial.world = core::mem::take(&mut trial.world)
        .reply_once("wait", wait_answered_with("restore"))
        .reply_on("restore-1", failed_restore);
    let (ending, view) = trial.run_order();
    assert_eq!(ending.reason, RunReason::Blocked, "{ending:?}");
    assert!(view.open_decisions().next().unwrap().question.contains("could not restore src/main.rs"));
}

#[test]
fn one_question_names_what_can_be_put_back_and_what_cannot() {
    let mut reply = findings_reply(vec![raised_flaw(1, Severity::High)]);
    if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
        let stray = |file_number: u32| StrayEdit {
            path: format!("src/{file_number}.rs"),
            before: file_with("before"),
            after: PathState::Missing,
            kept: file_number.is_multiple_of(2),
        };
        answer.strayed = (0..6).map(stray).collect();
    }
    let world = world_raising_one()
        .reply_on("round-1/review/adversarial", reply)
        .reply_on("round-1/fix-1/fix/1/land", repaired_landing());
    let mut trial = TrialRun::new(single_reviewer_plan(), world, 1);
    let (_, view) = trial.run_order();
    let decisions: Vec<&Decision> = view.open_decisions().collect();
    let [decision] = decisions.as_slice() else { panic!("{decisions:?}") };
    assert!(decision.offers_choice("restore"));
    assert!(decision.question.ends_with("What cannot be put back: src/1.rs, src/3.rs, src/5.rs."), "{decision:?}");

    let restored = || Reply::Restore(RestoreOutcome::Restored { parked: None });
    trial.world = core::mem::take(&mut trial.world)
        .reply_on("wait", wait_answered_with("restore"))
        .reply_on("restore-1", restored())
        .reply_on("restore-2", restored())
        .reply_on("restore-3", restored());
    let (ending, _) = trial.run_order();
    assert_eq!(ending.reason, RunReason::GoalMet);
    let warnings: Vec<&str> = trial.journal.iter().filter_map(|entry| warning_text(&entry.event)).collect();
    assert!(warnings.contains(&"restored src/4.rs"), "{warnings:?}");
    assert!(warnings.contains(&"src/1.rs stays as it is: its previous state was not kept"), "{warnings:?}");
}

fn warning_text(event: &RunEvent) -> Option<&str> {
    match event {
        RunEvent::Warned { text } => Some(text),
        _ => None,
    }
}

#[test]
fn what_is_not_watched_is_said_once_and_asks_nothing() {
    let unwatched =
        StrayEdit { path: "deep/".into(), before: PathState::Unwatched, after: PathState::Unwatched, kept: false };
    let with_unwatched = |reply: Reply| match reply {
        Reply::Ask(AskOutcome::Answered(mut answer)) => {
            answer.strayed = vec![unwatched.clone()];
            Reply::Ask(AskOutcome::Answered(answer))
        }
        unchanged => unchanged,
    };
    let world = world_raising_one()
        .reply_on("round-1/review/adversarial", with_unwatched(findings_reply(vec![raised_flaw(1, Severity::High)])))
        .reply_on("round-1/fix-1/fix/1", with_unwatched(fixes_reply(vec![(F1, ClaimStatus::Fixed)], true)))
        .reply_on("round-1/fix-1/fix/1/land", repaired_landing());
    let mut trial = TrialRun::new(single_reviewer_plan(), world, 1);
    let (ending, view) = trial.run_order();
    assert_eq!((ending.reason, view.open_decisions().count()), (RunReason::GoalMet, 0));
    let warnings = trial.journal.iter().filter_map(|entry| warning_text(&entry.event));
    let expected_warning = "the project has too many files: changes in deep/ are not noticed";
    assert_eq!(warnings.filter(|text| *text == expected_warning).count(), 1);
}

#[test]
fn an_answer_about_a_directory_holds_for_what_is_in_it() {
    let with_strays = |reply: Reply, path: &str, after: PathState| match reply {
        Reply::Ask(AskOutcome::Answered(mut answer)) => {
            answer.strayed = vec![StrayEdit { path: path.into(), before: after.clone(), after, kept: false }];
            Reply::Ask(AskOutcome::Answered(answer))
        }
        unchanged => unchanged,
    };
    let many_files = PathState::Files { count: 312 };
    let review = findings_reply(vec![raised_flaw(1, Severity::High)]);
    let fix = fixes_reply(vec![(F1, ClaimStatus::Fixed)], true);
    let world = world_raising_one()
        .reply_on("round-1/review/adversarial", with_strays(review, "target/", many_files))
        .reply_on("round-1/fix-1/fix/1", with_strays(fix, "target/debug/x", file_with("x")))
        .reply_on("round-1/fix-1/fix/1/land", repaired_landing());
    let (ending, view) = TrialRun::new(single_reviewer_plan(), world, 1).run_order();
    assert_eq!(ending.detail, "312 files changed outside this run");
    let questions: Vec<&str> = view.open_decisions().map(|decision| decision.question.as_str()).collect();
    let [question] = questions.as_slice() else { panic!("{questions:?}") };
    assert!(question.starts_with("target/ was changed (312 files) while agents were running"), "{question}");
}

#[test]
fn a_file_is_asked_about_once_however_often_it_changes() {
    let fix_with_stray = |after: &str| {
        let mut reply = fixes_reply(vec![(F1, ClaimStatus::Fixed)], true);
        if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
            let (before, after) = (file_with("before"), file_with(after));
            answer.strayed = vec![StrayEdit { path: "src/main.rs".into(), before, after, kept: true }];
        }
        reply
    };
    let world = world_with_stray().reply_on("round-1/fix-1/fix/1", fix_with_stray("something else"));
    let (_, view) = TrialRun::new(single_reviewer_plan(), world, 1).run_order();
    assert_eq!(view.open_decisions().count(), 1);
}
