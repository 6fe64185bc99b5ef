//! The rules of grounding: which quotes and absences are found, where and how, and which are never accepted.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use tribunal_workflows::{
    findings::finding::{Evidence, QuoteMatch, QuoteMatchKind, Severity},
    review::ground::{EvidenceFinder, GroundedEvidence},
    tasks::brief::RaisedFinding,
};

const PRD_TEXT: &str = "\
# Product

## 1. Goals & **Scope**

- The shop shall keep every order
  for 30 days – then it is *archived*.
- Admins can export “all” orders as CSV.
1. Orders over 100 EUR need two approvals.

> Note: the `api_key` is [masked:assignment] here.

### 1.1 Limits

Exports have at most 10,000 rows. Admins see a notice. They must not start a second export before the first has ended.

## Privacy

Users can ask for their data.
Admins can export “all” orders as CSV.

## Appendix

The service answers within 200 ms.
";

fn claim_with(evidence: Evidence, line: Option<u32>) -> RaisedFinding {
    RaisedFinding {
        severity: Severity::High,
        category: "x".into(),
        description: "x".into(),
        evidence,
        file: None,
        line,
        suggested_fix: String::new(),
    }
}

fn find_in_section(section: Option<&str>, evidence: Evidence, line: Option<u32>) -> Result<GroundedEvidence, String> {
    EvidenceFinder::new("docs/prd.md", PRD_TEXT, section).unwrap().find_evidence(&claim_with(evidence, line))
}

fn find_quote(text: &str, line: Option<u32>) -> Result<GroundedEvidence, String> {
    find_in_section(None, Evidence::Quote { text: text.into() }, line)
}

fn find_absence(heading: &str, terms: &[&str]) -> Result<GroundedEvidence, String> {
    let terms = terms.iter().map(ToString::to_string).collect();
    find_in_section(None, Evidence::Absence { heading: heading.into(), terms }, None)
}

/// Returns the first line, the last line, the heading and the match method.
fn place_and_method(grounded: &GroundedEvidence) -> (u32, u32, &str, Option<QuoteMatchKind>) {
    let place = &grounded.place;
    (place.line, place.end_line, &place.section, grounded.quote_match.map(|quote_match| quote_match.how))
}

const SCOPE_HEADING: &str = "1. Goals & **Scope**";

#[test]
fn an_exact_quote_has_no_match_method() {
    assert_eq!(
        place_and_method(&find_quote("Users can ask for their data.", Some(3)).unwrap()),
        (18, 18, "Privacy", None)
    );
}

#[test]
fn layout_and_typography_do_not_matter() {
    let folded_match = Some(QuoteMatchKind::Folded);
    for (quote, lines) in [
        ("The shop shall keep every order for 30 days - then it is archived.", (5, 6)),
        ("- The shop shall keep every order\n- for 30 days — then it is archived.", (5, 6)),
        ("keep every order\n\n   for 30 days", (5, 6)),
        ("archived. - Admins can export \"all\" orders", (6, 7)),
        ("* Orders over 100 EUR need two approvals.", (8, 8)),
        ("1. Goals & Scope", (3, 3)),
        ("Note: the api_key is [masked:token] here.", (10, 10)),
    ] {
        let grounded = find_quote(quote, None).unwrap_or_else(|reason| panic!("{quote}: {reason}"));
        assert_eq!(place_and_method(&grounded), (lines.0, lines.1, SCOPE_HEADING, folded_match), "{quote}");
        assert_eq!(grounded.actual_text, None);
    }
}

#[test]
fn of_several_places_the_nearest_counts_or_the_first_and_their_number_is_kept() {
    let quote = "Admins can export “all” orders as CSV.";
    let two_places = QuoteMatch { how: QuoteMatchKind::Exact, places: 2 };
    for (named_line, found_line) in [(None, 7), (Some(1), 7), (Some(20), 19), (Some(13), 7)] {
        let grounded = find_quote(quote, named_line).unwrap();
        assert_eq!((grounded.place.line, grounded.quote_match), (found_line, Some(two_places)), "{named_line:?}");
    }
    assert_eq!(two_places.to_string(), "exact match, 1 of 2 places");
}

