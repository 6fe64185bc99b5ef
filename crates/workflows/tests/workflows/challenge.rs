//! The challenge stage of a review: which findings are challenged, by which agents, and what follows from the verdicts.

use tribunal_engine::{
    answer::DecisionAnswer,
    fault::FaultKind,
    files::Hunk,
    ids::{AgentName, DecisionId, FindingId},
    reason::{RunEnding, RunReason},
    tier::ProcessTier,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{
        self, failed_task_reply, findings_reply, fixes_reply, flawed_text, frozen_reply, landed_reply, raised_flaw,
        rulings_reply,
    },
    trial::{TrialOutcome, TrialRun, ordered_workflow as workflow},
};
use tribunal_workflows::{
    findings::{
        agent_role::AgentRole,
        finding::{DismissalReason, Evidence, FindingRaiser, FindingStatus, Severity},
    },
    review::{
        challenge_rules::{ChallengeResult, needs_challenge},
        event::ReviewEvent,
        level::ReviewLevel,
        order::ReviewOrder,
        topic::ReviewTopic,
    },
    runs::{
        effect::{AskAgent, AskOutcome, Effect, Reply},
        plan::RunPlan,
        settings::{AgentSpec, DriverSpec},
        types::{Decision, Requests, RunEvent, find_event, find_topic},
        user_request::UserRequest,
        view::RunView,
    },
    tasks::{
        brief::{AgentTask, AnswerContent, RaisedFinding},
        claims::{ChallengeVerdict, ChallengerRuling, ClaimStatus},
        client::JobKind,
    },
};

use ChallengeVerdict::{Ambiguous, Invalid, Valid};

const F1: FindingId = FindingId(1);

fn single_reviewer_plan() -> RunPlan<ReviewOrder> {
    samples::sample_plan().with_change(|plan| plan.order.level = Some(ReviewLevel::Minimal))
}

fn repaired_text() -> String {
    flawed_text(1).replace("flaw 1", "repaired")
}

