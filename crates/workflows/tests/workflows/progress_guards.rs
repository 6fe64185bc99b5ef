//! What keeps a review from running without progress: repeated outputs, stronger agents, confidence targets, and the context
//! of the next attempt.

use tribunal_engine::{
    answer::DecisionAnswer,
    fault::FaultKind,
    files::{Hunk, PatchRefusal},
    ids::{AgentName, DecisionId, FindingId, Hash},
    reason::RunReason,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{
        self, failed_task_reply, findings_reply, fixes_reply, flawed_text, frozen_reply, landed_reply, raised_flaw,
    },
    trial::{TrialOutcome, TrialRun, ordered_workflow as workflow, run_first_review as live},
};
use tribunal_workflows::{
    findings::{
        agent_role::AgentRole,
        finding::{FindingStatus, Severity},
        seat_plan::{Persona, SeatPlan},
    },
    review::{event::ReviewEvent, level::ReviewLevel, order::ReviewOrder},
    runs::{
        effect::{AskAgent, AskOutcome, Effect, LandOutcome, Reply, WriteFile},
        plan::RunPlan,
        settings::{AgentSpec, DriverSpec},
        types::{Requests, RunEvent, find_event},
        user_request::UserRequest,
        view::RunView,
    },
    tasks::{brief::AgentTask, claims::ClaimStatus},
};

const F1: FindingId = FindingId(1);

fn single_reviewer_plan() -> RunPlan<ReviewOrder> {
    samples::sample_plan().with_change(|plan| plan.order.level = Some(ReviewLevel::Minimal))
}

fn agent_spec(agent_name: &str, stronger_agent: Option<&str>) -> AgentSpec {
    let driver = DriverSpec::Command { argv: vec![agent_name.into()] };
    AgentSpec { stronger: stronger_agent.map(AgentName::new), ..AgentSpec::new(agent_name, driver) }
}

/// Returns a fixer's answer that changes nothing; `repeats` is its similarity to an earlier output in thousandths.
fn fix_without_change(output: &str, repeats: Option<u16>) -> Reply {
    let mut reply = fixes_reply(vec![(F1, ClaimStatus::Fixed)], false);
    if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
        answer.output = Hash::new(output);
        answer.repeats = repeats;
    }
    reply
}

fn world_raising_one() -> ScriptedWorld {
    ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-1/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::High)]))
}

fn tasks_of_role(trial: &TrialRun<ScriptedWorld>, role: AgentRole) -> Vec<AgentTask> {
    let role_tasks = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::EffectStarted { effect: Effect::Ask(AskAgent { task, .. }), .. }
            if task.brief.as_review().is_some_and(|brief| brief.role == role) =>
        {
            Some(task.clone())
        }
        _ => None,
    });
    role_tasks.collect()
}

fn written_metrics(trial: &TrialRun<ScriptedWorld>) -> serde_json::Value {
    let parsed_metrics = trial.journal.iter().rev().find_map(|entry| match &entry.event {
        RunEvent::EffectStarted { key, effect: Effect::Write(WriteFile { text, .. }), .. }
            if key.as_str() == "end/metrics" =>
        {
            serde_json::from_str(text).ok()
        }
        _ => None,
    });
    parsed_metrics.unwrap_or_default()
}

#[test]
fn a_fixer_that_repeats_itself_without_progress_gets_one_changed_attempt_and_then_the_user_is_asked() {
    let world = world_raising_one()
        .reply_on("round-1/fix-1/fix/1", fix_without_change("first", None))
        .reply_on("round-1/fix-2/fix/1", fix_without_change("second", Some(950)))
        .reply_on("round-1/fix-3/fix/1", fix_without_change("third", Some(1000)));
    let plan = single_reviewer_plan()
        .with_change(|plan| plan.settings.agents = vec![agent_spec("a", None), agent_spec("b", None)]);
    let (ending, view, trial) = live(plan, world.reply_on("round-2/freeze", frozen_reply(&flawed_text(1))));
    let fixer_tasks = tasks_of_role(&trial, AgentRole::Fixer);
    let recent_outputs: Vec<Vec<&str>> =
        fixer_tasks.iter().map(|task| task.recent.iter().map(Hash::as_str).collect()).collect();
    assert_eq!(recent_outputs, [vec![], vec!["first"], vec!["first", "second"]]);
    let agent_names: Vec<&str> = fixer_tasks.iter().map(|task| task.agent.as_str()).collect();
    assert_eq!(agent_names, ["a", "a", "b"], "the changed try is another agent's");
    assert!(
        fixer_tasks[2].brief.correction_text().contains("another way"),
        "{}",
        fixer_tasks[2].brief.correction_text()
    );
    assert!(matches!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Blocked { .. }), "{ending:?}");
    assert!(view.open_decisions().any(|decision| decision.question.contains("repeated fixes made no progress")));
    let reasons = trial.journal.iter().filter_map(|entry| match find_event::<ReviewEvent>(&entry.event) {
        Some(ReviewEvent::FixersDealt { why: reason, .. }) => *reason,
        _ => None,
    });
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        [RunReason::IssuesRemain, RunReason::IssuesRemain, RunReason::LoopDetected]
    );
}

