//! What keeps a review from running without progress: repeated outputs, stronger agents, confidence targets, and the context
//! of the next attempt.

use tribunal_core::{
    brief::{Said, Task},
    decision::Answer,
    effect::{AskAgent, AskOutcome, Effect, LandOutcome, Reply, Request, Requests, WriteFile},
    event::Event,
    fault::FaultKind,
    files::{Hunk, Refusal},
    finding::{Severity, Status},
    ids::{AgentName, DecisionId, FindingId, Hash},
    level::{Level, Role},
    plan::{Persona, Plan},
    reason::Reason,
    settings::{AgentSpec, DriverSpec, Settings},
    view::RunView,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, failed, findings, fixes, flawed_text, frozen, landed, raised},
    trial::{Life, Trial, review_workflow as workflow, reviewed as live},
};

const F1: FindingId = FindingId(1);

fn alone() -> Settings {
    Settings { level: Some(Level::Minimal), ..samples::settings() }
}

fn agent(name: &str, stronger: Option<&str>) -> AgentSpec {
    let driver = DriverSpec::Command { argv: vec![name.into()] };
    AgentSpec { stronger: stronger.map(AgentName::new), ..AgentSpec::new(name, driver) }
}

/// Returns a fixer's answer that changes nothing; `repeats` is its similarity to an earlier output in thousandths.
fn in_vain(output: &str, repeats: Option<u16>) -> Reply {
    let mut reply = fixes(vec![(F1, Said::Fixed)], false);
    if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
        answer.output = Hash::new(output);
        answer.repeats = repeats;
    }
    reply
}

fn raises_one() -> ScriptedWorld {
    ScriptedWorld::default()
        .on("round-1/freeze", frozen(&flawed_text(1)))
        .on("round-1/review/adversarial", findings(vec![raised(1, Severity::High)]))
}

fn tasks(trial: &Trial<ScriptedWorld>, role: Role) -> Vec<Task> {
    let tasks = trial.journal.iter().filter_map(|entry| match &entry.event {
        Event::EffectStarted { effect: Effect::Ask(AskAgent { task }), .. } if task.brief.role == role => {
            Some(task.clone())
        }
        _ => None,
    });
    tasks.collect()
}

fn metrics(trial: &Trial<ScriptedWorld>) -> serde_json::Value {
    let written = trial.journal.iter().rev().find_map(|entry| match &entry.event {
        Event::EffectStarted { key, effect: Effect::Write(WriteFile { text, .. }), .. }
            if key.as_str() == "end/metrics" =>
        {
            serde_json::from_str(text).ok()
        }
        _ => None,
    });
    written.unwrap_or_default()
}

#[test]
fn a_fixer_that_says_the_same_again_while_nothing_moves_gets_one_changed_try_and_then_a_person_is_asked() {
    let world = raises_one()
        .on("round-1/fix-1/fix/1", in_vain("first", None))
        .on("round-1/fix-2/fix/1", in_vain("second", Some(950)))
        .on("round-1/fix-3/fix/1", in_vain("third", Some(1000)));
    let settings = Settings { agents: vec![agent("a", None), agent("b", None)], ..alone() };
    let (ending, view, trial) = live(settings, world.on("round-2/freeze", frozen(&flawed_text(1))));
    let fixers = tasks(&trial, Role::Fixer);
    let recent: Vec<Vec<&str>> =
        fixers.iter().map(|task| task.recent.iter().map(Hash::as_str).collect()).collect();
    assert_eq!(recent, [vec![], vec!["first"], vec!["first", "second"]]);
    let agents: Vec<&str> = fixers.iter().map(|task| task.agent.as_str()).collect();
    assert_eq!(agents, ["a", "a", "b"], "the changed try is another agent's");
    assert!(fixers[2].brief.correction.contains("another way"), "{}", fixers[2].brief.correction);
    assert!(matches!(view.findings[&F1].status, Status::Blocked { .. }), "{ending:?}");
    assert!(view.waiting().any(|decision| decision.question.contains("in circles")));
    let why = trial.journal.iter().filter_map(|entry| match &entry.event {
        Event::FixersDealt { why, .. } => *why,
        _ => None,
    });
    assert_eq!(why.collect::<Vec<_>>(), [Reason::IssuesRemain, Reason::IssuesRemain, Reason::LoopDetected]);
}