/// One reviewer raises flaw 1 with this severity. If a fixer gets the finding, it repairs it, and round 2 raises nothing.
fn world_raising_one(severity: Severity) -> ScriptedWorld {
    ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-1/review/adversarial", findings_reply(vec![raised_flaw(1, severity)]))
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
        .reply_on(
            "round-1/fix-1/fix/1/land",
            landed_reply(&repaired_text(), vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        )
        .reply_on("round-2/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("round-2/review/elicitation", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&flawed_text(1)))
}

/// Scripts one challenger per verdict; each rules on F1 in the first round.
fn add_challenger_verdicts(world: ScriptedWorld, verdicts: &[ChallengeVerdict]) -> ScriptedWorld {
    verdicts.iter().enumerate().fold(world, |world, (index, verdict)| {
        world.reply_on(&format!("round-1/challenge/{}/1", index + 1), rulings_reply(vec![(F1, *verdict)]))
    })
}

struct ChallengedReview {
    life: TrialOutcome<RunEnding>,
    trial: TrialRun<ScriptedWorld>,
    view: RunView,
}

fn run_review(plan: RunPlan<ReviewOrder>, world: ScriptedWorld) -> ChallengedReview {
    let mut trial = TrialRun::new(plan, world, 1);
    let life = trial.run_workflow(workflow, None);
    let view = RunView::from_entries(&trial.journal);
    ChallengedReview { life, trial, view }
}

impl ChallengedReview {
    fn challenge_keys(&self) -> Vec<&str> {
        let mut performed_keys: Vec<&str> = self.trial.world.performed_keys.iter().map(String::as_str).collect();
        performed_keys.retain(|key| key.contains("/challenge/"));
        performed_keys.sort_unstable();
        performed_keys
    }

    fn first_ruling(&self) -> Option<ChallengeResult> {
        self.trial.journal.iter().find_map(|entry| match find_event::<ReviewEvent>(&entry.event) {
            Some(ReviewEvent::FindingRuled { ruled, .. }) => Some(*ruled),
            _ => None,
        })
    }

    fn end_reason(&self) -> RunReason {
        match &self.life {
            TrialOutcome::Done(ending) | TrialOutcome::Parked(ending) => ending.reason,
            unexpected => panic!("{unexpected:?}"),
        }
    }

    fn was_fixed(&self) -> bool {
        self.trial.world.performed_keys.iter().any(|key| key.ends_with("fix-1/fix/1"))
    }

    fn agent_tasks(&self) -> Vec<AgentTask> {
        let asked_tasks = self.trial.journal.iter().filter_map(|entry| match &entry.event {
            RunEvent::EffectStarted { effect: Effect::Ask(AskAgent { task, .. }), .. } => Some(task.clone()),
            _ => None,
        });
        asked_tasks.collect()
    }
}

#[test]
fn two_challengers_that_agree_decide_and_a_third_is_asked_where_they_differ() {
    for (verdicts, expected_ruling, challenge_count) in [
        (&[Valid, Valid][..], ChallengeResult::Valid, 2),
        (&[Invalid, Invalid], ChallengeResult::Invalid, 2),
        (&[Ambiguous, Ambiguous], ChallengeResult::Ambiguous, 2),
        (&[Invalid, Valid, Valid], ChallengeResult::Valid, 3),
        (&[Valid, Invalid, Invalid], ChallengeResult::Invalid, 3),
        (&[Valid, Invalid, Ambiguous], ChallengeResult::Ambiguous, 3),
    ] {
        let plan = single_reviewer_plan().with_change(|plan| {
            plan.settings.agents = ["a", "b", "c"].map(|name| agent_of_provider(name, "")).to_vec();
        });
        let review = run_review(plan, add_challenger_verdicts(world_raising_one(Severity::Medium), verdicts));
        assert_eq!(
            (review.first_ruling(), review.challenge_keys().len()),
            (Some(expected_ruling), challenge_count),
            "{verdicts:?}"
        );
        assert_eq!(
            review.was_fixed(),
            expected_ruling != ChallengeResult::Invalid,
            "{verdicts:?}: a refuted finding is not repaired"
        );
    }
}

#[test]
fn a_refuted_finding_is_dismissed_with_the_quote_that_refutes_it() {
    let review = run_review(
        two_provider_plan(),
        add_challenger_verdicts(world_raising_one(Severity::Critical), &[Invalid, Invalid]),
    );
    let finding = &review.view.as_review().unwrap().findings[&F1];
    assert_eq!(finding.status, FindingStatus::Dismissed { why: DismissalReason::Invalid });
    assert_eq!(finding.last_note(), "2 of 2 challengers (b, a): about F1 (“# Plan”)");
    assert_eq!(review.end_reason(), RunReason::PanelDegraded, "its only claim was refuted");
}

fn is_challenger(task: &AgentTask) -> bool {
    task.brief.as_review().is_some_and(|brief| brief.role == AgentRole::Challenger)
}

/// One reviewer, and another provider that can challenge what it raises.
fn two_provider_plan() -> RunPlan<ReviewOrder> {
    single_reviewer_plan()
        .with_change(|plan| plan.settings.agents = vec![agent_of_provider("a", ""), agent_of_provider("b", "")])
}

#[test]
fn one_provider_is_one_voice_and_never_dismisses_what_is_high_or_critical() {
    for (severity, expected_result, expected_severity) in [
        (Severity::Critical, ChallengeResult::Ambiguous, Severity::Critical),
        (Severity::High, ChallengeResult::Ambiguous, Severity::Medium),
        (Severity::Medium, ChallengeResult::Invalid, Severity::Medium),
    ] {
        let world = add_challenger_verdicts(world_raising_one(severity), &[Invalid, Invalid]);
        let review = run_review(single_reviewer_plan(), world);
        assert_eq!(review.first_ruling(), Some(expected_result), "{severity}");
        let challengers = review.agent_tasks().into_iter().filter(is_challenger);
        assert_eq!(challengers.count(), 2, "{severity}: a third answer would be the same voice");
        let finding = &review.view.as_review().unwrap().findings[&F1];
        assert_eq!(finding.severity, expected_severity, "{severity}");
        let is_disputed = |decision: &Decision| {
            matches!(find_topic::<ReviewTopic>(&decision.about), Some(ReviewTopic::Disputed { .. }))
        };
        let is_asked = review.view.open_decisions().any(is_disputed);
        assert_eq!((is_asked, review.was_fixed()), (severity == Severity::Critical, severity == Severity::High));
    }
}

#[test]
fn with_two_agents_the_challengers_are_not_the_same_agent_twice() {
    let world = world_raising_one(Severity::High)
        .reply_on("round-1/challenge/1/1", rulings_reply(vec![(F1, Invalid)]))
        .reply_on("round-1/challenge/2/1", rulings_reply(vec![(F1, Valid)]))
        .reply_on("round-1/challenge/3/1", rulings_reply(vec![(F1, Valid)]));
    let review = run_review(two_provider_plan(), world);
    let challengers = review.agent_tasks().into_iter().filter(is_challenger);
    let agents: Vec<String> = challengers.map(|task| task.agent.to_string()).collect();
    assert_eq!(agents, ["b", "a", "a"], "the third is asked of the provider that has not refuted it");
    assert_eq!(review.first_ruling(), Some(ChallengeResult::Valid));
}

#[test]
fn a_panel_of_which_nothing_was_believed_resolves_nothing() {
    let invented_claim = || {
        let evidence = Evidence::Quote { text: "never written".into() };
        findings_reply(vec![RaisedFinding { evidence, ..raised_flaw(1, Severity::High) }])
    };
    let world = || {
        world_raising_one(Severity::High)
            .reply_on("round-1/review/adversarial", invented_claim())
            .reply_on("round-3/freeze", frozen_reply(&flawed_text(1)))
            .reply_on("round-3/review/adversarial", findings_reply(vec![]))
            .reply_on("round-3/review/elicitation", findings_reply(vec![]))
    };
    let tier_zero = single_reviewer_plan().with_change(|plan| plan.settings.tier = ProcessTier::new(0).unwrap());
    let without_fixing = single_reviewer_plan().with_change(|plan| plan.order.fix = false);
    for (plan, round_count) in [(single_reviewer_plan(), 2), (without_fixing, 1), (tier_zero, 1)] {
        let mut review = run_review(plan, world());
        let round_counts =
            |trial: &TrialRun<ScriptedWorld>| RunView::from_entries(&trial.journal).as_review().unwrap().rounds;
        assert_eq!((review.end_reason(), round_counts(&review.trial)), (RunReason::PanelDegraded, round_count));
        // The user may ask for one more round; a panel that says nothing at all changes nothing.
        let answer = DecisionAnswer { choice: "more".into(), note: String::new() };
        let request = UserRequest::Answer { decision: DecisionId::new("D1"), answer };
        review.trial.world = std::mem::take(&mut review.trial.world)
            .reply_once("wait", Reply::Wait(Requests { requests: vec![request] }));
        let TrialOutcome::Parked(ending) = review.trial.run_workflow(workflow, None) else { panic!() };
        assert_eq!((ending.reason, round_counts(&review.trial)), (RunReason::PanelDegraded, round_count + 1));
        assert_eq!(ending.detail, "the only claim of the panel was dismissed");
    }
}

#[test]
fn a_denial_without_a_quote_from_the_text_counts_as_ambiguous() {
    let denial_quoting = |counter_evidence: &str| {
        let mut reply = rulings_reply(vec![(F1, Invalid)]);
        let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply else { panic!("{reply:?}") };
        let ruling =
            ChallengerRuling { id: F1, holds: Invalid, note: "I know better".into(), counter: counter_evidence.into() };
        answer.content = AnswerContent::Rulings { rulings: vec![ruling], parts: vec![], unknown: vec![] };
        reply
    };
    for counter_evidence in ["never written anywhere", ""] {
        let world = world_raising_one(Severity::Medium)
            .reply_on("round-1/challenge/1/1", denial_quoting(counter_evidence))
            .reply_on("round-1/challenge/2/1", denial_quoting(counter_evidence));
        let review = run_review(single_reviewer_plan(), world);
        assert_eq!(review.first_ruling(), Some(ChallengeResult::Ambiguous), "{counter_evidence}");
        assert_eq!(review.view.as_review().unwrap().findings[&F1].severity, Severity::Low);
    }
}

#[test]
fn an_ambiguous_finding_goes_one_severity_down() {
    for (severity, lowered_severity) in
        [(Severity::High, Severity::Medium), (Severity::Medium, Severity::Low), (Severity::Low, Severity::Low)]
    {
        let review = run_review(
            single_reviewer_plan(),
            add_challenger_verdicts(world_raising_one(severity), &[Ambiguous, Ambiguous]),
        );
        assert_eq!(review.view.as_review().unwrap().findings[&F1].severity, lowered_severity);
        assert!(review.was_fixed());
    }
}

#[test]
fn the_user_decides_whether_an_ambiguous_critical_finding_is_an_issue() {
    let review = run_review(
        single_reviewer_plan(),
        add_challenger_verdicts(world_raising_one(Severity::Critical), &[Ambiguous, Ambiguous]),
    );
    assert_eq!(review.end_reason(), RunReason::Blocked);
    assert!(!review.was_fixed());
    let decision = review.view.open_decisions().next().unwrap();
    assert_eq!(find_topic::<ReviewTopic>(&decision.about), Some(&ReviewTopic::Disputed { finding: F1 }));
    for (choice, is_fixed) in [("uphold", true), ("dismiss", false), ("defer", false)] {
        let answer = DecisionAnswer { choice: choice.into(), note: String::new() };
        let request = UserRequest::Answer { decision: DecisionId::new("D1"), answer };
        let mut trial = run_review(
            single_reviewer_plan(),
            add_challenger_verdicts(world_raising_one(Severity::Critical), &[Ambiguous, Ambiguous]),
        )
        .trial;
        trial.world = std::mem::take(&mut trial.world)
            .reply_on("wait", Reply::Wait(Requests { requests: vec![request] }))
            .reply_on("round-2/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
            .reply_on(
                "round-2/fix-1/fix/1/land",
                landed_reply(&repaired_text(), vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
            )
            .reply_on("round-3/freeze", frozen_reply(&repaired_text()))
            .reply_on("round-3/review/adversarial", findings_reply(vec![]))
            .reply_on("end/look", frozen_reply(&if is_fixed { repaired_text() } else { flawed_text(1) }));
        let life = trial.run_workflow(workflow, None);
        assert!(
            matches!(&life, TrialOutcome::Done(ending) if ending.reason == RunReason::GoalMet),
            "{choice}: {life:?}"
        );
        let status = RunView::from_entries(&trial.journal).as_review().unwrap().findings[&F1].status.clone();
        assert_eq!(status == FindingStatus::Fixed, is_fixed, "{choice}: {status:?}");
    }
}

#[test]
fn a_finding_that_two_methods_of_two_agents_raise_at_one_place_is_not_challenged() {
    let world = || {
        world_raising_one(Severity::High)
            .reply_on("round-1/review/party", findings_reply(vec![raised_flaw(1, Severity::High)]))
            .reply_on("round-1/review/elicitation", findings_reply(vec![]))
            .reply_on("round-2/review/party", findings_reply(vec![]))
    };
    let plan_with = |agents| samples::sample_plan().with_change(|plan| plan.settings.agents = agents);
    let review = run_review(plan_with(vec![agent_of_provider("a1", "a"), agent_of_provider("a2", "a")]), world());
    assert_eq!(review.view.as_review().unwrap().findings[&F1].raisers.len(), 2);
    assert_eq!(review.challenge_keys(), Vec::<&str>::new());
    let review = run_review(samples::sample_plan(), world());
    assert_eq!(review.challenge_keys().len(), 2, "one agent in two seats is one voice");
}

fn absence_claim() -> RaisedFinding {
    let evidence = Evidence::Absence { heading: "Part 1".into(), terms: vec!["deadline".into()] };
    RaisedFinding { evidence, description: "no deadline is named".into(), ..raised_flaw(1, Severity::High) }
}

#[test]
fn an_absence_is_always_challenged_and_a_quote_is_not_at_tier_zero() {
    let absence_and_quote_world = || {
        ScriptedWorld::default()
            .reply_on("round-1/freeze", frozen_reply(&flawed_text(2)))
            .reply_on(
                "round-1/review/adversarial",
                findings_reply(vec![absence_claim(), raised_flaw(2, Severity::High)]),
            )
            .reply_on("round-1/review/party", findings_reply(vec![absence_claim()]))
            .reply_on("round-1/review/elicitation", findings_reply(vec![]))
    };
    for (tier, level, disputed_count) in
        [(0, ReviewLevel::Minimal, 1), (1, ReviewLevel::Minimal, 2), (2, ReviewLevel::Full, 2)]
    {
        let plan = samples::sample_plan().with_change(|plan| {
            plan.settings.tier = ProcessTier::new(tier).unwrap();
            plan.order.level = Some(level);
            plan.order.fix = false;
        });
        let review = run_review(plan, absence_and_quote_world());
        let task = review.agent_tasks().into_iter().find(|task| task.job == JobKind::Challenge).unwrap();
        assert_eq!(task.brief.finding_ids().len(), disputed_count, "tier {tier}");
        assert!(
            matches!(task.brief.as_review().unwrap().disputed[0].evidence, Evidence::Absence { .. }),
            "tier {tier}"
        );
    }
}

#[test]
fn challengers_get_findings_in_batches_of_ten() {
    let world = ScriptedWorld::default().reply_on("round-1/freeze", frozen_reply(&flawed_text(12))).reply_on(
        "round-1/review/adversarial",
        findings_reply((1..=12).map(|flaw_number| raised_flaw(flaw_number, Severity::High)).collect()),
    );
    let review = run_review(single_reviewer_plan().with_change(|plan| plan.order.fix = false), world);
    let challenge_keys: Vec<&str> = review.challenge_keys();
    let expected_keys = ["1/1", "1/2", "2/1", "2/2"].map(|key_suffix| format!("round-1/challenge/{key_suffix}"));
    assert_eq!(challenge_keys, expected_keys);
}

#[test]
fn without_any_challenger_a_finding_stands_as_it_was_raised() {
    let timed_out_reply = || failed_task_reply(FaultKind::TimedOut);
    let failing_keys = ["1/1", "1/1/again", "2/1", "2/1/again", "3/1", "3/1/again"];
    let world = failing_keys.iter().fold(world_raising_one(Severity::High), |world, key| {
        world.reply_on(&format!("round-1/challenge/{key}"), timed_out_reply())
    });
    let mut plan = single_reviewer_plan();
    plan.settings.limits.failures = 50;
    let review = run_review(plan, world);
    assert_eq!(review.first_ruling(), Some(ChallengeResult::Unheard));
    assert_eq!((review.was_fixed(), review.view.as_review().unwrap().findings[&F1].severity), (true, Severity::High));
}

#[test]
fn a_challenger_that_leaves_a_finding_out_is_asked_once_more() {
    let world = world_raising_one(Severity::High)
        .reply_on("round-1/challenge/1/1", rulings_reply(vec![]))
        .reply_on("round-1/challenge/1/1/again", rulings_reply(vec![(F1, Valid)]));
    let review = run_review(single_reviewer_plan(), world);
    assert_eq!(review.first_ruling(), Some(ChallengeResult::Valid));
    let second_task = review.agent_tasks().into_iter().find(|task| !task.brief.correction_text().is_empty()).unwrap();
    assert_eq!(second_task.brief.correction_text(), "a verdict is missing for F1");
}

#[test]
fn limits_are_checked_before_challengers_are_asked() {
    let mut plan = single_reviewer_plan();
    plan.settings.limits.tokens = 100;
    let review = run_review(plan, world_raising_one(Severity::High));
    assert_eq!(review.end_reason(), RunReason::Tokens);
    assert_eq!(review.challenge_keys(), Vec::<&str>::new());
    assert_eq!(review.view.as_review().unwrap().findings[&F1].status, FindingStatus::Open, "and nothing is lost");
}

fn agent_of_provider(agent_name: &str, provider_name: &str) -> AgentSpec {
    let driver = DriverSpec::Command { argv: vec![agent_name.into()] };
    AgentSpec { provider: provider_name.into(), ..AgentSpec::new(agent_name, driver) }
}

/// Returns the agents of the panel and the agents of the challengers of a review in which only the party raises a finding.
fn panel_and_challenger_agents(agents: Vec<AgentSpec>) -> (Vec<String>, Vec<String>) {
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-1/review/party", findings_reply(vec![raised_flaw(1, Severity::High)]))
        .reply_on("round-1/review/adversarial", findings_reply(vec![]))
        .reply_on("round-1/review/elicitation", findings_reply(vec![]))
        .reply_on("round-1/challenge/2/1", rulings_reply(vec![(F1, Ambiguous)]))
        .reply_on("round-1/challenge/3/1", rulings_reply(vec![(F1, Valid)]));
    let review = run_review(
        samples::sample_plan().with_change(|plan| {
            plan.settings.agents = agents;
            plan.order.fix = false;
        }),
        world,
    );
    let agent_names = |of_challengers: bool| {
        let role_tasks = review
            .agent_tasks()
            .into_iter()
            .filter(|agent_task| (agent_task.job == JobKind::Challenge) == of_challengers);
        role_tasks.map(|task| task.agent.to_string()).collect()
    };
    (agent_names(false), agent_names(true))
}

#[test]
fn panel_seats_go_to_different_providers_and_challengers_come_from_another_one() {
    let (panel, challengers) = panel_and_challenger_agents(vec![
        agent_of_provider("big-a", "a"),
        agent_of_provider("small-a", "a"),
        agent_of_provider("b", ""),
        agent_of_provider("c", ""),
    ]);
    assert_eq!(panel, ["big-a", "b", "c"]);
    assert_eq!(challengers, ["b", "c", "small-a"], "each of another provider, and never the agent of the party");
}

#[test]
fn with_one_provider_another_agent_challenges_and_a_single_agent_challenges_itself() {
    let (panel, challengers) =
        panel_and_challenger_agents(vec![agent_of_provider("big-a", "a"), agent_of_provider("small-a", "a")]);
    assert_eq!(panel, ["big-a", "small-a", "big-a"]);
    assert_eq!(challengers, ["small-a", "small-a", "small-a"]);
    let (_, challengers) = panel_and_challenger_agents(vec![agent_of_provider("a", "")]);
    assert_eq!(challengers, ["a", "a", "a"]);
}

#[test]
fn a_seat_that_invents_its_findings_leaves_nothing_proved_if_no_other_finds_any() {
    let invented_findings = || {
        let mut claim = raised_flaw(1, Severity::High);
        claim.evidence = Evidence::Quote { text: "never written".into() };
        findings_reply(vec![claim])
    };
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(0)))
        .reply_on("round-1/review/party", invented_findings())
        .reply_on("round-1/review/adversarial", findings_reply(vec![]))
        .reply_on("round-1/review/elicitation", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&flawed_text(0)));
    let review = run_review(samples::sample_plan(), world);
    assert_eq!((review.end_reason(), review.view.as_review().unwrap().rounds), (RunReason::PanelDegraded, 1));
}

#[test]
fn a_challenged_review_killed_at_any_write_reaches_the_same_result() {
    let challenged_world = || add_challenger_verdicts(world_raising_one(Severity::Medium), &[Valid, Invalid, Invalid]);
    let uninterrupted_review = run_review(single_reviewer_plan(), challenged_world());
    for kill_at in 0..uninterrupted_review.trial.write_count() {
        let mut trial = TrialRun::new(single_reviewer_plan(), challenged_world(), 1);
        assert_eq!(trial.run_workflow(workflow, Some(kill_at)), TrialOutcome::Killed);
        assert_eq!(trial.run_workflow(workflow, None), uninterrupted_review.life, "killed before write {kill_at}");
        assert_eq!(RunView::from_entries(&trial.journal).finding_counts(), uninterrupted_review.view.finding_counts());
    }
}

#[test]
fn a_refuted_finding_that_another_provider_raises_again_is_challenged_once_more() {
    let with_rulings = |world: ScriptedWorld, round: u32, verdict: ChallengeVerdict| {
        let ruling_reply = rulings_reply(vec![(F1, verdict)]);
        world
            .reply_on(&format!("round-{round}/challenge/1/1"), ruling_reply.clone())
            .reply_on(&format!("round-{round}/challenge/2/1"), ruling_reply)
    };
    let text = flawed_text(2);
    let mut world = ScriptedWorld::default();
    for round in 1..=3 {
        world = world.reply_on(&format!("round-{round}/freeze"), frozen_reply(&text));
    }
    // Another provider has the same seat in every round. A second finding keeps the review going.
    let world = world
        .reply_on(
            "round-1/review/adversarial",
            findings_reply(vec![raised_flaw(1, Severity::High), raised_flaw(2, Severity::High)]),
        )
        .reply_on("round-2/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::High)]))
        .reply_on("round-3/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::High)]))
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(FindingId(2), ClaimStatus::Fixed)], true))
        .reply_on("round-1/fix-1/fix/1/land", landed_reply(&text, vec![Hunk { old_start: 9, old_len: 1, new_len: 1 }]))
        .reply_on("end/look", frozen_reply(&text));
    let both_rulings = rulings_reply(vec![(F1, Invalid), (FindingId(2), Valid)]);
    let world =
        world.reply_on("round-1/challenge/1/1", both_rulings.clone()).reply_on("round-1/challenge/2/1", both_rulings);
    let world = with_rulings(world, 2, Invalid);
    let plan = single_reviewer_plan().with_change(|plan| {
        plan.settings.agents = vec![agent_of_provider("a", ""), agent_of_provider("b", ""), agent_of_provider("c", "")]
    });
    let review = run_review(plan, world);
    let challenge_count =
        |round: u32| review.challenge_keys().iter().filter(|key| key.starts_with(&format!("round-{round}"))).count();
    assert_eq!(
        (challenge_count(1), challenge_count(2), challenge_count(3)),
        (2, 2, 0),
        "heard again, and then no more"
    );
    assert_eq!(
        review.view.as_review().unwrap().findings[&F1].status,
        FindingStatus::Dismissed { why: DismissalReason::Invalid }
    );
    assert_eq!(
        review.view.as_review().unwrap().findings[&F1].raisers.len(),
        review.view.as_review().unwrap().rounds as usize
    );
}