#[test]
fn repeated_outputs_are_counted_in_the_metrics() {
    let world = world_raising_one()
        .reply_on("round-1/fix-1/fix/1", fix_without_change("first", None))
        .reply_on("round-1/fix-2/fix/1", fix_without_change("second", Some(950)))
        .reply_on("round-1/fix-3/fix/1", fix_without_change("third", Some(100)));
    let (ending, _, trial) = live(single_reviewer_plan(), world);
    assert_eq!(ending.reason, RunReason::FixIterations);
    assert_eq!(written_metrics(&trial)["loops_detected"], 1);
}

#[test]
fn the_same_output_about_other_findings_is_not_a_loop() {
    // Two fixers work one after the other and give the same answer. For each finding this is a first attempt.
    let mut plan = single_reviewer_plan();
    plan.order.fixers.max_concurrent = 1;
    plan.order.fixers.max_issues_per_agent = 1;
    plan.order.limits.fix_iterations = 2;
    let empty_fix = |repeats| {
        let mut reply = fixes_reply(vec![], false);
        if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
            answer.output = Hash::new("nothing to say");
            answer.repeats = repeats;
        }
        reply
    };
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(2)))
        .reply_on(
            "round-1/review/adversarial",
            findings_reply(vec![raised_flaw(1, Severity::High), raised_flaw(2, Severity::Low)]),
        )
        .reply_on("round-1/fix-1/fix/1", empty_fix(None))
        .reply_on("round-1/fix-1/fix/2", empty_fix(None))
        .reply_on("round-1/fix-2/fix/1", empty_fix(Some(100)))
        .reply_on("round-1/fix-2/fix/2", empty_fix(Some(100)));
    let (ending, _, trial) = live(plan, world);
    assert_eq!(ending.reason, RunReason::FixIterations);
    let recent_counts: Vec<usize> =
        tasks_of_role(&trial, AgentRole::Fixer).iter().map(|task| task.recent.len()).collect();
    assert_eq!(recent_counts, [0, 0, 1, 1], "compared only with what was said of the same finding");
}

#[test]
fn a_loop_in_the_last_iteration_blocks_the_finding_at_once() {
    let mut plan = single_reviewer_plan();
    plan.order.limits.fix_iterations = 2;
    let world = world_raising_one()
        .reply_on("round-1/fix-1/fix/1", fix_without_change("first", None))
        .reply_on("round-1/fix-2/fix/1", fix_without_change("second", Some(1000)))
        .reply_on("round-2/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]));
    let (ending, view, _) = live(plan, world);
    assert_eq!(ending.reason, RunReason::Blocked);
    assert!(view.open_decisions().any(|decision| decision.question.contains("repeated fixes made no progress")));
}

#[test]
fn similar_outputs_are_not_a_loop_when_a_fix_landed_between_them() {
    let both_flaws = flawed_text(2);
    let half_repaired = both_flaws.replace("flaw 1", "repaired");
    let land_at = |text: &str, line| landed_reply(text, vec![Hunk { old_start: line, old_len: 1, new_len: 1 }]);
    let fix_with_output = |id: u32, output: &str, repeats| {
        let mut reply = fixes_reply(vec![(FindingId(id), ClaimStatus::Fixed)], true);
        if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
            answer.output = Hash::new(output);
            answer.repeats = repeats;
        }
        reply
    };
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&both_flaws))
        .reply_on(
            "round-1/review/adversarial",
            findings_reply(vec![raised_flaw(1, Severity::High), raised_flaw(2, Severity::Low)]),
        )
        // One fixer holds both findings. It repairs one at a time and reports each in the same words.
        .reply_on("round-1/fix-1/fix/1", fix_with_output(1, "step 3 of 20", None))
        .reply_on("round-1/fix-1/fix/1/land", land_at(&half_repaired, 5))
        .reply_on("round-1/fix-2/fix/1", fix_with_output(2, "step 4 of 20", Some(960)))
        .reply_on("round-1/fix-2/fix/1/land", land_at(&half_repaired.replace("flaw 2", "repaired"), 9))
        .reply_on("round-2/freeze", frozen_reply(&half_repaired.replace("flaw 2", "repaired")))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&half_repaired.replace("flaw 2", "repaired")));
    let (ending, _, trial) = live(single_reviewer_plan(), world);
    assert_eq!(ending.reason, RunReason::GoalMet);
    assert_eq!(written_metrics(&trial)["loops_detected"], 0);
    let second_task = &tasks_of_role(&trial, AgentRole::Fixer)[1];
    assert_eq!(second_task.recent, Vec::<Hash>::new(), "what was said before the landing was said of another text");
}

