//! Checks confidence against the tables in `docs/confidence.md`, and checks properties that no row shows.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use tribunal_core::{
    confidence::{
        Asks, Band, Confidence, Edge, Heard, Memory, Party, Reviewers, Signal, Signals, Source, Validation,
        calculate,
    },
    level::Tier,
};

const PAGE: &str = include_str!("../../../../docs/confidence.md");

/// Returns the rows of the table in the docs whose header starts with `header`.
fn table(header: &str) -> Vec<Vec<&'static str>> {
    let lines = PAGE.lines().skip_while(|line| !line.starts_with(header));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Reads the cells that every source may have; `parse_consulted` reads the others.
fn signal<T>(cell: &str, said: impl Fn(&str) -> Option<Signal<T>>) -> Signal<T> {
    match cell {
        "-" => Signal::NotConsulted,
        "nothing" => Signal::Nothing,
        "unreachable" => Signal::Unreachable,
        "malformed" => Signal::Malformed("cut off".into()),
        other => said(other).unwrap_or_else(|| panic!("what is `{other}`?")),
    }
}

fn validation(cell: &str) -> Option<Signal<Validation>> {
    Some(Signal::Consulted(match cell {
        "pass" => Validation::Pass,
        "concerns" => Validation::Concerns,
        "fail" => Validation::Fail,
        errors => Validation::Errors(errors.split_once(" error")?.0.parse().ok()?),
    }))
}

fn memory(cell: &str) -> Option<Signal<Memory>> {
    Some(match cell {
        "exact" => Signal::Consulted(Memory::Exact),
        "similar" => Signal::Consulted(Memory::Similar),
        "weak" => Signal::Consulted(Memory::Weak),
        similarity => Memory::by_similarity(similarity.parse().ok()?),
    })
}

fn reviewers(cell: &str) -> Option<Signal<Reviewers>> {
    let (content, answered) = cell.split_once(" of ")?;
    let reviewers = Reviewers { content: content.parse().ok()?, answered: answered.parse().ok()? };
    Some(Signal::Consulted(reviewers))
}

fn party(cell: &str) -> Option<Signal<Party>> {
    Some(Signal::Consulted(match cell {
        "consensus" => Party::Consensus,
        "partial" => Party::Partial,
        "no consensus" => Party::NoConsensus,
        _ => return None,
    }))
}

fn signals(cells: &[&str]) -> Signals {
    Signals {
        validation: signal(cells[0], validation),
        memory: signal(cells[1], memory),
        reviewers: signal(cells[2], reviewers),
        party: signal(cells[3], party),
    }
}

fn tier(number: u8) -> Tier {
    Tier::new(number).unwrap()
}

fn score(signals: &Signals) -> u32 {
    calculate(signals, tier(0)).unwrap().score
}

#[test]
fn every_signal_gives_the_points_that_the_page_says() {
    let rows = table("| source | said |");
    assert!(rows.len() > 20, "{rows:?}");
    for row in rows {
        let mut cells = ["-"; 4];
        let at = Source::ALL.iter().position(|source| source.as_str() == row[0]).unwrap();
        cells[at] = row[1];
        let share = &calculate(&signals(&cells), tier(0)).unwrap().shares[at];
        let heard = match &share.heard {
            Heard::Counted { points } => points.to_string(),
            Heard::Nothing => "nothing".into(),
            Heard::Malformed { .. } => "malformed".into(),
            other => panic!("{other:?}"),
        };
        assert_eq!([heard, share.of.to_string()], [row[2], row[3]], "{row:?}");
    }
}

#[test]
fn every_worked_row_of_the_page_comes_out_as_it_says() {
    let rows = table("| validation | memory |");
    assert!(rows.len() > 40, "{rows:?}");
    for row in rows {
        let found = calculate(&signals(&row), tier(row[4].parse().unwrap())).unwrap();
        let edge = found.edge.map(|edge| serde_json::to_value(edge).unwrap());
        let came = [
            found.score.to_string(),
            found.for_gates.to_string(),
            found.band.to_string(),
            edge.map_or(String::new(), |edge| edge.as_str().unwrap().to_string()),
            if found.capped { "yes" } else { "no" }.to_string(),
        ];
        assert_eq!(came, row[5..], "{row:?}");
        assert_eq!(i64::from(found.for_gates), (i64::from(found.score) + i64::from(found.adjustment)).max(0));
    }
}

