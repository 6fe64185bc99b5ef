//! Checks confidence against the tables in `docs/confidence.md`, and checks properties that no row shows.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use tribunal_engine::tier::ProcessTier;
use tribunal_workflows::review::confidence::{
    Confidence, ConfidenceBand, ConfidenceCaveat, ConfidenceSignals, MemoryMatch, PartyAgreement, ReviewerTally,
    SignalSource, SourceAnswer, SourceSignal, ValidationResult, calculate_confidence,
};

const CONFIDENCE_PAGE: &str = include_str!("../../../../docs/confidence.md");

/// Returns the rows of the table in the docs whose header starts with `header`.
fn table_rows(header: &str) -> Vec<Vec<&'static str>> {
    let lines = CONFIDENCE_PAGE.lines().skip_while(|line| !line.starts_with(header));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Reads the cells that every source may have; `parse_consulted` reads the others.
fn parse_signal<T>(cell: &str, parse_consulted: impl Fn(&str) -> Option<SourceSignal<T>>) -> SourceSignal<T> {
    match cell {
        "-" => SourceSignal::NotConsulted,
        "nothing" => SourceSignal::Nothing,
        "unreachable" => SourceSignal::Unreachable,
        "malformed" => SourceSignal::Malformed("cut off".into()),
        statement => parse_consulted(statement).unwrap_or_else(|| panic!("what is `{statement}`?")),
    }
}

fn parse_validation(cell: &str) -> Option<SourceSignal<ValidationResult>> {
    Some(SourceSignal::Consulted(match cell {
        "pass" => ValidationResult::Pass,
        "concerns" => ValidationResult::Concerns,
        "fail" => ValidationResult::Fail,
        error_count => ValidationResult::Errors(error_count.split_once(" error")?.0.parse().ok()?),
    }))
}

fn parse_memory(cell: &str) -> Option<SourceSignal<MemoryMatch>> {
    Some(match cell {
        "exact" => SourceSignal::Consulted(MemoryMatch::Exact),
        "similar" => SourceSignal::Consulted(MemoryMatch::Similar),
        "weak" => SourceSignal::Consulted(MemoryMatch::Weak),
        similarity => MemoryMatch::from_similarity(similarity.parse().ok()?),
    })
}

fn parse_reviewers(cell: &str) -> Option<SourceSignal<ReviewerTally>> {
    let (content, answered) = cell.split_once(" of ")?;
    let panel = ReviewerTally { content: content.parse().ok()?, answered: answered.parse().ok()? };
    Some(SourceSignal::Consulted(panel))
}

fn parse_party(cell: &str) -> Option<SourceSignal<PartyAgreement>> {
    Some(SourceSignal::Consulted(match cell {
        "consensus" => PartyAgreement::Consensus,
        "partial" => PartyAgreement::Partial,
        "no consensus" => PartyAgreement::NoConsensus,
        _ => return None,
    }))
}

fn parse_signals(cells: &[&str]) -> ConfidenceSignals {
    ConfidenceSignals {
        validation: parse_signal(cells[0], parse_validation),
        memory: parse_signal(cells[1], parse_memory),
        reviewers: parse_signal(cells[2], parse_reviewers),
        party: parse_signal(cells[3], parse_party),
    }
}

fn tier_number(number: u8) -> ProcessTier {
    ProcessTier::new(number).unwrap()
}

fn score_of(signals: &ConfidenceSignals) -> u32 {
    calculate_confidence(signals, tier_number(0)).unwrap().score
}

#[test]
fn every_signal_gives_the_points_that_the_docs_say() {
    let rows = table_rows("| source | said |");
    assert!(rows.len() > 20, "{rows:?}");
    for row in rows {
        let mut cells = ["-"; 4];
        let source_index = SignalSource::ALL.iter().position(|source| source.as_str() == row[0]).unwrap();
        cells[source_index] = row[1];
        let share = &calculate_confidence(&parse_signals(&cells), tier_number(0)).unwrap().shares[source_index];
        let heard = match &share.heard {
            SourceAnswer::Counted { points } => points.to_string(),
            SourceAnswer::Nothing => "nothing".into(),
            SourceAnswer::Malformed { .. } => "malformed".into(),
            unexpected => panic!("{unexpected:?}"),
        };
        assert_eq!([heard, share.of.to_string()], [row[2], row[3]], "{row:?}");
    }
}