#[test]
fn an_agent_that_failed_twice_in_a_row_is_replaced_by_its_stronger_agent() {
    let timed_out_reply = || failed_task_reply(FaultKind::TimedOut);
    let mut plan =
        single_reviewer_plan().with_change(|plan| plan.settings.agents = vec![agent_spec("small", Some("large"))]);
    plan.settings.reserves = vec![agent_spec("large", None)];
    let world = world_raising_one()
        .reply_on("round-1/fix-1/fix/1", timed_out_reply())
        .reply_on("round-1/fix-1/fix/1/again", timed_out_reply())
        .reply_on("round-1/fix-2/fix/1", fix_without_change("x", None))
        .reply_on("round-1/fix-3/fix/1", fix_without_change("y", None));
    let (_, _, trial) = live(plan, world);
    let agent_names: Vec<String> =
        tasks_of_role(&trial, AgentRole::Fixer).iter().map(|task| task.agent.to_string()).collect();
    assert_eq!(agent_names, ["small", "small", "large", "large"]);
    let warning_text = "small has failed twice in a row; using large instead";
    assert!(trial.journal.iter().any(|e| matches!(&e.event, RunEvent::Warned { text } if text == warning_text)));
}

#[test]
fn a_repeated_round_goes_to_another_agent_when_the_first_one_failed() {
    let timed_out_reply = || failed_task_reply(FaultKind::TimedOut);
    let plan = single_reviewer_plan()
        .with_change(|plan| plan.settings.agents = vec![agent_spec("a", None), agent_spec("b", None)]);
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(1)))
        // Both attempts fail, so no reviewer was heard and the round is repeated.
        .reply_once("round-1/review/adversarial", timed_out_reply())
        .reply_once("round-1/review/adversarial/again", timed_out_reply())
        .reply_on("round-1/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&flawed_text(1)));
    let (ending, _, trial) = live(plan, world);
    assert_eq!(ending.reason, RunReason::GoalMet);
    let agent_names: Vec<String> =
        tasks_of_role(&trial, AgentRole::Adversarial).iter().map(|agent_task| agent_task.agent.to_string()).collect();
    assert_eq!(agent_names, ["a", "a", "b"]);
}

#[test]
fn an_exhausted_budget_also_prevents_a_second_attempt() {
    let mut plan = single_reviewer_plan();
    // One answer costs 120 tokens.
    plan.settings.limits.tokens = 100;
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-1/review/adversarial", samples::unreadable_reply());
    let (ending, _, trial) = live(plan, world);
    assert_eq!(ending.reason, RunReason::Tokens, "{ending:?}");
    assert!(!trial.world.performed_keys.iter().any(|key| key.ends_with("/again")));
}

#[test]
fn a_confidence_target_holds_the_run_until_the_user_accepts_less() {
    let world = |_: ()| {
        (1..=3).fold(ScriptedWorld::default(), |world, round| {
            world
                .reply_on(&format!("round-{round}/freeze"), frozen_reply(&flawed_text(0)))
                .reply_on(&format!("round-{round}/review/adversarial"), findings_reply(vec![]))
        })
    };
    let plan = || single_reviewer_plan().with_change(|plan| plan.order.target_confidence = Some(80));
    let (ending, view, _) = live(plan(), world(()));
    assert_eq!(
        (ending.reason, view.as_review().unwrap().rounds),
        (RunReason::ConfidenceLow, 1),
        "another look would add nothing"
    );
    assert_eq!(ending.detail, "15 of 80 after the deduction for tier 2");
    for (choice, rounds, expected_reason) in [("accept", 1, RunReason::Accepted), ("more", 2, RunReason::ConfidenceLow)]
    {
        let (_, _, mut trial) = live(plan(), world(()));
        let answer = DecisionAnswer { choice: choice.into(), note: String::new() };
        let request = UserRequest::Answer { decision: DecisionId::new("D1"), answer };
        // The user answers once; later waits find no answer.
        trial.world =
            std::mem::take(&mut trial.world).reply_once("wait", Reply::Wait(Requests { requests: vec![request] }));
        let (TrialOutcome::Done(ending) | TrialOutcome::Parked(ending)) = trial.run_workflow(workflow, None) else {
            panic!("{choice}")
        };
        let view = RunView::from_entries(&trial.journal);
        assert_eq!((ending.reason, view.as_review().unwrap().rounds), (expected_reason, rounds), "{choice}");
    }
}