#[test]
fn what_cannot_be_calculated_is_30_and_a_person_and_twice_25_and_a_halt() {
    for (content, answered) in [(4, 3), (0, 0), (1, 0)] {
        let reviewers = Signal::Consulted(Reviewers { content, answered });
        let cause = calculate(&Signals { reviewers, ..Signals::default() }, tier(0)).unwrap_err();
        assert!(cause.to_string().contains(&format!("{content} of {answered} reviewers")), "{cause}");
    }
    let asks = |confidence: &Confidence| confidence.edge.unwrap().asks();
    let good = calculate(&signals(&["pass", "-", "3 of 3", "-"]), tier(0)).unwrap();
    let once = Confidence::miscalculated(tier(0), Some(&good));
    assert_eq!((once.score, once.band, asks(&once)), (30, Band::Low, Asks::Person));
    let twice = Confidence::miscalculated(tier(0), Some(&once));
    assert_eq!((twice.score, asks(&twice)), (25, Asks::Halt));
    let thrice = Confidence::miscalculated(tier(0), Some(&twice));
    assert_eq!((thrice.score, asks(&thrice)), (25, Asks::Halt));
    assert_eq!(Edge::NoSignal.asks(), Asks::Person);
    assert_eq!(Edge::OneSource.asks(), Asks::Nobody);
}

#[test]
fn it_says_what_it_was_made_of() {
    let mut said = Vec::new();
    for cells in [
        ["pass", "-", "2 of 3", "-"],
        ["-", "nothing", "3 of 3", "-"],
        ["pass", "malformed", "0 of 2", "unreachable"],
        ["-", "-", "-", "-"],
    ] {
        let confidence = calculate(&signals(&cells), tier(2)).unwrap();
        said.push(format!("confidence {}: {}", confidence.score, confidence.parts()));
    }
    said.push(Confidence::miscalculated(tier(2), None).parts());
    assert_eq!(
        said,
        [
            "confidence 83: validation 35/35, reviewers 15/25; memory, party not consulted",
            "confidence 50: reviewers 25/25; one source only; memory had nothing; validation, party not consulted",
            "confidence 47: validation 35/35, reviewers 5/25; the reviewers disagree with the validation; \
             memory malformed; party unreachable",
            "confidence 25: no signal; validation, memory, reviewers, party not consulted",
            "could not be calculated",
        ]
    );
}

fn any_signal<T: Clone + std::fmt::Debug + 'static>(said: Vec<T>) -> impl Strategy<Value = Signal<T>> {
    prop_oneof![
        5 => prop::sample::select(said).prop_map(Signal::Consulted),
        1 => Just(Signal::NotConsulted),
        1 => Just(Signal::Nothing),
        1 => Just(Signal::Unreachable),
        1 => Just(Signal::Malformed("cut off".into())),
    ]
}

// Each list goes from the best value to the worst.
const VALIDATIONS: [Validation; 6] = [
    Validation::Pass,
    Validation::Errors(0),
    Validation::Errors(2),
    Validation::Concerns,
    Validation::Errors(3),
    Validation::Fail,
];
const MEMORIES: [Memory; 3] = [Memory::Exact, Memory::Similar, Memory::Weak];
const PARTIES: [Party; 3] = [Party::Consensus, Party::Partial, Party::NoConsensus];

fn panels() -> Vec<Reviewers> {
    let panel = |(content, answered)| Reviewers { content, answered };
    [(3, 3), (2, 3), (1, 1), (1, 3), (0, 3)].map(panel).into()
}

fn any_signals() -> impl Strategy<Value = Signals> {
    let four = (
        any_signal(VALIDATIONS.to_vec()),
        any_signal(MEMORIES.to_vec()),
        any_signal(panels()),
        any_signal(PARTIES.to_vec()),
    );
    four.prop_map(|(validation, memory, reviewers, party)| Signals { validation, memory, reviewers, party })
}

