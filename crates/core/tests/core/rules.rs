//! Properties of the pure rules.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tribunal_core::{
    brief::Raised,
    finding::{Evidence, Finding, Place, Severity, Status},
    ground::Ground,
    ids::{AgentName, DecisionId, FindingId},
    level::{Role, Tier},
    merge::merge,
    reason::Reason,
    review::{Court, Next, Pass, next},
    settings::TaskSettings,
    stamp::Stamp,
    waves::deal,
};
use tribunal_testkit::samples;

fn severity() -> impl Strategy<Value = Severity> {
    prop::sample::select(Severity::ALL.to_vec())
}

fn claim() -> impl Strategy<Value = Raised> {
    (1_usize..8, severity(), prop::sample::select(vec!["a", "b"]), any::<bool>()).prop_map(
        |(number, severity, category, invented)| Raised {
            severity,
            category: category.into(),
            description: format!("flaw {number}"),
            evidence: Evidence::Quote {
                text: if invented { format!("invented {number}") } else { format!("flaw {number}") },
            },
            file: None,
            line: None,
            suggested_fix: String::new(),
        },
    )
}

fn finding(id: u32, section: u32, severity: Severity) -> Finding {
    Finding {
        id: FindingId(id),
        severity,
        category: "x".into(),
        description: "x".into(),
        evidence: Evidence::Quote { text: "x".into() },
        place: Some(Place {
            file: "a.md".into(),
            line: section * 10,
            end_line: section * 10,
            section: format!("part {section}"),
        }),
        found: None,
        suggested_fix: String::new(),
        raisers: vec![],
        status: Status::Open,
        maybe_same_as: None,
        history: vec![],
    }
}

proptest! {
    #[test]
    fn merging_does_not_depend_on_who_answers_first(
        answers in prop::collection::vec(prop::collection::vec(claim(), 0..6), 3),
        order in Just(vec![0_usize, 1, 2]).prop_shuffle(),
    ) {
        let text = samples::flawed_text(8);
        let ground = Ground::new("plan.md", &text, None).unwrap();
        let roles = [Role::Party, Role::Adversarial, Role::Elicitation];
        let seat = |index: usize| {
            let raiser = tribunal_core::finding::Raiser { round: 1, role: roles[index], agent: AgentName::new("x") };
            (raiser, answers[index].clone())
        };
        let (mut straight, mut shuffled) = (vec![], vec![]);
        merge(&mut straight, (0..3).map(seat).collect(), &ground.clone().into(), Stamp::default());
        merge(&mut shuffled, order.into_iter().map(seat).collect(), &ground.clone().into(), Stamp::default());
        prop_assert_eq!(&straight, &shuffled);
        // The quote of every claim is kept, and two claims of one reviewer stay two findings.
        for raised in answers.iter().flatten() {
            prop_assert!(straight.iter().any(|finding| finding.evidence == raised.evidence));
        }
        let most = answers.iter().map(Vec::len).max().unwrap_or_default();
        prop_assert!(straight.len() >= most);
        let ids: Vec<u32> = straight.iter().map(|finding| finding.id.0).collect();
        prop_assert_eq!(ids, (1..=straight.len() as u32).collect::<Vec<_>>());
    }

    #[test]
    fn every_open_finding_is_dealt_once_and_no_section_to_two_fixers_of_a_wave(
        places in prop::collection::vec((1_u32..9, severity()), 0..40),
    ) {
        let open: Vec<Finding> =
            places.iter().enumerate().map(|(i, (section, s))| finding(i as u32 + 1, *section, *s)).collect();
        let settings = TaskSettings::default();
        let waves = deal(&open, &settings);
        let mut dealt: Vec<FindingId> = waves.iter().flatten().flatten().copied().collect();
        dealt.sort();
        let all: Vec<FindingId> = open.iter().map(|finding| finding.id).collect();
        prop_assert_eq!(dealt, all);
        for wave in &waves {
            prop_assert!(wave.len() <= settings.max_concurrent_fixers as usize);
            let mut taken = BTreeSet::new();
            for hand in wave {
                prop_assert!(hand.len() <= settings.max_issues_per_agent as usize);
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
        let mut settings = samples::settings();
        settings.fix = fix;
        settings.tier = Tier::new(if tier0 { 0 } else { 2 }).unwrap();
        let last_pass = Pass { dry, ..Pass::default() };
        settings.target_confidence = target;
        // This confidence counts 78 for gates.
        let confidence = Some(samples::confidence());
        let mut court = Court { round, iteration, last_pass, accepted, confidence, ..Court::default() };
        for id in 0..open {
            court.findings.push(finding(id, 1, Severity::High));
        }
        for id in 0..blocked {
            let status = Status::Blocked { decision: DecisionId::new("D1") };
            court.findings.push(Finding { status, ..finding(10 + id, 1, Severity::High) });
        }
        let good = dry || tier0;
        let expected = if accepted && open + blocked == 0 { Err(Reason::Accepted) }
            else if round == 0 { Ok((1, 0)) }
            else if blocked > 0 && !fix { Err(Reason::Blocked) }
            else if open > 0 && !fix { Err(Reason::ReviewOnly) }
            else if !fix && target == Some(79) { Err(Reason::ConfidenceLow) }
            else if !fix { Err(Reason::GoalMet) }
            else if open > 0 && iteration < 3 { Ok((0, iteration + 1)) }
            else if open > 0 { Err(Reason::FixIterations) }
            else if good && blocked == 0 && target == Some(79) { Err(Reason::ConfidenceLow) }
            else if good && blocked == 0 { Err(Reason::GoalMet) }
            else if good { Err(Reason::Blocked) }
            else if round < 3 { Ok((round + 1, 0)) }
            else if blocked > 0 { Err(Reason::Blocked) }
            else { Err(Reason::Rounds) };
        let found = match next(&court, &settings) {
            Next::Review { round } => Ok((round, 0)),
            Next::Fix { iteration } => Ok((0, iteration)),
            Next::End(ending) => Err(ending.reason),
        };
        prop_assert_eq!(found, expected);
    }
}