#[test]
fn a_fixer_gets_the_state_of_the_run_and_the_results_of_earlier_attempts() {
    let refused_landing = Reply::Land(LandOutcome::Refused {
        why: PatchRefusal::Check { command: "make check".into(), output: "two numbers disagree".into() },
    });
    let world = world_raising_one()
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
        .reply_on("round-1/fix-1/fix/1/land", refused_landing)
        .reply_on("round-1/fix-2/fix/1", fixes_reply(vec![(F1, ClaimStatus::Blocked)], false))
        .reply_on("round-2/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]));
    let plan = single_reviewer_plan().with_change(|plan| plan.settings.checks = samples::sample_checks());
    let (_, _, trial) = live(plan, world);
    let rendered_context = |task: &AgentTask| task.brief.as_review().unwrap().surroundings.context.render(3_000);
    let fixer_tasks = tasks_of_role(&trial, AgentRole::Fixer);
    let first_context = "Round 1 of at most 3, fix iteration 1 of at most 3; the goal is zero-open. These commands must \
                  pass before a change is applied: make check.";
    assert_eq!(rendered_context(&fixer_tasks[0]), first_context);
    let second_context = rendered_context(&fixer_tasks[1]);
    assert!(second_context.contains("F1 FIXED: about F1"), "{second_context}");
    assert!(
        second_context.contains("F1: rejected because `make check` failed: two numbers disagree"),
        "{second_context}"
    );
}

#[test]
fn the_next_panel_gets_the_fixed_findings_and_the_files_of_tribunal() {
    let repaired_text = flawed_text(1).replace("flaw 1", "repaired");
    let world = world_raising_one()
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
        .reply_on(
            "round-1/fix-1/fix/1/land",
            landed_reply(&repaired_text, vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        )
        .reply_on("round-2/freeze", frozen_reply(&repaired_text))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&repaired_text));
    let (_, _, trial) = live(single_reviewer_plan(), world);
    let tasks = tasks_of_role(&trial, AgentRole::Adversarial);
    let briefs: Vec<_> = tasks.iter().map(|task| task.brief.as_review().unwrap()).collect();
    assert_eq!(briefs[0].fixed, Vec::<String>::new());
    assert_eq!(briefs[1].fixed, ["F1: about F1"]);
    assert_eq!(briefs[1].known, ["F1 high plan.md:5: flaw 1 is a flaw [fixed]"]);
    assert_eq!(briefs[1].surroundings.own_files, ["reviews/"]);
}

#[test]
fn a_party_uses_the_personas_and_counts_from_the_plan() {
    let mut plan = samples::sample_plan();
    let persona = |name: &str, focus: &str| Persona { name: name.into(), focus: focus.into() };
    plan.order.panel.plans.roster =
        vec![persona("keeper of plans", "plan and part"), persona("b", "x"), persona("c", "x"), persona("d", "x")];
    plan.order.panel.plans.min_agents = 4;
    plan.order.panel.plans.max_rounds = 1;
    plan.order.panel.plans.min_methods = 5;
    let world = world_raising_one()
        .reply_on("round-1/review/party", findings_reply(vec![]))
        .reply_on("round-1/review/elicitation", findings_reply(vec![]));
    let (_, _, trial) = live(plan.with_change(|plan| plan.order.fix = false), world);
    let plan_of_role = |role| tasks_of_role(&trial, role).remove(0).brief.as_review().unwrap().plan.clone();
    match plan_of_role(AgentRole::Party) {
        SeatPlan::Party { personas, rounds } => {
            assert_eq!((personas.len(), rounds, personas[0].name.as_str()), (4, 1, "keeper of plans"));
        }
        unexpected => panic!("{unexpected:?}"),
    }
    assert!(matches!(plan_of_role(AgentRole::Elicitation), SeatPlan::Elicitation { methods } if methods.len() == 5));
}