#[test]
fn a_finding_that_a_limit_kept_from_being_challenged_is_challenged_before_it_is_fixed() {
    let mut plan = single_reviewer_plan();
    // One answer costs 120 tokens: the panel is within the limit, the challengers are not.
    plan.settings.limits.tokens = 100;
    let mut review = run_review(plan, world_raising_one(Severity::Medium));
    assert_eq!((review.end_reason(), review.challenge_keys().len()), (RunReason::Tokens, 0));
    let answer = DecisionAnswer { choice: "more".into(), note: String::new() };
    let request = UserRequest::Answer { decision: DecisionId::new("D1"), answer };
    let ruling_reply = || rulings_reply(vec![(F1, Invalid)]);
    review.trial.plan.settings.limits.tokens = 10_000;
    review.trial.world = std::mem::take(&mut review.trial.world)
        .reply_once("wait", Reply::Wait(Requests { requests: vec![request] }))
        .reply_on("round-1/fix-1/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-1/fix-1/challenge/1/1", ruling_reply())
        .reply_on("round-1/fix-1/challenge/2/1", ruling_reply());
    review.trial.run_workflow(workflow, None);
    assert!(!review.was_fixed(), "it was refuted first");
    let view = RunView::from_entries(&review.trial.journal);
    assert_eq!(
        view.as_review().unwrap().findings[&F1].status,
        FindingStatus::Dismissed { why: DismissalReason::Invalid }
    );
}

