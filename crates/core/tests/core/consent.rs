//! What needs the user's approval: patches under `approve: each`, files that changed outside the workspaces, and repeated
//! conflicts.

use tribunal_core::{
    brief::Said,
    decision::{About, Answer},
    effect::{AskOutcome, Effect, LandOutcome, Reply, Request, Requests, Restore, RestoreOutcome},
    event::Event,
    files::{Hunk, Stray},
    finding::{Severity, Status},
    ids::{DecisionId, FindingId, Hash},
    level::Level,
    reason::{Ending, Reason},
    settings::Settings,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, conflict, findings, fixes, flawed_text, frozen, landed, raised},
    trial::Trial,
};

const F1: FindingId = FindingId(1);

fn alone() -> Settings {
    Settings { level: Some(Level::Minimal), ..samples::settings() }
}

fn with_approval() -> Settings {
    let mut settings = alone();
    settings.tasks.writing.approve_each = true;
    settings
}

fn raises_one() -> ScriptedWorld {
    ScriptedWorld::default()
        .on("round-1/freeze", frozen(&flawed_text(1)))
        .on("round-1/review/adversarial", findings(vec![raised(1, Severity::High)]))
        .on("round-1/fix-1/fix/1", fixes(vec![(F1, Said::Fixed)], true))
        .on("round-2/freeze", frozen("# Plan\n"))
        .on("round-2/review/adversarial", findings(vec![]))
        .on("end/look", frozen("# Plan\n"))
}

fn repaired() -> Reply {
    landed("# Plan\n", vec![Hunk { old_start: 5, old_len: 1, new_len: 0 }])
}

fn says(choice: &str) -> Reply {
    let answer = Answer { choice: choice.into(), note: String::new() };
    Reply::Wait(Requests { requests: vec![Request::Answer { decision: DecisionId::new("D1"), answer }] })
}

fn performed(trial: &Trial<ScriptedWorld>, key: &str) -> bool {
    trial.world.performed.iter().any(|performed| performed == key)
}

#[test]
fn with_approve_each_nothing_lands_before_a_person_says_yes() {
    let world = raises_one().on("round-1/fix-1/approved/D1", repaired());
    let mut trial = Trial::new(with_approval(), world, 1);
    let (ending, view) = trial.review();
    assert_eq!(ending, Ending::new(Reason::Blocked, "1 patch is to be approved"));
    assert_eq!(view.findings[&F1].status, Status::Blocked { decision: DecisionId::new("D1") });
    assert!(!trial.world.performed.iter().any(|key| key.ends_with("/land")), "{:?}", trial.world.performed);
    assert!(!performed(&trial, "round-2/freeze"), "no round is paid for while a patch waits");

    trial.world = core::mem::take(&mut trial.world).on("wait", says("approve"));
    let (ending, view) = trial.review();
    assert_eq!(ending.reason, Reason::GoalMet, "{ending:?}");
    assert_eq!(view.findings[&F1].status, Status::Fixed);
    assert!(performed(&trial, "round-1/fix-1/approved/D1"));
}

#[test]
fn a_rejected_patch_goes_back_to_a_fixer_with_what_was_said() {
    let world = raises_one();
    let mut trial = Trial::new(with_approval(), world, 1);
    trial.review();
    trial.world = core::mem::take(&mut trial.world).once("wait", says("reject"));
    let (ending, view) = trial.review();
    // The patch of the next fixer waits for approval, too.
    assert_eq!(ending, Ending::new(Reason::Blocked, "1 patch is to be approved"));
    assert_eq!(view.findings[&F1].status, Status::Blocked { decision: DecisionId::new("D2") });
    let rejected = |note: &str| note.starts_with("a person rejected its patch");
    assert!(view.findings[&F1].history.iter().any(|step| rejected(&step.note)));
}

#[test]
fn the_second_conflict_about_a_finding_is_a_decision_with_both_sides() {
    let refused = || {
        let mut why = conflict(5);
        if let tribunal_core::files::Refusal::Conflict { ours, theirs, .. } = &mut why {
            (*ours, *theirs) = ("mine\n".into(), "the fixer's\n".into());
        }
        Reply::Land(LandOutcome::Refused { why })
    };
    let world = raises_one()
        .on("round-1/fix-1/fix/1/land", refused())
        .on("round-1/fix-2/fix/1", fixes(vec![(F1, Said::Fixed)], true))
        .on("round-1/fix-2/fix/1/land", refused());
    let (_, view) = Trial::new(alone(), world, 1).review();
    let asked = view.waiting().next().unwrap();
    assert!(matches!(asked.about, About::Blocked { finding: F1 }), "{asked:?}");
    assert!(asked.question.contains("mine") && asked.question.contains("the fixer's"), "{}", asked.question);
}

/// Adds a file that changed outside the workspaces to an agent's answer.
fn strays(reply: Reply) -> Reply {
    match reply {
        Reply::Ask(AskOutcome::Answered(mut answer)) => {
            let (before, after) = (Some(Hash::new("before")), Some(Hash::new("after")));
            answer.strayed = vec![Stray { path: "src/main.rs".into(), before, after, kept: true }];
            Reply::Ask(AskOutcome::Answered(answer))
        }
        other => other,
    }
}