#[test]
fn every_worked_row_of_the_docs_gives_its_result() {
    let rows = table_rows("| validation | memory |");
    assert!(rows.len() > 40, "{rows:?}");
    for row in rows {
        let confidence = calculate_confidence(&parse_signals(&row), tier_number(row[4].parse().unwrap())).unwrap();
        let edge = confidence.edge.map(|edge| serde_json::to_value(edge).unwrap());
        let calculated = [
            confidence.score.to_string(),
            confidence.for_gates.to_string(),
            confidence.band.to_string(),
            edge.map_or(String::new(), |edge| edge.as_str().unwrap().to_string()),
            if confidence.capped { "yes" } else { "no" }.to_string(),
        ];
        assert_eq!(calculated, row[5..], "{row:?}");
        assert_eq!(
            i64::from(confidence.for_gates),
            (i64::from(confidence.score) + i64::from(confidence.adjustment)).max(0)
        );
    }
}

#[test]
fn a_failed_calculation_scores_30_and_a_second_one_in_a_row_25() {
    for (content, answered) in [(4, 3), (0, 0), (1, 0)] {
        let reviewers = SourceSignal::Consulted(ReviewerTally { content, answered });
        let cause =
            calculate_confidence(&ConfidenceSignals { reviewers, ..ConfidenceSignals::default() }, tier_number(0))
                .unwrap_err();
        assert!(cause.to_string().contains(&format!("{content} of {answered} reviewers")), "{cause}");
    }
    let good = calculate_confidence(&parse_signals(&["pass", "-", "3 of 3", "-"]), tier_number(0)).unwrap();
    let once = Confidence::for_failed_calculation(tier_number(0), Some(&good));
    assert_eq!((once.score, once.band, once.edge), (30, ConfidenceBand::Low, Some(ConfidenceCaveat::Miscalculated)));
    let twice = Confidence::for_failed_calculation(tier_number(0), Some(&once));
    assert_eq!((twice.score, twice.edge), (25, Some(ConfidenceCaveat::MiscalculatedTwice)));
    let thrice = Confidence::for_failed_calculation(tier_number(0), Some(&twice));
    assert_eq!((thrice.score, thrice.edge), (25, Some(ConfidenceCaveat::MiscalculatedTwice)));
}

#[test]
fn the_parts_of_the_score_are_listed() {
    let mut summaries = Vec::new();
    for cells in [
        ["pass", "-", "2 of 3", "-"],
        ["-", "nothing", "3 of 3", "-"],
        ["pass", "malformed", "0 of 2", "unreachable"],
        ["-", "-", "-", "-"],
    ] {
        let confidence = calculate_confidence(&parse_signals(&cells), tier_number(2)).unwrap();
        summaries.push(format!("confidence {}: {}", confidence.score, confidence.describe_all()));
    }
    summaries.push(Confidence::for_failed_calculation(tier_number(2), None).describe_all());
    assert_eq!(
        summaries,
        [
            "confidence 83: validation 35/35, reviewers 15/25; memory, party not consulted",
            "confidence 50: reviewers 25/25; only one source; memory gave no signal; validation, party not consulted",
            "confidence 47: validation 35/35, reviewers 5/25; reviewers disagree with the validation; \
             memory malformed; party unreachable",
            "confidence 25: no signals; validation, memory, reviewers, party not consulted",
            "could not be calculated",
        ]
    );
}

fn any_signal<T: Clone + std::fmt::Debug + 'static>(values: Vec<T>) -> impl Strategy<Value = SourceSignal<T>> {
    prop_oneof![
        5 => prop::sample::select(values).prop_map(SourceSignal::Consulted),
        1 => Just(SourceSignal::NotConsulted),
        1 => Just(SourceSignal::Nothing),
        1 => Just(SourceSignal::Unreachable),
        1 => Just(SourceSignal::Malformed("cut off".into())),
    ]
}

// Each list goes from the best value to the worst.
const VALIDATIONS: [ValidationResult; 6] = [
    ValidationResult::Pass,
    ValidationResult::Errors(0),
    ValidationResult::Errors(2),
    ValidationResult::Concerns,
    ValidationResult::Errors(3),
    ValidationResult::Fail,
];
const MEMORIES: [MemoryMatch; 3] = [MemoryMatch::Exact, MemoryMatch::Similar, MemoryMatch::Weak];
const PARTIES: [PartyAgreement; 3] = [PartyAgreement::Consensus, PartyAgreement::Partial, PartyAgreement::NoConsensus];

fn reviewer_panels() -> Vec<ReviewerTally> {
    let to_panel = |(content, answered)| ReviewerTally { content, answered };
    [(3, 3), (2, 3), (1, 1), (1, 3), (0, 3)].map(to_panel).into()
}

fn any_signals() -> impl Strategy<Value = ConfidenceSignals> {
    let four_signals = (
        any_signal(VALIDATIONS.to_vec()),
        any_signal(MEMORIES.to_vec()),
        any_signal(reviewer_panels()),
        any_signal(PARTIES.to_vec()),
    );
    four_signals.prop_map(|(validation, memory, reviewers, party)| ConfidenceSignals {
        validation,
        memory,
        reviewers,
        party,
    })
}