fn sources(confidence: &Confidence) -> usize {
    confidence.shares.iter().filter(|share| matches!(share.heard, Heard::Counted { .. })).count()
}

fn is_conflict(confidence: &Confidence) -> bool {
    matches!(confidence.edge, Some(Edge::NoConsensus | Edge::KnownFix | Edge::Disagreement))
}

/// Returns the same signals with each value of one source, from the best to the worst.
fn ranked(signals: &Signals, source: Source) -> Vec<Signals> {
    let with = |change: &dyn Fn(&mut Signals)| {
        let mut changed = signals.clone();
        change(&mut changed);
        changed
    };
    match source {
        Source::Validation => {
            VALIDATIONS.iter().map(|v| with(&|s| s.validation = Signal::Consulted(*v))).collect()
        }
        Source::Memory => MEMORIES.iter().map(|m| with(&|s| s.memory = Signal::Consulted(*m))).collect(),
        Source::Reviewers => {
            panels().iter().map(|r| with(&|s| s.reviewers = Signal::Consulted(*r))).collect()
        }
        Source::Party => PARTIES.iter().map(|p| with(&|s| s.party = Signal::Consulted(*p))).collect(),
    }
}

proptest! {
    #[test]
    fn caps_hold_whatever_is_said(signals in any_signals(), number in 0_u8..=4) {
        let found = calculate(&signals, tier(number)).unwrap();
        prop_assert!(found.score <= 100 && found.for_gates <= found.score);
        prop_assert_eq!(found.band, Band::of(found.for_gates));
        prop_assert_eq!(found.shares.len(), 4);
        let said = |reviewers: Reviewers| signals.reviewers == Signal::Consulted(reviewers);
        let split = said(Reviewers { content: 0, answered: 3 }) || said(Reviewers { content: 1, answered: 3 });
        let passed = [Validation::Pass, Validation::Errors(0)].map(Signal::Consulted).contains(&signals.validation);
        if sources(&found) == 1 {
            prop_assert!(found.score <= 60);
        }
        if passed && split {
            prop_assert!(found.score <= 70);
        }
        if signals.party == Signal::Consulted(Party::NoConsensus) {
            prop_assert!(found.score <= 49 && found.band == Band::Low);
        }
    }

    #[test]
    fn a_worse_word_of_one_source_never_raises_the_score(signals in any_signals(), at in 0_usize..4) {
        let mut last = u32::MAX;
        for signals in ranked(&signals, Source::ALL[at]) {
            let found = calculate(&signals, tier(0)).unwrap();
            // A conflict between sources caps the score by rules of its own.
            if !is_conflict(&found) {
                prop_assert!(found.score <= last, "{} after {last}: {signals:?}", found.score);
                last = found.score;
            }
        }
    }

    #[test]
    fn who_says_nothing_counts_nothing_whatever_the_reason(signals in any_signals()) {
        let absent = |party| score(&Signals { party, ..signals.clone() });
        prop_assert_eq!(absent(Signal::NotConsulted), absent(Signal::Nothing));
        prop_assert_eq!(absent(Signal::NotConsulted), absent(Signal::Unreachable));
    }

    #[test]
    fn a_malformed_word_is_named_and_never_helps(signals in any_signals()) {
        let malformed = Signals { memory: Signal::Malformed("cut off".into()), ..signals.clone() };
        let found = calculate(&malformed, tier(0)).unwrap();
        let why = "cut off".to_string();
        prop_assert_eq!(&found.shares[1].heard, &Heard::Malformed { why });
        prop_assert!(found.parts().contains("malformed"));
        let without = Signals { memory: Signal::NotConsulted, ..signals };
        prop_assert!(found.score <= score(&without));
    }

    #[test]
    fn what_was_calculated_reads_back_as_it_was(signals in any_signals(), number in 0_u8..=4) {
        let found = calculate(&signals, tier(number)).unwrap();
        let text = serde_json::to_string(&found).unwrap();
        prop_assert_eq!(serde_json::from_str::<Confidence>(&text).unwrap(), found);
    }
}