#[test]
fn circles_are_counted_in_the_metrics() {
    let world = raises_one()
        .on("round-1/fix-1/fix/1", in_vain("first", None))
        .on("round-1/fix-2/fix/1", in_vain("second", Some(950)))
        .on("round-1/fix-3/fix/1", in_vain("third", Some(100)));
    let (ending, _, trial) = live(alone(), world);
    assert_eq!(ending.reason, Reason::FixIterations);
    assert_eq!(metrics(&trial)["loops_detected"], 1);
}

#[test]
fn the_same_words_about_other_findings_are_no_circle() {
    // Two fixers work one after the other and give the same answer. For each finding this is a first attempt.
    let mut settings = alone();
    settings.tasks.max_concurrent_fixers = 1;
    settings.tasks.max_issues_per_agent = 1;
    settings.limits.fix_iterations = 2;
    let nothing = |repeats| {
        let mut reply = fixes(vec![], false);
        if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
            answer.output = Hash::new("nothing to say");
            answer.repeats = repeats;
        }
        reply
    };
    let world = ScriptedWorld::default()
        .on("round-1/freeze", frozen(&flawed_text(2)))
        .on("round-1/review/adversarial", findings(vec![raised(1, Severity::High), raised(2, Severity::Low)]))
        .on("round-1/fix-1/fix/1", nothing(None))
        .on("round-1/fix-1/fix/2", nothing(None))
        .on("round-1/fix-2/fix/1", nothing(Some(100)))
        .on("round-1/fix-2/fix/2", nothing(Some(100)));
    let (ending, _, trial) = live(settings, world);
    assert_eq!(ending.reason, Reason::FixIterations);
    let recent: Vec<usize> = tasks(&trial, Role::Fixer).iter().map(|task| task.recent.len()).collect();
    assert_eq!(recent, [0, 0, 1, 1], "compared only with what was said of the same finding");
}

#[test]
fn a_circle_in_the_last_iteration_promises_no_other_try() {
    let mut settings = alone();
    settings.limits.fix_iterations = 2;
    let world = raises_one()
        .on("round-1/fix-1/fix/1", in_vain("first", None))
        .on("round-1/fix-2/fix/1", in_vain("second", Some(1000)))
        .on("round-2/freeze", frozen(&flawed_text(1)))
        .on("round-2/review/adversarial", findings(vec![]));
    let (ending, view, _) = live(settings, world);
    assert_eq!(ending.reason, Reason::Blocked);
    assert!(view.waiting().any(|decision| decision.question.contains("in circles")));
}

#[test]
fn honest_steps_that_look_alike_are_no_circle_because_something_moved() {
    let both = flawed_text(2);
    let half = both.replace("flaw 1", "repaired");
    let land = |text: &str, line| landed(text, vec![Hunk { old_start: line, old_len: 1, new_len: 1 }]);
    let says = |id: u32, output: &str, repeats| {
        let mut reply = fixes(vec![(FindingId(id), Said::Fixed)], true);
        if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
            answer.output = Hash::new(output);
            answer.repeats = repeats;
        }
        reply
    };
    let world = ScriptedWorld::default()
        .on("round-1/freeze", frozen(&both))
        .on("round-1/review/adversarial", findings(vec![raised(1, Severity::High), raised(2, Severity::Low)]))
        // One fixer holds both findings. It repairs one at a time and reports each in the same words.
        .on("round-1/fix-1/fix/1", says(1, "step 3 of 20", None))
        .on("round-1/fix-1/fix/1/land", land(&half, 5))
        .on("round-1/fix-2/fix/1", says(2, "step 4 of 20", Some(960)))
        .on("round-1/fix-2/fix/1/land", land(&half.replace("flaw 2", "repaired"), 9))
        .on("round-2/freeze", frozen(&half.replace("flaw 2", "repaired")))
        .on("round-2/review/adversarial", findings(vec![]))
        .on("end/look", frozen(&half.replace("flaw 2", "repaired")));
    let (ending, _, trial) = live(alone(), world);
    assert_eq!(ending.reason, Reason::GoalMet);
    assert_eq!(metrics(&trial)["loops_detected"], 0);
    let second = &tasks(&trial, Role::Fixer)[1];
    assert_eq!(
        second.recent,
        Vec::<Hash>::new(),
        "what was said before the landing was said of another text"
    );
}