#[test]
fn without_fixing_a_disputed_critical_finding_still_waits_for_the_user() {
    let plan = single_reviewer_plan().with_change(|plan| plan.order.fix = false);
    let review =
        run_review(plan, add_challenger_verdicts(world_raising_one(Severity::Critical), &[Ambiguous, Ambiguous]));
    assert_eq!(
        (review.end_reason(), review.view.as_review().unwrap().rounds),
        (RunReason::Blocked, 1),
        "and the same text is not reviewed again"
    );
    assert_eq!(review.view.open_decisions().count(), 1, "the question stands");
}

#[test]
fn a_counter_quote_that_is_too_short_refutes_nothing() {
    let short_counter_reply = || {
        let mut reply = rulings_reply(vec![(F1, Invalid)]);
        let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply else { panic!("{reply:?}") };
        let ruling = ChallengerRuling { id: F1, holds: Invalid, note: "no".into(), counter: "a".into() };
        answer.content = AnswerContent::Rulings { rulings: vec![ruling], parts: vec![], unknown: vec![] };
        reply
    };
    let world = world_raising_one(Severity::High)
        .reply_on("round-1/challenge/1/1", short_counter_reply())
        .reply_on("round-1/challenge/2/1", short_counter_reply());
    assert_eq!(run_review(single_reviewer_plan(), world).first_ruling(), Some(ChallengeResult::Ambiguous));
}