#[test]
fn a_shortened_quote_is_found_by_its_parts() {
    let matched_in_parts = Some(QuoteMatchKind::Parts);
    for quote in [
        "The shop shall keep … then it is archived",
        "The shop shall keep [...] for 30 days ... export \"all\" orders as CSV",
        "…shop shall keep every order...",
    ] {
        let grounded = find_quote(quote, None).unwrap_or_else(|reason| panic!("{quote}: {reason}"));
        assert_eq!(
            (grounded.place.line, grounded.quote_match.map(|found| found.how)),
            (5, matched_in_parts),
            "{quote}"
        );
    }
    for quote in [
        // These have the wrong order, a part that is missing, too few words, and a meaning that the gap turns around.
        "then it is archived … The shop shall keep",
        "Users can ask … never written",
        "The … is",
        "They must … start a second export",
    ] {
        assert!(find_quote(quote, Some(14)).is_err(), "{quote}");
    }
    let negated_quote = find_quote("Exports have at most ... start a second export", None);
    assert!(negated_quote.is_err(), "the last sentence says not");
}

#[test]
fn parts_that_are_far_apart_are_not_one_quote() {
    let text = format!("It begins here.\n{}\nIt ends here.\n", "Filler without end\n".repeat(80));
    let ground = EvidenceFinder::new("a.md", &text, None).unwrap();
    let quote = Evidence::Quote { text: "It begins here … It ends here".into() };
    assert!(ground.find_evidence(&claim_with(quote, None)).is_err());
}

#[test]
fn an_almost_exact_quote_is_found_only_near_the_named_line_and_the_real_text_is_kept() {
    let quote = "They must not start another second export before the first has ended";
    let grounded = find_quote(quote, Some(12)).unwrap();
    assert_eq!((grounded.place.line, &*grounded.place.section), (14, "1.1 Limits"));
    assert_eq!(
        grounded.actual_text.as_deref(),
        Some("They must not start a second export before the first has ended.")
    );
    assert_eq!(grounded.quote_match.unwrap().to_string(), "91% match");
    assert!(find_quote(quote, None).is_err() && find_quote(quote, Some(40)).is_err());
}

#[test]
fn a_quote_with_another_meaning_is_not_found() {
    for quote in [
        "The shop shall keep every order for 90 days – then it is archived.",
        "The shop shall not keep every order for 30 days – then it is archived.",
        "They must start a second export before the first has ended.",
        "They may not start a second export before the first has ended.",
        "Note: the api_token is [masked:assignment] here.",
        "The service answers within 20",
        "The service answers within 200 m",
        "Exports have at most 10",
        "need two approval",
    ] {
        for line in [None, Some(5), Some(14), Some(23)] {
            assert!(find_quote(quote, line).is_err(), "{quote}");
        }
    }
}

#[test]
fn only_the_section_under_review_counts() {
    let find_in_privacy = |quote: &str, line| {
        let grounded = find_in_section(Some("privacy"), Evidence::Quote { text: quote.into() }, line);
        grounded.map(|grounded| (grounded.place.line, grounded.quote_match))
    };
    assert_eq!(find_in_privacy("Admins can export “all” orders as CSV.", Some(7)), Ok((19, None)));
    assert!(find_in_privacy("The service answers within 200 ms.", None).is_err());
    assert!(find_in_privacy("The shop shall keep every order of 30 days then it's archived", Some(17)).is_err());
    let absent_from_privacy = |heading: &str| {
        let terms = vec!["retention".to_string()];
        find_in_section(Some("privacy"), Evidence::Absence { heading: heading.into(), terms }, None)
    };
    assert!(absent_from_privacy("Privacy").is_ok() && absent_from_privacy("").is_ok());
    assert!(absent_from_privacy("Appendix").is_err());
}

#[test]
fn an_absence_may_spell_its_heading_in_any_usual_way() {
    for heading in [
        "Goals & Scope",
        "## 1. goals & scope",
        "**Goals** & scope:",
        "docs/prd.md: Goals & Scope",
        "prd.md#Goals & Scope",
    ] {
        let grounded = find_absence(heading, &["retention"]).unwrap_or_else(|reason| panic!("{heading}: {reason}"));
        assert_eq!(place_and_method(&grounded), (3, 3, SCOPE_HEADING, None), "{heading}");
    }
    assert_eq!(find_absence("other.md: Privacy", &["x"]).unwrap_err(), "heading not found: `other.md: Privacy`");
    assert_eq!(find_absence("", &["retention"]).unwrap().place.line, 1, "no heading: the whole text");
    assert_eq!(find_absence("docs/prd.md", &["retention"]).unwrap().place.line, 1);
}

