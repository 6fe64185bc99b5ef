//! Properties of the pure rules.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tribunal_engine::{
    ids::{AgentName, DecisionId, FindingId},
    reason::RunReason,
    tier::ProcessTier,
    timestamp::Timestamp,
};
use tribunal_testkit::samples;
use tribunal_workflows::{
    findings::{
        agent_role::AgentRole,
        finding::{Evidence, Finding, FindingPlace, FindingStatus, Severity},
    },
    review::{
        NextStage, PanelPass, ReviewState, ground::EvidenceFinder, merge::merge_claims, next_stage,
        order::FixerSettings, waves::plan_waves,
    },
    tasks::brief::RaisedFinding,
};

fn any_severity() -> impl Strategy<Value = Severity> {
    prop::sample::select(Severity::ALL.to_vec())
}

fn any_claim() -> impl Strategy<Value = RaisedFinding> {
    (1_usize..8, any_severity(), prop::sample::select(vec!["a", "b"]), any::<bool>()).prop_map(
        |(flaw_number, severity, category, is_invented)| RaisedFinding {
            severity,
            category: category.into(),
            description: format!("flaw {flaw_number}"),
            evidence: Evidence::Quote {
                text: if is_invented { format!("invented {flaw_number}") } else { format!("flaw {flaw_number}") },
            },
            file: None,
            line: None,
            suggested_fix: String::new(),
        },
    )
}

fn open_finding(finding_number: u32, section: u32, severity: Severity) -> Finding {
    Finding {
        id: FindingId(finding_number),
        severity,
        category: "x".into(),
        description: "x".into(),
        evidence: Evidence::Quote { text: "x".into() },
        place: Some(FindingPlace {
            file: "a.md".into(),
            line: section * 10,
            end_line: section * 10,
            section: format!("part {section}"),
        }),
        found: None,
        suggested_fix: String::new(),
        raisers: vec![],
        status: FindingStatus::Open,
        maybe_same_as: None,
        history: vec![],
    }
}

proptest! {
    #[test]
    fn merging_does_not_depend_on_who_answers_first(
        answers in prop::collection::vec(prop::collection::vec(any_claim(), 0..6), 3),
        order in Just(vec![0_usize, 1, 2]).prop_shuffle(),
    ) {
        let text = samples::flawed_text(8);
        let ground = EvidenceFinder::new("plan.md", &text, None).unwrap();
        let roles = [AgentRole::Party, AgentRole::Adversarial, AgentRole::Elicitation];
        let seat = |index: usize| {
            let raiser = tribunal_workflows::findings::finding::FindingRaiser { round: 1, role: roles[index], agent: AgentName::new("x") };
            (raiser, answers[index].clone())
        };
        let (mut straight, mut shuffled) = (vec![], vec![]);
        merge_claims(&mut straight, (0..3).map(seat).collect(), &ground.clone().into(), Timestamp::default());
        merge_claims(&mut shuffled, order.into_iter().map(seat).collect(), &ground.clone().into(), Timestamp::default());
        prop_assert_eq!(&straight, &shuffled);
        // The quote of every claim is kept, and two claims of one reviewer stay two findings.
        for raised in answers.iter().flatten() {
            prop_assert!(straight.iter().any(|finding| finding.evidence == raised.evidence));
        }
        // What one reviewer says twice in the same words is one claim.
        let distinct_claims = |claims: &Vec<RaisedFinding>| {
            claims.iter().map(|claim| (format!("{:?}", claim.evidence), claim.description.clone())).collect::<BTreeSet<_>>()
        };
        let most = answers.iter().map(|claims| distinct_claims(claims).len()).max().unwrap_or_default();
        prop_assert!(straight.len() >= most);
        let ids: Vec<u32> = straight.iter().map(|finding| finding.id.0).collect();
        prop_assert_eq!(ids, (1..=straight.len() as u32).collect::<Vec<_>>());
    }

    #[test]
    fn every_open_finding_is_dealt_once_and_no_section_to_two_fixers_of_a_wave(
        places in prop::collection::vec((1_u32..9, any_severity()), 0..40),
    ) {
        let open: Vec<Finding> =
            places.iter().enumerate().map(|(i, (section, s))| open_finding(i as u32 + 1, *section, *s)).collect();
        let fixers = FixerSettings::default();
        let waves = plan_waves(&open, &fixers);
        let mut dealt: Vec<FindingId> = waves.iter().flatten().flatten().copied().collect();
        dealt.sort();
        let all: Vec<FindingId> = open.iter().map(|finding| finding.id).collect();
        prop_assert_eq!(dealt, all);
        for wave in &waves {
            prop_assert!(wave.len() <= fixers.max_concurrent as usize);
            let mut taken = BTreeSet::new();
            for hand in wave {
                prop_assert!(hand.len() <= fixers.max_issues_per_agent as usize);
                let sections: BTreeSet<u32> =
                    hand.iter().map(|id| places[id.0 as usize - 1].0).collect();
                for section in sections {
                    prop_assert!(taken.insert(section), "section {} twice in {:?}", section, wave);
                }
            }
        }
    }

    /// Restates the table in `review/next.rs` row by row.
    #[test]
    fn what_comes_next_is_what_the_table_says(
        state in (0_u32..5, 0_u32..5, 0_u32..3, 0_u32..3),
        flags in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        target in prop::option::of(prop::sample::select(vec![77_u32, 78, 79])),
    ) {
        let ((round, iteration, open, blocked), (dry, accepted, fix, tier0)) = (state, flags);
        let mut order = samples::sample_plan().order;
        order.fix = fix;
        let tier = ProcessTier::new(if tier0 { 0 } else { 2 }).unwrap();
        let last_pass = PanelPass { dry, ..PanelPass::default() };
        order.target_confidence = target;
        // This confidence counts 78 for gates.
        let confidence = Some(samples::sample_confidence());
        let mut court = ReviewState { round, iteration, last_pass, accepted, confidence, ..ReviewState::default() };
        for id in 0..open {
            court.findings.push(open_finding(id, 1, Severity::High));
        }
        for id in 0..blocked {
            let status = FindingStatus::Blocked { decision: DecisionId::new("D1") };
            court.findings.push(Finding { status, ..open_finding(10 + id, 1, Severity::High) });
        }
        let good = dry || tier0;
        let expected = if accepted && open + blocked == 0 && round == 0 { Err(RunReason::Abandoned) }
            else if accepted && open + blocked == 0 { Err(RunReason::Accepted) }
            else if round == 0 { Ok((1, 0)) }
            else if blocked > 0 && !fix { Err(RunReason::Blocked) }
            else if open > 0 && !fix { Err(RunReason::ReviewOnly) }
            else if !fix && target == Some(79) { Err(RunReason::ConfidenceLow) }
            else if !fix { Err(RunReason::GoalMet) }
            else if open > 0 && iteration < 3 { Ok((0, iteration + 1)) }
            else if open > 0 { Err(RunReason::FixIterations) }
            else if good && blocked == 0 && target == Some(79) { Err(RunReason::ConfidenceLow) }
            else if good && blocked == 0 { Err(RunReason::GoalMet) }
            else if good { Err(RunReason::Blocked) }
            else if round < 3 { Ok((round + 1, 0)) }
            else if blocked > 0 { Err(RunReason::Blocked) }
            else { Err(RunReason::Rounds) };
        let found = match next_stage(&court, &order, tier) {
            NextStage::Review { round } => Ok((round, 0)),
            NextStage::Fix { iteration } => Ok((0, iteration)),
            NextStage::End(ending) => Err(ending.reason),
        };
        prop_assert_eq!(found, expected);
    }
}