#[test]
fn who_has_failed_twice_in_a_row_is_stood_in_for_by_the_next_model_up() {
    let fails = || failed(FaultKind::TimedOut);
    let mut settings = Settings { agents: vec![agent("small", Some("large"))], ..alone() };
    settings.reserves = vec![agent("large", None)];
    let world = raises_one()
        .on("round-1/fix-1/fix/1", fails())
        .on("round-1/fix-1/fix/1/again", fails())
        .on("round-1/fix-2/fix/1", in_vain("x", None))
        .on("round-1/fix-3/fix/1", in_vain("y", None));
    let (_, _, trial) = live(settings, world);
    let agents: Vec<String> = tasks(&trial, Role::Fixer).iter().map(|task| task.agent.to_string()).collect();
    assert_eq!(agents, ["small", "small", "large", "large"]);
    let says = "small has failed twice in a row; large stands in for it";
    assert!(trial.journal.iter().any(|e| matches!(&e.event, Event::Warned { text } if text == says)));
}

#[test]
fn a_second_try_goes_to_somebody_else_where_the_first_has_failed_before() {
    let fails = || failed(FaultKind::TimedOut);
    let settings = Settings { agents: vec![agent("a", None), agent("b", None)], ..alone() };
    let world = ScriptedWorld::default()
        .on("round-1/freeze", frozen(&flawed_text(1)))
        // Both attempts fail, so no reviewer was heard and the round is repeated.
        .once("round-1/review/adversarial", fails())
        .once("round-1/review/adversarial/again", fails())
        .on("round-1/review/adversarial", findings(vec![]))
        .on("end/look", frozen(&flawed_text(1)));
    let (ending, _, trial) = live(settings, world);
    assert_eq!(ending.reason, Reason::GoalMet);
    let agents: Vec<String> = tasks(&trial, Role::Adversarial).iter().map(|t| t.agent.to_string()).collect();
    assert_eq!(agents, ["a", "a", "b"]);
}

#[test]
fn what_is_used_up_is_used_up_before_a_second_try_too() {
    let mut settings = alone();
    // One answer costs 120 tokens.
    settings.limits.tokens = 100;
    let world = ScriptedWorld::default()
        .on("round-1/freeze", frozen(&flawed_text(1)))
        .on("round-1/review/adversarial", samples::unreadable());
    let (ending, _, trial) = live(settings, world);
    assert_eq!(ending.reason, Reason::Tokens, "{ending:?}");
    assert!(!trial.world.performed.iter().any(|key| key.ends_with("/again")));
}

#[test]
fn a_target_for_confidence_holds_the_run_until_a_person_accepts_less() {
    let world = |_: ()| {
        (1..=3).fold(ScriptedWorld::default(), |world, round| {
            world
                .on(&format!("round-{round}/freeze"), frozen(&flawed_text(0)))
                .on(&format!("round-{round}/review/adversarial"), findings(vec![]))
        })
    };
    let settings = || Settings { target_confidence: Some(80), ..alone() };
    let (ending, view, _) = live(settings(), world(()));
    assert_eq!((ending.reason, view.rounds), (Reason::ConfidenceLow, 1), "another look would add nothing");
    assert_eq!(ending.detail, "15 of 80, counted for tier 2");
    for (choice, rounds, then) in [("accept", 1, Reason::Accepted), ("more", 2, Reason::ConfidenceLow)] {
        let (_, _, mut trial) = live(settings(), world(()));
        let answer = Answer { choice: choice.into(), note: String::new() };
        let request = Request::Answer { decision: DecisionId::new("D1"), answer };
        // The user answers once; later waits find no answer.
        trial.world =
            std::mem::take(&mut trial.world).once("wait", Reply::Wait(Requests { requests: vec![request] }));
        let (Life::Done(ending) | Life::Parked(ending)) = trial.live(workflow, None) else {
            panic!("{choice}")
        };
        let view = RunView::of(&trial.journal);
        assert_eq!((ending.reason, view.rounds), (then, rounds), "{choice}");
    }
}