fn one_strays() -> ScriptedWorld {
    raises_one()
        .on("round-1/review/adversarial", strays(findings(vec![raised(1, Severity::High)])))
        .on("round-1/fix-1/fix/1", strays(fixes(vec![(F1, Said::Fixed)], true)))
        .on("round-1/fix-1/fix/1/land", repaired())
}

#[test]
fn a_file_that_changed_past_the_copies_is_asked_about_once_and_keeps_the_run_from_being_resolved() {
    let mut trial = Trial::new(alone(), one_strays(), 1);
    let (ending, view) = trial.review();
    assert_eq!(ending, Ending::new(Reason::Blocked, "1 file changed past the copies"));
    let asked: Vec<&str> = view.waiting().map(|decision| decision.question.as_str()).collect();
    assert_eq!(
        asked,
        ["src/main.rs was changed while agents were at work, and not by a landing: was that you?"]
    );
    assert_eq!(view.findings[&F1].status, Status::Fixed, "the work went on meanwhile");

    trial.world = core::mem::take(&mut trial.world).on("wait", says("keep"));
    let (ending, _) = trial.review();
    assert_eq!(ending.reason, Reason::GoalMet);
    assert!(!trial.world.performed.iter().any(|key| key.starts_with("restore")));
}

#[test]
fn what_a_person_wants_back_is_put_back() {
    let mut trial = Trial::new(alone(), one_strays(), 1);
    trial.review();
    let back =
        Reply::Restore(RestoreOutcome::Restored { parked: Some(".tribunal/parked/x/1-main.rs".into()) });
    trial.world = core::mem::take(&mut trial.world).on("wait", says("restore")).on("restore-1", back);
    let (ending, _) = trial.review();
    assert_eq!(ending.reason, Reason::GoalMet);
    let asked = trial.journal.iter().find_map(|entry| match &entry.event {
        Event::EffectStarted { effect: Effect::Restore(Restore { stray }), .. } => Some(stray.path.clone()),
        _ => None,
    });
    assert_eq!(asked.as_deref(), Some("src/main.rs"));
    let told = trial.journal.iter().any(|entry| match &entry.event {
        Event::Warned { text } => text.contains("put back") && text.contains(".tribunal/parked/x/1-main.rs"),
        _ => false,
    });
    assert!(told);
}

#[test]
fn many_files_that_changed_at_once_are_one_question() {
    let many = |count: usize| {
        let mut reply = findings(vec![raised(1, Severity::High)]);
        if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
            let stray = |number: usize| Stray {
                path: format!("src/{number}.rs"),
                before: None,
                after: None,
                kept: true,
            };
            answer.strayed = (0..count).map(stray).collect();
        }
        raises_one().on("round-1/review/adversarial", reply).on("round-1/fix-1/fix/1/land", repaired())
    };
    for (count, questions) in [(3, 3), (4, 1), (500, 1)] {
        let (ending, view) = Trial::new(alone(), many(count), 1).review();
        assert_eq!(view.waiting().count(), questions, "{count}");
        assert_eq!(ending.detail, format!("{count} files changed past the copies"));
    }
}

#[test]
fn what_cannot_be_put_back_is_not_offered_and_a_failed_try_is_asked_about_again() {
    let lost = Stray { path: "src/main.rs".into(), before: Some(Hash::new("b")), after: None, kept: false };
    let mut reply = findings(vec![]);
    if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
        answer.strayed = vec![lost];
    }
    let (_, view) = Trial::new(alone(), raises_one().on("round-1/review/adversarial", reply), 1).review();
    let asked = view.waiting().next().unwrap();
    assert!(!asked.allows("restore") && asked.question.contains("is not to be had any more"), "{asked:?}");

    let mut trial = Trial::new(alone(), one_strays(), 1);
    trial.review();
    let failed = samples::failed_as(tribunal_core::effect::EffectKind::Restore);
    trial.world = core::mem::take(&mut trial.world).once("wait", says("restore")).on("restore-1", failed);
    let (ending, view) = trial.review();
    assert_eq!(ending.reason, Reason::Blocked, "{ending:?}");
    assert!(view.waiting().next().unwrap().question.contains("was not put back"));
}

#[test]
fn a_file_is_asked_about_once_however_often_it_changes() {
    let strays_with = |after: &str| {
        let mut reply = fixes(vec![(F1, Said::Fixed)], true);
        if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
            let (before, after) = (Some(Hash::new("before")), Some(Hash::new(after)));
            answer.strayed = vec![Stray { path: "src/main.rs".into(), before, after, kept: true }];
        }
        reply
    };
    let world = one_strays().on("round-1/fix-1/fix/1", strays_with("something else"));
    let (_, view) = Trial::new(alone(), world, 1).review();
    assert_eq!(view.waiting().count(), 1);
}