fn counted_sources(confidence: &Confidence) -> usize {
    confidence.shares.iter().filter(|share| matches!(share.heard, SourceAnswer::Counted { .. })).count()
}

fn is_conflict(confidence: &Confidence) -> bool {
    matches!(
        confidence.edge,
        Some(ConfidenceCaveat::NoConsensus | ConfidenceCaveat::KnownFix | ConfidenceCaveat::Disagreement)
    )
}

/// Returns the same signals with each value of one source, from the best to the worst.
fn signals_from_best_to_worst(signals: &ConfidenceSignals, source: SignalSource) -> Vec<ConfidenceSignals> {
    let with_change = |change: &dyn Fn(&mut ConfidenceSignals)| {
        let mut changed = signals.clone();
        change(&mut changed);
        changed
    };
    match source {
        SignalSource::Validation => VALIDATIONS
            .iter()
            .map(|validation| {
                with_change(&|signals_copy| signals_copy.validation = SourceSignal::Consulted(*validation))
            })
            .collect(),
        SignalSource::Memory => MEMORIES
            .iter()
            .map(|memory| with_change(&|signals_copy| signals_copy.memory = SourceSignal::Consulted(*memory)))
            .collect(),
        SignalSource::Reviewers => reviewer_panels()
            .iter()
            .map(|panel| with_change(&|signals_copy| signals_copy.reviewers = SourceSignal::Consulted(*panel)))
            .collect(),
        SignalSource::Party => PARTIES
            .iter()
            .map(|party| with_change(&|signals_copy| signals_copy.party = SourceSignal::Consulted(*party)))
            .collect(),
    }
}

proptest! {
    #[test]
    fn caps_hold_for_all_signals(signals in any_signals(), number in 0_u8..=4) {
        let found = calculate_confidence(&signals, tier_number(number)).unwrap();
        prop_assert!(found.score <= 100 && found.for_gates <= found.score);
        prop_assert_eq!(found.band, ConfidenceBand::from_score(found.for_gates));
        prop_assert_eq!(found.shares.len(), 4);
        let said = |reviewers: ReviewerTally| signals.reviewers == SourceSignal::Consulted(reviewers);
        let split = said(ReviewerTally { content: 0, answered: 3 }) || said(ReviewerTally { content: 1, answered: 3 });
        let passed = [ValidationResult::Pass, ValidationResult::Errors(0)].map(SourceSignal::Consulted).contains(&signals.validation);
        if counted_sources(&found) == 1 {
            prop_assert!(found.score <= 60);
        }
        if passed && split {
            prop_assert!(found.score <= 70);
        }
        if signals.party == SourceSignal::Consulted(PartyAgreement::NoConsensus) {
            prop_assert!(found.score <= 49 && found.band == ConfidenceBand::Low);
        }
    }

    #[test]
    fn a_worse_signal_of_one_source_never_raises_the_score(signals in any_signals(), at in 0_usize..4) {
        let mut last = u32::MAX;
        for signals in signals_from_best_to_worst(&signals, SignalSource::ALL[at]) {
            let found = calculate_confidence(&signals, tier_number(0)).unwrap();
            // A conflict between sources caps the score by rules of its own.
            if !is_conflict(&found) {
                prop_assert!(found.score <= last, "{} after {last}: {signals:?}", found.score);
                last = found.score;
            }
        }
    }

    #[test]
    fn an_absent_signal_counts_nothing_for_every_reason(signals in any_signals()) {
        let absent = |party| score_of(&ConfidenceSignals { party, ..signals.clone() });
        prop_assert_eq!(absent(SourceSignal::NotConsulted), absent(SourceSignal::Nothing));
        prop_assert_eq!(absent(SourceSignal::NotConsulted), absent(SourceSignal::Unreachable));
    }

    #[test]
    fn a_malformed_signal_is_named_and_never_helps(signals in any_signals()) {
        let malformed = ConfidenceSignals { memory: SourceSignal::Malformed("cut off".into()), ..signals.clone() };
        let found = calculate_confidence(&malformed, tier_number(0)).unwrap();
        let why = "cut off".to_string();
        prop_assert_eq!(&found.shares[1].heard, &SourceAnswer::Malformed { why });
        prop_assert!(found.describe_all().contains("malformed"));
        let without = ConfidenceSignals { memory: SourceSignal::NotConsulted, ..signals };
        prop_assert!(found.score <= score_of(&without));
    }

    #[test]
    fn what_was_calculated_reads_back_as_it_was(signals in any_signals(), number in 0_u8..=4) {
        let found = calculate_confidence(&signals, tier_number(number)).unwrap();
        let text = serde_json::to_string(&found).unwrap();
        prop_assert_eq!(serde_json::from_str::<Confidence>(&text).unwrap(), found);
    }
}