#[test]
fn a_fixer_is_told_where_the_run_stands_and_what_came_of_earlier_tries() {
    let refused = Reply::Land(LandOutcome::Refused {
        why: Refusal::Check { command: "make check".into(), output: "two numbers disagree".into() },
    });
    let world = raises_one()
        .on("round-1/fix-1/fix/1", fixes(vec![(F1, Said::Fixed)], true))
        .on("round-1/fix-1/fix/1/land", refused)
        .on("round-1/fix-2/fix/1", fixes(vec![(F1, Said::Blocked)], false))
        .on("round-2/freeze", frozen(&flawed_text(1)))
        .on("round-2/review/adversarial", findings(vec![]));
    let settings = Settings { verify: vec!["make check".into()], ..alone() };
    let (_, _, trial) = live(settings, world);
    let told = |task: &Task| task.brief.surroundings.context.render(3_000);
    let fixers = tasks(&trial, Role::Fixer);
    let stands = "Round 1 of at most 3, fix iteration 1 of at most 3; the goal is zero-open. Before a change lands, these must \
                  pass: make check.";
    assert_eq!(told(&fixers[0]), stands);
    let second = told(&fixers[1]);
    assert!(second.contains("F1 FIXED: about F1"), "{second}");
    assert!(second.contains("F1: not landed: `make check` failed: two numbers disagree"), "{second}");
}

#[test]
fn the_next_panel_is_told_what_was_fixed_and_which_files_are_ours() {
    let repaired = flawed_text(1).replace("flaw 1", "repaired");
    let world = raises_one()
        .on("round-1/fix-1/fix/1", fixes(vec![(F1, Said::Fixed)], true))
        .on(
            "round-1/fix-1/fix/1/land",
            landed(&repaired, vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        )
        .on("round-2/freeze", frozen(&repaired))
        .on("round-2/review/adversarial", findings(vec![]))
        .on("end/look", frozen(&repaired));
    let (_, _, trial) = live(alone(), world);
    let briefs: Vec<_> = tasks(&trial, Role::Adversarial).into_iter().map(|task| task.brief).collect();
    assert_eq!(briefs[0].fixed, Vec::<String>::new());
    assert_eq!(briefs[1].fixed, ["F1: about F1"]);
    assert_eq!(briefs[1].known, ["F1 high plan.md:5: flaw 1 is a flaw [fixed]"]);
    assert_eq!(briefs[1].surroundings.own_files, ["reviews/"]);
}

#[test]
fn a_party_has_the_projects_own_personas_and_the_counts_that_were_set() {
    let mut settings = samples::settings();
    let persona = |name: &str, focus: &str| Persona { name: name.into(), focus: focus.into() };
    settings.tasks.plans.roster = vec![
        persona("keeper of plans", "plan and part"),
        persona("b", "x"),
        persona("c", "x"),
        persona("d", "x"),
    ];
    settings.tasks.plans.min_agents = 4;
    settings.tasks.plans.max_rounds = 1;
    settings.tasks.plans.min_methods = 5;
    let world = raises_one()
        .on("round-1/review/party", findings(vec![]))
        .on("round-1/review/elicitation", findings(vec![]));
    let (_, _, trial) = live(Settings { fix: false, ..settings }, world);
    let plan = |role| tasks(&trial, role).remove(0).brief.plan;
    match plan(Role::Party) {
        Plan::Party { personas, rounds } => {
            assert_eq!((personas.len(), rounds, personas[0].name.as_str()), (4, 1, "keeper of plans"));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(plan(Role::Elicitation), Plan::Elicitation { methods } if methods.len() == 5));
}