#[test]
fn two_methods_of_one_provider_corroborate_only_with_overlapping_quotes_and_two_providers_always() {
    let finding_raised_by = |roles: [AgentRole; 2], agents: [&str; 2]| {
        let world = world_raising_one(Severity::High);
        let mut finding = run_review(single_reviewer_plan(), world).view.as_review().unwrap().findings[&F1].clone();
        finding.status = FindingStatus::Open;
        finding.raisers = roles
            .iter()
            .zip(agents)
            .map(|(role, agent)| FindingRaiser { round: 1, role: *role, agent: AgentName::new(agent) })
            .collect();
        finding
    };
    let mut plan = samples::sample_plan();
    plan.settings.agents = vec![agent_of_provider("a1", "a"), agent_of_provider("a2", "a"), agent_of_provider("b", "")];
    let two_methods = [AgentRole::Party, AgentRole::Adversarial];
    for (finding, overlaps, is_challenge_due) in [
        (finding_raised_by(two_methods, ["a1", "a1"]), true, true),
        (finding_raised_by(two_methods, ["a1", "a2"]), true, false),
        (finding_raised_by(two_methods, ["a1", "a2"]), false, true),
        (finding_raised_by(two_methods, ["a1", "b"]), false, false),
        (finding_raised_by([AgentRole::Party, AgentRole::Party], ["a1", "a2"]), true, true),
    ] {
        assert_eq!(
            needs_challenge(&finding, &plan.settings, overlaps),
            is_challenge_due,
            "{:?}, overlapping: {overlaps}",
            finding.raisers
        );
    }
}

#[test]
fn where_a_challenger_keeps_failing_a_working_agent_is_asked() {
    let failed_reply = || failed_task_reply(FaultKind::Exited { code: 9 });
    let world = world_raising_one(Severity::Medium)
        .reply_on("round-1/challenge/1/1", failed_reply())
        .reply_on("round-1/challenge/1/1/again", failed_reply())
        .reply_on("round-1/challenge/2/1", rulings_reply(vec![(F1, Invalid)]))
        .reply_on("round-1/challenge/3/1", rulings_reply(vec![(F1, Invalid)]));
    let plan = single_reviewer_plan()
        .with_change(|plan| plan.settings.agents = vec![agent_of_provider("a", ""), agent_of_provider("dead", "")]);
    let review = run_review(plan, world);
    assert_eq!((review.first_ruling(), review.was_fixed()), (Some(ChallengeResult::Invalid), false));
    let challenger_tasks = review.agent_tasks().into_iter().filter(is_challenger);
    let agents: Vec<String> = challenger_tasks.map(|task| task.agent.to_string()).collect();
    assert_eq!(agents, ["dead", "a", "dead", "a"]);
}
