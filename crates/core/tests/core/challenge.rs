//! The challenge stage of a review: which findings are challenged, by which agents, and what follows from the verdicts.

use tribunal_core::{
    brief::{Content, Holds, Raised, Ruling, Said, Task},
    challenge::{Ruled, is_due},
    decision::{About, Answer},
    effect::{AskAgent, AskOutcome, Effect, Reply, Request, Requests},
    event::Event,
    fault::FaultKind,
    files::Hunk,
    finding::{Dismissal, Evidence, Raiser, Severity, Status},
    ids::{AgentName, DecisionId, FindingId},
    level::{Level, Role, Tier},
    reason::{Ending, Reason},
    settings::{AgentSpec, DriverSpec, Settings},
    view::RunView,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, failed, findings, fixes, flawed_text, frozen, landed, raised, rulings},
    trial::{Life, Trial, review_workflow as workflow},
};

use Holds::{Ambiguous, Invalid, Valid};

const F1: FindingId = FindingId(1);

fn alone() -> Settings {
    Settings { level: Some(Level::Minimal), ..samples::settings() }
}

fn repaired() -> String {
    flawed_text(1).replace("flaw 1", "repaired")
}

/// One reviewer raises flaw 1 with this severity. If a fixer gets the finding, it repairs it, and round 2 raises nothing.
fn one(severity: Severity) -> ScriptedWorld {
    ScriptedWorld::default()
        .on("round-1/freeze", frozen(&flawed_text(1)))
        .on("round-1/review/adversarial", findings(vec![raised(1, severity)]))
        .on("round-1/fix-1/fix/1", fixes(vec![(F1, Said::Fixed)], true))
        .on(
            "round-1/fix-1/fix/1/land",
            landed(&repaired(), vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        )
        .on("round-2/freeze", frozen(&flawed_text(1)))
        .on("round-2/review/adversarial", findings(vec![]))
        .on("round-2/review/elicitation", findings(vec![]))
        .on("end/look", frozen(&flawed_text(1)))
}

/// Scripts one challenger per verdict; each rules on F1 in the first round.
fn saying(world: ScriptedWorld, voices: &[Holds]) -> ScriptedWorld {
    voices.iter().enumerate().fold(world, |world, (index, holds)| {
        world.on(&format!("round-1/challenge/{}/1", index + 1), rulings(vec![(F1, *holds)]))
    })
}

struct Lived {
    life: Life<Ending>,
    trial: Trial<ScriptedWorld>,
    view: RunView,
}

fn live(settings: Settings, world: ScriptedWorld) -> Lived {
    let mut trial = Trial::new(settings, world, 1);
    let life = trial.live(workflow, None);
    let view = RunView::of(&trial.journal);
    Lived { life, trial, view }
}

impl Lived {
    fn challenges(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = self.trial.world.performed.iter().map(String::as_str).collect();
        keys.retain(|key| key.contains("/challenge/"));
        keys.sort_unstable();
        keys
    }

    fn ruled(&self) -> Option<Ruled> {
        self.trial.journal.iter().find_map(|entry| match &entry.event {
            Event::FindingRuled { ruled, .. } => Some(*ruled),
            _ => None,
        })
    }

    fn reason(&self) -> Reason {
        match &self.life {
            Life::Done(ending) | Life::Parked(ending) => ending.reason,
            other => panic!("{other:?}"),
        }
    }

    fn was_fixed(&self) -> bool {
        self.trial.world.performed.iter().any(|key| key.ends_with("fix-1/fix/1"))
    }

    fn tasks(&self) -> Vec<Task> {
        let tasks = self.trial.journal.iter().filter_map(|entry| match &entry.event {
            Event::EffectStarted { effect: Effect::Ask(AskAgent { task }), .. } => Some(task.clone()),
            _ => None,
        });
        tasks.collect()
    }
}

#[test]
fn two_who_agree_settle_it_and_a_third_is_asked_where_they_differ() {
    for (voices, ruled, asked) in [
        (&[Valid, Valid][..], Ruled::Valid, 2),
        (&[Invalid, Invalid], Ruled::Invalid, 2),
        (&[Ambiguous, Ambiguous], Ruled::Ambiguous, 2),
        (&[Invalid, Valid, Valid], Ruled::Valid, 3),
        (&[Valid, Invalid, Invalid], Ruled::Invalid, 3),
        (&[Valid, Invalid, Ambiguous], Ruled::Ambiguous, 3),
    ] {
        let lived = live(alone(), saying(one(Severity::Medium), voices));
        assert_eq!((lived.ruled(), lived.challenges().len()), (Some(ruled), asked), "{voices:?}");
        assert_eq!(lived.was_fixed(), ruled != Ruled::Invalid, "{voices:?}: nobody repairs what is not so");
    }
}

#[test]
fn a_refuted_finding_is_dismissed_with_the_words_that_refute_it() {
    let lived = live(alone(), saying(one(Severity::Critical), &[Invalid, Invalid]));
    let finding = &lived.view.findings[&F1];
    assert_eq!(finding.status, Status::Dismissed { why: Dismissal::Invalid });
    assert_eq!(finding.last_note(), "2 of 2 challengers: about F1 (“# Plan”)");
    assert_eq!(lived.reason(), Reason::GoalMet, "and the next pass was dry");
}

#[test]
fn a_denial_without_words_of_the_text_is_doubt() {
    let denial = |counter: &str| {
        let mut reply = rulings(vec![(F1, Invalid)]);
        let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply else { panic!("{reply:?}") };
        let ruling = Ruling { id: F1, holds: Invalid, note: "I know better".into(), counter: counter.into() };
        answer.content = Content::Rulings { rulings: vec![ruling] };
        reply
    };
    for counter in ["never written anywhere", ""] {
        let world = one(Severity::Medium)
            .on("round-1/challenge/1/1", denial(counter))
            .on("round-1/challenge/2/1", denial(counter));
        let lived = live(alone(), world);
        assert_eq!(lived.ruled(), Some(Ruled::Ambiguous), "{counter}");
        assert_eq!(lived.view.findings[&F1].severity, Severity::Low);
    }
}

#[test]
fn what_stays_in_doubt_goes_one_severity_down() {
    for (severity, then) in [
        (Severity::High, Severity::Medium),
        (Severity::Medium, Severity::Low),
        (Severity::Low, Severity::Low),
    ] {
        let lived = live(alone(), saying(one(severity), &[Ambiguous, Ambiguous]));
        assert_eq!(lived.view.findings[&F1].severity, then);
        assert!(lived.was_fixed());
    }
}

#[test]
fn whether_something_critical_in_doubt_is_an_issue_is_for_a_person() {
    let lived = live(alone(), saying(one(Severity::Critical), &[Ambiguous, Ambiguous]));
    assert_eq!(lived.reason(), Reason::Blocked);
    assert!(!lived.was_fixed());
    let decision = lived.view.waiting().next().unwrap();
    assert_eq!(decision.about, About::Disputed { finding: F1 });
    for (choice, fixed) in [("uphold", true), ("dismiss", false), ("defer", false)] {
        let answer = Answer { choice: choice.into(), note: String::new() };
        let request = Request::Answer { decision: DecisionId::new("D1"), answer };
        let mut trial = live(alone(), saying(one(Severity::Critical), &[Ambiguous, Ambiguous])).trial;
        trial.world = std::mem::take(&mut trial.world)
            .on("wait", Reply::Wait(Requests { requests: vec![request] }))
            .on("round-2/fix-1/fix/1", fixes(vec![(F1, Said::Fixed)], true))
            .on(
                "round-2/fix-1/fix/1/land",
                landed(&repaired(), vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
            )
            .on("round-3/freeze", frozen(&repaired()))
            .on("round-3/review/adversarial", findings(vec![]))
            .on("end/look", frozen(&if fixed { repaired() } else { flawed_text(1) }));
        let life = trial.live(workflow, None);
        assert!(
            matches!(&life, Life::Done(ending) if ending.reason == Reason::GoalMet),
            "{choice}: {life:?}"
        );
        let status = RunView::of(&trial.journal).findings[&F1].status.clone();
        assert_eq!(status == Status::Fixed, fixed, "{choice}: {status:?}");
    }
}

#[test]
fn what_two_methods_raise_at_one_place_is_not_disputed() {
    let world = one(Severity::High)
        .on("round-1/review/party", findings(vec![raised(1, Severity::High)]))
        .on("round-1/review/elicitation", findings(vec![]))
        .on("round-2/review/party", findings(vec![]));
    let lived = live(samples::settings(), world);
    assert_eq!(lived.view.findings[&F1].raisers.len(), 2);
    assert_eq!(lived.challenges(), Vec::<&str>::new());
}

fn absence() -> Raised {
    let evidence = Evidence::Absence { heading: "Part 1".into(), terms: vec!["deadline".into()] };
    Raised { evidence, description: "no deadline is named".into(), ..raised(1, Severity::High) }
}

#[test]
fn an_absence_is_always_disputed_and_a_quote_not_at_tier_zero() {
    let both = || {
        ScriptedWorld::default()
            .on("round-1/freeze", frozen(&flawed_text(2)))
            .on("round-1/review/adversarial", findings(vec![absence(), raised(2, Severity::High)]))
            .on("round-1/review/party", findings(vec![absence()]))
            .on("round-1/review/elicitation", findings(vec![]))
    };
    for (tier, level, disputed) in [(0, Level::Minimal, 1), (1, Level::Minimal, 2), (2, Level::Full, 2)] {
        let settings = Settings {
            tier: Tier::new(tier).unwrap(),
            level: Some(level),
            fix: false,
            ..samples::settings()
        };
        let lived = live(settings, both());
        let task = lived.tasks().into_iter().find(|task| task.brief.role == Role::Challenger).unwrap();
        assert_eq!(task.brief.disputed.len(), disputed, "tier {tier}");
        assert!(matches!(task.brief.disputed[0].evidence, Evidence::Absence { .. }), "tier {tier}");
    }
}

#[test]
fn findings_go_out_in_batches_of_ten() {
    let world = ScriptedWorld::default()
        .on("round-1/freeze", frozen(&flawed_text(12)))
        .on("round-1/review/adversarial", findings((1..=12).map(|n| raised(n, Severity::High)).collect()));
    let lived = live(Settings { fix: false, ..alone() }, world);
    let keys: Vec<&str> = lived.challenges();
    let each = ["1/1", "1/2", "2/1", "2/2"].map(|name| format!("round-1/challenge/{name}"));
    assert_eq!(keys, each);
}

#[test]
fn without_any_challenger_a_finding_stands_as_it_was_raised() {
    let fails = || failed(FaultKind::TimedOut);
    let keys = ["1/1", "1/1/again", "2/1", "2/1/again", "3/1", "3/1/again"];
    let world = keys
        .iter()
        .fold(one(Severity::High), |world, key| world.on(&format!("round-1/challenge/{key}"), fails()));
    let mut settings = alone();
    settings.limits.failures = 50;
    let lived = live(settings, world);
    assert_eq!(lived.ruled(), Some(Ruled::Unheard));
    assert_eq!((lived.was_fixed(), lived.view.findings[&F1].severity), (true, Severity::High));
}

#[test]
fn a_challenger_that_leaves_a_finding_out_is_asked_once_more() {
    let world = one(Severity::High)
        .on("round-1/challenge/1/1", rulings(vec![]))
        .on("round-1/challenge/1/1/again", rulings(vec![(F1, Valid)]));
    let lived = live(alone(), world);
    assert_eq!(lived.ruled(), Some(Ruled::Valid));
    let again = lived.tasks().into_iter().find(|task| !task.brief.correction.is_empty()).unwrap();
    assert_eq!(again.brief.correction, "a verdict is missing for F1");
}

#[test]
fn a_limit_is_looked_at_before_challengers_are_paid() {
    let mut settings = alone();
    settings.limits.tokens = 100;
    let lived = live(settings, one(Severity::High));
    assert_eq!(lived.reason(), Reason::Tokens);
    assert_eq!(lived.challenges(), Vec::<&str>::new());
    assert_eq!(lived.view.findings[&F1].status, Status::Open, "and nothing is lost");
}

fn agent(name: &str, provider: &str) -> AgentSpec {
    let driver = DriverSpec::Command { argv: vec![name.into()] };
    AgentSpec { provider: provider.into(), ..AgentSpec::new(name, driver) }
}

/// Returns the agents of the panel and the agents of the challengers of a review in which only the party raises a finding.
fn seated(agents: Vec<AgentSpec>) -> (Vec<String>, Vec<String>) {
    let world = ScriptedWorld::default()
        .on("round-1/freeze", frozen(&flawed_text(1)))
        .on("round-1/review/party", findings(vec![raised(1, Severity::High)]))
        .on("round-1/review/adversarial", findings(vec![]))
        .on("round-1/review/elicitation", findings(vec![]))
        .on("round-1/challenge/2/1", rulings(vec![(F1, Ambiguous)]))
        .on("round-1/challenge/3/1", rulings(vec![(F1, Valid)]));
    let lived = live(Settings { agents, fix: false, ..samples::settings() }, world);
    let names = |challengers: bool| {
        let tasks = lived.tasks().into_iter().filter(|t| (t.brief.role == Role::Challenger) == challengers);
        tasks.map(|task| task.agent.to_string()).collect()
    };
    (names(false), names(true))
}

#[test]
fn the_seats_of_a_panel_go_to_different_providers_and_challengers_are_of_another_one() {
    let (panel, challengers) =
        seated(vec![agent("big-a", "a"), agent("small-a", "a"), agent("b", ""), agent("c", "")]);
    assert_eq!(panel, ["big-a", "b", "c"]);
    assert_eq!(challengers, ["b", "c", "b"], "the party sat with provider a");
}

#[test]
fn of_one_provider_another_agent_challenges_and_who_is_alone_challenges_itself() {
    let (panel, challengers) = seated(vec![agent("big-a", "a"), agent("small-a", "a")]);
    assert_eq!(panel, ["big-a", "small-a", "big-a"]);
    assert_eq!(challengers, ["small-a", "small-a", "small-a"]);
    let (_, challengers) = seated(vec![agent("a", "")]);
    assert_eq!(challengers, ["a", "a", "a"]);
}

#[test]
fn a_pass_of_which_only_one_seat_is_not_believed_can_be_dry() {
    let invented = || {
        let mut claim = raised(1, Severity::High);
        claim.evidence = Evidence::Quote { text: "never written".into() };
        findings(vec![claim])
    };
    let world = ScriptedWorld::default()
        .on("round-1/freeze", frozen(&flawed_text(0)))
        .on("round-1/review/party", invented())
        .on("round-1/review/adversarial", findings(vec![]))
        .on("round-1/review/elicitation", findings(vec![]))
        .on("end/look", frozen(&flawed_text(0)));
    let lived = live(samples::settings(), world);
    assert_eq!((lived.reason(), lived.view.rounds), (Reason::GoalMet, 1));
}

#[test]
fn killed_at_every_write_a_challenged_review_comes_to_the_same() {
    let world = || saying(one(Severity::Medium), &[Valid, Invalid, Invalid]);
    let whole = live(alone(), world());
    for kill_at in 0..whole.trial.journal.len() {
        let mut trial = Trial::new(alone(), world(), 1);
        assert_eq!(trial.live(workflow, Some(kill_at)), Life::Killed);
        assert_eq!(trial.live(workflow, None), whole.life, "killed before write {kill_at}");
        assert_eq!(RunView::of(&trial.journal).counts(), whole.view.counts());
    }
}

#[test]
fn what_was_refuted_and_another_provider_raises_again_is_heard_again_once() {
    let refuted = |world: ScriptedWorld, round: u32, holds: Holds| {
        let says = rulings(vec![(F1, holds)]);
        world
            .on(&format!("round-{round}/challenge/1/1"), says.clone())
            .on(&format!("round-{round}/challenge/2/1"), says)
    };
    let text = flawed_text(2);
    let mut world = ScriptedWorld::default();
    for round in 1..=3 {
        world = world.on(&format!("round-{round}/freeze"), frozen(&text));
    }
    // Another provider has the same seat in every round. A second finding keeps the review going.
    let world = world
        .on(
            "round-1/review/adversarial",
            findings(vec![raised(1, Severity::High), raised(2, Severity::High)]),
        )
        .on("round-2/review/adversarial", findings(vec![raised(1, Severity::High)]))
        .on("round-3/review/adversarial", findings(vec![raised(1, Severity::High)]))
        .on("round-1/fix-1/fix/1", fixes(vec![(FindingId(2), Said::Fixed)], true))
        .on("round-1/fix-1/fix/1/land", landed(&text, vec![Hunk { old_start: 9, old_len: 1, new_len: 1 }]))
        .on("end/look", frozen(&text));
    let both = rulings(vec![(F1, Invalid), (FindingId(2), Valid)]);
    let world = world.on("round-1/challenge/1/1", both.clone()).on("round-1/challenge/2/1", both);
    let world = refuted(world, 2, Invalid);
    let settings = Settings { agents: vec![agent("a", ""), agent("b", ""), agent("c", "")], ..alone() };
    let lived = live(settings, world);
    let disputes = |round: u32| {
        lived.challenges().iter().filter(|key| key.starts_with(&format!("round-{round}"))).count()
    };
    assert_eq!((disputes(1), disputes(2), disputes(3)), (2, 2, 0), "heard again, and then no more");
    assert_eq!(lived.view.findings[&F1].status, Status::Dismissed { why: Dismissal::Invalid });
    assert_eq!(lived.view.findings[&F1].raisers.len(), lived.view.rounds as usize);
}

#[test]
fn what_a_limit_kept_from_being_disputed_is_disputed_before_anybody_repairs_it() {
    let mut settings = alone();
    // One answer costs 120 tokens: the panel is within the limit, the challengers are not.
    settings.limits.tokens = 100;
    let mut lived = live(settings, one(Severity::High));
    assert_eq!((lived.reason(), lived.challenges().len()), (Reason::Tokens, 0));
    let answer = Answer { choice: "more".into(), note: String::new() };
    let request = Request::Answer { decision: DecisionId::new("D1"), answer };
    let says = || rulings(vec![(F1, Invalid)]);
    lived.trial.settings.limits.tokens = 10_000;
    lived.trial.world = std::mem::take(&mut lived.trial.world)
        .once("wait", Reply::Wait(Requests { requests: vec![request] }))
        .on("round-1/fix-1/freeze", frozen(&flawed_text(1)))
        .on("round-1/fix-1/challenge/1/1", says())
        .on("round-1/fix-1/challenge/2/1", says());
    lived.trial.live(workflow, None);
    assert!(!lived.was_fixed(), "it was refuted first");
    let view = RunView::of(&lived.trial.journal);
    assert_eq!(view.findings[&F1].status, Status::Dismissed { why: Dismissal::Invalid });
}

#[test]
fn without_fixing_a_disputed_critical_finding_still_waits_for_its_answer() {
    let settings = Settings { fix: false, ..alone() };
    let lived = live(settings, saying(one(Severity::Critical), &[Ambiguous, Ambiguous]));
    assert_eq!(
        (lived.reason(), lived.view.rounds),
        (Reason::Blocked, 1),
        "and nobody looks at the same text again"
    );
    assert_eq!(lived.view.waiting().count(), 1, "the question stands");
}

#[test]
fn a_word_too_short_to_show_anything_refutes_nothing() {
    let short = || {
        let mut reply = rulings(vec![(F1, Invalid)]);
        let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply else { panic!("{reply:?}") };
        let ruling = Ruling { id: F1, holds: Invalid, note: "no".into(), counter: "a".into() };
        answer.content = Content::Rulings { rulings: vec![ruling] };
        reply
    };
    let world = one(Severity::High).on("round-1/challenge/1/1", short()).on("round-1/challenge/2/1", short());
    assert_eq!(live(alone(), world).ruled(), Some(Ruled::Ambiguous));
}

#[test]
fn two_methods_of_one_provider_corroborate_only_with_overlapping_quotes_and_two_providers_always() {
    let seen = |roles: [Role; 2], agents: [&str; 2]| {
        let world = one(Severity::High);
        let mut finding = live(alone(), world).view.findings[&F1].clone();
        finding.status = Status::Open;
        finding.raisers = roles
            .iter()
            .zip(agents)
            .map(|(role, agent)| Raiser { round: 1, role: *role, agent: AgentName::new(agent) })
            .collect();
        finding
    };
    let mut settings = samples::settings();
    settings.agents = vec![agent("a1", "a"), agent("a2", "a"), agent("b", "")];
    let methods = [Role::Party, Role::Adversarial];
    for (finding, overlaps, due) in [
        (seen(methods, ["a1", "a1"]), true, false),
        (seen(methods, ["a1", "a2"]), false, true),
        (seen(methods, ["a1", "b"]), false, false),
        (seen([Role::Party, Role::Party], ["a1", "a2"]), true, true),
    ] {
        assert_eq!(
            is_due(&finding, &settings, overlaps),
            due,
            "{:?}, overlapping: {overlaps}",
            finding.raisers
        );
    }
}

#[test]
fn where_a_challenger_is_dead_somebody_who_works_is_heard() {
    let dead = || failed(FaultKind::Exited { code: 9 });
    let keys = ["1/1", "1/1/again", "2/1", "2/1/again"];
    let world = keys
        .iter()
        .fold(one(Severity::High), |world, key| world.on(&format!("round-1/challenge/{key}"), dead()))
        .on("round-1/challenge/3/1", rulings(vec![(F1, Invalid)]))
        .on("round-1/challenge/4/1", rulings(vec![(F1, Invalid)]));
    let settings = Settings { agents: vec![agent("a", ""), agent("dead", "")], ..alone() };
    let lived = live(settings, world);
    assert_eq!((lived.ruled(), lived.was_fixed()), (Some(Ruled::Invalid), false));
    let challengers = lived.tasks().into_iter().filter(|task| task.brief.role == Role::Challenger);
    let agents: Vec<String> = challengers.map(|task| task.agent.to_string()).collect();
    assert_eq!(agents, ["dead", "dead", "dead", "dead", "a", "a"]);
}
