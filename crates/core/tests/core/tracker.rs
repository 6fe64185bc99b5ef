//! Edits of the user in a tracker are understood, and those that are not understood are reported.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use tribunal_core::{
    brief::Said,
    effect::{Change, Remark, Reply, Request, Requests, Was},
    event::Event,
    files::Hunk,
    finding::{Cause, Deferral, Dismissal, Evidence, Finding, Severity, Status, Transition},
    ids::{FindingId, RunId},
    level::Level,
    review::Court,
    settings::Settings,
    stamp::Stamp,
    tracker::{is_untouched, read, render, run, stamped, status},
    view::RunView,
};
use tribunal_testkit::{
    ScriptedWorld, samples,
    trial::{Life, Trial, review_workflow as workflow},
};

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
    finding.apply(Transition::new(status, Cause::User, "so it stands"), Stamp::default());
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

/// Builds the request that changes a finding of [`sample_state`].
fn amend(finding: u32, change: Change) -> Request {
    let known = court().findings.into_iter().find(|known| known.id.0 == finding).unwrap();
    let was = Was { status: status(&known.status), severity: known.severity };
    Request::Amend { finding: FindingId(finding), was: Some(was), change }
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
    let say = Request::Say(Remark { about: Some(FindingId(1)), text: "Ask legal first, they know.".into() });
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
    let gone = format!("line {line}: the comment that says how F1 stood is gone or another's; ");
    assert!(strange("<!-- was: F1", "<!-- F1").starts_with(&gone));
    assert_eq!(
        strange("- Suggested fix: say when", "- Suggested fix: say who"),
        format!("line {line}: lines of F1 were changed that cannot be taken in")
    );
    assert_eq!(
        strange("<!-- ISSUES_END -->", ""),
        "the lines `<!-- ISSUES_START -->` and `<!-- ISSUES_END -->` are missing"
    );
    assert_eq!(strange("### [ ] F1", "stray\n### [ ] F1"), format!("line {line}: it belongs to no issue"));
}

#[test]
fn what_stands_around_the_issues_cannot_be_taken_in_and_is_named() {
    let text = tracker(&court());
    let strange = "lines outside the issues were changed, or an issue was taken out";
    let without = {
        let from = text.find("### [x] F2").unwrap();
        let to = text.find("### [ ] F3").unwrap();
        format!("{}{}", &text[..from], &text[to..])
    };
    for edited in [
        format!("{text}\n### [ ] new · critical\n\nat the very end\n"),
        text.replace("## Fix log", "## Fix log\n\nwe should talk about this"),
        text.replace("Workflow: review", "Workflow: mine"),
        without,
    ] {
        let edits = read(&edited);
        assert_eq!((edits.requests, edits.strange), (vec![], vec![strange.to_string()]), "{edited}");
    }
    // Issues that the user adds do not count as changes outside the issues.
    let added = text.replace("<!-- ISSUES_END -->", "### [ ] new · low\n\nmine\n\n<!-- ISSUES_END -->");
    assert_eq!(read(&added).strange, Vec::<String>::new());
}

#[test]
fn an_agent_s_text_is_never_taken_for_a_person_s() {
    let mut court = court();
    court.findings[0].description = "### [ ] F1 · low · dismissed: known".into();
    court.findings[0].suggested_fix = "one two three four five six seven".into();
    let text = tracker(&court);
    assert_eq!(read(&text), Default::default());
    // A line right under the heading belongs to the user, not to the description below it.
    let edits = read(&text.replacen("\n\\### [ ] F1", "\nmy word\n\\### [ ] F1", 1));
    assert_eq!(edits.requests, [Request::Say(Remark { about: Some(FindingId(1)), text: "my word".into() })]);
    assert_eq!(edits.strange, Vec::<String>::new());
    // An editor that only wraps lines makes no request.
    let edits = read(&text.replacen("three four", "three\nfour", 1));
    assert_eq!((edits.requests.len(), edits.strange.len()), (0, 1));
}

#[test]
fn an_edit_of_something_that_has_moved_on_is_left_aside_and_told() {
    let flawed = samples::flawed_text(1);
    let repaired = flawed.replace("flaw 1", "repaired");
    let hunk = Hunk { old_start: 5, old_len: 1, new_len: 1 };
    let was = Was { status: "open".into(), severity: Severity::High };
    let late = |change| Request::Amend { finding: FindingId(1), was: Some(was.clone()), change };
    let requests = vec![
        late(Change::Dismissed { reason: "we know".into() }),
        late(Change::Severity { to: Severity::Low }),
    ];
    let world = ScriptedWorld::default()
        .on("round-1/freeze", samples::frozen(&flawed))
        .on("round-1/review/adversarial", samples::findings(vec![samples::raised(1, Severity::High)]))
        .on("round-1/fix-1/fix/1", samples::fixes(vec![(FindingId(1), Said::Fixed)], true))
        .on("round-1/fix-1/fix/1/land", samples::landed(&repaired, vec![hunk]))
        .on("round-2/inbox", Reply::Inbox(Requests { requests }))
        .on("round-2/freeze", samples::frozen(&repaired))
        .on("round-2/review/adversarial", samples::findings(vec![]))
        .on("end/look", samples::frozen(&repaired));
    let settings = Settings { level: Some(Level::Minimal), ..samples::settings() };
    let mut trial = Trial::new(settings, world, 1);
    assert!(matches!(trial.live(workflow, None), Life::Done(_)));
    let finding = &RunView::of(&trial.journal).findings[&FindingId(1)];
    assert_eq!(
        (&finding.status, finding.severity),
        (&Status::Fixed, Severity::Low),
        "the severity still stood"
    );
    let says = "F1 was to be dismissed, when it was open; it is fixed by now and stays so";
    assert!(trial.journal.iter().any(|e| matches!(&e.event, Event::Warned { text } if text == says)));
}

fn any_status() -> impl Strategy<Value = Status> {
    prop::sample::select(vec![
        Status::Open,
        Status::Fixed,
        Status::Dismissed { why: Dismissal::Invalid },
        Status::Deferred { why: Deferral::Goal },
    ])
}

proptest! {
    /// An unedited tracker has no edits, and a single edit is found exactly, for any text that agents may write.
    #[test]
    fn only_what_was_edited_is_found(
        texts in prop::collection::vec(("(### |<!-- ISSUES_END -->|- |\\PC){0,60}", "\\PC{0,40}", any_status()), 1..6),
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
        let was = Was { status: status(&texts[id as usize - 1].2), severity: Severity::High };
        let change = Change::Severity { to: Severity::Low };
        prop_assert_eq!(read(&edited).requests, vec![Request::Amend { finding: FindingId(id), was: Some(was), change }]);
    }

    #[test]
    fn no_nonsense_makes_it_fall_over(
        text in "(### |\\[x\\]|F1| · |open|<!-- was: |<!-- ISSUES_START -->|<!-- ISSUES_END -->|\\n|\\PC){0,60}",
    ) {
        read(&text);
        is_untouched(&text);
    }
}
