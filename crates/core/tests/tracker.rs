//! What people change in a tracker is understood, and what is not is named.

use proptest::prelude::*;
use tribunal_core::{
    effect::{Change, Request},
    finding::{Deferral, Dismissal, Evidence, Finding, Severity, Status},
    ids::{FindingId, RunId},
    review::Court,
    stamp::Stamp,
    tracker::{is_untouched, read, render, run, stamped},
};
use tribunal_testkit::samples;

fn finding(id: u32, severity: Severity, status: Status) -> Finding {
    let mut finding = Finding {
        id: FindingId(id),
        severity,
        category: "clarity".into(),
        description: format!("number {id} is unclear"),
        evidence: Evidence::Quote { text: format!("line {id}") },
        place: None,
        found: None,
        suggested_fix: "say when".into(),
        raisers: vec![],
        status: Status::Open,
        maybe_same_as: None,
        history: vec![],
    };
    finding.move_to(status, Stamp::default(), "so it stands");
    finding
}

fn court() -> Court {
    let findings = vec![
        finding(1, Severity::High, Status::Open),
        finding(2, Severity::Low, Status::Fixed),
        finding(3, Severity::Medium, Status::Dismissed { why: Dismissal::Ungrounded }),
    ];
    Court { round: 1, findings, ..Court::default() }
}

fn tracker(court: &Court) -> String {
    stamped(render(court, &samples::settings(), 1, Stamp::default()), &RunId::new("plan-1234"))
}

fn amend(finding: u32, change: Change) -> Request {
    Request::Amend { finding: FindingId(finding), change }
}

#[test]
fn as_it_was_written_it_has_no_edits_and_says_whose_it_is() {
    let text = tracker(&court());
    assert_eq!((read(&text), run(&text)), (Default::default(), Some("plan-1234")));
    assert!(is_untouched(&text) && !is_untouched(&text.replace("high", "low")));
}

#[test]
fn ticks_severities_and_statuses_are_understood() {
    let reason = || String::from("it is meant so");
    for (from, to, expected) in [
        ("[ ] F1", "[x] F1", amend(1, Change::Fixed)),
        ("[x] F2", "[ ] F2", amend(2, Change::Open)),
        ("F1 · high ·", "F1 · critical ·", amend(1, Change::Severity { to: Severity::Critical })),
        ("F1 · high ·", "F1 · blocking ·", amend(1, Change::Severity { to: Severity::Critical })),
        ("high · open", "high · dismissed: it is meant so", amend(1, Change::Dismissed { reason: reason() })),
        ("high · open", "high · deferred (it is meant so)", amend(1, Change::Deferred { reason: reason() })),
        ("high · open", "high · Dismissed", amend(1, Change::Dismissed { reason: String::new() })),
        ("medium · dismissed (ungrounded)", "medium · open", amend(3, Change::Open)),
        ("high · open", "high · fixed", amend(1, Change::Fixed)),
    ] {
        let text = tracker(&court());
        assert!(text.contains(from), "{from}");
        let edits = read(&text.replacen(from, to, 1));
        assert_eq!((edits.requests, edits.strange), (vec![expected], vec![]), "{from} became {to}");
    }
}

#[test]
fn lines_below_an_issue_are_remarks() {
    let text = tracker(&court());
    let edited =
        text.replacen("- Category: clarity", "Ask legal first,\nthey know.\n\n- Category: clarity", 1);
    let say = Request::Say { text: "about F1: Ask legal first, they know.".into() };
    assert_eq!((read(&edited).requests, read(&edited).strange), (vec![say], vec![]));
}

#[test]
fn a_heading_without_a_known_id_is_a_finding_of_the_persons_own() {
    let with = |block: &str| {
        let text = tracker(&court()).replace("<!-- ISSUES_END -->", &format!("{block}\n<!-- ISSUES_END -->"));
        let edits = read(&text);
        assert_eq!(edits.strange, Vec::<String>::new(), "{block}");
        edits.requests
    };
    let added = |severity, description: &str, quote: &str| {
        vec![Request::Add { severity, description: description.into(), quote: quote.into() }]
    };
    assert_eq!(
        with("### [ ] new · high\n\nThe price is wrong.\nBy a lot.\n- Quote: “7 dollars”\n"),
        added(Severity::High, "The price is wrong. By a lot.", "7 dollars")
    );
    assert_eq!(with("### The price is wrong\n"), added(Severity::Medium, "The price is wrong", ""));
}

#[test]
fn what_cannot_be_understood_is_named_with_its_line() {
    let text = tracker(&court());
    let line = text.lines().position(|line| line.starts_with("### [ ] F1")).unwrap() + 1;
    let strange = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        read(&text.replacen(from, to, 1)).strange.join("; ")
    };
    assert_eq!(strange("high · open", "high · whatever"), format!("line {line}: `whatever` is no status"));
    assert_eq!(
        strange("F1 · high · open", "F1"),
        format!("line {line}: F1 has no severity any more; line {line}: `` is no status")
    );
    assert_eq!(
        strange("<!-- was: F1", "<!-- F1"),
        format!("line {line}: the comment that says how F1 stood is gone or another's")
    );
    assert_eq!(
        strange("- Suggested fix: say when", "- Suggested fix: say who"),
        format!("line {line}: lines of F1 were changed that cannot be taken in")
    );
    assert_eq!(
        strange("<!-- ISSUES_END -->", ""),
        "`<!-- ISSUES_START -->` or `<!-- ISSUES_END -->` is missing"
    );
    assert_eq!(strange("### [ ] F1", "stray\n### [ ] F1"), format!("line {line}: it belongs to no issue"));
}

#[test]
fn an_old_copy_brings_its_own_change_and_takes_none_of_ours_back() {
    let old = tracker(&court()).replacen("F3 · medium", "F3 · low", 1);
    let mut now = court();
    now.findings[0].move_to(Status::Fixed, Stamp::default(), "landed meanwhile");
    let edits = read(&old);
    assert_eq!(edits.requests, [amend(3, Change::Severity { to: Severity::Low })], "F1 is not opened again");
}

fn status() -> impl Strategy<Value = Status> {
    prop::sample::select(vec![
        Status::Open,
        Status::Fixed,
        Status::Dismissed { why: Dismissal::Invalid },
        Status::Deferred { why: Deferral::Goal },
    ])
}

proptest! {
    /// Whatever agents wrote: reading back what we wrote finds no edit, and one edit is found as that one.
    #[test]
    fn only_what_was_edited_is_found(
        texts in prop::collection::vec(("\\PC{0,60}", "\\PC{0,40}", status()), 1..6),
        at in any::<prop::sample::Index>(),
    ) {
        let mut court = court();
        court.findings.clear();
        for (index, (description, quote, status)) in texts.iter().enumerate() {
            let mut finding = finding(index as u32 + 1, Severity::High, status.clone());
            finding.description = description.clone();
            finding.evidence = Evidence::Quote { text: quote.clone() };
            court.findings.push(finding);
        }
        let text = tracker(&court);
        prop_assert_eq!(read(&text), Default::default());
        let id = at.index(texts.len()) as u32 + 1;
        let edited = text.replacen(&format!("] F{id} · high"), &format!("] F{id} · low"), 1);
        prop_assert_eq!(read(&edited).requests, vec![amend(id, Change::Severity { to: Severity::Low })]);
    }

    #[test]
    fn no_nonsense_makes_it_fall_over(
        text in "(### |\\[x\\]|F1| · |open|<!-- was: |<!-- ISSUES_START -->|<!-- ISSUES_END -->|\\n|\\PC){0,60}",
    ) {
        read(&text);
        is_untouched(&text);
    }
}