#[test]
fn an_absence_is_refuted_by_any_of_its_terms_also_in_subsections() {
    for (heading, terms, reason) in [
        ("Goals & Scope", &["rows"][..], "found `rows` in line 14"),
        ("Goals & Scope", &["archive"], "found `archive` in line 6"),
        ("Goals & Scope", &["order for"], "found `order for` in line 5"),
        ("Goals & Scope", &["deletion", "api_key"], "found `api_key` in line 10"),
        ("", &["deletion", "ms"], "found `ms` in line 23"),
        ("Privacy", &[" "], "no search terms given"),
    ] {
        assert_eq!(find_absence(heading, terms).unwrap_err(), reason);
    }
    for (heading, terms) in [("Privacy", &["rows"][..]), ("Privacy", &["port"]), ("Goals & Scope", &["proval"])] {
        assert!(find_absence(heading, terms).is_ok(), "{terms:?}");
    }
}

#[test]
fn a_large_subject_is_searched_once_per_quote() {
    // These texts are hard for a careless search: they are all alike and almost match everywhere.
    let line = "the same words again and again and again until it ends ";
    let mut text = line.repeat(9_000);
    text.push_str(&"aaaaaaaaab ".repeat(20_000));
    text.push_str(&"\n- x".repeat(60_000));
    text.push_str("\n\nHere  it\nends at last.\n");
    let ground = EvidenceFinder::new("a.md", &text, None).unwrap();
    for attempt in 0..50 {
        let almost_quote = format!("again and again until it ended here at last number{attempt}");
        assert!(ground.find_evidence(&claim_with(Evidence::Quote { text: almost_quote }, Some(1))).is_err());
        let split_quote = format!("again and again … aaaaaaaaab aaaaaaaaac {attempt}");
        assert!(ground.find_evidence(&claim_with(Evidence::Quote { text: split_quote }, None)).is_err());
        let terms = vec![format!("again and never {attempt}")];
        let absence = Evidence::Absence { heading: String::new(), terms };
        assert!(ground.find_evidence(&claim_with(absence, None)).is_ok());
    }
    let last_quote = Evidence::Quote { text: "Here it ends at last.".into() };
    assert_eq!(ground.find_evidence(&claim_with(last_quote, None)).unwrap().place.line, 60_003);
}

proptest! {
    /// Any part of a text is found when it is quoted, however it is reflowed.
    #[test]
    fn every_reflowed_part_of_a_text_is_found(
        lines in prop::collection::vec((0_usize..6, prop::collection::vec(0_usize..8, 0..6)), 1..8),
        (from, length, between) in (0_usize..20, 1_usize..20, 0_usize..3),
    ) {
        let marks = ["", "  ", "- ", "> ", "12. ", "- [ ] "];
        let words = ["alpha", "**beta**", "“gamma”", "3.5", "user_id", "it’s", "x–y", "a > b"];
        let words_of = |line: &[usize]| line.iter().map(|word| words[*word]).collect::<Vec<_>>();
        let text: Vec<String> = lines.iter().map(|(mark, line)| marks[*mark].to_string() + &words_of(line).join(" ")).collect();
        let all: Vec<&str> = lines.iter().flat_map(|(_, line)| words_of(line)).collect();
        let Some(part) = all.get(from..(from + length).min(all.len())).filter(|part| !part.is_empty()) else { return Ok(()) };
        let quote = part.join([" ", "\n", "\n  - "][between]).replace("**", "").replace('’', "'");
        let text = text.join("\n");
        let ground = EvidenceFinder::new("a.md", &text, None).unwrap();
        let found = ground.find_evidence(&claim_with(Evidence::Quote { text: quote.clone() }, None));
        prop_assert!(found.is_ok(), "{:?} in {:?}", quote, text);
    }

    #[test]
    fn no_text_makes_it_panic(quote in "\\PC{0,60}", text in "[\\PC\n]{0,200}", line in proptest::option::of(0_u32..30)) {
        let ground = EvidenceFinder::new("a.md", &text, None).unwrap();
        let _ = ground.find_evidence(&claim_with(Evidence::Quote { text: quote.clone() }, line));
        let _ = ground.find_evidence(&claim_with(Evidence::Absence { heading: quote.clone(), terms: vec![quote] }, line));
    }
}
